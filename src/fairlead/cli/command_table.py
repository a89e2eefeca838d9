"""Wires the commands together; each is a file of its own.

Gives: `cli`, the group of them. Never: imports what a command needs before it is called, so `fairlead --help` does not wait
for Arrow.
"""

from __future__ import annotations

import click

from fairlead import __version__
from fairlead.cli.commands.backtest import backtest
from fairlead.cli.commands.compare import compare
from fairlead.cli.commands.error import error
from fairlead.cli.commands.explain import explain
from fairlead.cli.commands.gateway import gateway
from fairlead.cli.commands.kafka import kafka
from fairlead.cli.commands.lint import lint
from fairlead.cli.commands.run import run
from fairlead.cli.commands.spark import spark
from fairlead.cli.commands.test import test
from fairlead.cli.commands.why import why
from fairlead.cli.live.convert import convert
from fairlead.cli.live.declare import declare
from fairlead.cli.live.export import export
from fairlead.cli.live.publish import publish
from fairlead.cli.live.retain import retain
from fairlead.cli.live.rights import rights
from fairlead.cli.live.streams import streams
from fairlead.cli.live.tail import tail
from fairlead.cli.live.up import up
from fairlead.cli.process.shell import Shell


@click.group(cls=Shell, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "--version", message="fairlead %(version)s")
def cli() -> None:
    """Fair, strongly ordered event correlation: subscribers with the same rules get the same composite events, in the
    same order.

    \b
    Start with a rule file and some events:
      fairlead run market.fl --events quotes.jsonl
      fairlead explain market.fl
      fairlead why market.fl --events quotes.jsonl --at 7

    \b
    Or publish them, and subscribe:
      fairlead up
      fairlead declare market.fl
      fairlead publish --from quotes.jsonl
      fairlead tail market.fl --start earliest

    Exit codes: 0 success; 1 invalid rules or data, a difference or a failed test; 2 wrong usage; 130 interrupted.
    """


for command in (
    run,
    explain,
    lint,
    test,
    why,
    compare,
    up,
    declare,
    publish,
    tail,
    export,
    streams,
    retain,
    convert,
    spark,
    backtest,
    gateway,
    rights,
    kafka,
    error,
):
    cli.add_command(command)
