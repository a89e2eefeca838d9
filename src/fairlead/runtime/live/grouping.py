"""Which subscriptions of a plan read the log together: those that read the same types, in one order.

What reads derived events, makes them for others or waits for an absence is one group: the places of derived events and of
decisions beside a logged one are counted over all of these together. The others go by the types that they read; so two plans
that have a subscription in common read it from the same stream, and find the same relations under the same ids.

Takes: a plan. Gives: groups, each with a plan of its own and the types that it reads. Never: reads a block.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.errors import LogError
from fairlead.model.plan import Plan, Subscription
from fairlead.model.types import HEARTBEAT
from fairlead.transport.log.names import type_stream
from fairlead.transport.log.protocol import Log, Stream

CAUGHT_UP_SECONDS, PAUSE_SECONDS = 300.0, 0.02


@dataclass(frozen=True)
class Group:
    """`types`: the concrete types that it reads, by name. `timed`: heartbeats matter to it."""

    plan: Plan
    types: tuple[str, ...]
    timed: bool

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.plan.subscriptions)

    async def stream(self, log: Log) -> Stream:
        """A type alone, without a need of time, is read from its own stream."""
        if len(self.types) == 1 and not self.timed:
            return await log.open_type(self.types[0])
        return await log.open_merged(self.types)

    async def end(self, log: Log, stream: Stream) -> int:
        """The last sequence of the stream, once it has taken up what its types hold now: a new one has all of it to take up."""
        if stream.name == type_stream(self.types[0]):
            return await log.last(stream)
        held = sum([await log.last(await log.open_type(name)) for name in self.types])
        for _ in range(int(CAUGHT_UP_SECONDS / PAUSE_SECONDS)):
            last = await log.last(stream)
            if last >= held:
                return last
            await asyncio.sleep(PAUSE_SECONDS)
        problem = f"the stream of {', '.join(self.types)} does not take up what is published"
        raise LogError("N011", problem, "see the server's log: is there room on its disk?")

    def key(self, stream: Stream) -> str:
        """What this group makes of this stream, as a name: the same for all who do the same."""
        told = "\n".join((self.plan.digest, stream.name, stream.made))
        return hashlib.sha256(told.encode()).hexdigest()[:24]


def groups_of(plan: Plan) -> tuple[Group, ...]:
    """In the order of the text, by their first subscription."""
    nested = _nested(plan)
    together: dict[object, list[Subscription]] = {}
    for each in plan.subscriptions:
        together.setdefault("nested" if each.name in nested else each.reads(plan.catalogue), []).append(each)
    return tuple(_group(plan, chosen) for chosen in together.values())


def _nested(plan: Plan) -> set[str]:
    read = {name for each in plan.subscriptions for name in plan.derived_types(each)}
    return {
        each.name
        for each in plan.subscriptions
        if plan.derived_types(each) or each.emits in read or any(branch.absences for branch in each.branches)
    }


def _group(plan: Plan, chosen: Sequence[Subscription]) -> Group:
    own = plan if len(chosen) == len(plan.subscriptions) else replace(plan, subscriptions=tuple(chosen), guarantees={})
    reads = {name for each in chosen for name in each.reads(plan.catalogue)} - plan.emitters.keys() - {HEARTBEAT.name}
    timed = any(branch.absences for each in chosen for branch in each.branches)
    return Group(own, tuple(sorted(reads)), timed)
