"""What a kernel needs to know of a branch, or why there can be none.

A predicate that reads one event is evaluated for whole columns before the kernel runs and arrives as a bit. Of a predicate
across events, the parts that read one event are evaluated beforehand too and arrive as *value columns*; only what joins
them is compiled into the loop (join_conditions.py). Bits of an event: bit s (s < number of slots) says that the event can be
the member at slot s; further bits say that a value column is not NULL there; the highest, which queues accept it.

Takes: a branch. Gives: `Shape`, or raises `Refused` with the reason. Never: generates the loop (loop.py does).
"""

from __future__ import annotations

from itertools import combinations

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.runs.run_words import is_outside
from fairlead.matching.compiled.planning.comparisons import add_tables, bounds_of, equal_class, equality_of
from fairlead.matching.compiled.planning.folds.fold_plan import fold_plan_of
from fairlead.matching.compiled.planning.join_conditions import Across
from fairlead.matching.compiled.planning.runs.run_plan import run_plan_of
from fairlead.matching.compiled.planning.sequences.sequence_plan import sequence_plan
from fairlead.matching.compiled.planning.shape import (
    ACCEPTED,
    TOO_MANY,
    Lane,
    NotedQueue,
    Order,
    Refused,
    Shape,
    Sides,
    Test,
    ValueColumn,
)
from fairlead.matching.compiled.representation.formulas import Formula, SlotField, all_of, any_of
from fairlead.matching.expressions.closures import slot_types
from fairlead.matching.interpreted.search import overlapping
from fairlead.matching.noted_events import noted_event_policy
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.expressions.expression import Predicate
from fairlead.model.plans.key_parts import part_of
from fairlead.model.plans.plan import Branch, Subscription

__all__ = ["Refused", "Shape", "Test", "ValueColumn", "shape_of"]

KEYS_MAX = 4
"""Of one type in one branch: every choice of them that can be equal has a lane, and each lane has its own code."""


def shape_of(subscription: Subscription, branch: Branch, catalogue: Catalogue, heard: frozenset[str] = frozenset()) -> Shape:
    """`heard`: types that the subscription does not read and that tell it the time (model/plans/clocks.py)."""
    queue_of = {name: at for at, name in enumerate(branch.queue_types)}
    shape = Shape(
        subscription,
        branch,
        [queue_of[slot.type] for slot in branch.slots],
        [sum(_least(branch, slot) for slot in branch.slots_of_type[name]) for name in branch.queue_types],
        overlapping=overlapping(branch, catalogue, tables=False),
    )
    if branch.sequence is not None and branch.folded:
        raise Refused("a folded run of a sequence")
    if branch.sequence is not None:
        return _sequence(shape, catalogue, heard)
    if branch.folded:
        return _folded(shape, catalogue, heard)
    shape.lanes = _lanes(shape, catalogue, heard)
    types = slot_types(branch, catalogue)
    across = Across(shape, types)
    for predicate in branch.predicates:
        if not predicate.is_unary and branch.runs.keys().isdisjoint(predicate.slots):
            condition = _condition(across, predicate)
            sides = across.sides(predicate.condition)
            shape.tests.append(Test(frozenset(predicate.slots), condition, predicate.text, sides, equality_of(predicate)))
    pairs = [(pair, clause.keyword) for clause in branch.clauses for pair in clause.orders]
    shape.orders += [Order(*pair, word) for pair, word in pairs if branch.runs.keys().isdisjoint(pair)]
    if overlapping(branch, catalogue):
        shape.tests += _apart(shape, catalogue)
    if shape.overlapping and shape.anchored and not branch.runs:  # an event in several queues may be any of their members
        here = [SlotField("REF", slot) == counter("NEWEST") for slot in range(shape.size)]
        shape.tests.append(Test(frozenset(range(shape.size)), any_of(*here)))
    for at, clause in enumerate(branch.noting):
        rest = [_condition(across, each, must=False) for each in clause.predicates if each.slots != (clause.slot,)]
        policy, within = noted_event_policy(subscription, branch, clause, catalogue), clause.apart_us or 0
        twins = [slot for slot in sorted(branch.twins(clause, catalogue)) if not policy.before or slot != policy.anchor]
        rest += [SlotField("REF", clause.slot) != SlotField("REF", slot) for slot in twins if slot not in branch.runs]
        rest += [is_outside(slot, SlotField("REF", clause.slot)) for slot in twins if slot in branch.runs]
        if policy.before and policy.timed:
            rest.insert(0, SlotField("TIME", clause.slot) >= SlotField("TIME", policy.anchor) - within)
        reach = clause.slot, clause.since, clause.until, all_of(*rest), policy, within
        told = clause.keyword, clause.alias, clause.reads_members, clause.forbids
        shape.noted.append(NotedQueue(len(shape.needed) + at, *reach, *told))
    shape.bounds = bounds_of(shape, across)
    shape.equal, shape.equal_slots, shape.equal_text = equal_class(shape)
    shape.runs = run_plan_of(shape, across, types, catalogue)
    add_tables(shape, across, catalogue)
    shape.whole_key = None if shape.equal else _whole_key(shape, catalogue)
    return _fitting(shape)


