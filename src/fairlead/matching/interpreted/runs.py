"""What the runs of a branch hold beside chosen members, event by event.

A run follows from the members that are no runs: all events of its queue that stand where the orders allow and meet the
conditions that name it. It takes at most so many, the first or with RECENT the last. Then HAVING is asked.

Takes: members, with nothing at the slots of runs, and queues. Gives: the same with a tuple of events for each run, or None.
Never: chooses a member, changes a queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.matching.expressions.closures import Check, compile_condition
from fairlead.model.events.event import Event
from fairlead.model.events.types import EventType
from fairlead.model.plans.pattern import Quantifier
from fairlead.model.plans.plan import Branch


@dataclass(frozen=True)
class CompiledRun:
    slot: int
    queue: int
    quantifier: Quantifier
    after: tuple[int, ...]
    before: tuple[int, ...]
    """The members, which are no runs, that its events have to follow and to precede."""
    each: tuple[Check, ...]


class Runs:
    """The runs of a branch, compiled."""

    def __init__(self, branch: Branch, recent: bool, types: Sequence[EventType]) -> None:
        self.recent, self.width = recent, len(types)
        self.runs = [_compiled(branch, slot, quantifier, types) for slot, quantifier in branch.runs.items()]
        self.having = [compile_condition(each.condition, types) for each in branch.having]
        self.queues = frozenset(each.queue for each in self.runs)

    def gathered(self, members: Sequence[Event | None], queues: Sequence[list[Event]], event: Event) -> list[Any] | None:
        """What all slots hold; None if a run is too short, HAVING does not hold, or the event is no member."""
        made = self.held(members, queues)
        if any(len(made[run.slot]) < run.quantifier.least for run in self.runs):
            return None
        whole = made[: len(members)]
        if not any(event in each if isinstance(each, tuple) else event is each for each in whole):
            return None
        return whole if all(check(made) for check in self.having) else None

    def held(self, members: Sequence[Event | None], queues: Sequence[Sequence[Event]]) -> list[Any]:
        """What all slots hold, those of noted events too: an event, or the tuple of a run, however short."""
        made: list[Any] = [*members, *[None] * (self.width - len(members))]
        taken = {member.position for member in members if member is not None}
        for run in self.runs:
            made[run.slot] = tuple(self._found(run, made, queues[run.queue], taken))
        return made

    def _found(self, run: CompiledRun, made: list[Any], queue: Sequence[Event], taken: set[Any]) -> list[Event]:
        low = max((made[at].position for at in run.after), default=None)
        high = min((made[at].position for at in run.before), default=None)
        found = []
        for event in queue:
            if low is not None and event.position <= low:
                continue
            if high is not None and event.position >= high:
                break
            made[run.slot] = event
            if event.position not in taken and all(check(made) for check in run.each):
                found.append(event)
                if not self.recent and len(found) == run.quantifier.most:
                    break
        return found if run.quantifier.most is None else found[-run.quantifier.most :]


def flat(members: Sequence[Any]) -> tuple[Event, ...]:
    """The members one after the other."""
    return tuple(event for each in members for event in (each if isinstance(each, tuple) else (each,)))


def lengths(members: Sequence[Any]) -> tuple[int, ...]:
    return tuple(len(each) if isinstance(each, tuple) else 1 for each in members)


def _compiled(branch: Branch, slot: int, quantifier: Quantifier, types: Sequence[EventType]) -> CompiledRun:
    pairs = [pair for pair in branch.orders if not branch.runs.keys() >= {*pair}]
    return CompiledRun(
        slot,
        branch.queue_types.index(branch.slots[slot].type),
        quantifier,
        tuple(a for a, b in pairs if b == slot),
        tuple(b for a, b in pairs if a == slot),
        tuple(compile_condition(each.condition, types) for each in branch.predicates if slot in each.slots),
    )
