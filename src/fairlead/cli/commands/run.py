"""`fairlead run`: events in, relations out, in memory that does not grow with the files unless they must be ordered."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import click

from fairlead.cli.options import (
    EventsCommand,
    allow_nan_option,
    event_by_event_option,
    events_option,
    json_option,
    order_by_option,
    position_option,
    rules_argument,
    until_option,
)
from fairlead.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead.cli.display.summary import Summary
    from fairlead.model.events.columns import Columns
    from fairlead.model.plans.plan import Plan
    from fairlead.model.relations.relation import Relation
    from fairlead.runtime.backward_times import BackwardTimes
    from fairlead.runtime.embedded import Run
    from fairlead.runtime.parts import OrderPart
    from fairlead.runtime.spread.spreading import Spreading
    from fairlead.transport.admission.problems import Rejects
    from fairlead.transport.files.text_lines import Progress

SHOWN_RELATIONS = 5
JOBS_MAX = 256


@dataclass(frozen=True)
class RunArguments:
    """The arguments of the command."""

    rules: str
    events: tuple[str, ...]
    out: str | None
    receipt: str | None
    on_bad: Literal["stop", "skip"]
    rejects: str | None
    allow_nan: bool
    until: str | None
    batch_rows: int | None
    show_progress: bool
    event_by_event: bool
    position_field: str | None = None
    subscriptions: tuple[str, ...] = ()
    stream_field: str | None = None
    state: str | None = None
    order_by: tuple[str, ...] = ()
    late: str | None = None
    jobs: int | None = None

    @property
    def rejects_path(self) -> str | None:
        """The file of rejected records: beside the output, or in the working directory if there is none."""
        if self.on_bad == "stop":
            return None
        return (
            self.rejects
            if self.rejects is not None
            else ("rejects.jsonl" if self.out in (None, "-") else f"{self.out}.rejects.jsonl")
        )


@click.command(cls=EventsCommand, short_help="Match the events of files and write the relations.")
@rules_argument
@events_option
@order_by_option
@position_option
@click.option(
    "--stream", "stream_field", metavar="COLUMN", help="The column that distinguishes the streams of an exported disjunction."
)
@click.option(
    "--subscription", "-s", "subscriptions", multiple=True, metavar="NAME", help="Run only this subscription; can be repeated."
)
@click.option("--out", metavar="FILE", help="Write the relations here: .jsonl, .parquet, or - for standard output.")
@click.option("--receipt", metavar="FILE", help="Write the receipt (JSON) here, for `fairlead compare`.")
@click.option("--state", metavar="FILE", help="Resume from the state in this file, and save it for the next run.")
@click.option(
    "--on-bad", type=click.Choice(["stop", "skip"]), default="stop", show_default=True, help="What to do with a bad record."
)
@click.option("--rejects", metavar="FILE", help="With --on-bad skip: where to write bad records. [default: OUT.rejects.jsonl]")
@click.option(
    "--late", metavar="FILE", help="With ORDER BY … DELAY: where to write the events that are late, ahead or repeated."
)
@allow_nan_option
@until_option
@click.option("--batch-rows", type=click.IntRange(min=1), metavar="N", help="Records per batch; more of them need more memory.")
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1, max=JOBS_MAX),
    metavar="N",
    help="Processes that match, if all rules have PER and matching takes long. [default: the number of cores]",
)
@event_by_event_option
@json_option
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary.")
def run(
    rules: str,
    events: tuple[str, ...],
    order_by: tuple[str, ...],
    position_field: str | None,
    stream_field: str | None,
    subscriptions: tuple[str, ...],
    out: str | None,
    receipt: str | None,
    state: str | None,
    on_bad: Literal["stop", "skip"],
    rejects: str | None,
    late: str | None,
    allow_nan: bool,
    until: str | None,
    batch_rows: int | None,
    jobs: int | None,
    event_by_event: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Match the events of FILEs against RULES and deliver the relations in order.

    \b
    Examples:
      fairlead run market.fl --events quotes.jsonl
      fairlead run market.fl --events quotes.csv reports.parquet --order-by at
      fairlead run market.fl --events quotes.jsonl --out rallies.parquet --receipt rallies.receipt.json
      fairlead run market.fl --events quotes.jsonl --out - | jq .emitted
      fairlead run market.fl --events tuesday.jsonl --state market.state --out tuesday.rallies.jsonl
      fairlead run market.fl --events exported.parquet --position position
      fairlead run either.fl --events exported.parquet --position position --stream stream

    Prints the number of relations of each subscription, the first relations, what the order guarantees, and a receipt:
    two runs with the same receipt delivered the same relations in the same order. With --out, this goes to standard error.

    Files appear whole or not at all: if there is a bad record, none is written. If relations go to standard output or a
    pipe, the input is read twice, first to validate every record before the first relation is written. `--on-bad skip`
    skips bad records instead. RULES can be - (standard input).

    With --state, runs over consecutive files deliver what one run over all of them would deliver. The rules can change
    between runs: unchanged subscriptions are resumed, new ones are started here, and the summary lists them.
    """
    if rejects is not None and on_bad == "stop":
        raise click.UsageError("--rejects needs --on-bad skip: in stop mode the first bad record ends the run")
    if stream_field and (position_field is None or on_bad == "skip"):
        raise click.UsageError("--stream needs --position, and stops at the first bad record")
    if state is not None and (stream_field or until):
        raise click.UsageError("--state is not supported with --stream or --until: leave them out")
    if order_by and (state or on_bad == "skip"):
        raise click.UsageError("--order-by is not supported with --state, and stops at the first bad record")
    job = RunArguments(
        rules, events, out, receipt, on_bad, rejects, allow_nan, until, batch_rows, not quiet, event_by_event, position_field,
        subscriptions, stream_field, state, order_by, late, jobs,
    )  # fmt: skip
    summary = perform(job)
    is_taken = "-" in (out, rejects)
    if as_json:
        from fairlead.cli.options import print_json

        print_json(summary.to_json(), err=is_taken)
    elif not quiet:
        from fairlead.cli.display.screen import console

        summary.show(console(err=out is not None or is_taken))