def _sequence(shape: Shape, catalogue: Catalogue, heard: frozenset[str]) -> Shape:
    """Of a sequence all that is searched is in its plan."""
    shape.sequence = sequence_plan(shape, catalogue)
    shape.lanes = _lanes(shape, catalogue, heard)
    if shape.timed and not all(lane.timed for lane in shape.lanes if lane.queues):
        raise Refused("untimed events in a sequence with limits of time")
    shape.whole_key = _whole_key(shape, catalogue)
    return _fitting(shape)


def _folded(shape: Shape, catalogue: Catalogue, heard: frozenset[str]) -> Shape:
    """Of a folded run nothing is searched."""
    shape.lanes = _lanes(shape, catalogue, heard)
    shape.fold = fold_plan_of(shape, slot_types(shape.branch, catalogue), catalogue)
    shape.whole_key = _whole_key(shape, catalogue)
    return _fitting(shape)


def _fitting(shape: Shape) -> Shape:
    if shape.size + len(shape.columns) + max(len(lane.queues) for lane in shape.lanes) > ACCEPTED:
        raise Refused(TOO_MANY)
    return shape


def _least(branch: Branch, slot: int) -> int:
    """How many events a slot holds at least."""
    return branch.runs[slot].least if slot in branch.runs else 1


def _condition(across: Across, predicate: Predicate, must: bool = True) -> Formula:
    try:
        return across.condition(predicate.condition, must)
    except Refused as refused:
        raise Refused(str(refused), predicate.text) from None


def _lanes(shape: Shape, catalogue: Catalogue, heard: frozenset[str]) -> list[Lane]:
    """Concrete types by where they go. A type has several lanes if queues that it enters name different key attributes: one for
    each of these keys, and one for each choice of them that can have the same value. By their first queues, in whose order an
    event arrives at several keys."""
    named = dict(shape.branch.keys)
    routes: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for queue, name in enumerate(shape.queue_names):
        for concrete in catalogue.accepts(name):
            routes.setdefault((concrete, named.get(name, ())), []).append(queue)
    ways: dict[str, list[tuple[tuple[str, ...], list[int]]]] = {}
    for (concrete, key), queues in routes.items():
        ways.setdefault(concrete, []).append((key, queues))
    lanes: dict[tuple[tuple[int, ...], tuple[tuple[str, ...], ...], bool], list[str]] = {}
    for concrete, each in ways.items():
        if len(each) > KEYS_MAX:
            raise Refused(f"events of '{concrete}' have more than {KEYS_MAX} keys")
        for chosen in (some for count in range(1, len(each) + 1) for some in combinations(each, count)):
            queues = sorted(queue for _, mine in chosen for queue in mine)
            alike = tuple(key for key, _ in chosen)
            lanes.setdefault((tuple(queues), alike, catalogue[concrete].timed), []).append(concrete)
    made = [Lane(tuple(types), queues, keys[0], timed, keys[1:]) for (queues, keys, timed), types in lanes.items()]
    made.sort(key=lambda lane: lane.queues[0])
    if shape.windowed and not all(lane.timed for lane in made):
        raise Refused("untimed events in a window")
    if shape.waits:
        placed = {concrete for concrete, _ in routes}
        others = [catalogue[name] for name in sorted(shape.subscription.reads(catalogue) - placed)]
        made += [Lane((each.name,), (), (), each.timed) for each in others if each.timed or each.derived]
        telling = tuple(name for name in sorted(heard) if catalogue[name].timed)
        made += [Lane(telling, (), (), True)] if telling else []
    return made


def _whole_key(shape: Shape, catalogue: Catalogue) -> str | None:
    kinds = {
        attribute.type.kind
        for lane in shape.lanes
        for name in lane.types
        for key in lane.key
        if (attribute := catalogue[name].attribute(part_of(key).attribute)) is not None
    }
    single = all(len(lane.key) == 1 for lane in shape.lanes if lane.queues)
    if not single or shape.paired or not kinds <= {Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.DATE} or not kinds:
        return None
    return "int32" if kinds <= {Kind.INT, Kind.DATE} else "int64"


def _apart(shape: Shape, catalogue: Catalogue) -> list[Test]:
    """No event is the member at two slots, where queues can share it."""
    types = [set(catalogue.accepts(slot.type)) for slot in shape.branch.slots]
    refs = [SlotField("REF", slot) for slot in range(shape.size)]
    return [
        Test(frozenset({a, b}), refs[a] != refs[b], link=Sides(a, "!=", b, refs[a], refs[b]))
        for a in shape.singles
        for b in shape.singles
        if a < b and shape.queue_of_slot[a] != shape.queue_of_slot[b] and types[a] & types[b]
    ]
