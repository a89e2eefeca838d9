"""What a kernel needs to know of a branch, or why there can be none yet.

A predicate that reads one event is evaluated for whole columns before the kernel runs and arrives as a bit. Of a predicate
across events, the parts that read one event are evaluated beforehand too and arrive as *value columns*; only what joins
them is compiled into the loop (across.py). Bits of an event: bit s (s < number of slots) says that the event can be the member
at slot s; further bits say that a value column is not NULL there.

Takes: a branch. Gives: `Shape`, or raises `Refused` with the reason. Never: generates the loop (source.py does).
"""

from __future__ import annotations

from fairlead.matching.expressions import slot_types
from fairlead.matching.kernel.across import Across
from fairlead.matching.kernel.parts import Clause, Refused, Shape, Test, ValueColumn, at_slot_zero
from fairlead.matching.search import overlapping
from fairlead.model.plan import Branch, Subscription
from fairlead.model.types import Catalogue

__all__ = ["Refused", "Shape", "Test", "ValueColumn", "at_slot_zero", "shape_of"]

BITS_MAX = 62
"""Bits of an event in one int64, sign bit left alone."""


def shape_of(subscription: Subscription, branch: Branch, catalogue: Catalogue) -> Shape:
    if branch.absences:
        raise Refused("WITHOUT … WITHIN")
    if overlapping(branch, catalogue):
        raise Refused("types that overlap: an event can sit in two queues")
    names = (*branch.queue_types, *(each.type for each in branch.negated))
    read = [concrete for name in names for concrete in catalogue.accepts(name)]
    if len(read) != len(set(read)):
        raise Refused("WITHOUT a type whose events can be members or are noted twice")
    if any(len({catalogue[each].timed for each in catalogue.accepts(name)}) > 1 for name in names):
        raise Refused("a union of timed and untimed types")
    if subscription.within_us is not None and not all(catalogue[each].timed for each in read):
        raise Refused("untimed events in a window")
    queue_of = {name: at for at, name in enumerate(branch.queue_types)}
    shape = Shape(
        subscription,
        branch,
        [queue_of[slot.type] for slot in branch.slots],
        [len(branch.slots_of_type[name]) for name in branch.queue_types],
    )
    across = Across(shape, slot_types(branch, catalogue))
    for predicate in branch.predicates:
        if not predicate.is_unary:
            shape.tests.append(Test(frozenset(predicate.slots), across.condition(predicate.condition)))
    for precedence in branch.precedences:
        for a in precedence.left:
            for b in precedence.right:
                shape.tests.append(Test(frozenset({a, b}), f"nref[c{a}] < nref[c{b}]"))
    for clause in branch.negations:
        rest = [across.condition(each.condition, must=False) for each in clause.predicates if each.slots != (clause.slot,)]
        source = " and ".join(f"({each})" for each in rest) or "True"
        shape.clauses.append(Clause(shape.queue_of(clause.slot), clause.slot, clause.left, clause.right, source))
    if shape.size + len(shape.columns) > BITS_MAX:
        raise Refused("too many slots and value columns for the bits of an event")
    return shape
