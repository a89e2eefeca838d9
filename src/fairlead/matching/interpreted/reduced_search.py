"""The reduced search, event by event: executes a plan of reduction.py over queues.

Takes: a plan, queues, and the test of each constraint. Gives: the members of the first relation, or None. Never: changes a
queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from fairlead.matching.expressions.closures import Check, Evaluator
from fairlead.matching.expressions.functions import unknown
from fairlead.matching.reduction import Filter, Narrow, Reduction
from fairlead.model.events.event import Event

Places = list[int]
"""The candidates of a slot: places in its queue, starting with the oldest."""
COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Partners:
    """A summary of the partners seen so far: enough to decide whether one of them satisfies `mine sign partner`."""

    def __init__(self, sign: str) -> None:
        self.sign, self.test = sign, COMPARE[sign]
        self.best: Any = None
        self.several = False
        self.values: set[Any] = set()

    def add(self, value: Any) -> None:
        if unknown(value):
            return
        if self.sign == "=":
            self.values.add(value)
        elif self.best is None:
            self.best = value
        elif self.sign == "!=":
            self.several = self.several or value != self.best
        elif self.test(self.best, value):
            self.best = value

    def serve(self, mine: Any) -> bool:
        if unknown(mine):
            return False
        if self.sign == "=":
            return mine in self.values
        return self.several or (self.best is not None and self.test(mine, self.best))


class Semijoin:
    """One search. `sides`: for a constraint that is a comparison, the values of its left and its right side."""

    def __init__(
        self,
        reduction: Reduction,
        recent: bool,
        queues: Sequence[list[Event]],
        checks: Sequence[Check | None],
        sides: Sequence[tuple[Evaluator, Evaluator] | None],
        newest: Event | None,
        spend: Callable[[int], None],
    ) -> None:
        self.reduction, self.recent, self.queues, self.checks, self.sides = reduction, recent, queues, checks, sides
        self.members: list[Event | None] = [None] * reduction.size
        self.places = [len(queue) for queue in queues]
        """Of the slots that are fixed; the newest event comes after its queue."""
        self.values: dict[tuple[int, int], list[Any]] = {}
        self.steps, self.spend = 0, spend
        """Candidates tried; `spend` receives their number, and may raise to bound the work."""
        if reduction.newest is not None:
            self.members[reduction.newest] = newest

    def find(self) -> list[Event] | None:
        reduction = self.reduction
        if not all(check(self.members) for check in self._checks(reduction.given)):
            return None
        live = [list(range(len(queue))) for queue in self.queues]
        if not self._pruned(0, live) or not self._filled(0, live):
            return None
        return self.members  # type: ignore[return-value]

    def _filled(self, at: int, live: list[Places]) -> bool:
        """Fixes the open slots from number `at` on."""
        if at == len(self.reduction.open):
            return True
        slot = self.reduction.open[at]
        for place in reversed(live[slot]) if self.recent else live[slot]:
            self.members[slot], self.places[slot] = self.queues[slot][place], place
            left = [[place] if each == slot else places for each, places in enumerate(live)]
            if (at + 1 == len(self.reduction.open) or self._pruned(at + 1, left)) and self._filled(at + 1, left):
                return True
        self.members[slot] = None
        return False

    def _pruned(self, at: int, live: list[Places]) -> bool:
        """Executes a stage; returns whether every slot still has a candidate."""
        stage, changed = self.reduction.stages[at], set[int]()
        steps: list[Filter | Narrow] = [*stage.filters, *stage.narrows]
        for step in steps:
            if isinstance(step, Narrow) and not step.always and step.partner not in changed:
                continue
            before = live[step.slot]
            left = list(self._passed(step, before) if isinstance(step, Filter) else self._narrowed(step, live))
            if not left:
                return False
            if len(left) < len(before):
                live[step.slot] = left
                changed.add(step.slot)
        return all(live[slot] for slot in self.reduction.open)

    def _passed(self, step: Filter, places: Places) -> Iterator[int]:
        queue, members, checks = self.queues[step.slot], self.members, self._checks(step.tests)
        self._count(len(places))
        beside = [each.beside for at in step.tests if (each := self.reduction.constraints[at]).beside is not None]
        ahead = -1 if self.recent else 1
        allowed = [self.places[a] + ahead if b == step.slot else self.places[b] - ahead for a, b in beside]
        for place in places:
            if any(place != each for each in allowed):
                continue
            members[step.slot] = queue[place]
            if all(check(members) for check in checks):
                yield place
        members[step.slot] = None

    def _narrowed(self, step: Narrow, live: list[Places]) -> Iterable[int]:
        mine, partners = live[step.slot], live[step.partner]
        self._count(len(mine) + len(partners))
        if step.beside:
            return self._neighbours(step, mine, partners)
        if not step.is_exact:
            return self._pairs(step, mine, partners)
        if step.link < 0:
            return self._placed(step, mine, partners)
        return self._compared(step, mine, partners)

    def _count(self, steps: int) -> None:
        self.steps += steps
        self.spend(steps)

    def _placed(self, step: Narrow, mine: Places, partners: Places) -> Iterable[int]:
        if step.side == 0 or not partners:
            return mine if partners else []
        here, there = self.queues[step.slot], self.queues[step.partner]
        if step.side < 0:
            first = there[partners[0]].position
            return [place for place in mine if here[place].position > first]
        last = there[partners[-1]].position
        return [place for place in mine if here[place].position < last]

    def _compared(self, step: Narrow, mine: Places, partners: Places) -> Iterable[int]:
        """One pass along both queues, from the side on which the partners have to be."""
        link = self.reduction.constraints[step.link].link
        assert link is not None
        is_left = link.left == step.slot
        here, there = self.queues[step.slot], self.queues[step.partner]
        own, others = self._values(step.link, step.slot, is_left), self._values(step.link, step.partner, not is_left)
        seen = Partners(link.sign if is_left else SWAPPED.get(link.sign, link.sign))
        if step.side == 0:
            for partner in partners:
                seen.add(others[partner])
            return [place for place in mine if seen.serve(own[place])]
        forwards = step.side < 0
        waiting = partners if forwards else partners[::-1]
        left, at = [], 0
        for place in mine if forwards else reversed(mine):
            position = here[place].position
            while at < len(waiting):
                other = there[waiting[at]].position
                if not (other < position if forwards else other > position):
                    break
                seen.add(others[waiting[at]])
                at += 1
            if seen.serve(own[place]):
                left.append(place)
        return left if forwards else left[::-1]

    def _neighbours(self, step: Narrow, mine: Places, partners: Places) -> Iterator[int]:
        ahead = step.beside * (-1 if self.recent else 1)
        there, wanted, checks = self.queues[step.partner], set(partners), self._checks(step.tests)
        for place in mine:
            if place + ahead in wanted:
                self.members[step.slot], self.members[step.partner] = there[place], there[place + ahead]
                if all(check(self.members) for check in checks):
                    yield place
        self.members[step.slot] = self.members[step.partner] = None

    def _pairs(self, step: Narrow, mine: Places, partners: Places) -> Iterator[int]:
        """One by one: for conditions that no single comparison decides."""
        members, checks = self.members, self._checks(step.tests)
        here, there = self.queues[step.slot], self.queues[step.partner]
        for place in mine:
            event = members[step.slot] = here[place]
            for partner in partners:
                self._count(1)
                other = members[step.partner] = there[partner]
                apart = step.side == 0 or (other.position < event.position) == (step.side < 0)
                if apart and all(check(members) for check in checks):
                    yield place
                    break
        members[step.slot] = members[step.partner] = None

    def _checks(self, tests: Iterable[int]) -> list[Check]:
        return [check for at in tests if (check := self.checks[at]) is not None]

    def _values(self, constraint: int, slot: int, is_left: bool) -> list[Any]:
        """One side of a comparison, of every event of a queue."""
        key = constraint, slot
        if key not in self.values:
            found = self.sides[constraint]
            assert found is not None
            evaluate = found[0 if is_left else 1]
            binding: list[Event | None] = [None] * len(self.members)
            made = []
            for event in self.queues[slot]:
                binding[slot] = event
                made.append(evaluate(binding))
            self.values[key] = made
        return self.values[key]
