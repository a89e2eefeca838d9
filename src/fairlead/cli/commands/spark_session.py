"""What commands on Spark share: options, with checks that do not need Spark; the session; and how signals stop a stream.

Takes: the arguments of a command. Gives: a session inside a `with`. Never: imports pyspark before a session is wanted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead.model.plans.plan import Plan
    from fairlead.runtime.spark.input.files import Form

events_option = click.option(
    "--events",
    "events",
    multiple=True,
    required=True,
    metavar="PATH...",
    help="Files, folders or patterns of events: Parquet, JSON Lines or CSV, also s3a://… and hdfs://….",
)
form_option = click.option(
    "--events-format",
    type=click.Choice(["parquet", "jsonl", "csv"]),
    help="The format, if no file extension shows it (empty folders).",
)
order_option = click.option(
    "--order-by", multiple=True, metavar="COLUMN", help="The column that orders the events; can be repeated."
)
type_option = click.option(
    "--type-column", default="type", show_default=True, metavar="COLUMN", help="The column with the event types."
)
master_option = click.option("--master", metavar="URL", help="Where Spark runs. [default: local[*], all cores of this machine]")
setting_option = click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the Spark session.")
buckets_option = click.option(
    "--buckets",
    type=click.IntRange(min=1),
    metavar="N",
    help="The number of tasks for the keys of PER. [default: number of cores]",
)
on_bad_option = click.option(
    "--on-bad", type=click.Choice(["stop", "skip"]), default="stop", show_default=True, help="What to do with a bad record."
)


def require_order(
    plan: Plan,
    order_by: tuple[str, ...],
    position: str | None,
    stream: bool = False,
    frontier: str | None = None,
    delay: str | None = None,
) -> None:
    """The checks of `match`, before Spark is started and in terms of the command line."""
    from fairlead.errors import UnsupportedError, UsageError

    if order_by and position:
        raise UsageError("A210", "both --order-by and --position are set", "use the one that the events are ordered by")
    if plan.order is not None and (order_by or position):
        option = "--order-by" if order_by else "--position"
        raise UsageError("A210", f"{option} is set, and the rules say {plan.order}", f"leave {option} out")
    if not order_by and not position and plan.order is None:
        fix = "--order-by at, or --position offset if the events come from a log"
        raise UsageError("A211", "the events have no order: neither --order-by nor --position is set", fix)
    if plan.order is not None and plan.order.delay_us is not None:
        if frontier or delay:
            problem = f"--frontier or --delay is set, and the rules say {plan.order}"
            raise UsageError("A218", problem, "leave them out: DELAY determines how far the stream is complete")
        return
    if position and (frontier or delay):
        raise UsageError(
            "A218", "--frontier and --delay are not supported with --position", "leave them out: positions determine the order"
        )
    if delay and not frontier:
        problem = f"--delay is {delay!r}, and --frontier is not set: there is nothing to delay"
        raise UsageError("A219", problem, "add --frontier types or --frontier stream")
    if stream and not position and not frontier:
        raise UnsupportedError(
            "U110",
            "nothing determines how far the stream is complete, so no event would be released",
            "--frontier types if each type arrives in order, --frontier stream if all events together do, "
            "or --position offset if they come from a log",
        )


def form_named(name: str | None) -> Form | None:
    known: dict[str | None, Form | None] = {"jsonl": "json", "parquet": "parquet", "csv": "csv", None: None}
    return known[name]


@contextmanager
def session_for(master: str | None, settings: tuple[str, ...]) -> Iterator[Any]:
    """A session whose own messages go to a file, which is named if an error without a code occurs."""
    from fairlead.cli.process import without_pandas
    from fairlead.errors import FairleadError
    from fairlead.runtime.spark.setup.messages import apart
    from fairlead.runtime.spark.setup.package_zip import ship
    from fairlead.runtime.spark.setup.session import session
    from fairlead.runtime.spark.setup.settings import local_cores

    named: dict[str, Any] = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.UsageError(f"--set {each!r}: write NAME=VALUE")
        named[name] = value
    without_pandas.show()
    log: Path | None = None
    try:
        with apart() as log:
            made = session(master, **named)
        if local_cores(str(made.sparkContext.master)) is None:
            ship(made)  # remote executors import this Fairlead; its dependencies must be installed there
        yield made
    except (FairleadError, click.ClickException, SystemExit, KeyboardInterrupt):
        raise
    except BaseException:
        if log is not None and log.stat().st_size:
            click.echo(f"Spark's own messages are in {log}", err=True)
            log = None
        raise
    finally:
        if log is not None:
            log.unlink()


class Stopping(threading.Event):
    """Set by Ctrl-C or a termination; `number` is that of the signal."""

    number: int | None = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Signals are recorded, not raised: an exception in the middle of a call to the JVM would make the connection unusable.
        The second one has its usual effect."""
        before: dict[int, Any] = {}

        def note(number: int, frame: FrameType | None) -> None:
            if self.is_set():
                signal.signal(number, before[number])
                signal.raise_signal(signal.Signals(number))
            self.number = number
            self.set()

        if threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
