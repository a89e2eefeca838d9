"""The queued, noted and waiting events of one branch and one key."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.matching.folded_run import FoldedRun
from fairlead.matching.outcome import Due, Match
from fairlead.model.events.event import Event

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
    """One branch for one key: queued and noted events, and waiting relations."""

    queues: list[list[Event]]
    noted: list[list[Event]]
    clock: int | None = None
    loose: bool = False
    pending: list[Pending] = field(default_factory=list)
    search: Any = None
    """Of a sequence: its search, which follows from the queues."""
    folded: FoldedRun | None = None
    """In place of the queue of a run that is folded."""

    def lists(self) -> list[list[Event]]:
        """The queues, then the events that each clause has noted. Of a folded run, the events that stand for the others."""
        if self.folded is not None:
            return [self.folded.representatives()]
        return [*self.queues, *self.noted]

    def copy(self) -> Instance:
        """Copies its lists, which change when an event arrives. Waiting relations are shared: handling the same events again
        cancels the same ones, and decides the same ones before."""
        lists = [[*each] for each in self.queues], [[*each] for each in self.noted]
        folded = None if self.folded is None else self.folded.copy()
        return Instance(*lists, self.clock, self.loose, [*self.pending], folded=folded)

    def is_empty(self) -> bool:
        nothing = self.clock is None and self.folded is None
        return nothing and not any(self.queues) and not self.pending and not any(self.noted)


@dataclass
class Held:
    """The state of one subscription: by branch the instances of its keys, the latest time that it has seen, and the relations
    that its LIMIT has counted."""

    instances: list[dict[Key, Instance]]
    seen: int | None
    counts: dict[Key, int] = field(default_factory=dict)
