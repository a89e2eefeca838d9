"""A trace (testing/properties/trace.py) of the run: the events in the order of the log, when they were sent and by which
publisher, what was delivered when and to which subscriber.

Each stream numbers its own events. All streams that subscribers read here are merged along one order of the topics, so the
stream of all topics contains the order of every other one: an event's place in the trace is its place there.

Takes: a copy of the log, records, plans. Gives: a trace, in which every subscription of every subscriber is a process. Never:
repairs anything: inconsistencies raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.model.events.event import Event
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.block_columns import columns_of
from fairlead.runtime.live.core.stream_groups import StreamGroup, groups_of
from fairlead.testing.live.actors.records import Line
from fairlead.testing.live.verdict.deliveries import DeliveredNumbers
from fairlead.testing.live.verdict.log_copy import Copy, Identity, first_of_each, identities
from fairlead.testing.properties.conjunctions import conjunctions_of
from fairlead.testing.properties.trace import Multicast, Process, Trace, TraceDelivery


@dataclass(frozen=True, eq=False)
class Subscriber:
    """`start`: where it begins; None is the beginning of the log."""

    name: str
    plan: Plan
    given: Mapping[str, DeliveredNumbers]
    start: int | datetime | None = None

    @cached_property
    def groups(self) -> dict[str, StreamGroup]:
        """By the key of the group, if it received any deliveries."""
        named = {name: group for group in groups_of(self.plan) for name in group.names}
        return {key: named[each.lines[0]["subscription"]] for key, each in self.given.items() if each.lines}

    @cached_property
    def silent(self) -> list[StreamGroup]:
        """The groups without a delivery."""
        return [each for each in groups_of(self.plan) if each not in self.groups.values()]


def trace_of_run(copy: Copy, catalogue: Catalogue, sent: Mapping[Identity, int], subscribers: Iterable[Subscriber]) -> Trace:
    """`sent`: when each event was published first; 0 if unknown. Answers belong to a first subscription."""
    widest = [each for each in first_of_each(copy.streams[max(copy.streams, key=len)]) if each.block.type != HEARTBEAT.name]
    read = {each.name: each for each in catalogue}
    events = dict(zip(identities(widest).values(), columns_of(widest, read, 0).events(catalogue), strict=True))
    everyone = list(subscribers)
    answering = {each.name: f"{each.name}/{each.plan.subscriptions[0].name}" for each in everyone}
    multicasts = [Multicast(answering.get(who[1], who[1]), sent.get(who, 0), event) for who, event in events.items()]
    places = {topics: identities(first_of_each(blocks)) for topics, blocks in copy.streams.items()}
    processes, deliveries = [], []
    for each in everyone:
        for subscription in each.plan.subscriptions:
            process = Process(f"{each.name}/{subscription.name}", conjunctions_of(subscription, each.plan.catalogue))
            processes.append(process)
            for key, group in each.groups.items():
                for line in each.given[key].lines:
                    if line["subscription"] == subscription.name:
                        at = places[group.part_of(subscription.name, line["branch"]).topics]
                        deliveries.append(_delivery(process, line, [events[at[position]] for position in line["positions"]]))
    known = {each.name for each in processes}
    processes += [Process(name) for name in dict.fromkeys(each.process for each in multicasts) if name not in known]
    return Trace(tuple(processes), tuple(multicasts), tuple(deliveries))


def _delivery(process: Process, line: Line, members: Iterable[Event]) -> TraceDelivery:
    runs = tuple(line["runs"]) if line.get("runs") is not None else None
    return TraceDelivery(process.name, int(line["at"]), process.subscription[line["branch"]].identity, tuple(members), runs)
