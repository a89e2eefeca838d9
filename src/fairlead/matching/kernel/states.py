"""The state of a plan on kernels in the form that every matcher shares: byte for byte what the incremental matcher dumps, so an
engine can begin with one matcher and go on with the other."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fairlead.matching import state
from fairlead.matching.chunk import chunk_of_events
from fairlead.matching.instance import Instance, Key, Pending, plain_instance, restored_instance
from fairlead.matching.kernel.batch import Batch
from fairlead.matching.kernel.branch import KernelBranch
from fairlead.matching.kernel.lane import KernelLane
from fairlead.matching.kernel.pool import CLOCK, FLAGS, NEVER, SEEN, WAITS
from fairlead.matching.outcome import Match
from fairlead.matching.store import distinct
from fairlead.model.columns import Columns
from fairlead.model.event import Event


def dumped(lane: KernelLane) -> dict[str, Any]:
    """By subscription."""
    made: dict[str, Any] = {
        each.name: {"seen": None, "branches": [[] for _ in each.branches]} for each in lane.plan.subscriptions
    }
    for family in lane.families:
        live = distinct(family.kernel.live())
        events = dict(zip(live.tolist(), lane.store.view().take(live).events(lane.plan.catalogue), strict=True))
        seen = lane.seen[family.reads]
        for member in family.members:
            made[member.subscription.name]["seen"] = None if seen == NEVER else seen
        for which, key, instance in _instances(family.kernel, events):
            entry = [[state.plain(value) for value in key], plain_instance(instance)]
            member = family.members[which]
            made[member.subscription.name]["branches"][member.branch].append(entry)
    for content in made.values():
        for entries in content["branches"]:
            entries.sort(key=lambda entry: json.dumps(entry[0]))
    return made


def restore(lane: KernelLane, content: dict[str, Any]) -> None:
    """Queue what a dumped state has queued; the events go into the store."""
    for family in lane.families:
        loaded: list[tuple[Key, int, Instance]] = []
        for which, member in enumerate(family.members):
            mine = content[member.subscription.name]
            if mine["seen"] is not None:
                lane.seen[family.reads] = max(lane.seen[family.reads], mine["seen"])
            for plain_key, plain in mine["branches"][member.branch]:
                key = tuple(map(state.restored, plain_key))
                loaded.append((key, which, restored_instance(plain, member.branch, key, lane.plan.catalogue)))
        family.kernel.pool.st[SEEN] = lane.seen[family.reads]
        events = {
            event.position: event
            for _, _, instance in loaded
            for each in (*instance.lists(), *(pending.match.members for pending in instance.pending))
            for event in each
        }
        if events:
            lane.store.add_events(list(events.values()))
            chunk = chunk_of_events([events[position] for position in sorted(events)])
            family.kernel.adopt(Batch(chunk.columns, lane.plan.catalogue, chunk.words, chunk.times), loaded)
        else:
            nothing = Columns((), np.zeros(0, dtype=np.int8), range(0), {})
            family.kernel.adopt(Batch(nothing, lane.plan.catalogue), loaded)


def _instances(kernel: KernelBranch, events: dict[int, Event]) -> list[tuple[int, Key, Instance]]:
    """Which branch of the family, key, and what it has."""
    found = []
    pool, shape = kernel.pool, kernel.shape
    for at, (key, which) in enumerate(kernel.instances()):
        if at >= pool.keys:
            continue
        lists = [[events[word] for word in kernel.words_of(pool.walk(at, queue))] for queue in range(shape.stride)]
        queues, noted = lists[: len(shape.needed)], lists[len(shape.needed) :]
        clock = int(pool.ks[at, CLOCK])
        pending, row = [], int(pool.ks[at, WAITS])
        while row != -1:
            deadline, cancelled, _, following, *nodes = pool.wait[row].tolist()
            members = tuple(events[word] for word in kernel.words_of(nodes))
            due = (deadline, tuple(each.position for each in members), which)
            pending.append(Pending(due, Match(which, members, deadline), key, bool(cancelled)))
            row = following
        instance = Instance(queues, noted, None if clock == NEVER else clock, bool(pool.ks[at, FLAGS] & 1), pending)
        if not instance.is_empty():
            found.append((which, key, instance))
    return found
