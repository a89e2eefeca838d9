"""Which subscriptions of a plan read the log together: those that read the same streams.

A conjunction reads the merged stream of its types, so that everybody who has it reads it in the same order; a disjunction reads
one stream for each of its conjunctions (parts.py), and merges them (interleaving.py). Subscriptions whose conjunctions read the
same types are one group; so two plans that have a subscription in common find the same relations under the same ids.

What reads derived events, makes them for others or waits for an absence is one group with one stream: the places of derived
events and of decisions beside a logged one are counted over all of these together.

Takes: a plan. Gives: groups, each with a plan of its own and the streams that it reads. Never: reads a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.model.plan import Plan, Subscription
from fairlead.model.types import HEARTBEAT
from fairlead.runtime.parts import Part, parts_of, types_of
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
    nested = _nested(plan)
    alone: list[Subscription] = []
    together: dict[frozenset[tuple[str, ...]], list[Subscription]] = {}
    for each in plan.subscriptions:
        reads = frozenset(types_of(branch, plan.catalogue) for branch in each.branches)
        (alone if each.name in nested else together.setdefault(reads, [])).append(each)
    found = [_group(plan, chosen) for chosen in together.values()] + ([_nested_group(plan, alone)] if alone else [])
    order = {each.name: at for at, each in enumerate(plan.subscriptions)}
    return tuple(sorted(found, key=lambda group: order[group.names[0]]))


def _nested(plan: Plan) -> set[str]:
    read = {name for each in plan.subscriptions for name in plan.derived_types(each)}
    return {
        each.name
        for each in plan.subscriptions
        if plan.derived_types(each) or each.emits in read or any(branch.absences for branch in each.branches)
    }


def _group(plan: Plan, chosen: Sequence[Subscription]) -> Group:
    own = _own(plan, chosen)
    return Group(own, parts_of(own), timed=False)


def _nested_group(plan: Plan, chosen: Sequence[Subscription]) -> Group:
    own = _own(plan, chosen)
    reads = {name for each in chosen for name in each.reads(plan.catalogue)} - plan.emitters.keys() - {HEARTBEAT.name}
    timed = any(branch.absences for each in chosen for branch in each.branches)
    return Group(own, (Part(own, tuple(sorted(reads))),), timed)


def _own(plan: Plan, chosen: Sequence[Subscription]) -> Plan:
    return plan if len(chosen) == len(plan.subscriptions) else replace(plan, subscriptions=tuple(chosen), guarantees={})
