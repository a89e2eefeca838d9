"""The runs of a branch for a kernel: what selects their events, and HAVING.

Takes: a shape to which only they are missing. Gives: `RunPlan`, or raises `Refused` with the reason. Never: makes code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal

from fairlead.matching.compiled.planning.join_conditions import Across
from fairlead.matching.compiled.planning.runs.gathered_run import (
    COUNT,
    DISTINCT,
    GatheredRun,
    RunPlan,
    RunValue,
    Threshold,
    WholeCondition,
)
from fairlead.matching.compiled.planning.runs.whole_conditions import WholeConditions
from fairlead.matching.compiled.planning.shape import SWAPPED, Refused, Shape
from fairlead.matching.compiled.representation.formulas import Formula
from fairlead.model.events.types import Catalogue, EventType, Kind
from fairlead.model.expressions.expression import Aggregate, Compare, Literal, Predicate, condition_slots


def run_plan_of(shape: Shape, across: Across, types: Sequence[EventType], catalogue: Catalogue) -> RunPlan:
    branch = shape.branch
    if not branch.runs:
        return RunPlan()
    plan = RunPlan()
    accepted = [{*catalogue.accepts(slot.type)} for slot in branch.slots]
    pairs = [pair for pair in branch.orders if not branch.runs.keys() >= {*pair}]
    for slot, quantifier in branch.runs.items():
        mine = [each for each in branch.predicates if slot in each.slots and not each.is_unary]
        conditions = [_condition(across, each, quantifier.least > 0) for each in mine]
        others = [other for other in range(shape.size) if other not in branch.runs and accepted[other] & accepted[slot]]
        after, before = [a for a, b in pairs if b == slot], [b for a, b in pairs if a == slot]
        reach = tuple(after), tuple(before), tuple(others)
        texts = tuple(each.text for each in mine)
        plan.runs.append(
            GatheredRun(slot, shape.queue_of_slot[slot], quantifier.least, quantifier.most, *reach, tuple(conditions), texts)
        )
    whole = WholeConditions(shape, types)
    for predicate in branch.having:
        try:
            condition = whole.whole(predicate.condition)
        except Refused as refused:
            raise Refused(str(refused), predicate.text) from None
        needed = tuple(_thresholds(predicate, whole))
        exact = len(needed) == len(predicate.condition.terms[0]) and not _says_more(predicate)
        about = frozenset(branch.runs.keys() & {*condition_slots(predicate.condition)})
        plan.having.append(WholeCondition(condition, frozenset(whole.read), about, needed, exact, predicate.text))
    plan.values = list(whole.made.values())
    return plan


def can_complete(shape: Shape, queue: int) -> bool:
    """Whether the newest event of a queue can be in a relation: at some slot nothing has to stand after it."""
    branch, slots = shape.branch, shape.slots_of(queue)
    if branch.runs.keys().isdisjoint(slots):
        slots = [shape.newest_slot(queue)]
    ended = {a for a, b in branch.orders if b not in branch.runs or branch.runs[b].least > 0}
    return shape.overlapping or not ended.issuperset(slots)


def _condition(across: Across, predicate: Predicate, must: bool) -> Formula:
    """`must`: without an event in the run there is no relation, so the members that it is compared with need their values."""
    try:
        return across.condition(predicate.condition, must)
    except Refused as refused:
        raise Refused(str(refused), predicate.text) from None


def _thresholds(predicate: Predicate, whole: WholeConditions) -> Iterator[Threshold]:
    """What a condition needs of counts: of whole queues they are no smaller than of runs in them."""
    if len(predicate.condition.terms) != 1:
        return
    for atom in predicate.condition.terms[0]:
        if not isinstance(atom, Compare):
            continue
        if atom in whole.reached:
            value = whole.reached[atom]
            yield Threshold(value.slot, value, 1)
            continue
        side, sign, number = atom.left, atom.operator, atom.right
        if isinstance(side, Literal):
            side, sign, number = atom.right, SWAPPED.get(sign, sign), atom.left
        if not isinstance(side, Aggregate) or side.function not in (COUNT, DISTINCT) or not isinstance(number, Literal):
            continue
        (slot,) = side.slots if len(side.slots) == 1 else (-1,)
        least = _least(sign, number.value)
        if slot not in whole.slots or least is None or least < 1:
            continue
        yield Threshold(slot, None if side.attribute is None else _value_of(side, whole), least)


def _says_more(predicate: Predicate) -> bool:
    """Than its thresholds: an equality, or an extreme of DOUBLEs, which a NaN makes NaN."""
    atoms = [atom for term in predicate.condition.terms for atom in term if isinstance(atom, Compare)]
    return any(atom.operator == "=" or Kind.DOUBLE in (atom.left.kind, atom.right.kind) for atom in atoms)


def _value_of(side: Aggregate, whole: WholeConditions) -> RunValue:
    """The value that stands for a count in HAVING."""
    return whole.counts[side]


def _least(sign: str, value: object) -> int | None:
    """The least whole number that compares so."""
    if not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        return None
    if sign in (">=", "="):
        return math.ceil(value)
    return math.floor(value) + 1 if sign == ">" else None
