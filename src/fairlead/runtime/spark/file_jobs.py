"""Complete jobs, from files to files: the work of `fairlead spark run` and `fairlead backtest`.

The steps of a stream's micro-batch, whose order keeps each row from being lost or written twice:

    1. It is computed once and persisted: every later step reads the persisted rows.
    2. Its rows are counted, by verdict and subscription.
    3. Each verdict that has rows is written to the folder of this micro-batch, replacing what a failed attempt left there.
    4. Spark marks the micro-batch as done. A failure before that repeats all of it, with the same rows.

Takes: a session, a plan, a Source, outputs. Gives: `Done`. Never: prints.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairlead.matching.state.encoding import Change
from fairlead.model.plans.plan import Plan
from fairlead.runtime.spark.api import match
from fairlead.runtime.spark.failures import coded_errors
from fairlead.runtime.spark.input.files import EventFiles, Ordered
from fairlead.runtime.spark.output.folders import Outputs, located, parts, require_format, require_free, write, write_batch
from fairlead.runtime.spark.output.views import ADDED, AHEAD, DELIVERED, IN_ORDER, LATE, REJECTED, REPEATED, RETRACTED
from fairlead.runtime.spark.setup.workers import require_workers
from fairlead.runtime.spark.stream.checkpoint import Note, agree, noted
from fairlead.runtime.spark.stream.progress import Snapshot, Watch, observed, observed_input
from fairlead.transport.admission.gate import OnBad

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELIVERY = ("completed_at", "turn")
"""The sort key of relations: the order of delivery (result_rows.py)."""
FILE_ROWS = 1_000_000
"""Approximate number of relations in one file; the files are ordered by name."""
STOP_S_MAX = 2.0
"""How long a running micro-batch may take to end before its stream is stopped anyway; it is repeated then."""
TICK_S = 0.25
REPORT_S_MAX = 5.0


@dataclass(frozen=True)
class Done:
    """The result of a job. `ties` is None if they are not counted, `batches` for a finite input. `relations`: as they were
    first delivered; with LATE REVISE, some were `retracted`, and others `added`."""

    events: int
    relations: Mapping[str, int]
    late: int
    rejected: int
    repeated: int
    ties: int | None
    seconds: float
    batches: int | None = None
    ahead: int = 0
    retracted: int = 0
    added: int = 0

    @property
    def found(self) -> int:
        return sum(self.relations.values())

    def to_json(self) -> dict[str, Any]:
        made = {
            "events": self.events,
            "relations": dict(self.relations),
            "late": self.late,
            "rejected": self.rejected,
            "repeated": self.repeated,
            "ahead": self.ahead,
            "retracted": self.retracted,
            "added": self.added,
            "ties": self.ties,
            "seconds": round(self.seconds, 3),
        }
        return made if self.batches is None else made | {"batches": self.batches}


def run_batch(
    spark: SparkSession,
    plan: Plan,
    source: EventFiles,
    ordered: Ordered,
    out: Outputs | None,
    *,
    overwrite: bool = False,
    **options: Any,
) -> Done:
    """All relations of a finite input, in the order of delivery. `options` are those of `match`."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    began = time.perf_counter()
    if out is not None:
        require_format(spark, out.form, streaming=False)
        require_free(spark, out, overwrite)
    counted, order = Observation(), Observation()
    given = source.good.observe(counted, F.count(F.lit(1)).alias("events"))
    with coded_errors():
        frame = match(
            plan, given, **_order(ordered), on_bad="stop" if source.bad is None else "skip", observation=order, **options
        ).persist()
        try:
            counts = _counts(frame)
            bad = 0 if source.bad is None else source.bad.count()
            if out is not None:
                _write(frame, out, counts, source.bad if bad else None)
        finally:
            frame.unpersist()
    events = int(counted.get["events"])
    return _done(plan, counts, bad, events, int(order.get["ties"] or 0), time.perf_counter() - began)


def _write(frame: DataFrame, out: Outputs, counts: Counter[tuple[str, str | None]], bad: DataFrame | None) -> None:
    found = parts(frame)
    files = 1 + _of(counts, IN_ORDER) // FILE_ROWS
    sorted_once = found["relations"].repartitionByRange(files, *DELIVERY).sortWithinPartitions(*DELIVERY)
    write(sorted_once, out.relations, out.form)  # even without relations: an empty result is a result
    if _of(counts, REJECTED) or bad is not None:
        refused = found[REJECTED] if bad is None else found[REJECTED].unionByName(bad)
        write(refused.coalesce(1), out.rejected, out.form)
    for verdict, path in ((REPEATED, out.repeated), (AHEAD, out.ahead)):
        if _of(counts, verdict):
            write(found[verdict].coalesce(1), path, out.form)