def perform(job: RunArguments) -> Summary:
    """The steps, whose order keeps incomplete results from appearing:

    1. Compile the rules and find the files. 2. Open the outputs beside their targets. 3. In stop mode, check all input first if
       relations can be seen before the end; in a file they cannot, a bad record discards it. 4. Match, writing relations as
       they are found. 5. All of every output is on the disk, under another name: a failure up to this point leaves earlier
       files unchanged. 6. The outputs take their names: relations, rejects, the receipt, and the state last. From here on the
       run is complete, whatever signal arrives. A run that is killed between two names has not moved the state: the same run
       again produces the same outputs, and they replace the existing ones. With the state first, their relations would be lost.
    """
    import fairlead.transport.admission.sequences
    from fairlead.cli.display.progress import Progress
    from fairlead.cli.display.summary import Summary
    from fairlead.cli.files.outputs import SmallOutput, appears_at_once, refuse_nameless, refuse_overlap
    from fairlead.cli.files.rule_files import chosen, load_plan
    from fairlead.cli.files.state_file import held, resumed_from
    from fairlead.cli.process.memory import keep_freed
    from fairlead.cli.process.signals import complete, undisturbed
    from fairlead.deliver.receipt import dumps
    from fairlead.runtime.backward_times import BackwardTimes
    from fairlead.runtime.embedded import Run, until_microseconds
    from fairlead.runtime.parts import parts_of
    from fairlead.transport.files.event_files import bytes_of, resolve
    from fairlead.transport.output.relation_files import LateWriter, RejectWriter, open_relations

    outputs_named = {"--out": job.out, "--rejects": job.rejects_path, "--receipt": job.receipt, "--state": job.state}
    outputs_named["--late"] = job.late
    keep_freed()
    refuse_nameless(outputs_named, standard=("--out", "--rejects"))
    plan, until = chosen(load_plan(job.rules), job.subscriptions), until_microseconds(job.until)  # 1
    if plan.order is not None or job.order_by:
        from fairlead.runtime.sorting import ordered_plan  # with pyarrow.compute, which takes a twentieth of a second to load

        plan = ordered_plan(plan, job.order_by, "--order-by")
        refuse_other_order(job, plan)
    files = resolve(job.events)
    refuse_pipes(job, files)
    refuse_overlap(outputs_named, [job.rules, *files])
    began = perf_counter()
    if job.stream_field is not None:
        import fairlead.transport.tables.stream_tables  # noqa: F401  loads pyarrow.compute
    parts = () if job.stream_field is None else parts_of(plan)
    with (
        held(job.state),
        ExitStack() as outputs,
        Progress(bytes_of(files), shown=job.show_progress, to_stdout=job.out == "-") as progress,
    ):
        resumed = resumed_from(job.state)
        running = Run(
            plan,
            event_by_event=job.event_by_event,
            parts=parts,
            resumed=resumed,
            keep=job.state is not None,
            rejects=job.on_bad == "skip",
        )
        with undisturbed():  # 2
            state = outputs.enter_context(SmallOutput(job.state))
            receipt = outputs.enter_context(SmallOutput(job.receipt))
            rejects = outputs.enter_context(RejectWriter(job.rejects_path)) if job.rejects_path else None
            late = outputs.enter_context(LateWriter(job.late, plan.catalogue)) if job.late else None
            running.late = late
            relations = outputs.enter_context(open_relations(job.out, plan)) if job.out else None
        if job.on_bad == "stop" and appears_at_once(job.out):  # 3
            for _ in _batches(job, running, parts, files, None, progress.pass_over("checking"), check=True):
                pass
        batches = _batches(job, running, parts, files, rejects, progress.pass_over("matching"))  # 4
        outputs.enter_context(closing(batches))  # it reads ahead: after any failure, close it first
        first: list[Relation] = []
        backwards = BackwardTimes(plan.catalogue) if plan.order is None and not job.order_by else None
        spread = outputs.enter_context(spreading(running, job))
        for found in delivered(running, spread, batches, until, backwards):
            progress.events(running.events)
            if job.out is None and len(first) < SHOWN_RELATIONS:
                first += found[: SHOWN_RELATIONS - len(first)]
            if relations is not None:
                relations.write(found)
        receipt.write(dumps(running.receipt) + "\n")
        if job.state is not None:
            state.write(running.kept().encode())
        written = [each for each in (relations, rejects, late, receipt, state) if each is not None]
        batches.close()
        with undisturbed():
            for each in written:
                each.prepare()  # 5
        with undisturbed():
            if any(outputs_named.values()):
                complete()
            for each in written:
                each.close()  # 6
    summary = Summary.of(job, plan, running, tuple(first), rejects.count if rejects else 0, perf_counter() - began)
    return replace(summary, backwards=0 if backwards is None else backwards.count)


