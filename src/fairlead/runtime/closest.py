"""The closest miss: of the relations that an event could have been in, the one with the fewest conditions that fail.

Takes: a branch and its queues at one moment. Gives: the conditions that fail, with the values they read. Never: more than
ASSIGNMENTS_MAX assignments, so a long queue costs a less complete answer, not an endless one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Any

from fairlead.matching.expressions.closures import Check, Evaluator, compile_condition, compile_value, slot_types
from fairlead.matching.interpreted.conjunction import Conjunction
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue, DataType
from fairlead.model.events.values import jsonable
from fairlead.model.expressions.data_types import data_type_of
from fairlead.model.expressions.expression import Predicate, leaves, render, render_condition
from fairlead.model.plans.plan import Branch

ASSIGNMENTS_MAX = 20_000
"""Assignments tried: 27 candidates for each of three partners."""

Binding = list[Event | None]
Compiled = tuple[Predicate, Check, list[tuple[str, DataType, Evaluator]]]
"""A condition, its test, and the values that it reads."""


class ClosestMiss:
    """One branch with its conditions compiled once."""

    def __init__(self, branch: Branch, conjunction: Conjunction, catalogue: Catalogue) -> None:
        self.branch, self.conjunction, self.catalogue = branch, conjunction, catalogue
        self.names = branch.alias_names()
        self.types = slot_types(branch, catalogue)
        self.compiled = [self._compiled(each) for each in branch.predicates]
        self.having = [self._compiled(each) for each in branch.having]

    def _compiled(self, predicate: Predicate) -> Compiled:
        read = {render(leaf, self.names): leaf for term in predicate.condition.terms for atom in term for leaf in leaves(atom)}
        values = [(name, data_type_of(leaf, self.types), compile_value(leaf, self.types)) for name, leaf in read.items()]
        return predicate, compile_condition(predicate.condition, self.types), values

    def refusals(self, event: Event) -> Iterator[str]:
        """The conditions on one member that the event does not satisfy, for every slot it could take."""
        for at, slot in enumerate(self.branch.slots):
            if event.type in self.catalogue.accepts(slot.type):
                binding = self._binding([None] * len(self.branch.slots))
                binding[at] = event
                yield from self._failing(binding, only=(at,))

    def miss(self, queues: Sequence[Sequence[Event]], noted: Sequence[Sequence[Event]], target: Event) -> tuple[str, ...]:
        """What is missing for a relation with the target: partners, or the conditions of the closest assignment."""
        least = {
            name: sum(self.branch.runs[at].least if at in self.branch.runs else 1 for at in slots)
            for name, slots in self.branch.slots_of_type.items()
        }
        short = [
            f"missing partner: {name} has {len(queue)} of {least[name]} queued"
            for name, queue in zip(self.branch.queue_types, queues, strict=True)
            if len(queue) < least[name]
        ]
        if self.branch.runs and not short:
            return tuple(self._closest_with_runs(queues, target))
        return tuple(short or self._closest(queues, noted, target))

    def _closest(self, queues: Sequence[Sequence[Event]], noted: Sequence[Sequence[Event]], target: Event) -> list[str]:
        fewest: tuple[int, tuple[Event, ...]] | None = None
        for members in self._assignments(queues, target):
            binding = self._binding(members)
            failing = sum(not check(binding) for _, check, _ in self.compiled)
            failing += sum(1 for _ in self._out_of_order(members)) + sum(1 for _ in self._between(members, noted))
            if fewest is None or failing < fewest[0]:
                fewest = failing, members
        if fewest is None:
            return ["there are not enough distinct partners"]
        members = fewest[1]
        shown = ", ".join(str(member.position) for member in members)
        reasons = [*self._failing(self._binding(members)), *self._out_of_order(members), *self._between(members, noted)]
        return [f"closest miss [{shown}]: {each}" for each in reasons] or [
            f"[{shown}] meets every condition; the matching option takes another relation"
        ]

    def _closest_with_runs(self, queues: Sequence[Sequence[Event]], target: Event) -> list[str]:
        """Of the members that are no runs, with the runs that follow from them, those with the fewest conditions that fail."""
        runs, singles = self.conjunction.search.runs, [at for at in range(len(self.branch.slots)) if at not in self.branch.runs]
        assert runs is not None
        by_type = dict(zip(self.branch.queue_types, queues, strict=True))
        choices = [by_type[self.branch.slots[at].type][::-1] for at in singles]
        fewest: list[str] | None = None
        for chosen in islice(product(*choices), ASSIGNMENTS_MAX):
            if len({member.position for member in chosen}) < len(chosen):
                continue
            binding: list[Any] = self._binding([None] * len(self.branch.slots))
            for at, member in zip(singles, chosen, strict=True):
                binding[at] = member
            reasons = self._failing_with_runs(binding, queues, target)
            if fewest is None or len(reasons) < len(fewest):
                fewest = reasons
        return fewest or ["it meets every condition; the matching option takes another relation"]

    def _failing_with_runs(self, binding: list[Any], queues: Sequence[Sequence[Event]], target: Event) -> list[str]:
        runs = self.conjunction.search.runs
        assert runs is not None
        single = [each for each in self.compiled if self.branch.runs.keys().isdisjoint(each[0].slots)]
        pairs = [(each.keyword, *pair) for each in self.branch.clauses for pair in each.orders]
        reasons = [*self._failing(binding, among=single)]
        for keyword, a, b in pairs:
            if {a, b}.isdisjoint(self.branch.runs) and binding[a].position >= binding[b].position:
                places = f"{self.names[a]} at {binding[a].position}", f"{self.names[b]} at {binding[b].position}"
                reasons.append(f"{keyword}: {places[0]} is not before {places[1]}")
        held = runs.held(binding[: len(self.branch.slots)], queues)
        for slot, quantifier in self.branch.runs.items():
            binding[slot] = held[slot]
            if len(held[slot]) < quantifier.least:
                reasons.append(f"run {self.names[slot]} has {len(held[slot])} of {quantifier.least} events")
        reasons += self._failing(binding, among=self.having)
        if not any(target in each if isinstance(each, tuple) else target is each for each in binding):
            reasons.append("the event does not meet the conditions of a run beside these members")
        chosen = [str(each.position) for each in binding if each is not None and not isinstance(each, tuple)]
        beside = f"closest miss [{', '.join(chosen)}]" if chosen else "closest miss"
        return [f"{beside}: {each}" for each in reasons]

    def _assignments(self, queues: Sequence[Sequence[Event]], target: Event) -> Iterator[tuple[Event, ...]]:
        """Members with the target among them, the newest partners first."""
        by_type = dict(zip(self.branch.queue_types, queues, strict=True))
        for fixed, slot in enumerate(self.branch.slots):
            if target.type in self.catalogue.accepts(slot.type):
                choices = [[target] if at == fixed else by_type[each.type][::-1] for at, each in enumerate(self.branch.slots)]
                for members in islice(product(*choices), ASSIGNMENTS_MAX):
                    if len({member.position for member in members}) == len(members):
                        yield members

    def _binding(self, members: Iterable[Event | None]) -> Binding:
        return [*members, *[None] * len(self.branch.noting)]

    def _failing(
        self, binding: Binding, only: tuple[int, ...] | None = None, among: Sequence[Compiled] | None = None
    ) -> Iterator[str]:
        for predicate, check, values in self.compiled if among is None else among:
            if (only is None or predicate.slots == only) and not check(binding):
                text = predicate.text or render_condition(predicate.condition, self.names)
                read = ", ".join(f"{name} = {_shown(evaluate(binding), form)}" for name, form, evaluate in values)
                yield f"not true: {text} ({read})"

    def _out_of_order(self, members: tuple[Event, ...]) -> Iterator[str]:
        for clause in self.branch.clauses:
            for a, b in clause.orders:
                left, right = members[a].position, members[b].position
                if left >= right:
                    yield f"{clause.keyword}: {self.names[a]} at {left} is not before {self.names[b]} at {right}"

    def _between(self, members: tuple[Event, ...], noted: Sequence[Sequence[Event]]) -> Iterator[str]:
        for at in self.conjunction.prompt:
            noting = self.conjunction.noting[at]
            for each in noted[at]:
                if noting.forbidden(each, members, self.conjunction.width):
                    where = "stands before it" if noting.policy.before else "stands between"
                    yield f"{noting.clause.words(self.names)}: the event at {each.position} {where}"


def _shown(value: Any, form: DataType) -> Any:
    return "NULL" if value is None else jsonable(value, form)
