"""Events that subscriptions EMIT, as blocks for the log.

The derived events of a subscription that are completed by one block of the log form one block (or a few, if there are many). So
the number and the content of a derived block are a function of the log and the subscription: every subscriber with the same
subscription, and every replay, produces the same block, and the log stores it once.

A derived event that completes a relation may derive another: rules of several subscribers can form a loop. A block has one hop
more than the one that completed its relations. So those of a loop have more and more, and after `HOPS_MAX` nothing is derived:
the loop ends at the same block for everybody. Where all rules are known, a loop is refused instead (`loop_of`).

Takes: relations in the order of delivery. Gives: blocks. Never: reads a clock; stores anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import UnsupportedError
from fairlead.matching.results.relation_batches import only, relation_table
from fairlead.model.events.columns import arrow_array, arrow_schema, record_batch
from fairlead.model.events.types import NO_TIME, EventType, Kind
from fairlead.model.plans.plan import Plan, Subscription
from fairlead.model.relations.layout import ResultLayout, layout_of
from fairlead.model.relations.relation import Relation
from fairlead.transport.log.blocks.block import INDEX_BITS, Block, pieces, schema_digest

HOPS_MAX = 64
"""Chains of subscriptions across files that are no loop have some steps."""
DERIVED = "e-"
"""How the sources of derived events begin."""
NO_HOPS: Mapping[int, int] = {}


@dataclass(frozen=True)
class EmittingSubscription:
    """One subscription that emits. `source`: the name under which its events are published."""

    subscription: Subscription
    plan: Plan
    source: str

    @cached_property
    def type(self) -> EventType:
        return self.plan.catalogue[str(self.subscription.emits)]

    @cached_property
    def layout(self) -> ResultLayout:
        return layout_of(self.plan, self.subscription.name)

    def blocks(
        self,
        relations: Sequence[Relation],
        number: int,
        sequence: int,
        by: npt.NDArray[np.int64] | None = None,
        hops: Mapping[int, int] = NO_HOPS,
    ) -> Iterator[Block]:
        """The blocks of these relations, numbered from `number` and `sequence`. `by`: where in the log each was completed, if
        that is not its position. `hops`: see `derived_blocks`."""
        mine = only(relations, self.subscription.name)
        if not len(mine):
            return
        table = relation_table([mine], self.layout)
        completed = table.column("completed_at").to_numpy() if by is None else by
        yield from derived_blocks(self.type, self.source, self._batch(table, mine), completed, number, sequence, hops)

    def _batch(self, table: pa.Table, relations: Sequence[Relation]) -> pa.RecordBatch:
        emitted = table.column("emitted").combine_chunks()
        if isinstance(emitted, pa.ChunkedArray):
            emitted = pa.concat_arrays(emitted.chunks)
        schema = arrow_schema(self.type)
        columns = [emitted.field(each.name).cast(each.type) for each in schema]
        at = self.type.time_index
        if at is not None and columns[at].null_count:
            columns[at] = self._times(columns[at], relations)
        return record_batch(columns, schema, table.num_rows)

    def _times(self, column: pa.Array, relations: Sequence[Relation]) -> pa.Array:
        """If the emitted TIME is null, the largest time of the members (docs/semantics.md)."""
        given = column.cast(pa.int64()).to_pylist()
        found = [
            (NO_TIME if each.latest_time is None else each.latest_time) if time is None else time
            for time, each in zip(given, relations, strict=True)
        ]
        return arrow_array(found, self.type.attributes[self.type.time_index or 0].type)


def derived_blocks(
    event_type: EventType,
    source: str,
    batch: pa.RecordBatch,
    completed: npt.NDArray[np.int64],
    number: int,
    sequence: int,
    hops: Mapping[int, int] = NO_HOPS,
) -> Iterator[Block]:
    """Derived events that were completed at these positions, as numbered blocks: one block for the events that one block of the
    log completed. `hops`: of the blocks that completed them, by sequence; 0 of others."""
    cuts = [0, *(np.flatnonzero(np.diff(completed >> INDEX_BITS)) + 1).tolist(), len(completed)]
    schema = schema_digest(event_type)
    for low, high in pairwise(cuts):
        hop = 1 + hops.get(int(completed[low]) >> INDEX_BITS, 0)
        if hop > HOPS_MAX:
            continue
        # a copy: the bytes of a slice would depend on how the log was read
        for count, payload in pieces(batch.take(pa.array(range(low, high)))):
            yield Block(event_type.name, source, number, sequence, count, schema, payload, topic=event_type.topic, hops=hop)
            number, sequence = number + 1, sequence + count


def emitting_of(plan: Plan, origin: str) -> tuple[EmittingSubscription, ...]:
    """The deriving subscriptions of a plan. `origin`: the name of the place where their lineage begins. Raises UnsupportedError
    if an emitted event cannot be published."""
    found = []
    for each in plan.subscriptions:
        if each.emits is None or each.name in plan.silent:
            continue
        for attribute in plan.catalogue[each.emits].attributes:
            if attribute.type.kind is Kind.INTERVAL:
                problem = f"'{each.emits}' has an interval, '{attribute.name}', which a log does not store"
                raise UnsupportedError("U122", problem, "emit a number, or subscribe with emit=False")
        found.append(EmittingSubscription(each, plan, f"{DERIVED}{each.digest[:24]}-{origin}"))
    return tuple(found)


Emission = tuple[Sequence[str], Sequence[str]]
"""Of a group: the types that it reads, and those that it emits."""


def loop_of(own: Sequence[Emission], others: Sequence[Emission]) -> list[str]:
    """Types that are derived of one another in a circle, of which `own` is a part; empty if there is none."""
    follows: dict[str, list[str]] = {}
    for reads, emits in (*own, *others):
        for name in reads:
            follows.setdefault(name, []).extend(emits)
    for start in sorted({name for _, emits in own for name in emits}):
        paths, seen = [[start]], set[str]()
        while paths:
            path = paths.pop()
            for name in sorted(follows.get(path[-1], ())):
                if name == start:
                    return [*path, start]
                if name not in seen:
                    seen.add(name)
                    paths.append([*path, name])
    return []
