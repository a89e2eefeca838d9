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
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.events.values import jsonable
from fairlead.model.plans.expression import Predicate, leaves, render, render_condition
from fairlead.model.plans.plan import Branch

ASSIGNMENTS_MAX = 20_000
"""Assignments tried: 27 candidates for each of three partners."""

Binding = list[Event | None]


class ClosestMiss:
    """One branch with its conditions compiled once."""

    def __init__(self, branch: Branch, conjunction: Conjunction, catalogue: Catalogue) -> None:
        self.branch, self.conjunction, self.catalogue = branch, conjunction, catalogue
        self.names = branch.alias_names()
        types = slot_types(branch, catalogue)
        self.compiled: list[tuple[Predicate, Check, list[tuple[str, Kind, Evaluator]]]] = []
        for predicate in branch.predicates:
            read = {
                render(leaf, self.names): leaf for term in predicate.condition.terms for atom in term for leaf in leaves(atom)
            }
            values = [(name, leaf.kind, compile_value(leaf, types)) for name, leaf in read.items()]
            self.compiled.append((predicate, compile_condition(predicate.condition, types), values))

    def refusals(self, event: Event) -> Iterator[str]:
        """The conditions on one member that the event does not satisfy, for every slot it could take."""
        for at, slot in enumerate(self.branch.slots):
            if event.type in self.catalogue.accepts(slot.type):
                binding = self._binding([None] * len(self.branch.slots))
                binding[at] = event
                yield from self._failing(binding, only=(at,))

    def miss(self, queues: Sequence[Sequence[Event]], noted: Sequence[Sequence[Event]], target: Event) -> tuple[str, ...]:
        """What is missing for a relation with the target: partners, or the conditions of the closest assignment."""
        needed = self.branch.slots_of_type
        short = [
            f"missing partner: {name} has {len(queue)} of {len(needed[name])} queued"
            for name, queue in zip(self.branch.queue_types, queues, strict=True)
            if len(queue) < len(needed[name])
        ]
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

    def _failing(self, binding: Binding, only: tuple[int, ...] | None = None) -> Iterator[str]:
        for predicate, check, values in self.compiled:
            if (only is None or predicate.slots == only) and not check(binding):
                text = predicate.text or render_condition(predicate.condition, self.names)
                read = ", ".join(f"{name} = {_shown(evaluate(binding), kind)}" for name, kind, evaluate in values)
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


def _shown(value: Any, kind: Kind) -> Any:
    return "NULL" if value is None else jsonable(value, kind)
