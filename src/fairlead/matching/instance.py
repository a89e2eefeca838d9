"""What is queued, noted and waiting for one branch and one key, and its plain form in a dumped state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairlead.matching import state
from fairlead.matching.outcome import Due, Match
from fairlead.model.event import Event
from fairlead.model.types import Catalogue

Key = tuple[Any, ...]


@dataclass(slots=True)
class Pending:
    """A complete relation that waits for its deadline."""

    due: Due
    match: Match
    key: Key
    cancelled: bool = False

    def __lt__(self, other: Pending) -> bool:
        return self.due < other.due


@dataclass(slots=True)
class Instance:
    """One branch for one key: what is queued, noted and waiting."""

    queues: list[list[Event]]
    negated: list[list[Event]]
    clock: int | None = None
    loose: bool = False
    pending: list[Pending] = field(default_factory=list)

    def lists(self) -> list[list[Event]]:
        """The queues, then the noted events of each WITHOUT clause."""
        return [*self.queues, *self.negated]

    def is_empty(self) -> bool:
        return self.clock is None and not any(self.queues) and not self.pending and not any(self.negated)


def plain_instance(instance: Instance) -> dict[str, Any]:
    return {
        "queues": [[state.plain_event(event) for event in queue] for queue in instance.queues],
        "negated": [[state.plain_event(event) for event in noted] for noted in instance.negated],
        "clock": instance.clock,
        "loose": instance.loose,
        "pending": [
            [each.match.deadline, [state.plain_event(event) for event in each.match.members], each.cancelled]
            for each in sorted(instance.pending)
        ],
    }


def restored_instance(content: dict[str, Any], branch: int, key: Key, catalogue: Catalogue) -> Instance:
    def events(entries: list[Any]) -> list[Event]:
        return [state.restored_event(entry, catalogue) for entry in entries]

    pending = []
    for deadline, members, cancelled in content["pending"]:
        match = Match(branch, tuple(events(members)), deadline)
        due = (deadline, tuple(member.position for member in match.members), branch)
        pending.append(Pending(due, match, key, cancelled))
    queues, negated = [events(each) for each in content["queues"]], [events(each) for each in content["negated"]]
    return Instance(queues, negated, content["clock"], content["loose"], pending)
