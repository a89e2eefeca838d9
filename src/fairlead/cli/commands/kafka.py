"""`fairlead kafka in` and `fairlead kafka out`: a topic into the log, and relations out to a topic."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import asyncio

    from fairlead.errors import DataError
    from fairlead.runtime.live.client import Client


@click.group(short_help="Read events from Kafka, and send relations to it.")
def kafka() -> None:
    """Connect Kafka to the log. Install it with pip install 'fairlead[kafka,live]'."""


brokers_option = click.option("--brokers", required=True, metavar="HOST:PORT,...", help="The Kafka brokers.")
topic_option = click.option("--topic", required=True, help="The topic.")
url_option = click.option("--url", metavar="URL", help="The NATS server or cluster. [default: FAIRLEAD_URL]")
properties_option = click.option("--properties", metavar="FILE", help="key=value lines for the Kafka client: TLS, SASL.")


@kafka.command("in", short_help="Store the messages of a topic in the log, each once.")
@brokers_option
@topic_option
@click.option("--type", "type_name", required=True, metavar="TYPE", help="The declared type of the events.")
@url_option
@properties_option
@click.option("--source", default="kafka", show_default=True, help="The prefix of source names: SOURCE-TOPIC-PARTITION.")
@click.option(
    "--on-bad", type=click.Choice(["stop", "skip"]), default="stop", show_default=True, help="What to do with a bad message."
)
@click.option("--until-end", is_flag=True, help="Stop at the current end of the topic; without it, run until interrupted.")
def bring_in(
    brokers: str,
    topic: str,
    type_name: str,
    url: str | None,
    properties: str | None,
    source: str,
    on_bad: str,
    until_end: bool,
) -> None:
    """Store the messages of a topic as events of a type: JSON objects of its attributes, or CloudEvents. The partition is
    the source and the offset its sequence, so a restart resumes from what the log has, and nothing is stored twice.

    \b
    Example:
      fairlead kafka in --brokers localhost:9092 --topic orders --type Order --url nats://localhost:4222
    """

    async def work(client: Client, stop: asyncio.Event) -> str:
        from fairlead.cli.display.screen import counted
        from fairlead.runtime.kafka.brokers import properties_of
        from fairlead.runtime.kafka.inward import Topic
        from fairlead.runtime.kafka.inward import bring_in as bringing

        skip = _skipped if on_bad == "skip" else None
        asked = Topic(brokers, topic, type_name, properties_of(properties), source, skip, until_end)
        return f"{counted(await bringing(client, asked, stop), 'event')} stored"

    _run(url, work)


@kafka.command("out", short_help="Send the relations of rules to a topic, each once.")
@click.argument("rules", metavar="RULES")
@brokers_option
@topic_option
@click.option("--name", required=True, help="The name of the durable subscriber.")
@click.option("--start", default="new", show_default=True, help="Where a new subscriber starts: new, earliest, snapshot.")
@url_option
@properties_option
@click.option("--partition", default=0, show_default=True, help="The partition; only one, to keep the order.")
@click.option(
    "--what",
    type=click.Choice(["relations", "cloudevents", "emitted"]),
    default="relations",
    show_default=True,
    help="What a message contains.",
)
def send_out(
    rules: str,
    brokers: str,
    topic: str,
    name: str,
    start: str,
    url: str | None,
    properties: str | None,
    partition: int,
    what: str,
) -> None:
    """Send the relations of RULES to a topic, with their ids as keys. A restart resumes after the last message in the
    topic.

    \b
    Example:
      fairlead kafka out market.fl --brokers localhost:9092 --topic alarms --name alarms-out
    """

    async def work(client: Client, stop: asyncio.Event) -> str:
        from fairlead.cli.display.screen import counted
        from fairlead.cli.files.rule_files import read_rules
        from fairlead.runtime.kafka.brokers import properties_of
        from fairlead.runtime.kafka.outward import Outlet
        from fairlead.runtime.kafka.outward import send_out as sending

        outlet = Outlet(brokers, topic, properties_of(properties), partition, what)
        async with client.subscribe(read_rules(rules), name=name, start=start) as sub:
            return f"{counted(await sending(sub, outlet, stop), 'message')} sent"

    _run(url, work)


def _skipped(error: DataError) -> None:
    click.echo(f"left out: {error}", err=True)


def _run(url: str | None, work: Callable[[Any, asyncio.Event], Awaitable[str]]) -> None:
    import asyncio

    from fairlead.errors import UnsupportedError

    try:
        import fairlead.runtime.kafka.brokers  # noqa: F401  whether the client of Kafka is there
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise UnsupportedError("U131", "the Kafka client is not installed", "pip install 'fairlead[kafka,live]'") from None
    click.echo(asyncio.run(_until_stopped(url, work)))


async def _until_stopped(url: str | None, work: Callable[[Any, asyncio.Event], Awaitable[str]]) -> str:
    import asyncio
    import os
    import signal

    from fairlead.errors import UsageError
    from fairlead.runtime.live.client import connect

    if url is None and not os.environ.get("FAIRLEAD_URL"):
        raise UsageError("A290", "no log server is named", "--url nats://HOST:PORT, or set FAIRLEAD_URL")
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    async with connect(url) as client:
        return await work(client, stop)
