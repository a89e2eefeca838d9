"""Which subscriptions of a plan read the log together: those that read the same streams.

A conjunction reads the merged stream of its types, so that everybody who has it reads it in the same order; a disjunction reads
one stream for each of its conjunctions (parts.py), and merges them (interleaving.py). Subscriptions whose conjunctions read the
same types are one group; so two plans that have a subscription in common find the same relations under the same ids.

What is not taken apart is one group with one stream.

Takes: a plan. Gives: groups, each with a plan of its own and the streams that it reads. Never: reads a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.model.plan import Plan, Subscription
from fairlead.runtime.parts import Part, nested, parts_of, types_of
from fairlead.transport.log.protocol import Log, Stream


@dataclass(frozen=True)
class Group:
    """`parts`: what it makes of each of its streams. `timed`: heartbeats matter to it."""

    plan: Plan
    parts: tuple[Part, ...]
    timed: bool

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.plan.subscriptions)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The concrete types that it reads, by name."""
        return tuple(sorted({name for each in self.parts for name in each.types}))

    def part_of(self, subscription: str, branch: int) -> Part:
        """The part that finds the relations of a branch, by its number in the text."""
        for part in self.parts:
            for each in part.plan.subscriptions:
                if each.name == subscription and branch in map(each.number, range(len(each.branches))):
                    return part
        raise KeyError(subscription, branch)

    async def streams(self, log: Log) -> tuple[Stream, ...]:
        """Part by part. A type alone, without a need of time, is read from its own stream."""
        (first, *others) = self.parts
        if len(first.types) == 1 and not others and not self.timed:
            return (await log.open_type(first.types[0]),)
        return tuple([await log.open_merged(each.types) for each in self.parts])

    def key(self, streams: Sequence[Stream]) -> str:
        """What this group makes of these streams, as a name: the same for all who do the same."""
        told = "\n".join((self.plan.digest, *(word for each in streams for word in each)))
        return hashlib.sha256(told.encode()).hexdigest()[:24]


def groups_of(plan: Plan) -> tuple[Group, ...]:
    """In the order of the text, by their first subscription."""
    whole = nested(plan)
    rest: list[Subscription] = []
    together: dict[frozenset[tuple[str, ...]], list[Subscription]] = {}
    for each in plan.subscriptions:
        reads = frozenset(types_of(branch, plan.catalogue) for branch in each.branches)
        (rest if each.name in whole else together.setdefault(reads, [])).append(each)
    found = [_group(plan, chosen) for chosen in (*together.values(), rest) if chosen]
    order = {each.name: at for at, each in enumerate(plan.subscriptions)}
    return tuple(sorted(found, key=lambda group: order[group.names[0]]))


def _group(plan: Plan, chosen: Sequence[Subscription]) -> Group:
    own = plan if len(chosen) == len(plan.subscriptions) else replace(plan, subscriptions=tuple(chosen), guarantees={})
    return Group(own, parts_of(own), any(branch.absences for each in chosen for branch in each.branches))
