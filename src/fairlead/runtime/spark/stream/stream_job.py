"""An unbounded input on Spark: the steps of a batch job, with state between micro-batches.

    input ─packed─► blobs ─one task─► sequenced ─► blobs ─by target─► matched ─► blobs ─unpacked─► relations

`sequenced` is one stateful task for the whole stream: it holds arrivals back until the frontier has passed them
(order/holdback.py) and assigns each its position, as the log does elsewhere; once for each frontier, if the rules have
ORDER BY … DELAY and subscriptions that read different types (sequencing.py). `matched` is a stateful task for every target (a
group, or a bucket of a keyed one). Between them there is one blob for each type and micro-batch, so the cost of a stateful
call, about a millisecond, is paid a few times in a micro-batch, never for a row. The state of a task is one value: the held
rows, or the dumped state of the engine. Spark's side of it is in processors.py.

A stream keeps the number of buckets with which it began: it is in the state, and targets receive it; a run that asks for
another number is rejected. The rules may change: the targets of a group are in the state, too, targets receive the number of
the rule change that added each subscription, and the metrics of the order report the changes.

With LATE REVISE, a late row that is not too late goes to its targets, too, marked. They keep the rows of the recent past, and
find what such a row changes (target_task.py). A micro-batch is a round; the order numbers those that have such rows.

The rows of a log say where in it they are (log/source.py). Then the frontier follows them one by one, and rounds are blocks
(order/log_holdback.py): verdicts and revisions are those of live subscribers, whatever the micro-batches.

Takes: an Input, the groups of a plan and a frontier. Gives: a streaming DataFrame of `Outcome.schema`. Never: depends on how
the stream is split into micro-batches or on the number of partitions, except for late events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from fairlead.model.blobs import packed, unpacked
from fairlead.model.plans.plan import Plan
from fairlead.order.holdback import Frontier, head_and_rest
from fairlead.order.total import order_column
from fairlead.runtime.event_time.reviser import SEGMENT_LIMITS, SegmentLimits
from fairlead.runtime.spark.input.arrivals import AHEAD_OF, UNPLACED, ArrivalReader
from fairlead.runtime.spark.input.frames import InputFrame
from fairlead.runtime.spark.job.parcel import Parcel
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.job.shuffle import AHEAD_REASON, Job, cut, together
from fairlead.runtime.spark.setup.garbage_collection import spare_what_is_loaded
from fairlead.runtime.spark.stream.resumption import ZONE, agree_in
from fairlead.runtime.spread.targets import TargetGroup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ARRIVED = pa.schema([("one", pa.int32()), ("type", pa.string()), ("blob", pa.binary())])
TOLD = "target int, buckets int, whose string, type string, blob binary, held bigint, kept bigint, ties bigint, change string"
FOUND = "blob binary"
APART = -1
"""Takes the place of a target: rows that go to the output unchanged."""
COUNTED = -2
"""Takes the place of a target: a row that only contains the number of held rows, of those that late ones may revise, of broken
ties, and the rule changes."""
LATE_OF = ":late "
"""Before the number of a round and the name of a type: late rows of it that are accepted."""
BLOB_BYTES = 64 << 20
"""The largest blob: a first micro-batch may be a whole log, and a Java array ends at 2 GB."""
LOG_ORDER = "use of the order of a log"
ORDER = "fairlead_order"
"""The name of the observation of the order: held rows, broken ties and rule changes, for listeners (progress.py)."""


@dataclass(frozen=True)
class FrontierShare:
    """What has one frontier, and so one order: the groups whose subscriptions read these `types`, by name. None: everything."""

    types: tuple[str, ...] | None
    frontier: Frontier
    groups: tuple[TargetGroup, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of its subscriptions, in the order of the text."""
        by_number = {number: name for each in self.groups for number, name in zip(each.numbers, each.names, strict=True)}
        return tuple(by_number[number] for number in sorted(by_number))

    @property
    def digests(self) -> list[str]:
        return sorted({digest for each in self.groups for digest in each.digests})