def refuse_other_order(job: RunArguments, plan: Plan) -> None:
    """What is not supported if the events are ordered by value."""
    from fairlead.errors import UsageError
    from fairlead.runtime.sorting import order_of

    if job.position_field is not None or job.stream_field is not None:
        problem = f"--position or --stream is set, and the events are ordered by value: {order_of(plan, job.order_by)}"
        raise UsageError("A210", problem, "leave them out: an exported log is ordered by its values, too")
    if (job.state is not None or job.on_bad == "skip") and (plan.order is None or plan.order.delay_us is None):
        order = order_of(plan, job.order_by)
        problem = f"--state and --on-bad skip are not supported where all events are sorted first: {order}"
        raise UsageError("A210", problem, f"leave them out, or say how late events may be: {order} DELAY 10 SECONDS")


def refuse_pipes(job: RunArguments, files: list[Path]) -> None:
    """Input that is read twice must be a file: a pipe would be empty the second time, or wait for another writer."""
    from fairlead.cli.files.outputs import appears_at_once
    from fairlead.errors import UsageError

    for each in files:
        if not each.is_file() and job.on_bad == "stop" and appears_at_once(job.out):
            problem = f"{each} is a pipe, which is read once, and output to the standard output or a pipe reads the input twice"
            raise UsageError("A292", problem, "use --out FILE or --on-bad skip, or copy the events to a file")


