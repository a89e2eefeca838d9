"""`fairlead retain`: what the policies of topics trim, and trimming it."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from fairlead.cli.live.options import LogAddress, log_options
from fairlead.cli.options import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.runtime.live.retention import TopicRetention


@click.command(short_help="Trim the topics of a log by their policies, or what all subscribers have read.")
@click.option("--apply", is_flag=True, help="Remove the blocks. Without this option, only show what would be removed.")
@click.option("--read", is_flag=True, help="Also trim topics without KEEP, as far as all durable subscribers have read them.")
@click.option(
    "--forget-sources",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Also forget named sources without events in the log that have stored nothing for so long.",
)
@click.option("--every", type=click.FloatRange(min=1), metavar="SECONDS", help="Repeat until interrupted.")
@log_options
@json_option
def retain(
    apply: bool, read: bool, forget_sources: float | None, every: float | None, where: LogAddress, as_json: bool
) -> None:
    """Show what the policies of the topics (`TOPIC name (…) KEEP 30 DAYS`) trim, and with --apply trim it.

    \b
    Examples:
      fairlead retain
      fairlead retain --apply --every 600
      fairlead retain --apply --read --json

    A policy applies to subscribers that have not read the events, too: the column `not read by` names them. When such a
    subscriber resumes, it gets an error that says what it lost (S144).
    """
    forgotten = None if forget_sources is None else timedelta(days=forget_sources)
    with where.opened() as fl:
        while True:
            found = fl.retain(apply=apply, read=read, sources=forgotten)
            if as_json:
                print_json({"applied": apply, "topics": [asdict(each) | {"blocks": each.blocks} for each in found]})
            else:
                _show(found, applied=apply)
            if every is None:
                return
            time.sleep(every)


def _show(found: Sequence[TopicRetention], *, applied: bool) -> None:
    from fairlead.cli.display.screen import console, table

    numbers = ("blocks", "bytes", "trimmed" if applied else "would trim")
    made = table("topic", "keep", *numbers, "by", "not read by", right=numbers)
    for each in found:
        counts = (f"{number:,}" for number in (each.blocks, each.bytes, each.trimmed))
        made.add_row(each.topic, each.keep, *counts, each.why, ", ".join(each.behind))
    console().print(made)
