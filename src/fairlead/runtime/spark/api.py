"""`match`: a plan over DataFrames, batch or streaming, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Literal

from fairlead.errors import UsageError
from fairlead.model.arguments import require_plan
from fairlead.model.plans.plan import Plan
from fairlead.runtime.embedded import until_microseconds
from fairlead.runtime.sorting import ordered_plan
from fairlead.runtime.spark.input.frames import input_of
from fairlead.runtime.spark.job.batch_job import match_batch
from fairlead.runtime.spark.log.provenance import note_relations
from fairlead.runtime.spark.setup.readiness import require_session, require_store, warn_of_partitions
from fairlead.runtime.spark.setup.workers import interpreter, require_workers
from fairlead.runtime.spark.stream.frontier import frontier_of
from fairlead.runtime.spark.stream.stream_job import match_stream
from fairlead.runtime.spread.targets import groups_of, stream_groups
from fairlead.transport.admission.gate import OnBad

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


def match(
    plan: Plan,
    frames: DataFrame | Mapping[str, DataFrame],
    *,
    order_by: Sequence[str] | str | None = None,
    position: str | None = None,
    type_column: str = "type",
    source: str | None = None,
    sequence: str | None = None,
    until: datetime | str | None = None,
    buckets: int | None = None,
    on_bad: OnBad = "stop",
    frontier: Literal["types", "stream"] | None = None,
    delay: str | timedelta | None = None,
    observation: Observation | None = None,
    stream: str | None = None,
) -> DataFrame:
    """Match a plan against DataFrames, and return the relations as a DataFrame.

    `frames` is one frame with a type column, or a dict with one frame per event type. `order_by` names the columns that order
    the events: if they are attributes, a shorthand for ORDER BY in the rules. Ties are broken by source, sequence, type and
    content, so the order depends on the rows only. `position` names
    a column with the position itself, such as the offset in a log. Rows that repeat a `sequence` of their `source` are dropped
    and returned with the verdict "repeated"; the defaults are the columns `_source` and `_sequence`, if there are any. `until`:
    no further event has a time up to and including this, so absences due by then are decided.

    By default a bad row stops the job: here, if Spark itself finds it, or when the result is computed, as Spark's exception
    with the coded message in it (a DataError within `coded_errors()`). With `on_bad="skip"` it has the verdict "rejected".

    On a stream, events are released in order once the frontier has passed them. `frontier="types"`: each type arrives in
    order, and its latest event determines how far it is complete; `frontier="stream"`: the stream as a whole arrives in order.
    `delay` allows for that much disorder; DELAY in the rules does the same, and a watermark on the frame. Heartbeats advance
    the frontier of all types. Events that arrive after the frontier has passed them have the verdict "late". Rows with a
    `position` need no frontier.

    `stream` names the column that says which stream of a log an event belongs to, where a subscription with OR reads several
    (`log`).

    `observation` receives the number of `ties` that the tie-break decided, once the result of a finite input is computed; for
    a stream, that number and the rows held back are in the metrics `fairlead_order` of its progress (`watch`).
    """
    require_plan("match", plan, "spark.match(fairlead.compile(text), frames, …)")
    require_session(frames)
    if stream is not None:
        from fairlead.runtime.spark.input.stream_frames import frames_of_parts

        found = [
            match(
                part, frame, position=position, type_column=type_column, source=source, sequence=sequence, buckets=buckets,
                on_bad=on_bad,
            )
            for part, frame in frames_of_parts(plan, frames, position, stream)
        ]  # fmt: skip
        return reduce(lambda left, right: left.union(right), found)
    plan = ordered_plan(plan, order_by)
    given = input_of(plan, frames, order_by, position, type_column, source, sequence, on_bad)
    if buckets is not None and (not isinstance(buckets, int) or isinstance(buckets, bool) or buckets < 1):
        raise UsageError(
            "A216", f"buckets is {buckets!r}", "use a whole number from 1 on: the tasks of each group of keyed subscriptions"
        )
    spark = given.frame.sparkSession
    groups = stream_groups(plan) if given.frame.isStreaming and not given.positioned else groups_of(plan)
    if given.frame.isStreaming:
        if until is not None:
            raise UsageError("A213", "`until` is not supported on streams", "send a heartbeat with that time")
        bound = frontier_of(given, frames, frontier, delay, plan.order)
        cores = require_workers(spark)
        require_store(spark)
        warn_of_partitions(spark, sum(buckets or cores if each.is_keyed else 1 for each in groups), cores)
        with interpreter(spark):
            relations = match_stream(plan, given, groups, buckets, cores, bound)
    else:
        end, cores = until_microseconds(until), require_workers(spark)
        with interpreter(spark):
            relations = match_batch(plan, given, groups, cores, buckets or cores, end, observation)
    note_relations(relations, plan, frames)
    return relations
