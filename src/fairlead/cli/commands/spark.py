"""`fairlead spark`: rules on Apache Spark, from files to files, once or without an end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

import click

from fairlead.cli.commands.spark_session import (
    Stopping,
    buckets_option,
    events_option,
    form_named,
    form_option,
    master_option,
    on_bad_option,
    order_option,
    require_order,
    session_for,
    setting_option,
    type_option,
)
from fairlead.cli.options import EventsCommand, json_option, print_json, rules_argument, until_option
from fairlead.dataclass import dataclass

if TYPE_CHECKING:
    from fairlead.matching.state.encoding import Change
    from fairlead.model.plans.plan import Plan
    from fairlead.runtime.spark.file_jobs import Done
    from fairlead.runtime.spark.input.files import Form, Ordered
    from fairlead.runtime.spark.output.folders import Outputs
    from fairlead.runtime.spark.stream.progress import Snapshot


@click.group(short_help="Run rules on Apache Spark, over files or streams.")
def spark() -> None:
    """Run rules on Apache Spark: large files, clusters and streams. Install it with pip install 'fairlead[spark,java]'."""


@spark.command(short_help="Show how the rules would run: tasks, keys, shuffles, settings.")
@rules_argument
@buckets_option
@click.option("--stream", is_flag=True, help="Explain a stream instead of a batch job.")
@click.option("--master", metavar="URL", help="Where Spark would run. [default: local[*]]")
@json_option
def explain(rules: str, buckets: int | None, stream: bool, master: str | None, as_json: bool) -> None:
    """Show how RULES would run: which subscriptions are spread over tasks by key, which are not and why, what is
    shuffled, and the settings of a session. This runs nothing and does not need an installed Spark.

    \b
    Example:
      fairlead spark explain market.fl --buckets 64
    """
    from fairlead.cli.files.rule_files import load_plan
    from fairlead.runtime.spark.job.job_plan import explain as explained

    shape = explained(load_plan(rules), buckets=buckets, streaming=stream, master=master)
    if as_json:
        print_json(shape.to_json())
    else:
        click.echo(str(shape))


@dataclass(frozen=True)
class SparkRunArguments:
    """The arguments of `run`."""

    rules: str
    events: tuple[str, ...]
    form: Form | None
    ordered: Ordered
    out: Outputs
    checkpoint: str
    stream: bool
    once: bool
    every: str
    files_per_batch: int | None
    frontier: Literal["types", "stream"] | None
    delay: str | None
    until: str | None
    buckets: int | None
    on_bad: Literal["stop", "skip"]
    overwrite: bool
    metrics_port: int | None


@spark.command(cls=EventsCommand, short_help="Match the events of files or of a stream on Spark.")
@rules_argument
@events_option
@form_option
@click.option("--out", required=True, metavar="PATH", help="The folder for the relations.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "jsonl", "csv", "delta", "iceberg"]),
    default="parquet",
    show_default=True,
    help="The output format.",
)
@click.option("--late", metavar="PATH", help="The folder for late events. [default: OUT.late]")
@click.option("--rejected", metavar="PATH", help="The folder for bad records. [default: OUT.rejected]")
@click.option("--overwrite", is_flag=True, help="Replace existing folders.")
@order_option
@click.option("--position", metavar="COLUMN", help="The column with the position, such as the offset in a log.")
@type_option
@click.option("--source", metavar="COLUMN", help="The column with the publisher of a row.")
@click.option("--sequence", metavar="COLUMN", help="The column with the row's number in its source; repeats are dropped.")
@on_bad_option
@until_option
@click.option("--stream", is_flag=True, help="Run as a stream: continue with new files in the folders.")
@click.option("--once", is_flag=True, help="With --stream: stop when all existing files are read.")
@click.option("--checkpoint", metavar="DIR", help="With --stream: where to resume from. [default: OUT.checkpoint]")
@click.option(
    "--frontier",
    type=click.Choice(["types", "stream"]),
    help="With --stream: what arrives in order, each type or the whole stream.",
)
@click.option("--delay", metavar="TIME", help="With --frontier: how far events can be out of order, such as '10 seconds'.")
@click.option(
    "--every", default="1 second", show_default=True, metavar="TIME", help="With --stream: the interval of micro-batches."
)
@click.option(
    "--files-per-batch",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --stream: the maximum number of files per micro-batch.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="With --stream: serve Prometheus metrics on this port of 127.0.0.1.",
)
@buckets_option
@master_option
@setting_option
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    rules: str,
    events: tuple[str, ...],
    events_format: str | None,
    out: str,
    form: Literal["parquet", "jsonl", "csv", "delta", "iceberg"],
    late: str | None,
    rejected: str | None,
    overwrite: bool,
    order_by: tuple[str, ...],
    position: str | None,
    type_column: str,
    source: str | None,
    sequence: str | None,
    on_bad: Literal["stop", "skip"],
    until: str | None,
    stream: bool,
    once: bool,
    checkpoint: str | None,
    frontier: Literal["types", "stream"] | None,
    delay: str | None,
    every: str,
    files_per_batch: int | None,
    metrics_port: int | None,
    buckets: int | None,
    master: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Match the events of PATHs against RULES on Spark, and write the relations to a folder.

    \b
    Examples:
      fairlead spark run market.fl --events quotes/ --order-by at --out rallies
      fairlead spark run market.fl --events quotes/ --position offset --out rallies --format jsonl
      fairlead spark run market.fl --events incoming/ --stream --frontier stream --order-by at --out rallies

    Events are ordered by the columns you name, never by files or lines. Relations are written in the order of delivery; a
    stream writes one folder per micro-batch. Late and bad events are written to separate folders. Ctrl-C or termination
    ends a stream after the current micro-batch; when you start it again, it resumes from its checkpoint.
    """
    from fairlead.runtime.spark.input.files import Ordered, ordered_as_stated
    from fairlead.runtime.spark.output.folders import outputs

    if not stream:
        for name, given in (
            ("--once", once), ("--checkpoint", checkpoint), ("--frontier", frontier), ("--delay", delay),
            ("--files-per-batch", files_per_batch), ("--metrics-port", metrics_port is not None),
        ):  # fmt: skip
            if given:
                raise click.UsageError(f"{name} needs --stream")
    from fairlead.cli.files.rule_files import load_plan

    plan = load_plan(rules)
    require_order(plan, order_by, position, stream, frontier, delay)
    places = outputs(out, form, late, rejected)
    ordered = ordered_as_stated(plan, Ordered(order_by, position, type_column, source, sequence))
    asked = SparkRunArguments(
        rules, events, form_named(events_format), ordered, places,
        checkpoint or f"{places.relations}.checkpoint", stream, once, every, files_per_batch, frontier, delay, until, buckets,
        on_bad, overwrite, metrics_port,
    )  # fmt: skip
    stopping = Stopping()
    with session_for(master, settings) as running, stopping.noted() if stream else nullcontext():
        done = _stream(running, plan, asked, stopping) if stream else _batch(running, plan, asked)
    if as_json:
        print_json(done.to_json() | {"plan": plan.digest, "out": places.relations})
    else:
        _show(done, asked)
    if stopping.number is not None:
        ctx.exit(128 + stopping.number)


