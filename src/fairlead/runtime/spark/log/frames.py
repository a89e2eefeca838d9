"""`log`: the events of a log as a DataFrame; `to_log`: relations back into it. Both set Spark's options for the data source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from fairlead.errors import UsageError
from fairlead.model.arguments import require_plan
from fairlead.model.plan import Plan
from fairlead.runtime.live.selecting import only_group, only_stream, selection_of
from fairlead.runtime.live.wide import STREAM
from fairlead.runtime.spark.failures import coded_errors
from fairlead.runtime.spark.log.options import log_options
from fairlead.runtime.spark.setup.jvm import make_active
from fairlead.runtime.spark.setup.workers import interpreter, is_remote, require_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register_log(spark: SparkSession) -> None:
    """Register the format "fairlead" with the session; `log` and `to_log` do this. Repeating it changes nothing.

    A writer looks up its format in the session that is active in its JVM thread."""
    from fairlead.runtime.spark.log.source import LogSource

    with interpreter(spark):
        spark.dataSource.register(LogSource)
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
    """The events of a log, those that a plan reads or those of some types, as one frame with the columns `position`, `type`,
    `source`, `sequence` and the attributes of the types.

        events = fl.log(spark, "nats://localhost:4222", plan=plan)
        relations = fl.match(plan, events, position="position")

    A disjunction that reads several streams has an additional column `stream`, which distinguishes them: match(…,
    stream="stream"). `url` (or FAIRLEAD_URL) is the address of a server or cluster. `stream`: include later events. `start`:
    "earliest", "new", a position or a time in ISO 8601. `partitions`: the number of parallel reading tasks. `blocks`: the most
    blocks of a micro-batch. Other options are those of options.py: `user`, `password`, `token`, `nkey`, `ca`, `certificate`,
    `key`, `position`, `heartbeats`. Raises the errors of `fairlead.connect` and of undeclared types."""
    parts = () if plan is None or types is not None else only_group(plan).parts
    if len(parts) > 1:
        if str(start).isdecimal():
            problem = f"these rules read {len(parts)} streams, each with positions of its own"
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
        return (spark.readStream if stream else spark.read).format("fairlead").options(**told).load()


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
    """A writer, of a batch or a stream, that stores the events that the relations EMIT in the log from which the events were
    read, each once:

        fl.to_log(relations, plan, url).option("checkpointLocation", …).start()      # a stream
        fl.to_log(relations, plan, url).save()                                        # a batch

    Derived events have the ids under which live subscribers with the same rules store them. With `into`, the relations
    themselves are also stored, as events of that type (sink.py). `start` is the position at which the events began. `name`
    distinguishes streams of one plan: each has its own entry and checkpoint."""
    require_plan("to_log", plan, "to_log(relations, fairlead.compile(text), url)")
    only_stream(selection_of(plan))  # the merged order of several streams is not known on Spark
    told = options | {"rules": plan.text, "start": str(start)}
    for option, value in (("url", url), ("sink", name), ("into", into)):
        if value is not None:
            told[option] = value
    log_options(told)
    register_log(relations.sparkSession)
    if relations.isStreaming:
        return relations.writeStream.format("fairlead").outputMode("append").options(**told)
    return relations.write.format("fairlead").mode("append").options(**told)
