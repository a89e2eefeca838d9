"""WITHOUT: no event of a type between two members, before one, or within a time after one.

A a AND B b WITHOUT C c BETWEEN a AND b               NegationBetween
A a         WITHOUT C c BEFORE a [WITHIN 5 MINUTES]   NegationBefore
A a         WITHOUT C c WITHIN 5 MINUTES OF a         Absence, decided at its deadline; CLOCK BY D: by events of D, too
A a         AFTER 5 MINUTES OF a                      Timer, the absence of nothing
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.dataclass import dataclass
from fairlead.model.clauses.clause import NotingClause
from fairlead.model.events.types import Kind
from fairlead.model.events.values import TIMESTAMP_RANGE, duration_words
from fairlead.model.expressions.expression import Compare, Condition, Literal, Predicate, TimeOf, render_condition


class Without(NotingClause):
    """What the four have in common."""

    word = "without"

    def explained(self, names: Sequence[str]) -> str:
        where = " AND ".join(render_condition(each.condition, names) for each in self.predicates)
        return f"{self.type} {self.alias} {self._reach(names)}{' where ' + where if where else ''}"

    def _reach(self, names: Sequence[str]) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class NegationBetween(Without):
    """`WITHOUT type alias BETWEEN left AND right`: no such event, other than a member, at a position strictly after left's and
    before right's. If right precedes left there is nothing between."""

    alias: str
    type: str
    slot: int
    left: int
    right: int
    predicates: tuple[Predicate, ...] = ()

    @property
    def since(self) -> int:
        return self.left

    @property
    def until(self) -> int:
        return self.right

    @property
    def line(self) -> str:
        return f"without {self.type} between {self.left} {self.right}"

    def words(self, names: Sequence[str]) -> str:
        return f"WITHOUT {self.type} {self.alias} BETWEEN {names[self.left]} AND {names[self.right]}"

    def _reach(self, names: Sequence[str]) -> str:
        return f"between {names[self.left]} and {names[self.right]}"


@dataclass(frozen=True)
class NegationBefore(Without):
    """`WITHOUT type alias BEFORE anchor`: no such event, other than a member, at a position before the anchor's. With
    `WITHIN d`: of those whose time is not more than d before the anchor's. Whether an event forbids a relation depends on this
    event and the members alone, on no clock."""

    alias: str
    type: str
    slot: int
    anchor: int
    within_us: int | None = None
    predicates: tuple[Predicate, ...] = ()

    @property
    def until(self) -> int:
        return self.anchor

    @property
    def apart_us(self) -> int | None:
        return self.within_us

    @property
    def line(self) -> str:
        within = "" if self.within_us is None else f" within {self.within_us}"
        return f"without {self.type} before {self.anchor}{within}"

    def words(self, names: Sequence[str]) -> str:
        within = "" if self.within_us is None else f" WITHIN {duration_words(self.within_us)}"
        return f"WITHOUT {self.type} {self.alias} BEFORE {names[self.anchor]}{within}"

    def _reach(self, names: Sequence[str]) -> str:
        within = "" if self.within_us is None else f" within {self.within_us / 1_000_000:g} s"
        return f"before {names[self.anchor]}{within}"


@dataclass(frozen=True)
class Absence(Without):
    """`WITHOUT type alias WITHIN d OF anchor`: no such event, other than a member, after the anchor in the order whose
    time is within d of the anchor's. Decided at the deadline, time(anchor) + d, by the events that tell the subscription the
    time: `CLOCK BY` names further types of them."""

    alias: str
    type: str
    slot: int
    anchor: int
    within_us: int
    predicates: tuple[Predicate, ...] = ()
    clock: tuple[str, ...] = ()

    @property
    def since(self) -> int:
        return self.anchor

    @property
    def apart_us(self) -> int:
        return self.within_us

    @property
    def line(self) -> str:
        by = f" clock by {' '.join(self.clock)}" if self.clock else ""
        return f"without {self.type} within {self.within_us} of {self.anchor}{by}"

    def words(self, names: Sequence[str]) -> str:
        by = f" CLOCK BY {', '.join(self.clock)}" if self.clock else ""
        return f"WITHOUT {self.type} {self.alias} WITHIN {duration_words(self.within_us)} OF {names[self.anchor]}{by}"

    def _reach(self, names: Sequence[str]) -> str:
        by = f", clock by {', '.join(self.clock)}" if self.clock else ""
        return f"within {self.within_us / 1_000_000:g} s of {names[self.anchor]}{by}"


@dataclass(frozen=True)
class Timer(Without):
    """`AFTER d OF anchor`: the absence of nothing. Relations wait until time(anchor) + d has passed, and no event cancels them.
    So `type` is that of the anchor, which the branch reads anyway, and none of its events is noted: `predicates` is `never`."""

    word = "after"
    forbids = False

    alias: str
    type: str
    slot: int
    anchor: int
    within_us: int
    predicates: tuple[Predicate, ...] = ()
    clock: tuple[str, ...] = ()

    @property
    def since(self) -> int:
        return self.anchor

    @property
    def apart_us(self) -> int:
        return self.within_us

    @property
    def line(self) -> str:
        by = f" clock by {' '.join(self.clock)}" if self.clock else ""
        return f"after {self.within_us} of {self.anchor}{by}"

    def words(self, names: Sequence[str]) -> str:
        by = f" CLOCK BY {', '.join(self.clock)}" if self.clock else ""
        return f"AFTER {duration_words(self.within_us)} OF {names[self.anchor]}{by}"

    def explained(self, names: Sequence[str]) -> str:
        by = f", clock by {', '.join(self.clock)}" if self.clock else ""
        return f"{self.within_us / 1_000_000:g} s of {names[self.anchor]}{by}"


def never(slot: int) -> Predicate:
    """Is true of no event: none is of a time before all others."""
    first = Literal(TIMESTAMP_RANGE[0], Kind.TIMESTAMP)
    return Predicate(Condition(((Compare("<", TimeOf(slot), first),),)), (slot,))
