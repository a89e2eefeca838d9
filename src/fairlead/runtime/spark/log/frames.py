"""`log`: the events of a log as a DataFrame; `to_log`: relations back into it. Both set Spark's options for the data source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from fairlead.errors import UnsupportedError, UsageError
from fairlead.model.arguments import require_plan
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.event_table import STREAM, only_group, only_stream, selection_of
from fairlead.runtime.spark.failures import coded_errors
from fairlead.runtime.spark.log.lineage_job import block_writer, ordered_options
from fairlead.runtime.spark.log.options import log_options
from fairlead.runtime.spark.log.provenance import found_in_log, note_events
from fairlead.runtime.spark.setup.jvm import make_active
from fairlead.runtime.spark.setup.workers import interpreter, is_remote, require_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register_log(spark: SparkSession) -> None:
    """Register the format "fairlead" with the session; `log` and `to_log` call it. A second call changes nothing.

    A writer looks for its format in the session that is active in its thread of the JVM.
    """
    from fairlead.runtime.spark.log.block_source import BlockSource, CutSource
    from fairlead.runtime.spark.log.source import LogSource

    with interpreter(spark):
        for each in (LogSource, BlockSource, CutSource):
            spark.dataSource.register(each)
    if not is_remote(spark):
        make_active(spark)


def log(
    spark: SparkSession,
    url: str | None = None,
    *,
    plan: Plan | None = None,
    types: Sequence[str] | str | None = None,
    stream: bool = False,
    start: str | int = "earliest",
    partitions: int | None = None,
    blocks: int | None = None,
    **options: str,
) -> DataFrame:
    """The events of a log as one DataFrame: those that a plan reads, or those of some types.

        events = fl.log(spark, "nats://localhost:4222", plan=plan)
        relations = fl.match(plan, events, position="position")

    The columns are `position`, `type`, `source`, `sequence` and the attributes of the types. For rules with ORDER BY, they are
    `_source`, `_sequence`, and `_topic`, `_offset` and `_stored`, which say where and when the log stored the event: then
    match(plan, events) has the verdicts of live subscribers. If a subscription with OR reads several streams, a column `stream`
    names the stream of each row: match(…, stream="stream"). `url` (or FAIRLEAD_URL) is a server or cluster. `stream`: a
    streaming frame, with later events too. `start`: "earliest", "new", a position or a time in ISO 8601. `partitions`: tasks
    that read at the same time. `blocks`: the most blocks in a micro-batch. Other options: `user`, `password`, `token`, `nkey`,
    `ca`, `certificate`, `key`, `position`, `heartbeats`. Raises the errors of `fairlead.connect`.
    """
    parts = () if plan is None or types is not None else only_group(plan).parts
    if len(parts) > 1:
        if str(start).isdecimal():
            problem = f"the rules read {len(parts)} streams, each with its own positions"
            raise UsageError("A264", problem, "start at a time, or with 'earliest' or 'new'")
        more: dict[str, Any] = {"stream": stream, "start": start, "partitions": partitions, "blocks": blocks} | options
        found = [_named(log(spark, url, types=each.types, **more | {"heartbeats": "true"}), each.name) for each in parts]
        return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), found)
    told = options | ({} if url is None else {"url": url}) | {"start": str(start)}
    if plan is not None:
        told["rules"] = plan.text
    if types is not None:
        told["types"] = types if isinstance(types, str) else ",".join(types)
    told["partitions"] = str(partitions or require_workers(spark))
    if blocks is not None:
        told["blocks"] = str(blocks)
    log_options(told)
    register_log(spark)
    with coded_errors():
        frame = (spark.readStream if stream else spark.read).format("fairlead").options(**told).load()
    note_events(frame, told)
    return frame


def _named(frame: DataFrame, stream: str) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.withColumn(STREAM, F.lit(stream))


def to_log(
    relations: DataFrame,
    plan: Plan,
    url: str | None = None,
    *,
    name: str | None = None,
    into: str | None = None,
    start: int = 0,
    **options: str,
) -> Any:
    """A writer, batch or streaming, that stores what the relations EMIT in the log that the events came from, each once.

        fl.to_log(relations, plan, url).option("checkpointLocation", …).start()      # a stream
        fl.to_log(relations, plan, url).save()                                        # a batch

    Derived events are those that live subscribers with the same rules store, in the same blocks. With `into`, the relations
    themselves are stored as events of that type too (sink.py). `start` is the position at which the events started. `name`
    distinguishes the streams of one plan: each has its own place in its checkpoint.

    Rules with ORDER BY: `relations` is what `match` returned for a frame of `log`. What is final follows from the log, so the
    job reads it itself, from where that frame starts, and does not compute the relations (lineage_job.py). Events are stored
    once they are final; with `into`, every delivery, also those that take a relation back (`sign` is -1). `name` has no effect.
    """
    require_plan("to_log", plan, "to_log(relations, fairlead.compile(text), url)")
    told = options | {"rules": plan.text, "start": str(start)}
    for option, value in (("url", url), ("sink", name), ("into", into)):
        if value is not None:
            told[option] = value
    log_options(told)
    if plan.order is not None:
        return _ordered_writer(relations, plan, told)
    _require_order_of_log(relations)
    only_stream(selection_of(plan))  # the merged order of several streams is not known on Spark
    register_log(relations.sparkSession)
    if relations.isStreaming:
        return relations.writeStream.format("fairlead").outputMode("append").options(**told)
    return relations.write.format("fairlead").mode("append").options(**told)


def _require_order_of_log(relations: DataFrame) -> None:
    known = found_in_log(relations)
    if known is not None and known.plan.order is not None:
        problem = (
            f"match put the events in another order than the log ({known.plan.order}), and to_log was given rules without it"
        )
        raise UnsupportedError("U124", problem, "say ORDER BY in the rules, or match(…, position='position')")


def _ordered_writer(relations: DataFrame, plan: Plan, told: dict[str, str]) -> Any:
    options = ordered_options(relations, plan, told)
    register_log(relations.sparkSession)
    with coded_errors():
        return block_writer(relations, options)
