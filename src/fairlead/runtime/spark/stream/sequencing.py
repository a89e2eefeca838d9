"""The orders of a stream: a stateful task for the whole of it.

A stream whose frontier the user states has one order (stream_order.py), of all its rows. With ORDER BY … DELAY in the rules,
subscriptions have a frontier of the events that they read, alone with their upstream, as everywhere (event_time/): there is an
order for each set of types that subscriptions read. Rows go to the orders that read their type, and heartbeats to all; a row
that nobody reads moves nothing, and has no verdict. A rejected row belongs to no order then, and is reported at once.

The rows of a log are put into its order once, for all (order/log_holdback.py).

Takes: arrivals, micro-batch after micro-batch. Gives: numbered rows for each target, and rows for the output. Never: reads a
clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from fairlead.model.blobs import packed
from fairlead.model.events.types import HEARTBEAT
from fairlead.order.holdback import ALIGNED, with_head
from fairlead.order.log_holdback import LogOrder
from fairlead.runtime.spark.input.arrivals import REJECTED
from fairlead.runtime.spark.stream.resumption import RuleChange, agree_in_buckets, changed, head
from fairlead.runtime.spark.stream.spreading import key_of
from fairlead.runtime.spark.stream.stream_job import APART, FrontierShare, Setup, opened
from fairlead.runtime.spark.stream.stream_order import Blobs, StreamOrder, refused
from fairlead.runtime.spread.targets import TargetGroup
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.names import topic_stream


@dataclass(frozen=True)
class Begun:
    """A group in a stream: the first of its targets, and by digest the number of the rule change that added each
    subscription."""

    first: int
    since: Mapping[str, int]


class Sequencing:
    """Arrivals in, numbered rows for each target out. `orders`: one for each frontier."""

    def __init__(self, setup: Setup, state: bytes | None) -> None:
        self.setup, self.job = setup, setup.job
        self.log = LogOrder(topic_stream, INDEX_BITS) if setup.job.reading.logged else None
        self.groups: dict[str, Begun] = {}
        self.next_target = self.changes = 0
        self.change: RuleChange | None = None
        names, kept = dict[str, str](), dict[tuple[str, ...] | None, memoryview]()
        if state is not None:
            found, rest = opened(state, setup)
            agree_in_buckets(found["buckets"], setup.asked)
            names = found.get("names", {})
            self.job = replace(setup.job, buckets=found["buckets"])
            self.next_target, self.changes = found["next"], found["changes"]
            self.groups = {name: Begun(first, dict(since)) for name, (first, since) in found["groups"].items()}
            kept = dict(_parts(found["orders"], rest))
            if self.log is not None:
                self.log.times = {name: int(time) for name, time in found["times"].items()}
        had = {digest for each in self.groups.values() for digest in each.since}
        is_changed = self._settle()
        self.orders = [self._order(share, kept.get(share.types)) for share in setup.shares]
        if is_changed:
            self._report(had, names)

    def _settle(self) -> bool:
        """Assigns targets to groups, and records the rule change that added each subscription; returns whether there was one.
        A target that was given up is never reused, nor is the earlier state of a subscription that was removed and added
        again."""
        now = {each.identity: sorted(set(each.digests)) for each in self.job.groups}
        if {name: sorted(each.since) for name, each in self.groups.items()} == now:
            return False
        self.changes += 1
        kept, self.groups = self.groups, {}
        for each in self.job.groups:
            old = kept.get(each.identity)
            if old is None:
                old = Begun(self.next_target, {})
                self.next_target += self.job.targets_of(each)
            self.groups[each.identity] = Begun(old.first, {d: old.since.get(d, self.changes) for d in each.digests})
        return True

    def _order(self, share: FrontierShare, state: memoryview | None) -> StreamOrder:
        """One that had the same types in the last micro-batch continues."""
        job, targets = replace(self.job, groups=share.groups), [at for each in share.groups for at in self._targets(each)]
        made = StreamOrder(self.setup, share, job, targets)
        if state is not None:
            made.load(state)
        return made

    def _report(self, had: set[str], names: Mapping[str, str]) -> None:
        """`had`, `names`: the digests of the subscriptions in the last micro-batch, and these by name."""
        begins = [each.back.next_position for each in self.orders if any(map(self._is_new, each.share.groups))]
        begins = begins or [each.back.next_position for each in self.orders]
        self.change = changed(had, names, self.setup.names, min(begins))

    def _is_new(self, group: TargetGroup) -> bool:
        return self.changes in self.groups[group.identity].since.values()

    def _targets(self, group: TargetGroup) -> range:
        """The numbers of its targets in the checkpoint."""
        first = self.groups[group.identity].first
        return range(first, first + self.job.targets_of(group))

    @property
    def buckets(self) -> int:
        return self.job.buckets

    @property
    def ties(self) -> int:
        """The number of ties that were broken in this micro-batch, in any order."""
        return sum(each.ties for each in self.orders)

    def held(self) -> int:
        """The number of held rows; one that several orders hold counts for each."""
        return sum(each.back.lag() for each in self.orders)

    def kept(self) -> int | None:
        """The number of released rows before which late ones are accepted, in any order; None if none are."""
        return sum(each.back.kept() for each in self.orders) if self.setup.revises else None

    def key(self, target: int) -> int:
        """The key of a target in Spark."""
        return key_of(target)

    def whose(self, target: int) -> str:
        """The description of its group that a target receives."""
        for each in self.job.groups:
            if target in self._targets(each):
                since = self.groups[each.identity].since
                return json.dumps({"group": each.identity, "since": dict(sorted(since.items()))})
        return ""

    def step(self, arrivals: Mapping[str, pa.Table]) -> Blobs:
        """One micro-batch."""
        if self.log is not None:
            arrivals = self.log.placed(arrivals)
        if REJECTED in arrivals and self.setup.by_types:
            yield APART, "", packed(refused(self.setup, arrivals[REJECTED]))
        for each in self.orders:
            wanted = arrivals if each.share.types is None else (*each.share.types, HEARTBEAT.name)
            yield from each.step({name: arrivals[name] for name in wanted if name in arrivals})

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories."""
        groups = {name: [each.first, dict(sorted(each.since.items()))] for name, each in self.groups.items()}
        more: dict[str, Any] = {"buckets": self.job.buckets, "next": self.next_target, "changes": self.changes}
        more |= {"groups": groups, "names": self.setup.names}
        if self.log is not None:
            more["times"] = dict(sorted(self.log.times.items()))
        states = [each.dump() for each in self.orders]
        more["orders"] = [[each.share.types, len(state)] for each, state in zip(self.orders, states, strict=True)]
        return with_head(head(self.setup.identity) | more, b"".join(state.ljust(_room(len(state)), b"\0") for state in states))


def _parts(
    told: Iterable[tuple[Sequence[str] | None, int]], rest: memoryview
) -> Iterator[tuple[tuple[str, ...] | None, memoryview]]:
    """The states of orders, by their types."""
    at = 0
    for types, size in told:
        yield None if types is None else tuple(types), rest[at : at + size]
        at += _room(size)


def _room(size: int) -> int:
    """The bytes that a state of so many bytes takes, so that the next one is aligned."""
    return -(-size // ALIGNED) * ALIGNED