def _batches(
    job: RunArguments,
    running: Run,
    parts: Sequence[OrderPart],
    files: list[Path],
    rejects: Rejects | None,
    progress: Progress,
    check: bool = False,
) -> Generator[tuple[int, Columns], None, None]:
    """The events of the files, each batch with its part of the plan. `check`: only validate them."""
    from fairlead.runtime.embedded import punctual
    from fairlead.transport.admission.sequences import LastSequences
    from fairlead.transport.files.event_files import read_files

    plan = running.plan
    if plan.order is not None or job.order_by:
        from fairlead.runtime.sorting import AllFresh, arrivals_of, in_total_order, order_of
    if job.stream_field is not None and job.position_field is not None:
        from fairlead.transport.tables.stream_tables import stream_files

        names = [each.name for each in parts]
        yield from stream_files(
            files, plan.catalogue, names, job.position_field, job.stream_field, batch_rows=job.batch_rows, progress=progress
        )
        return
    if running.matcher is None and (plan.order is not None or job.order_by):
        unordered = read_files(
            files,
            plan.catalogue,
            allow_nan=job.allow_nan,
            batch_rows=job.batch_rows,
            progress=progress,
            last_sequences=AllFresh(),
        )
        with closing(unordered):
            given = unordered if check else punctual(running, unordered)
            yield 0, in_total_order(given, order_of(plan, job.order_by), plan.catalogue)
        return
    sequences = LastSequences.load(running.sequences.dump()) if check else running.sequences
    if running.matcher is not None:
        sequences = AllFresh()  # a source may have numbered events in another order
    read = read_files(
        files,
        plan.catalogue,
        on_bad=job.on_bad,
        rejects=rejects,
        allow_nan=job.allow_nan,
        batch_rows=job.batch_rows,
        progress=progress,
        start=running.position,
        last_sequences=sequences,
        position=job.position_field,
    )
    with closing(read):
        for columns in read:
            if check and running.matcher is not None:
                arrivals_of(columns, running.matcher.order, plan.catalogue)
            yield 0, columns


def spreading(running: Run, job: RunArguments) -> Spreading:
    """The run, or as many processes as it may use once they pay; with what the output needs of relations found elsewhere."""
    from fairlead.cli.process.worker import COMMAND
    from fairlead.matching.results.transferred import Wanted
    from fairlead.model.relations.layout import layout_of
    from fairlead.runtime.spread.spreading import Spreading

    if job.out is None:
        wanted = Wanted(objects=SHOWN_RELATIONS)
    else:
        is_table = job.out.lower().endswith(".parquet")
        wanted = Wanted(layout_of(running.plan)) if is_table else Wanted(lines=True)
    return Spreading(running, COMMAND, job.jobs or available_cores(), wanted)


def available_cores() -> int:
    """Those that this process may use, where the system tells it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def delivered(
    running: Run,
    spread: Spreading,
    batches: Iterable[tuple[int, Columns]],
    until: int | None,
    backwards: BackwardTimes | None,
) -> Iterator[Sequence[Relation]]:
    """The relations batch by batch, and those that the end of the input decides."""
    for part, columns in batches:
        if backwards is not None:
            backwards.note(columns)
        yield from spread.feed(columns, part)
    yield from spread.rest()
    yield running.finish(until)
