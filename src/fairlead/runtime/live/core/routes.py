"""The route of a type: a condition that holds for every event that the subscriptions of a plan could accept.

A conjunction is a function of the events that it accepts (docs/semantics.md), and a slot accepts events that satisfy the
conditions that read this slot alone. So events that satisfy those of no slot need not be read, and the route of a type is

    over all slots of the type, in all branches: this slot's conditions, or that one's, or …

Conditions that read a position, or whose cost is not linear in the event, do not count: publishers evaluate routes.

A type has no route, and all its blocks are read, if a slot has no such condition or is of a table, or a WITHOUT reads the
type. No type has a route if the plan waits for absences, since every event tells the time, if it orders events by value, since
every event moves the frontier, or if subscriptions read derived events.

Publishers evaluate the routes of a type on their blocks (`route_letters`), so that readers ask for blocks that may matter.

Takes: a plan. Gives: conditions over slot 0, and their texts, equal for equal conditions; by route, whether a block has
matching events. Never: excludes an event that a subscription might accept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import cast

import numpy as np
import pyarrow as pa

from fairlead.errors import FairleadError
from fairlead.language.compiler import compile_text
from fairlead.model.events.types import EventType
from fairlead.model.expressions.expression import (
    Aggregate,
    Atom,
    Call,
    Condition,
    Expression,
    Literal,
    PositionOf,
    at_slot_zero,
    render_condition,
)
from fairlead.model.plans.plan import Branch, Plan
from fairlead.transport.log.blocks.block_filter import ROUTES

TERMS_MAX = 32
"""Alternatives of a condition: publishers evaluate all of them on every block."""
TEXT_MAX = 4096
NAME = "e"
SLOWLY_MAX = 512
"""The largest block on which conditions are evaluated event by event, at two microseconds each."""


def routes_of(plan: Plan, types: Sequence[str]) -> dict[str, Condition]:
    """By type, for the types that have one."""
    if plan.order is not None or any(each.waits for each in plan.subscriptions):
        return {}
    if any(plan.derived_types(each) for each in plan.subscriptions):
        return {}
    found = {name: _route(plan, name) for name in types}
    return {name: each for name, each in found.items() if each is not None}


def text_of(condition: Condition) -> str:
    return render_condition(condition, [NAME])


def condition_of(text: str, event_type: EventType) -> Condition | None:
    """The condition of a text; None if the local definition of the type does not have its attributes, or no client of this
    release would have written it."""
    if not 0 < len(text) <= TEXT_MAX:
        return None
    alone = EventType(event_type.name, event_type.attributes, time_attribute=event_type.time_attribute)
    try:
        plan = compile_text(f"{alone}\nSUBSCRIPTION R MATCH {alone.name} {NAME} WHERE {text}")
    except FairleadError:
        return None
    return routes_of(plan, [alone.name]).get(alone.name) if len(plan.subscriptions) == 1 else None


def is_within(narrow: Condition, wide: Condition) -> bool:
    """Whether everything that satisfies `narrow` satisfies `wide`, as far as their form shows: every alternative of `narrow`
    includes all conditions of some alternative of `wide`."""
    return all(any(set(other) <= set(term) for other in wide.terms) for term in narrow.terms)


def _route(plan: Plan, name: str) -> Condition | None:
    terms: dict[tuple[Atom, ...], None] = {}
    for branch in (branch for each in plan.subscriptions for branch in each.branches):
        if any(name in plan.catalogue.accepts(each.type) for each in branch.noting):
            return None
        for at, slot in enumerate(branch.slots):
            if name in plan.catalogue.accepts(slot.type):
                terms |= dict.fromkeys(islice(_accepted(branch, at), TERMS_MAX + 1))
                if () in terms or len(terms) > TERMS_MAX:
                    return None
    made = Condition(tuple(sorted(_needed(terms), key=_shown)))
    return made if made.terms and len(text_of(made)) <= TEXT_MAX else None


def _accepted(branch: Branch, slot: int) -> Iterator[tuple[Atom, ...]]:
    """Alternatives: every event that the slot accepts satisfies one of them."""
    unary = [] if slot in branch.read else [each.condition for each in branch.predicates if each.slots == (slot,)]
    own = [each for each in unary if is_for_publishers(each)]
    for chosen in product(*(each.terms for each in own)):
        atoms = {cast(Atom, at_slot_zero(atom)) for term in chosen for atom in term}
        yield tuple(sorted(atoms, key=lambda atom: _shown((atom,))))


def _needed(terms: dict[tuple[Atom, ...], None]) -> list[tuple[Atom, ...]]:
    """The terms without those that require more than another does."""
    return [each for each in terms if not any(set(other) < set(each) for other in terms)]


def _shown(term: tuple[Atom, ...]) -> str:
    return render_condition(Condition((term,)), [NAME])


def is_for_publishers(condition: Condition) -> bool:
    """Whether its publisher can evaluate it, in time that is linear in the event."""
    return reads_only_events(condition) and all(_is_linear(atom) for term in condition.terms for atom in term)


def reads_only_events(condition: Condition) -> bool:
    """Whether it reads only the attributes and the time of the event, which its publisher knows, and not its position."""
    return all(_plain(atom) for term in condition.terms for atom in term)


def reads_no_position(node: Expression) -> bool:
    """Whether its value does not depend on the events that are before."""
    return not isinstance(node, PositionOf) and all(map(reads_no_position, node.parts))


def _plain(node: Expression) -> bool:
    return not isinstance(node, PositionOf | Aggregate) and all(map(_plain, node.parts))


LINEAR = frozenset(
    (
        "abs", "floor", "ceil", "round", "isnan", "lower", "upper", "trim", "length", "substring", "concat", "instr",
        "split_part", "rlike", "cidr_match", "coalesce", "year", "month", "day", "hour", "minute", "second", "dayofweek",
        "size", "array_contains", "element_at",
    )
)  # fmt: skip
"""Functions whose time, and whose result, are linear in their arguments: RLIKE is RE2, and LIKE tries each place of a text for
one segment of the pattern. A condition with a function that is not here makes no route."""


def _is_linear(node: Expression) -> bool:
    if isinstance(node, Call) and node.function not in LINEAR and not (node.function == "replace" and _shortens(node)):
        return False
    return all(map(_is_linear, node.parts))


def _shortens(replacing: Call) -> bool:
    """Whether `replace` makes nothing longer: otherwise a few of them inside one another fill the memory."""
    part, *other = replacing.arguments[1:]
    texts = [each.value for each in (part, *other) if isinstance(each, Literal) and isinstance(each.value, str)]
    return len(texts) == 1 + len(other) and len(texts[0]) >= len("".join(texts[1:]))


def route_letters(batch: pa.RecordBatch, event_type: EventType, conditions: Sequence[Condition | None]) -> str:
    """By route: y if an event satisfies the condition, n if none does, u if that is unknown or takes long."""
    from fairlead.matching.compiled.running.vector import TypeRows, is_columnwise, truth

    at = event_type.time_index
    times = None if at is None else batch.column(at).view(pa.int64()).to_numpy()
    rows = TypeRows(event_type, batch, times, lambda: np.zeros(batch.num_rows, dtype=np.int64))  # no condition reads places
    found = ""
    for each in conditions:
        try:
            told = each is not None and (len(rows) <= SLOWLY_MAX or is_columnwise(each))
            found += "u" if each is None or not told else "y" if truth(each, rows).any() else "n"
        except Exception:  # an error in another client's condition must not keep the block from being sent
            found += "u"
    return found.ljust(ROUTES, "u")
