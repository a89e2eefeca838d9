"""`fairlead why`: what became of one event, and what kept it from a match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.options import (
    EventsCommand,
    allow_nan_option,
    events_option,
    json_option,
    order_by_option,
    position_option,
    print_json,
    require_one_order,
    rules_argument,
    until_option,
)

if TYPE_CHECKING:
    from fairlead.model.columns import Columns
    from fairlead.model.event import Event
    from fairlead.model.types import Catalogue
    from fairlead.runtime.why import BranchFinding

VERDICT_STYLES = {"matched": "green", "pending": "yellow", "waiting": "yellow", "noted": "cyan", "not read": "dim"}


@click.command(cls=EventsCommand, short_help="Explain why an event matched or did not match.")
@rules_argument
@events_option
@click.option(
    "--at", "position", required=True, metavar="POSITION", help="The event's position: 7, or 7+1 for a derived event."
)
@order_by_option
@position_option
@click.option("--subscription", "-s", metavar="NAME", help="Show only this subscription.")
@allow_nan_option
@until_option
@json_option
def why(
    rules: str,
    events: tuple[str, ...],
    position: str,
    order_by: tuple[str, ...],
    position_field: str | None,
    subscription: str | None,
    allow_nan: bool,
    until: str | None,
    as_json: bool,
) -> None:
    """Replay the events of FILEs and explain what became of the event at POSITION, for each subscription.

    \b
    Example:
      fairlead why market.fl --events quotes.jsonl --at 7

    Prints a verdict (not read, no key, refused, noted, expired, too early, disposed, waiting, cancelled, pending or
    matched) and its reason: the condition that is not true with the values it read, the window, the disposal, the missing
    partner. Positions count from 0 over all records of all files, in their order or that of --order-by, unless
    --position names the field with the positions.
    """
    from fairlead.cli.rules import load_plan
    from fairlead.model.arguments import subscription_named
    from fairlead.runtime.embedded import until_microseconds
    from fairlead.runtime.sorting import AllFresh, in_total_order, order_of, ordered_plan
    from fairlead.runtime.why import why as explained
    from fairlead.transport.files.event_files import read_files

    plan = ordered_plan(load_plan(rules), order_by, "--order-by")
    if subscription is not None:
        subscription_named(plan, subscription)
    seen: list[Event] = []
    order = order_of(plan, order_by) if order_by or plan.order else None
    require_one_order(str(order or ""), position_field)
    sequences = AllFresh() if order else None
    read = read_files(events, plan.catalogue, allow_nan=allow_nan, position=position_field, last_sequences=sequences)
    ordered = [in_total_order(read, order, plan.catalogue)] if order else read
    batches = _noting(ordered, position, plan.catalogue, seen)
    findings = explained(plan, batches, position, until_microseconds(until))
    chosen = [each for each in findings if subscription in (None, each.subscription)]
    if as_json:
        shown = seen[0].to_json() if seen else None
        print_json({"position": position, "event": shown, "findings": [each.to_json() for each in chosen]})
    else:
        _show(position, seen, chosen)


def _noting(batches: Iterable[Columns], position: str, catalogue: Catalogue, seen: list[Event]) -> Iterator[Columns]:
    """The batches unchanged; the event of the input at the position goes to `seen`."""
    wanted = int(position) if position.isdecimal() else -1
    for columns in batches:
        if len(columns) and columns.positions[0] <= wanted <= columns.positions[-1]:
            seen += [each for each in columns.events(catalogue) if each.position.major == wanted]
        yield columns


def _show(position: str, seen: list[Event], findings: list[BranchFinding]) -> None:
    from rich.text import Text

    from fairlead.cli.screen import console

    screen = console()
    if seen:
        content = dict(seen[0].to_json())
        name = content.pop("type")
        values = ", ".join(f"{key} = {_value(value)}" for key, value in content.items())
        screen.print(f"{name} at position {position}: {values}\n", soft_wrap=True)
    branches = {(each.subscription, each.branch) for each in findings}
    for each in findings:
        several = (each.subscription, 1) in branches
        head = f"{each.subscription}, branch {each.branch}: " if several else f"{each.subscription}: "
        screen.print(
            Text(head, style="bold") + Text(each.verdict, style=VERDICT_STYLES.get(each.verdict, "red")), soft_wrap=True
        )
        for reason in each.reasons:
            screen.print(f"  {reason}", soft_wrap=True)


def _value(value: Any) -> str:
    return "NULL" if value is None else str(value)
