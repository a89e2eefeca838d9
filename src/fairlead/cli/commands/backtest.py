"""`fairlead backtest`: how many relations the rules would have had, day by day, over files of the past (on Spark)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from fairlead.cli.commands.spark_session import (
    buckets_option,
    events_option,
    form_named,
    form_option,
    master_option,
    on_bad_option,
    order_option,
    session_for,
    setting_option,
    type_option,
)
from fairlead.cli.options import EventsCommand, json_option, print_json, rules_argument

if TYPE_CHECKING:
    from fairlead.runtime.spark.backtest import Backtest

BAR_WIDTH = 40


@click.command(cls=EventsCommand, short_help="Count relations by subscription and day in historical files, on Spark.")
@rules_argument
@events_option
@form_option
@order_option
@type_option
@click.option("--since", metavar="TIME", help="Read only events from this day or time.")
@click.option("--until", metavar="TIME", help="Read only events up to this day or time; decide absences that are due by then.")
@on_bad_option
@click.option("--plot", "picture", metavar="FILE", help="Also draw the counts: .png, .svg or .pdf (needs matplotlib).")
@buckets_option
@master_option
@setting_option
@json_option
def backtest(
    rules: str,
    events: tuple[str, ...],
    events_format: str | None,
    order_by: tuple[str, ...],
    type_column: str,
    since: str | None,
    until: str | None,
    on_bad: Literal["stop", "skip"],
    picture: str | None,
    buckets: int | None,
    master: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Count the relations of RULES over the events of PATHs, by subscription and day, without writing them.

    \b
    Examples:
      fairlead backtest market.fl --events year/ --since 2026-01-01 --until 2026-03-31
      fairlead backtest market.fl --events year/ --order-by at --plot year.png

    A relation counts for the day (UTC) of the event that completed it. Events before --since are not read, so relations
    that include them are not found: start earlier, by the length of the window (WITHIN). Without --order-by, events are
    in the order of the rules (ORDER BY), or ordered by the column `at`.
    """
    from fairlead.cli.files.rule_files import load_plan
    from fairlead.runtime.sorting import ordered_plan
    from fairlead.runtime.spark.backtest import backtest as tested
    from fairlead.runtime.spark.backtest import plot
    from fairlead.runtime.spark.input.files import Ordered, ordered_as_stated, read

    plan = load_plan(rules)
    ordered_plan(plan, order_by, "--order-by")  # refuses two orders before Spark is started
    ordered = ordered_as_stated(plan, Ordered(order_by or (() if plan.order else ("at",)), None, type_column))
    with session_for(master, settings) as running:
        source = read(running, plan, events, ordered, on_bad=on_bad, form=form_named(events_format))
        found = tested(plan, source, ordered, since, until, buckets)
    if picture is not None:
        plot(found, picture)
    if as_json:
        print_json(found.to_json())
    else:
        _show(found)


def _show(found: Backtest) -> None:
    from fairlead.cli.display.screen import console, counted, table
    from fairlead.runtime.spark.backtest import bar

    screen = console()
    total = sum(found.counts.values())
    refused = f", {found.ahead:,} ahead" if found.ahead else ""
    refused += f", {found.rejected:,} rejected" if found.rejected else ""
    screen.print(f"{counted(found.events, 'event')}{refused}, {counted(total, 'relation')} in {found.seconds:.1f} s")
    screen.print()
    most = max(found.counts.values(), default=0)
    made = table("subscription", "day", "relations", "", right=("relations",))
    for each in found.plan.subscriptions:
        made.add_row(each.name, "all", f"{found.total(each.name):,}", "")
        for day, number in found.of(each.name):
            made.add_row("", str(day or "no time"), f"{number:,}", bar(number, most, BAR_WIDTH))
    screen.print(made)
