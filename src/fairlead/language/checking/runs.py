"""Runs (`q+`, `q{2,5}`): which patterns can have them, and what conditions may say about them.

A run is what the other members leave it: all events of its queue that stand where THEN allows and meet its conditions. So no
event may fit two runs, and between two runs in order there is another element.

Takes: a branch's elements and slots, a condition. Gives: nothing, or a `Fault`. Never: decides what a run holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Aggregate, Expression, leaves
from fairlead.model.plans.pattern import Slot

Pairs = Sequence[tuple[int, int]]


def check_runs(nodes: Sequence[syntax.Element], slots: Sequence[Slot], orders: Pairs, catalogue: Catalogue) -> None:
    """The runs of a branch, whose members clauses put in these orders."""
    spans = {each.alias.text: each.span for each in nodes}
    runs = [at for at, slot in enumerate(slots) if slot.run]
    between = {(a, b) for a, s in orders for t, b in orders if s == t and s not in runs}
    for a in runs:
        for b in runs:
            if a != b and (a, b) in orders and (a, b) not in between:
                raise _not_apart(slots[a], slots[b], spans[slots[b].alias])
            if a < b and not {(a, b), (b, a)} & between and _shared(slots[a], slots[b], catalogue):
                raise _not_apart(slots[a], slots[b], spans[slots[b].alias])


def _shared(one: Slot, other: Slot, catalogue: Catalogue) -> bool:
    return bool({*catalogue.accepts(one.type)} & {*catalogue.accepts(other.type)})


def _not_apart(one: Slot, other: Slot, span: Span) -> Fault:
    problem = f"nothing says where '{one.alias}' ends and '{other.alias}' begins"
    return Fault("L097", span, problem, "put an element that is no run between them, in the order of the text")


def check_each(values: Sequence[Expression], runs: Sequence[int], span: Span) -> None:
    """A condition of WHERE is about every event of a run that it names, so it names one run at most."""
    read = [leaf for value in values for leaf in leaves(value)]
    if any(isinstance(leaf, Aggregate) and leaf.slots[0] in runs for leaf in read):
        raise Fault("L096", span, "WHERE is about single events, not about a whole run", "move this condition to HAVING")
    named = {slot for leaf in read for slot in leaf.slots if slot in runs}
    if len(named) > 1:
        fix = "compare one of them with an element that is no run, or their aggregates in HAVING"
        raise Fault("L097", span, "the condition names two runs", fix)


def check_whole(values: Sequence[Expression], runs: Sequence[int], span: Span) -> None:
    """A condition of HAVING is about whole runs."""
    if not any(slot in runs for value in values for leaf in leaves(value) for slot in leaf.slots):
        problem = "HAVING is about runs, such as q+, and this condition names none"
        raise Fault("L098", span, problem, "move it to WHERE, or write the element as a run")