def _batch(running: Any, plan: Plan, asked: SparkRunArguments) -> Done:
    from fairlead.runtime.spark.file_jobs import run_batch
    from fairlead.runtime.spark.input.files import read

    source = read(running, plan, asked.events, asked.ordered, on_bad=asked.on_bad, form=asked.form)
    return run_batch(
        running, plan, source, asked.ordered, asked.out, overwrite=asked.overwrite, until=asked.until, buckets=asked.buckets
    )


def _stream(running: Any, plan: Plan, asked: SparkRunArguments, stopping: Stopping) -> Done:
    from fairlead.runtime.spark.file_jobs import run_stream
    from fairlead.runtime.spark.input.files import read
    from fairlead.runtime.spark.stream.progress import watch

    source = read(
        running, plan, asked.events, asked.ordered,
        on_bad=asked.on_bad, streaming=True, form=asked.form, files_per_batch=asked.files_per_batch,
    )  # fmt: skip
    watching = watch(running, plan)
    with ExitStack() as end:
        end.callback(watching.stop)
        if asked.metrics_port is not None:
            port = watching.serve(asked.metrics_port)
            click.echo(f"metrics at http://127.0.0.1:{port}/metrics", err=True)
        return run_stream(
            running, plan, source, asked.ordered, asked.out, asked.checkpoint,
            watch=watching, buckets=asked.buckets, once=asked.once, every=asked.every, overwrite=asked.overwrite,
            stopped=stopping.is_set, tick=end.enter_context(_live()), frontier=asked.frontier, delay=asked.delay,
            until=asked.until, changed=_tell_change,
        )  # fmt: skip


