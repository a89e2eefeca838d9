"""Why did this event (not) match, in branches that are sequences: what became of its row.

    matched    it is in a relation             waiting    a relation may still begin with it, or contain it
    disposed   a relation dropped it           refused    no relation began with it, nor with a row before it that is kept

For a row that begins no relation, the furthest step is shown that was reached from it, with the condition that failed there.

Takes: a subscription and the event to watch. Gives: what is known of it. Never: changes what the matcher does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.matching.expressions.closures import compile_condition, compile_value
from fairlead.matching.interpreted.instance import Instance, Key
from fairlead.matching.interpreted.matcher import IncrementalSubscription
from fairlead.matching.interpreted.sequence_conjunction import SequenceConjunction, rows_of
from fairlead.matching.interpreted.sequence_program import SequenceProgram, TakeStep
from fairlead.matching.interpreted.sequence_search import SequenceRow, SequenceSearch
from fairlead.matching.outcome import Due, Match
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.events.values import jsonable
from fairlead.model.expressions.data_types import data_type_of
from fairlead.model.expressions.expression import Predicate, leaves, render
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.sequence import as_asked
from fairlead.runtime.finding_words import in_relation, limited, shown


@dataclass
class WatchedBranch:
    """What is known so far about the event in one branch."""

    verdict: str = "not read"
    reasons: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    """Those under which it arrives; several where overlapping types name different key attributes."""
    queued: list[Key] = field(default_factory=list)
    """Of these, those under which it is, or will be, in a queue."""


@dataclass
class WatchedEvent:
    position: Position
    event: Event | None = None
    watches: dict[tuple[str, int], WatchedBranch] = field(default_factory=dict)


class WatchedSequences(IncrementalSubscription):
    """The engine's matcher; watches the row of one event in the branches that are sequences."""

    def __init__(self, subscription: Subscription, catalogue: Catalogue, target: WatchedEvent) -> None:
        super().__init__(subscription, catalogue)
        self.target = target

    @property
    def is_pending(self) -> bool:
        """What is decided next is no sequence."""
        opens = None if self.ended else self.opens.first()
        return not self.ended and bool(self.pending) and (opens is None or self.pending[0].due < opens[0])

    def _row(
        self, number: int, conjunction: SequenceConjunction, key: Key, event: Event, queues: tuple[int, ...]
    ) -> Iterator[Match]:
        watch = self._watch(number)
        if event.position == self.target.position:
            watch = self.target.watches[self.subscription.name, number] = WatchedBranch("waiting", keys=(key,))
        rows = self._rows(number, key, watch)
        if rows is not None:
            rows.append((event, queues))
        found = [*super()._row(number, conjunction, key, event, queues)]
        self._judge_rows(number, conjunction, key, watch, rows, found)
        yield from found

    def _close(self, due: Due, key: Key) -> None:
        number = due[2]
        watch, conjunction = self._watch(number), self.conjunctions[number]
        assert isinstance(conjunction, SequenceConjunction)
        rows, before = self._rows(number, key, watch), len(self.ended)
        super()._close(due, key)
        self._judge_rows(number, conjunction, key, watch, rows, [match for _, match, _ in self.ended[before:]])

    def conclude_sequences(self) -> None:
        """At the end: what the row waits for."""
        for (name, number), watch in self.target.watches.items():
            if name != self.subscription.name or watch.verdict != "waiting":
                continue
            if self.subscription.branches[number].sequence is not None:
                rows = self._rows(number, watch.keys[0], watch) or []
                kept = any(event.position == self.target.position for event, _ in rows)
                if kept and rows[0][0].position == self.target.position:
                    watch.reasons = ("a relation that begins with it is not decided yet",)
                elif kept:
                    watch.reasons = (f"a relation that begins at {rows[0][0].position} is not decided yet",)

    def _watch(self, number: int) -> WatchedBranch | None:
        watch = self.target.watches.get((self.subscription.name, number))
        return watch if watch is not None and watch.verdict == "waiting" else None

    def _rows(self, number: int, key: Key, watch: WatchedBranch | None) -> list[SequenceRow] | None:
        """Of the key, if it is that of the watched row."""
        if watch is None or key not in watch.keys:
            return None
        instance = self.instances[number].get(key)
        return [] if instance is None else rows_of(instance)

    def _judge_rows(
        self,
        number: int,
        conjunction: SequenceConjunction,
        key: Key,
        watch: WatchedBranch | None,
        rows: list[SequenceRow] | None,
        found: list[Match],
    ) -> None:
        if watch is None or rows is None:
            return
        mine = next((each for each in found if self._has(each.members)), None)
        if mine is not None:
            watch.verdict, watch.reasons = "matched", (in_relation(mine.members),)
            return
        instance: Instance | None = self.instances[number].get(key)
        if instance is not None and any(event.position == self.target.position for event, _ in rows_of(instance)):
            return
        at = next((at for at, (event, _) in enumerate(rows) if event.position == self.target.position), None)
        before = [each for each in found if any(member.position <= self.target.position for member in each.members)]
        if before and at is not None and max(each.position for each in before[-1].members) > self.target.position:
            words = self.subscription.disposal_words
            watch.verdict = "disposed"
            watch.reasons = (f"DISPOSAL {words}: dropped when the relation [{shown(before[-1].members)}] was delivered",)
        elif at is not None:
            watch.verdict = "refused"
            branch, catalogue = self.subscription.branches[number], self.catalogue
            step = FurthestStep(conjunction.program, branch, catalogue, rows[at:])
            watch.reasons = step.reasons()
            if not watch.reasons and self.subscription.limit is not None:
                watch.verdict, watch.reasons = "limited", (limited(self.subscription),)

    def _has(self, members: tuple[Event, ...]) -> bool:
        return any(member.position == self.target.position for member in members)