def run_stream(
    spark: SparkSession,
    plan: Plan,
    source: EventFiles,
    ordered: Ordered,
    out: Outputs,
    checkpoint: str,
    *,
    watch: Watch,
    buckets: int | None = None,
    once: bool = False,
    every: str = "1 second",
    overwrite: bool = False,
    stopped: Callable[[], bool] = lambda: False,
    tick: Callable[[Snapshot], None] = lambda now: None,
    changed: Callable[[Change], None] = lambda change: None,
    **options: Any,
) -> Done:
    """Runs until `stopped` returns true, or with `once` until all current input has been read. `changed` is called with the
    rules that were resumed from the checkpoint, those that were started, and those that were dropped."""
    started = time.perf_counter()
    require_format(spark, out.form, streaming=True)
    if noted(spark, checkpoint) is None:
        require_free(spark, out, overwrite)  # numbers of micro-batches start at 0, and would overwrite those of another stream
    digests = {each.name: each.digest for each in plan.subscriptions}
    began = Note(plan.digest, ordered.order_by, ordered.position, digests, buckets or require_workers(spark), source.zone)
    note, change = agree(spark, checkpoint, began, buckets)
    changed(change)
    on_bad: OnBad = "stop" if source.bad is None else "skip"
    frame = match(plan, observed_input(source.good), **_order(ordered), buckets=buckets, on_bad=on_bad, **options)
    totals: Counter[tuple[str, str | None]] = Counter()
    refused: Counter[str] = Counter()

    def deliver(batch: DataFrame, number: int) -> None:
        batch.persist()  # 1
        try:
            counts = _counts(batch)  # 2
            found = parts(batch)
            revised = ("revision",) if "revision" in batch.columns else ()
            sorted_once = found["relations"].repartition(1).sortWithinPartitions(*revised, *DELIVERY, "subscription")
            if any(_of(counts, verdict) for verdict in DELIVERED):  # 3
                write_batch(sorted_once, out.relations, out.form, number, note.plan)
            for verdict, path in ((LATE, out.late), (AHEAD, out.ahead), (REPEATED, out.repeated)):
                if _of(counts, verdict):
                    write_batch(found[verdict].coalesce(1), path, out.form, number, note.plan)
            if _of(counts, REJECTED):
                write_batch(found[REJECTED].coalesce(1), f"{out.rejected}/from=order", out.form, number, note.plan)
        finally:
            batch.unpersist()
        totals.update(counts)

    def set_aside(batch: DataFrame, number: int) -> None:
        batch.persist()
        rows = batch.count()
        if rows:
            write_batch(batch.coalesce(1), f"{out.rejected}/from=input", out.form, number, note.plan)
        batch.unpersist()
        refused["rows"] += rows

    trigger: dict[str, Any] = {"availableNow": True} if once else {"processingTime": every}
    folder = located(spark, checkpoint.rstrip("/"))
    with coded_errors():
        queries = []
        try:
            work = [(observed(frame, plan), deliver, folder)]
            if source.bad is not None:
                work.append((source.bad, set_aside, f"{folder}/unread"))
            for what, do, where in work:
                writer = what.writeStream.foreachBatch(do).option("checkpointLocation", where)
                queries.append(writer.trigger(**trigger).start())
            while not stopped() and any(each.isActive for each in queries):
                time.sleep(TICK_S)
                tick(watch.snapshot())
                for each in queries:
                    if not each.isActive and not stopped():
                        each.awaitTermination()  # raises the error that ended it
        finally:
            for each in queries:
                _end(each)
    last = queries[0].lastProgress
    _await_report(watch, -1 if last is None else int(last["batchId"]))
    now = watch.snapshot()
    tick(now)
    seconds = time.perf_counter() - started
    return _done(plan, totals, refused["rows"], now.events, now.ties, seconds, now.batches)


def _end(query: Any) -> None:
    """Stop after the current micro-batch, if it ends soon."""
    until = time.monotonic() + STOP_S_MAX
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
        time.sleep(TICK_S / 5)
    query.stop()


def _await_report(watch: Watch, batch: int) -> None:
    """The listener hears of a micro-batch a little after it has ended."""
    until = time.monotonic() + REPORT_S_MAX
    while watch.snapshot().last_batch < batch and time.monotonic() < until:
        time.sleep(TICK_S / 5)


def _order(ordered: Ordered) -> dict[str, Any]:
    """The order in the form that `match` accepts."""
    given = asdict(ordered)
    return given | {"order_by": None if given.pop("stated") else list(ordered.order_by) or None}


def _counts(frame: DataFrame) -> Counter[tuple[str, str | None]]:
    rows = frame.groupBy("verdict", "subscription").count().collect()
    return Counter({(row["verdict"], row["subscription"]): row["count"] for row in rows})


def _of(counts: Counter[tuple[str, str | None]], verdict: str) -> int:
    return sum(number for (each, _), number in counts.items() if each == verdict)


def _done(
    plan: Plan,
    counts: Counter[tuple[str, str | None]],
    bad: int,
    events: int,
    ties: int | None,
    seconds: float,
    batches: int | None = None,
) -> Done:
    relations = {each.name: counts[IN_ORDER, each.name] for each in plan.subscriptions}
    late, rejected, repeated = (_of(counts, verdict) for verdict in (LATE, REJECTED, REPEATED))
    more = (_of(counts, verdict) for verdict in (AHEAD, RETRACTED, ADDED))
    return Done(events, relations, late, rejected + bad, repeated, ties, seconds, batches, *more)
