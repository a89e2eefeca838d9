"""The streams that each subscription of a plan reads: one group per subscription, with its streams.

A conjunction within a topic reads the stream of that topic, one over several topics their merged stream, so all subscribers to
it read it in the same order. A disjunction of conjunctions that read different topics reads a stream for each (parts.py), and
merges them (stream_merge.py). A subscription that reads derived events, waits for an absence or has a LIMIT is not split: it
reads one stream, of all topics that it and its upstream subscriptions read. If events are in an order by value (ORDER BY), the
stream of each topic is read, and they are merged by stored time (strand.py). So the relations, numbers and receipt of a
subscription do not depend on the other subscriptions of its plan, and two plans that contain it share it.

Groups that have a stream in common are followed together, in one order (`together`): the order of the stream, or of all their
streams merged. Groups without a common stream have no order between them.

The origin of a group says where it begins: for each of its streams, the position of the first event to read.

Takes: a plan. Gives: groups, each with its own plan and topics; origins as names and as JSON. Never: reads a log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.plans.partition import alone
from fairlead.model.plans.plan import Plan
from fairlead.runtime.parts import OrderPart, parts_of
from fairlead.transport.log.protocol import Stream

Origin = tuple[int, ...]
"""By part of a group, the position of the first event to read."""


@dataclass(frozen=True)
class GroupStream:
    """One stream that a group reads. `part`: the number of the part that matches its events. `types`: the concrete types that
    are read there. `topics`: of the stream."""

    part: int
    types: tuple[str, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True)
class StreamGroup:
    """`parts`: what the group matches, each part in its own order. `timed`: the group needs heartbeats."""

    plan: Plan
    parts: tuple[OrderPart, ...]
    timed: bool

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the subscriptions that the group delivers."""
        return tuple(each.name for each in self.plan.subscriptions if each.name not in self.plan.silent)

    @cached_property
    def emits(self) -> tuple[str, ...]:
        """The types that its subscriptions emit."""
        return tuple(str(self.plan[name].emits) for name in self.names if self.plan[name].emits is not None)

    @property
    def digest(self) -> str:
        """The digest of the subscriptions that the group delivers."""
        return self.plan.digest

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The concrete types that it reads, by name."""
        return tuple(sorted({name for each in self.parts for name in each.types}))

    def part_of(self, subscription: str, branch: int) -> OrderPart:
        """The part that finds the relations of a branch, given by its number in the text."""
        for part in self.parts:
            for each in part.plan.subscriptions:
                if each.name == subscription and branch in map(each.number, range(len(each.branches))):
                    return part
        raise KeyError(subscription, branch)

    @property
    def heartbeats(self) -> tuple[str, ...]:
        """Heartbeat, if the group reads heartbeats."""
        return (HEARTBEAT.name,) if self.timed else ()

    @cached_property
    def inputs(self) -> tuple[GroupStream, ...]:
        """Its streams: one for each part or, if events are in an order by value, one for each topic."""
        if self.plan.order is None:
            return tuple(GroupStream(at, each.types, each.topics) for at, each in enumerate(self.parts))
        (one,), topic_of = self.parts, {name: self.plan.catalogue[name].topic for name in self.types}
        return tuple(
            GroupStream(0, tuple(name for name in one.types if topic_of[name] == topic), (topic,)) for topic in one.topics
        )

    @cached_property
    def sources(self) -> tuple[tuple[str, ...], ...]:
        """What identifies its streams: the topics of each."""
        return tuple(each.topics for each in self.inputs)

    def key(self, streams: Sequence[Stream]) -> str:
        """A name for this group on these streams: equal groups have the same name."""
        told = "\n".join((self.digest, *(word for each in streams for word in each)))
        return hashlib.sha256(told.encode()).hexdigest()[:24]


def groups_of(plan: Plan) -> tuple[StreamGroup, ...]:
    """In the order of the text."""
    return tuple(_group(plan, each.name) for each in plan.subscriptions if each.name not in plan.silent)


def together(groups: Sequence[StreamGroup]) -> list[list[int]]:
    """Indexes of the groups that belong together: they share a stream, directly or through other groups."""
    reads = [set(each.sources) for each in groups]
    left, found = list(range(len(groups))), list[list[int]]()
    while left:
        mine, streams = [left.pop(0)], set[object]()
        streams |= reads[mine[0]]
        while more := [at for at in left if streams & reads[at]]:
            mine += more
            left = [at for at in left if at not in more]
            streams.update(*(reads[at] for at in more))
        found.append(sorted(mine))
    return found


def _group(plan: Plan, name: str) -> StreamGroup:
    own = plan if len(plan.subscriptions) == 1 else alone(plan, [name])
    return StreamGroup(own, parts_of(own), own.order is not None or any(each.waits for each in own.subscriptions))


def origin_name(origin: Origin) -> str:
    """The origin as a word of a key or a source."""
    if len(origin) == 1:
        return f"{origin[0]:x}"
    return hashlib.sha256(" ".join(map(str, origin)).encode()).hexdigest()[:16]


def places_to_json(places: Sequence[int]) -> int | list[int]:
    return places[0] if len(places) == 1 else list(places)


PLACES = (int, [int])
"""The shape of places as JSON (transport/log/entry_values.py)."""


def places_from_json(told: int | list[int]) -> tuple[int, ...]:
    return (told,) if isinstance(told, int) else tuple(told)