def _tell_change(change: Change) -> None:
    if str(change):
        click.echo(f"the rules have changed: {change}", err=True)


@contextmanager
def _live() -> Iterator[Any]:
    """A table that follows the stream, on the standard error of a terminal."""
    if not sys.stderr.isatty():
        yield lambda now: None
        return
    from rich.live import Live

    from fairlead.cli.display.screen import console

    with Live(console=console(err=True), transient=True, refresh_per_second=4) as live:
        yield lambda now: live.update(following(now))


def following(now: Snapshot) -> Any:
    from fairlead.cli.display.screen import table

    made = table("stream", "", right=("",))
    rows = [
        ("micro-batches", f"{now.batches:,}"),
        ("events", f"{now.events:,}"),
        ("events/s", f"{now.events_per_second:,.0f}"),
        ("last micro-batch", f"{now.batch_seconds:.2f} s"),
        ("state", f"{now.state_rows:,} values, {now.state_bytes / 1e6:,.1f} MB"),
        ("late", f"{now.late:,}"),
        ("rejected", f"{now.rejected:,}"),
    ]
    rows += [(name, f"{number:,}") for name, number in (("ahead", now.ahead),) if number]
    if now.kept is not None:
        rows += [("kept for late events", f"{now.kept:,}"), ("retracted", f"{now.retracted:,}"), ("added", f"{now.added:,}")]
    if now.held is not None:
        rows.insert(4, ("held back", f"{now.held:,}"))
    for row in (*rows, *((name, f"{count:,}") for name, count in now.relations.items())):
        made.add_row(*row)
    return made


def _show(done: Done, asked: SparkRunArguments) -> None:
    from fairlead.cli.display.screen import console, counted, table

    screen = console(err=True)
    rate = f", {done.events / done.seconds:,.0f}/s" if done.seconds else ""
    apart = "".join(
        f", {number:,} {name}" for name in ("late", "ahead", "rejected", "repeated") if (number := getattr(done, name))
    )
    screen.print(f"{counted(done.events, 'event')}{apart}, {counted(done.found, 'relation')} in {done.seconds:.1f} s{rate}")
    if done.retracted or done.added:
        screen.print(f"revisions: {counted(done.retracted, 'relation')} retracted, {done.added:,} added")
    if done.ties:
        screen.print(f"{counted(done.ties, 'tie')} of the order columns, broken by type and content")
    screen.print()
    made = table("subscription", "relations", right=("relations",))
    for name, number in done.relations.items():
        made.add_row(name, f"{number:,}")
    screen.print(made)
    screen.print()
    for name, number, path in (
        ("relations", done.found or done.added or not asked.stream, asked.out.relations),
        ("late", done.late, asked.out.late), ("ahead", done.ahead, asked.out.ahead),
        ("rejected", done.rejected, asked.out.rejected), ("repeated", done.repeated, asked.out.repeated),
    ):  # fmt: skip
        if number:
            screen.print(f"{name} in {path}", soft_wrap=True)
    if asked.stream:
        screen.print(f"resumes from {asked.checkpoint}", soft_wrap=True)
