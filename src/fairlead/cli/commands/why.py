"""`fairlead why`: what became of one event, and what kept it from a match."""

from __future__ import annotations

from collections import Counter
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
    from fairlead.model.events.columns import Columns
    from fairlead.model.events.event import Event
    from fairlead.model.events.types import Catalogue
    from fairlead.model.events.verdict import EventVerdict
    from fairlead.model.plans.plan import Plan
    from fairlead.runtime.event_time import FrontierGroup
    from fairlead.runtime.why import BranchFinding

VERDICT_STYLES = {"matched": "green", "pending": "yellow", "waiting": "yellow", "noted": "cyan", "not read": "dim"}


@click.command(cls=EventsCommand, short_help="Explain why an event matched or did not match.")
@rules_argument
@events_option
@click.option("--at", "position", metavar="POSITION", help="The event's position: 7, or 7+1 for a derived event.")
@click.option(
    "--relation", metavar="ID", help="With ORDER BY … DELAY: what became of a relation, by the first digits of its id."
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
    position: str | None,
    relation: str | None,
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
      fairlead why market.fl --events quotes.jsonl --relation 3f2a9c

    Prints a verdict (not read, no key, refused, noted, expired, too early, forbidden, disposed, waiting, cancelled, limited,
    pending or matched) and its reason: the condition that is not true with the values it read, the window, the
    disposal, the missing partner. Positions count from 0 over all records of all files, in their order or that of
    --order-by, unless --position names the field with the positions. With ORDER BY … DELAY, positions are those of the
    sorted events without the ones that are late or ahead, which are counted. An event that takes part in some
    subscriptions only has a position; for the others, its verdict is late or ahead.

    With --relation, the files are read in the order of arrival: prints when the relation was delivered, and which late
    events took it back or added it (LATE REVISE).
    """
    from fairlead.cli.files.rule_files import load_plan
    from fairlead.model.arguments import subscription_named
    from fairlead.runtime.embedded import until_microseconds
    from fairlead.runtime.event_time import frontier_groups, taking_part
    from fairlead.runtime.event_time.history import why_in_event_time
    from fairlead.runtime.sorting import AllFresh, in_total_order, order_of, ordered_plan, with_arrivals
    from fairlead.runtime.why import why as explained
    from fairlead.transport.files.event_files import read_files

    if (position is None) == (relation is None):
        raise click.UsageError("name an event with --at, or a relation with --relation")
    plan = ordered_plan(load_plan(rules), order_by or None, "--order-by")
    if position is None:
        _tell_relation(plan, events, str(relation), allow_nan, until_microseconds(until), as_json)
        return
    if subscription is not None:
        subscription_named(plan, subscription)
    seen: list[Event] = []
    order = order_of(plan, order_by) if order_by or plan.order else None
    require_one_order(str(order or ""), position_field)
    sequences = AllFresh() if order else None
    read = read_files(events, plan.catalogue, allow_nan=allow_nan, position=position_field, last_sequences=sequences)
    apart: Counter[str] = Counter()
    if order is not None and plan.order is not None:
        groups: dict[FrontierGroup, dict[int, EventVerdict]] = {each: {} for each in frontier_groups(plan)}
        told = taking_part(read, plan, lambda each: apart.update(verdict.value for verdict in each.verdicts), groups)
        sequence, by = with_arrivals(told, order, plan.catalogue)
        batches = _noting([sequence], position, plan.catalogue, seen)
        findings = why_in_event_time(plan, batches, groups, by, position, until_microseconds(until))
    else:
        ordered = [in_total_order(read, order, plan.catalogue)] if order else read
        batches = _noting(ordered, position, plan.catalogue, seen)
        findings = explained(plan, batches, position, until_microseconds(until))
    chosen = [each for each in findings if subscription in (None, each.subscription)]
    if as_json:
        shown = seen[0].to_json() if seen else None
        verdicts = {"verdicts": dict(apart)} if plan.order is not None else {}
        print_json({"position": position, "event": shown, "findings": [each.to_json() for each in chosen]} | verdicts)
    else:
        _show(position, seen, chosen)
        if apart:
            counts = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(apart.items()))
            click.echo(f"\nWithout a position, because they take no part: {counts} (`fairlead run --late FILE` lists them).")


def _tell_relation(
    plan: Plan, files: tuple[str, ...], relation: str, allow_nan: bool, until: int | None, as_json: bool
) -> None:
    from fairlead.cli.display.screen import console
    from fairlead.errors import UsageError
    from fairlead.runtime.event_time.history import relation_history
    from fairlead.runtime.sorting import AllFresh
    from fairlead.transport.files.event_files import read_files

    if plan.order is None or plan.order.delay_us is None:
        problem = "--relation is about rules with ORDER BY … DELAY: others take no relation back"
        raise UsageError("A298", problem, "use --at POSITION")
    batches = list(read_files(files, plan.catalogue, allow_nan=allow_nan, last_sequences=AllFresh()))
    steps = relation_history(plan, batches, relation.lower(), until)
    if len({each.relation.id for each in steps}) != 1:
        problem = f"{'no relation has' if not steps else 'several relations have'} an id that begins with '{relation}'"
        raise UsageError("A298", problem, "copy the id from the output of `fairlead run --out`")
    found = steps[0].relation
    if as_json:
        print_json({"relation": found.id, "subscription": found.subscription, "history": [each.to_json() for each in steps]})
        return
    screen = console()
    screen.print(f"{found.subscription} {found.id}", soft_wrap=True)
    for each in steps:
        what = "delivered" if each.round is None else "taken back" if each.relation.sign < 0 else "added"
        screen.print(f"  {what} at event {each.position} of the input", soft_wrap=True)
        for cause in each.causes:
            content = ", ".join(f"{name} = {_value(value)}" for name, value in cause.to_json().items() if name != "type")
            screen.print(f"    by the late {cause.type} at {cause.position.shown}: {content}", soft_wrap=True)


def _noting(batches: Iterable[Columns], position: str, catalogue: Catalogue, seen: list[Event]) -> Iterator[Columns]:
    """The batches unchanged; the event of the input at the position goes to `seen`."""
    wanted = int(position) if position.isdecimal() else -1
    for columns in batches:
        if len(columns) and columns.positions[0] <= wanted <= columns.positions[-1]:
            seen += [each for each in columns.events(catalogue) if each.position.major == wanted]
        yield columns


def _show(position: str, seen: list[Event], findings: list[BranchFinding]) -> None:
    from rich.text import Text

    from fairlead.cli.display.screen import console

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
