"""What everybody asks of a clause of a branch, whichever clause it is.

A clause is a value with answers: which members it names, which of them it puts in order, which events beside the members it
watches for, its line in a digest, its words for people. The digest, the checker, guarantees, costs, explanations, both
matchers and the state read these answers, and none of them asks which clause it is. "How to add a clause" in ARCHITECTURE.md
has the list of the few places that do.

    THEN                  puts members in order                                                 then.py
    WITHOUT … BETWEEN     watches for events between two members, as soon as these are found    without.py
    WITHOUT … BEFORE      watches for events before a member, as soon as that is found          without.py
    WITHOUT … WITHIN      watches for events until a time has passed: relations wait for it     without.py
    AFTER                 watches for nothing until a time has passed                           without.py

Members are known by their slots. Never: parses, checks or evaluates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from fairlead.model.expressions.expression import Predicate

Pair = tuple[int, int]


class Clause:
    """The answers of a clause that asks for nothing."""

    word: ClassVar[str]
    """Its word in explanations."""
    predicates: tuple[Predicate, ...] = ()
    """Its own WHERE."""

    @property
    def keyword(self) -> str:
        """Its word in the language."""
        return self.word.upper()

    @property
    def anchors(self) -> tuple[int, ...]:
        """The members that it names."""
        raise NotImplementedError

    @property
    def orders(self) -> tuple[Pair, ...]:
        """Pairs of members: the first has a smaller position than the second."""
        return ()

    @property
    def waits(self) -> bool:
        """A relation is decided only when a time has passed, not when its members are found."""
        return False

    @property
    def line(self) -> str:
        """What it asks for, for digests: without names, and without its own WHERE, whose lines follow."""
        raise NotImplementedError

    def words(self, names: Sequence[str]) -> str:
        """As people write it, with `names[slot]`."""
        raise NotImplementedError

    def explained(self, names: Sequence[str]) -> str:
        """What it asks for, in words, after its word."""
        raise NotImplementedError

    def members(self, size: int) -> frozenset[int]:
        """The members that it names or reads, of a branch with so many."""
        return frozenset({*self.anchors, *(slot for each in self.predicates for slot in each.slots if slot < size)})


class NotingClause(Clause):
    """A clause about events that are no members. Those of `type` that satisfy its conditions on them alone are *noted*: they
    are kept beside the queues, at `slot`, which follows the slots of the members. A noted event forbids a relation if it is
    no member of it, within the reach of the clause, and satisfies its other conditions together with the members.

    The reach: after the member at `since` in the order, if there is one, and before the one at `until`. Without `since` it can
    end `apart_us` before the time of the member at `until`. Without `until` it ends `apart_us` from the time of the member at
    `since`: then more such events can come until that time has passed, and relations wait for it.
    """

    alias: str
    type: str
    slot: int

    @property
    def since(self) -> int | None:
        return None

    @property
    def until(self) -> int | None:
        return None

    @property
    def apart_us(self) -> int | None:
        """None: the reach is not a matter of time."""
        return None

    forbids: ClassVar[bool] = True
    """There can be an event that forbids a relation."""
    clock: tuple[str, ...] = ()
    """Types, beside those of the branch, whose events tell the time for which relations wait."""

    @property
    def timed(self) -> bool:
        return self.apart_us is not None

    @property
    def waits(self) -> bool:
        return self.until is None

    @property
    def anchors(self) -> tuple[int, ...]:
        return tuple(each for each in (self.since, self.until) if each is not None)

    @property
    def reads_members(self) -> bool:
        """Whether a noted event forbids a relation depends on more than where its members are."""
        return any(each.slots != (self.slot,) for each in self.predicates)