class FurthestStep(SequenceSearch):
    """The search from one row, which remembers the last step that failed after the most rows."""

    def __init__(self, program: SequenceProgram, branch: Branch, catalogue: Catalogue, rows: list[SequenceRow]) -> None:
        super().__init__(program)
        self.rows += rows
        self.branch, self.names = branch, branch.alias_names()
        self.types = [catalogue[name] for name in branch.signature]
        self.failed: tuple[int, str] | None = None

    def reasons(self) -> tuple[str, ...]:
        found = self._stepwise(None) if self.program.stepwise else self._ordered(None)
        if found is None:
            return ("no relation that begins with it was complete when its time had passed, or when nothing followed",)
        return () if found or self.failed is None else (self.failed[1],)

    def _fits(self, take: TakeStep, place: int) -> bool:
        fits = super()._fits(take, place)
        if not fits and (self.failed is None or len(self._slots) >= self.failed[0]):
            self.failed = len(self._slots), self._said(take, self.rows[place])
        return fits

    def _is_relation(self) -> bool:
        found = super()._is_relation()
        if not found and self._slots and (self.failed is None or len(self._slots) >= self.failed[0]):
            having = zip(self.branch.having, self.program.having, strict=True)
            text = next(each.text for each, check in having if not check(self._held))
            place = self.rows[self._places[-1]][0].position
            self.failed = len(self._slots), f"the pattern is complete at {place}, but not HAVING: not true: {text}"
        return found

    def _said(self, take: TakeStep, row: SequenceRow) -> str:
        step = f"step {len(self._slots) + 1} ({self.names[take.slot]}) failed at {row[0].position}"
        if take.queue not in row[1]:
            return f"{step}: it is of type {row[0].type}"
        for each in self.branch.predicates:
            if each.about == take.slot and not self._is_met(each, take, row):
                return f"{step}: not true: {each.text}{self._values(each, take, row)}"
        if self._is_ended(take, row):
            return f"{step}: UNTIL is true"
        return f"{step}: its time is outside WITHIN"

    def _is_met(self, predicate: Predicate, take: TakeStep, row: SequenceRow) -> bool:
        condition = compile_condition(as_asked(predicate, self.program.width), self._seen(take))
        return self._with_row(take, row, predicate.looks_back, condition, True)  # type: ignore[no-any-return]

    def _values(self, predicate: Predicate, take: TakeStep, row: SequenceRow) -> str:
        asked = as_asked(predicate, self.program.width)
        named = [leaf for term in predicate.condition.terms for atom in term for leaf in leaves(atom)]
        moved = [leaf for term in asked.terms for atom in term for leaf in leaves(atom)]
        said = {}
        for leaf, at in zip(named, moved, strict=True):
            value = self._with_row(take, row, predicate.looks_back, compile_value(at, self._seen(take)), None)
            said[render(leaf, self.names)] = "NULL" if value is None else jsonable(value, data_type_of(leaf, self.types))
        return f" ({', '.join(f'{name} = {value}' for name, value in said.items())})" if said else ""

    def _seen(self, take: TakeStep) -> list[Any]:
        return [*self.types, *[self.types[take.slot]] * (1 + self.program.back)]
