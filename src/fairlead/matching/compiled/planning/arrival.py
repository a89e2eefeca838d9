"""What cost.py says of an arriving event, as kinds: how its partners are found, what else happens to it, what it costs when
events leave, and why a search can become expensive. (In words: cost_words.py.)"""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.planning.access import Way
from fairlead.matching.compiled.planning.costs.cost_bound import ONE, Cost, plus, shown


@dataclass(frozen=True)
class Step:
    """How the events for one member are reached."""

    member: str
    serves: tuple[str, ...] = ()
    """Conditions that the index answers, in the user's words."""
    tests: tuple[str, ...] = ()
    """What is tested event by event."""

    way: ClassVar[Way]


@dataclass(frozen=True)
class ByTree(Step):
    index: str = ""
    way = Way.TREE


@dataclass(frozen=True)
class ByHash(Step):
    index: str = ""
    way = Way.HASH


@dataclass(frozen=True)
class ByOrder(Step):
    """`serves`: what stands before what."""

    way = Way.ORDER


@dataclass(frozen=True)
class ByNeighbour(Step):
    beside: str = ""
    """Of which member; empty: of the new event."""
    way = Way.NEIGHBOUR


@dataclass(frozen=True)
class NextQueued(Step):
    after: str = ""
    older: bool = False
    way = Way.HEAD


@dataclass(frozen=True)
class FirstQueued(Step):
    newest: bool = False
    way = Way.HEAD


@dataclass(frozen=True)
class Walked(Step):
    way = Way.WALK


class Plainly(Enum):
    """What else happens to an arriving event, where there is no more to say."""

    TELLS_TIME = auto()
    OVERLAPS = auto()
    WAITS = auto()
    IS_DELAYED = auto()
    IS_QUEUED = auto()
    IS_SEVERAL = auto()
    REPLACES = auto()


@dataclass(frozen=True)
class EqualKeys:
    """The event is looked up by several keys, which must be equal."""

    keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class NotedFor:
    """A clause notes the event. `waits`: for relations that wait."""

    word: str
    alias: str
    waits: bool


@dataclass(frozen=True)
class BarredBy:
    """What a clause has noted can forbid every relation with the event. `every`: it is compared with each of them."""

    word: str
    alias: str
    every: bool


@dataclass(frozen=True)
class Gathered:
    """A run. `kept`: conditions that are decided by what is kept of its queue, where it is all of it; `before`: thresholds that
    are asked before anything is searched; `walked`: what its queue is walked for."""

    alias: str
    kept: tuple[str, ...]
    before: tuple[str, ...]
    walked: tuple[str, ...]


Note = Gathered | Plainly | EqualKeys | NotedFor | BarredBy


@dataclass(frozen=True)
class Arrival:
    """What an event of some types costs, and how its partners are found."""

    types: tuple[str, ...]
    steps: tuple[Step, ...]
    cost: Cost
    notes: tuple[Note, ...] = ()

    @property
    def bound(self) -> str:
        return shown(self.cost)


@dataclass(frozen=True)
class Leaving:
    """What it costs that events leave: each of them; all of a key, where late events are queued; and what waits."""

    each: Cost
    late: Cost | None
    waits: bool

    @property
    def most(self) -> Cost:
        return plus(self.each, self.late or ONE)


class Branching(Enum):
    """Why a search branches."""

    WIDE = auto()
    """A condition reads three members or more."""
    CIRCLE = auto()
    """Conditions form a circle."""
    COMPARISONS = auto()
    """Two members are joined by more than one comparison."""
    EVERY = auto()
    """MATCHING ALL."""
    RUNS = auto()
    """Runs are walked for each combination of the other members."""


@dataclass(frozen=True)
class ReadsMembers:
    """Every noted event is compared with a relation, since the WHERE of this clause reads members."""

    word: str


Cause = Branching | ReadsMembers


@dataclass(frozen=True)
class Excess:
    """The worst search of a branch, if it can take more than O(n log n) steps."""

    type: str | None
    """Whose arrival starts the search; None: of any event, after a match or expiry, or if types are `overlapping`."""
    overlapping: bool
    cost: Cost
    cause: Cause