@dataclass(frozen=True)
class Setup:
    """Data of the steps. `identity`: what a checkpoint must have in common, by name. `asked`: the number of buckets that the
    user wants, if any. `start`: identifies this start of a query; a worker's cache of another start may have other names and
    types."""

    job: Job
    outcome: ResultRows
    frontier: Frontier
    identity: Mapping[str, Any]
    asked: int | None = None
    start: str = field(default_factory=lambda: uuid4().hex)
    blob_bytes_max: int = BLOB_BYTES
    limits: SegmentLimits = SEGMENT_LIMITS

    @property
    def names(self) -> dict[str, str]:
        """By name, the digests of all delivered subscriptions."""
        return {name: digest for each in self.job.groups for name, digest in zip(each.names, each.digests, strict=True)}

    @property
    def revises(self) -> bool:
        """Whether late rows are accepted."""
        return self.frontier.revise is not None

    @cached_property
    def shares(self) -> tuple[FrontierShare, ...]:
        """One for each frontier."""
        found: dict[tuple[str, ...] | None, list[TargetGroup]] = {}
        for each in self.job.groups:
            found.setdefault(each.frontier, []).append(each)
        return tuple(
            FrontierShare(types, self.frontier if types is None else replace(self.frontier, types=types), tuple(groups))
            for types, groups in found.items()
        )

    @property
    def by_types(self) -> bool:
        """Whether a frontier is that of the types that subscriptions read, as DELAY in the rules says."""
        return any(each.types is not None for each in self.shares)

    def forms(self, types: Iterable[str] | None) -> str:
        """Identifies the attributes of these types, or of all. Rows that are kept are of one form: if that changes, what they
        led to is not revised any more."""
        reading = self.job.reading
        read = [name for name in sorted(reading.columns if types is None else types) if name in reading.columns]
        told = {name: [str(each) for each in reading.catalogue[name].attributes] for name in read}
        return blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()


def match_stream(
    plan: Plan, given: InputFrame, groups: tuple[TargetGroup, ...], asked: int | None, cores: int, frontier: Frontier
) -> DataFrame:
    """`asked`: the number of buckets that the user wants; otherwise a new stream has one for each core."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    from fairlead.runtime.spark.stream.processors import MatchProcessor, Sequencer

    setup = setup_of(plan, given, groups, asked, cores, frontier)
    parcel, relations = Parcel(setup), from_arrow_schema(setup.outcome.schema)

    def arrive(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_what_is_loaded()
        return arrived(parcel.content, batches)

    come = given.frame.mapInArrow(arrive, from_arrow_schema(ARRIVED)).groupBy("one")
    told = come.transformWithState(Sequencer(parcel), TOLD, "Append", "None")
    metric = ORDER if plan.whole is None else f"{ORDER} {plan.subscriptions[0].types}"  # each part of a plan has its own
    counts = [F.max(name).alias(name) for name in ("held", "kept", "change")] + [F.sum("ties").alias("ties")]
    rows = told.observe(metric, *counts).where(F.col("target") != COUNTED)
    found = rows.drop("held", "kept", "ties", "change").groupBy("target")
    return found.transformWithState(MatchProcessor(parcel), FOUND, "Append", "None").mapInArrow(delivered, relations)


def setup_of(
    plan: Plan, given: InputFrame, groups: tuple[TargetGroup, ...], asked: int | None, cores: int, frontier: Frontier
) -> Setup:
    kinds = [given.frame.schema[order_column(key)].dataType.simpleString() for key in range(given.reading.keys)]
    identity = {
        "order_by": list(given.order_by),
        "types of the order columns": kinds,
        "use of positions": given.positioned,
        "use of sources": given.reading.sourced,
    }
    if given.reading.logged:
        identity[LOG_ORDER] = True
    if given.zone is not None:
        identity[ZONE] = given.zone
    job = Job(given.reading, groups, asked or cores, np.zeros(0, dtype=np.int64), order=plan.order)
    several = len({each.frontier for each in groups}) > 1
    return Setup(job, ResultRows(plan, by_frontier=several), frontier, identity, asked)


def arrived(setup: Setup, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the input, checked, as one blob for each type. UNPLACED: the rows that have no place in the order, or are ahead,
    as they go to the output."""
    reader = ArrivalReader(setup.job.reading)
    for batch in together(batches):
        for _, name, table in cut(setup.job, reader, batch):
            if name == UNPLACED:
                yield _arrival(UNPLACED, setup.outcome.unplaced(table))
            elif name.startswith(AHEAD_OF):
                yield from _ahead(setup, name.removeprefix(AHEAD_OF), table)
            else:
                yield _arrival(name, table)


def delivered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Blobs of rows become rows."""
    spare_what_is_loaded()
    for batch in batches:
        for blob in batch.column(0):
            yield from unpacked(blob).to_batches()


def _arrival(name: str, table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([value], kind) for value, kind in zip((0, name, packed(table)), ARRIVED.types, strict=True)], schema=ARRIVED
    )


def _ahead(setup: Setup, name: str, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows that are ahead, for each frontier that they would move."""
    for each in setup.shares:
        if each.types is None or name in each.types:
            names = each.names if setup.outcome.by_frontier else ()
            yield _arrival(UNPLACED, setup.outcome.ahead(name, table, AHEAD_REASON, names))


def pieces(table: pa.Table, bytes_max: int) -> Iterator[pa.Table]:
    rows = max(1, len(table) * bytes_max // max(1, table.nbytes))
    for start in range(0, len(table), rows):
        yield table.slice(start, rows)


def opened(state: bytes, setup: Setup) -> tuple[dict[str, Any], memoryview]:
    found, rest = head_and_rest(state)
    agree_in(found, setup.identity)
    return found, rest
