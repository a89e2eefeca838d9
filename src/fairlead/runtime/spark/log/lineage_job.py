"""`to_log` for rules with ORDER BY: a job that stores what live subscribers with the same rules store.

    batch     a task for each subscription reads its topics up to their common end: rows are blocks for the log
    stream    a micro-batch is a stretch of the topics (cuts.py), which a stateful task for each subscription reads
              (lineage_task.py)

Which relations are final, and which block of the log made them so, follows from the log and the rules alone. So the job reads
the log itself, and does not compute the frame of relations that it is given.

Takes: a plan, options of a log. Gives: a writer of Spark. Never: decides what is final.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fairlead.errors import UnsupportedError, UsageError
from fairlead.model.events.types import EventType
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.derived_blocks import emitting_of
from fairlead.runtime.live.core.stream_groups import groups_of, origin_name
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.spark.job.parcel import Parcel
from fairlead.runtime.spark.log.cuts import complete_cut
from fairlead.runtime.spark.log.lineage_task import LineageSetup
from fairlead.runtime.spark.log.link import LogLink, extent_of
from fairlead.runtime.spark.log.options import LogOptions, log_options
from fairlead.runtime.spark.log.outputs import DELIVERY
from fairlead.runtime.spark.log.provenance import found_in_log
from fairlead.runtime.spark.setup.readiness import require_store, warn_of_partitions
from fairlead.runtime.spark.setup.workers import interpreter, require_workers
from fairlead.transport.log.protocol import Log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCKS, CUTS = "fairlead-blocks", "fairlead-cuts"
"""The formats of blocks for the log, and of the ends of micro-batches (block_source.py)."""
ENDS = "ends array<bigint>"


@dataclass(frozen=True)
class LineageJob:
    """`ends`: the last sequence of every stream, up to which their one order is certain. `start`: identifies this start."""

    asked: LogOptions
    lineages: tuple[LineageSetup, ...]
    ends: tuple[int, ...]
    start: str = field(default_factory=lambda: uuid4().hex)


def ordered_options(relations: DataFrame, plan: Plan, told: Mapping[str, str]) -> dict[str, str]:
    """The options of the job: those of the frame of events, and what `to_log` was given. Raises UnsupportedError if it is not
    known where the relations were found, UsageError if the two begin at different places."""
    known = found_in_log(relations)
    fix = "fl.to_log(fl.match(plan, fl.log(spark, url, plan=plan)), plan, url); publish events of files or tables first"
    if known is None or known.plan.digest != plan.digest or "rules" not in known.options:
        problem = (
            f"the rules say {plan.order}: which of their events are final depends on the order in which a log stored the "
            "events, and these are not the relations that match found with these rules in a frame of log"
        )
        raise UnsupportedError("U124", problem, fix)
    begins = known.options["start"]
    if begins == "new":
        problem = (
            "a frame with start='new' begins elsewhere each time the job starts, and derived events are numbered from there"
        )
        raise UnsupportedError("U124", problem, "start at 'earliest', a position or a time")
    if told["start"] not in ("0", begins):
        problem = f"the events start at {begins!r}, and to_log at {told['start']!r}"
        raise UsageError("A228", problem, "omit `start` of to_log: it starts where the frame of log does")
    return {**known.options, **told, "start": begins}


def block_writer(relations: DataFrame, options: dict[str, str]) -> Any:
    """Raises what `extent_of` raises, and UsageError."""
    spark, asked = relations.sparkSession, log_options(options)
    with LogLink(asked) as link:
        job = link.call(lambda log: job_of(log, asked))
    if not relations.isStreaming:
        blocks = spark.read.format(BLOCKS).options(**options).load()
        return blocks.write.format(BLOCKS).mode("append").options(**options)
    cores = require_workers(spark)
    require_store(spark)
    warn_of_partitions(spark, len(job.lineages), cores)
    with interpreter(spark):
        blocks = _streamed(spark.readStream.format(CUTS).options(**options).load(), job)
        return blocks.writeStream.format(BLOCKS).outputMode("append").options(**options)


def _streamed(cuts: DataFrame, job: LineageJob) -> DataFrame:
    """Every micro-batch has one row, its end, which every lineage is given."""
    from pyspark.sql import functions as F

    from fairlead.runtime.spark.log.block_rows import SPARK_SCHEMA
    from fairlead.runtime.spark.log.lineage_processor import LineageProcessor

    keys = F.array(*(F.lit(each.key) for each in job.lineages))
    told = cuts.select(F.explode(keys).alias("lineage"), "ends").groupBy("lineage")
    return told.transformWithState(LineageProcessor(Parcel(job)), SPARK_SCHEMA, "Append", "None")


async def job_of(log: Log, asked: LogOptions, *, ends: bool = False) -> LineageJob:
    """`ends`: a batch, up to the common end of the streams now."""
    assert isinstance(asked.what, str)
    registry = Registry(log)
    plan, extent = await registry.read_plan(asked.what), await extent_of(log, asked)
    into = None if asked.into is None else await _type_of(registry, asked.into)
    number = {topics: at for at, topics in enumerate(extent.selection.topics)}
    found = dict[str, LineageSetup]()
    for group in groups_of(plan):
        at = tuple(number[topics] for topics in group.sources)
        streams, origin = tuple(extent.streams[each] for each in at), tuple(extent.firsts[each] for each in at)
        emitting_of(group.plan, origin_name(origin))
        if group.emits or into is not None:
            key = group.key(streams)
            found.setdefault(key, LineageSetup(key, group, streams, at, origin, into))
    if not found:
        raise UsageError("A229", "the rules emit nothing that could be stored", 'name a type for the relations: into="Name"')
    lasts = extent.lasts
    if ends and len(extent.streams) > 1:
        lasts = tuple(await complete_cut(log, extent.streams, extent.topics))
    return LineageJob(asked, tuple(found.values()), tuple(lasts))


async def _type_of(registry: Registry, name: str) -> EventType:
    """The type as which deliveries are stored, with attributes that were declared of it before; the sink declares it."""
    (made,), _ = await registry.declared_by(f"TYPE {name} {DELIVERY}")
    known = registry.catalogue.get(name)
    return known if known is not None and {*made.attributes} <= {*known.attributes} else made
