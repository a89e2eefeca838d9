"""The results of a matcher: matches, and when they are due. Common to the compiled matcher and the reference."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from fairlead.errors import UnsupportedError
from fairlead.matching.folded_run import FoldedRun
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.limits import LIMITS


class Match(NamedTuple):
    """One relation found for a branch; `deadline` is set if it waited for absences."""

    branch: int
    members: tuple[Event, ...]
    deadline: int | None = None
    runs: tuple[int, ...] | None = None
    """How many of the members each slot holds, in this order; None if the pattern tells it."""
    folded: tuple[FoldedRun, ...] = ()
    """The folded runs, whose events are not among the members."""


Due = tuple[int, tuple[Position, ...], int]
"""When a pending relation is decided: deadline, then the members' positions, then the branch."""


def too_many_relations(subscription: str) -> UnsupportedError:
    """MATCHING ALL, without a limit that fits."""
    problem = f"one event completes more than {LIMITS.relations_per_event_max:,} relations of '{subscription}'"
    return UnsupportedError("U005", problem, "write LIMIT n PER EVENT, or a condition, PER or WITHIN that leaves fewer")


def too_many_decided(subscription: str) -> UnsupportedError:
    problem = f"one event decides more than {LIMITS.relations_per_event_max:,} relations of the sequence '{subscription}'"
    return UnsupportedError("U006", problem, "write DISPOSAL PREFIX INFIX, or a condition, PER or WITHIN that leaves fewer")


class SubscriptionMatcher(Protocol):
    """One subscription: ordered events in, matches out. Not guaranteed: anything, if positions do not increase."""

    def arrive(self, event: Event) -> list[Match]:
        """The matches that this event completes, branch by branch. The caller has already taken everything that is due."""

    def tell(self, time: int) -> None:
        """An event that it does not read advances its clock. The caller has already taken everything that is due."""

    def next_due(self) -> Due | None:
        """The pending relation that is decided next."""

    def take_due(self) -> Match | None:
        """Decide that one: the match, or None if a forbidden event came."""
