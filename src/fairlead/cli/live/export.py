"""`fairlead export`: the events of a log as a file, with the positions that they have there."""

from __future__ import annotations

from dataclasses import asdict

import click

from fairlead.cli.live.options import LogAddress, log_options
from fairlead.cli.options import json_option, print_json, rules_argument


@click.command(short_help="Write the events that rules read to a file, with their positions.")
@rules_argument
@click.option("--out", required=True, metavar="FILE", help="The Parquet file; it appears whole or not at all.")
@click.option("--subscription", "-s", metavar="NAME", help="Export the stream of this subscription, if the rules read several.")
@log_options
@json_option
def export(rules: str, out: str, subscription: str | None, where: LogAddress, as_json: bool) -> None:
    """Write the events that RULES read to FILE, up to the current end of the log. The column `position` is their position
    in the log.

    \b
    Examples:
      fairlead export market.fl --out day.parquet
      fairlead run market.fl --events day.parquet --position position

    The second command finds the relations that live subscribers found, in the same order and under the same ids.

    Subscriptions that read different types read different streams, each with its own order. For such rules, select a
    stream with --subscription; `run --subscription` runs the subscriptions that read it. A disjunction reads one stream
    for each of its conjunctions; its file has an additional column `stream`, for `run --stream stream`.
    """
    from fairlead.cli.display.progress import counting
    from fairlead.cli.display.screen import counted
    from fairlead.cli.files.rule_files import naming, read_rules

    text = read_rules(rules)
    with naming(rules), where.opened() as fl, counting("exporting"):
        done = fl.export(text, out, subscription=subscription)
    if as_json:
        print_json(asdict(done) | {"out": out})
        return
    click.echo(f"{counted(done.events, 'event')} of {', '.join(done.types)} in {out}", err=True)
