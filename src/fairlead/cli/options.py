"""Options that several commands share.

Gives: `--events` that accepts many files after it, and `--json`. Never: opens a file.
"""

from __future__ import annotations

import json
from typing import Any

import click

from fairlead.errors import UNSAFE

EVENTS = "--events"


class EventsCommand(click.Command):
    """A command whose `--events` extends to the next option: `--events a.jsonl b.jsonl` is `--events a.jsonl --events b.jsonl`.
    `--` ends the list."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, spread(args))


def spread(args: list[str]) -> list[str]:
    """Each file after `--events` with an `--events` of its own.

    >>> spread(["rules.fl", "--events", "a", "b", "--json"])
    ['rules.fl', '--events', 'a', '--events', 'b', '--json']
    """
    found: list[str] = []
    in_list = expects_value = False
    for at, each in enumerate(args):
        if each == "--":
            return found + args[at:]
        if expects_value:
            expects_value = False
            found.append(each)
        elif each.startswith("-"):
            in_list = each == EVENTS or each.startswith(f"{EVENTS}=")
            expects_value = each == EVENTS
            found.append(each)
        else:
            found += [EVENTS, each] if in_list else [each]
    return found


rules_argument = click.argument("rules", metavar="RULES")
events_option = click.option(
    EVENTS,
    "events",
    multiple=True,
    required=True,
    metavar="FILE...",
    help="Files or directories of events, read in this order: .jsonl, .csv (also .gz) or .parquet.",
)
until_option = click.option(
    "--until", metavar="TIME", help="There are no more events up to and including this time: decide absences that are due."
)
position_option = click.option(
    "--position",
    "position_field",
    metavar="COLUMN",
    help="The field or column with the position, such as the offset in a log.",
)
order_by_option = click.option(
    "--order-by",
    multiple=True,
    metavar="COLUMN",
    help="Order the events of all files by this field or column, in memory; can be repeated.",
)
allow_nan_option = click.option("--allow-nan", is_flag=True, help="Accept NaN and infinities; without it they are bad records.")
event_by_event_option = click.option(
    "--event-by-event",
    is_flag=True,
    help="Run in Python, for rules that cannot be compiled to machine code (U001); about a hundred times slower.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON value to standard output.")


def print_json(value: Any, err: bool = False) -> None:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
    click.echo(UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text), err=err)


def require_one_order(order: str, position: str | None) -> None:
    """`order`: ORDER BY of the rules, or of --order-by."""
    if order and position is not None:
        from fairlead.errors import UsageError

        raise UsageError("A210", f"--position is set, and the events are ordered by value: {order}", "leave --position out")
