"""The streams that each subscription of a plan reads: one group per subscription, with its streams.

A conjunction reads the merged stream of its types, so all subscribers to it read it in the same order. A disjunction reads one
stream for each of its conjunctions (parts.py), and merges them (interleaving.py). A subscription that reads derived events or
waits for an absence is not split: it reads one stream, of all types that it and its upstream subscriptions read. So the
relations, numbers and receipt of a subscription do not depend on the other subscriptions of its plan, and two plans that
contain it share it.

Groups that have a stream in common are followed together, in one order (`together`): the order of the stream, or of all their
streams merged. Groups without a common stream have no order between them.

Takes: a plan. Gives: groups, each with its own plan and streams. Never: reads a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.model.partition import alone
from fairlead.model.plan import Plan
from fairlead.runtime.parts import OrderPart, parts_of
from fairlead.transport.log.protocol import Log, Stream


@dataclass(frozen=True)
class StreamGroup:
    """`parts`: what the group matches in each of its streams. `timed`: the group needs heartbeats."""

    plan: Plan
    parts: tuple[OrderPart, ...]
    timed: bool

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the subscriptions that the group delivers."""
        return tuple(each.name for each in self.plan.subscriptions if each.name not in self.plan.silent)

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
    def reads_own(self) -> bool:
        """Whether the group reads a type's own stream: it has a single type, and needs no heartbeats."""
        return len(self.parts) == 1 and len(self.parts[0].types) == 1 and not self.timed

    @cached_property
    def sources(self) -> tuple[tuple[bool, tuple[str, ...]], ...]:
        """What identifies its streams, part by part: whether the stream is a type's own, and the types."""
        return tuple((self.reads_own, each.types) for each in self.parts)

    async def streams(self, log: Log) -> tuple[Stream, ...]:
        """The streams, part by part."""
        if self.reads_own:
            return (await log.open_type(self.parts[0].types[0]),)
        return tuple([await log.open_merged(each.types) for each in self.parts])

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
    return StreamGroup(own, parts_of(own), any(each.waits for each in own.subscriptions))
