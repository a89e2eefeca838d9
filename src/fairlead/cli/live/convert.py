"""`fairlead convert`: a log of the first edition, without topics, as a new log."""

from __future__ import annotations

import click

from fairlead.cli.live.options import LogAddress, log_options
from fairlead.cli.options import json_option, print_json


@click.command(short_help="Copy a log of a release without topics to a new log.")
@click.option("--from", "old", required=True, metavar="URL", help="The old log; nothing is written to it.")
@click.option("--topics", metavar="FILE", help="A file of TOPIC statements. [default: all types in the topic main]")
@log_options
@json_option
def convert(old: str, topics: str | None, where: LogAddress, as_json: bool) -> None:
    """Copy the types and events of a log without topics (N013) to the log at --url.

    \b
    Examples:
      fairlead up --data old --port 4222 & fairlead up --data new --port 4223
      fairlead convert --from nats://127.0.0.1:4222 --url nats://127.0.0.1:4223
      fairlead convert --from file:old --url file:new --topics topics.fl

    Stop the publishers of the old log first. Events of different types are ordered by the times at which they were stored.
    If the command is interrupted, repeat it. Derived events and durable subscribers are not copied: positions differ in the
    new log, so subscribers start again, and derive again.
    """
    import asyncio

    from fairlead.cli.files.rule_files import naming, read_rules
    from fairlead.runtime.live.log_conversion import convert_log
    from fairlead.transport.log.credentials import Credentials

    where.require()
    text = read_rules(topics) if topics else ""
    with naming(topics or "-"):
        found = asyncio.run(convert_log(old, where.url, text, Credentials(**where.credentials)))
    if as_json:
        print_json({"events": dict(found.events), "topics": dict(found.topics)})
    else:
        lines = [f"  {number:>12,}  {name} (topic {found.topics[name]})" for name, number in found.events.items()]
        click.echo("\n".join(["converted:", *lines]) if lines else "nothing to convert")
