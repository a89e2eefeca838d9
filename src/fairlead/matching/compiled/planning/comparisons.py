"""Which comparisons across events an index can serve.

An equality between two events puts both sides into one class: its values are numbered together, and the events of a queue
that have the same number are chained (a hash index). A comparison `<  <=  >  >=` of one event's value with something made of
other events is a *bound*: the first event in queue order that satisfies it is found in a tree (an ordered index).

A kernel finds the event that a new one replaces in a table in the hash index of its queue. So that is on an attribute of the
table's key: on one that WHERE joins, where there is one. What else the key has is compared along the chain.

Takes: a shape with its tests. Gives: the class and the bounds. Only conjuncts that every relation must satisfy count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairlead.matching.compiled.planning.join_conditions import WHOLE, Across
from fairlead.matching.compiled.planning.shape import SWAPPED, Bound, Refused, Shape
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.expressions.expression import Compare, Expression, Field, Predicate, at_slot_zero, slots_of

NUMBERED_APART = frozenset({Kind.STRING, Kind.BINARY, Kind.DECIMAL})
"""Numbered apart from whole numbers and what is counted as them (keys.py)."""
COMPARED = frozenset({Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.DATE, Kind.STRING, Kind.BINARY, Kind.DOUBLE})
"""Kinds of value columns."""
Node = tuple[int, Expression]


def _compared(shape: Shape) -> Iterator[tuple[Compare, str]]:
    """The comparisons between events that every relation must satisfy, with the text of their predicate."""
    for predicate in shape.branch.predicates:
        if not shape.branch.runs.keys().isdisjoint(predicate.slots):
            continue
        if len(predicate.condition.terms) == 1 and not predicate.is_unary:
            for atom in predicate.condition.terms[0]:
                if isinstance(atom, Compare) and slots_of(atom.left) and slots_of(atom.right):
                    yield atom, predicate.text


def equality_of(predicate: Predicate) -> tuple[Node, Node] | None:
    """The two values, each of one slot, that are equal where the predicate is true and only there."""
    terms = predicate.condition.terms
    if len(terms) != 1 or len(terms[0]) != 1 or not isinstance(atom := terms[0][0], Compare) or atom.operator != "=":
        return None
    left, right = slots_of(atom.left), slots_of(atom.right)
    if len(left) != 1 or len(right) != 1 or left == right or not _same_kind(atom):
        return None
    (a,), (b,) = left, right
    return (a, at_slot_zero(atom.left)), (b, at_slot_zero(atom.right))


def equal_class(shape: Shape) -> tuple[dict[int, Expression], frozenset[int], str]:
    """The largest class of equal values: by queue its expression, the slots it covers, and how people wrote it."""
    parent: dict[Node, Node] = {}
    texts: dict[Node, list[str]] = {}

    def root(node: Node) -> Node:
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    for atom, text in _compared(shape):
        left, right = slots_of(atom.left), slots_of(atom.right)
        if atom.operator != "=" or len(left) != 1 or len(right) != 1 or left == right or not _same_kind(atom):
            continue
        (a,), (b,) = left, right
        one, two = root((a, at_slot_zero(atom.left))), root((b, at_slot_zero(atom.right)))
        parent[one] = two
        texts[two] = [*texts.pop(one, []), *texts.get(two, []), text]
    best: tuple[dict[int, Expression], frozenset[int], str] = ({}, frozenset(), "")
    for top in texts:
        by_queue: dict[int, Expression] = {}
        slots = set()
        for slot, expression in parent:
            if root((slot, expression)) == top and by_queue.setdefault(shape.queue_of_slot[slot], expression) == expression:
                slots.add(slot)
        if len(slots) > len(best[1]) and finds_rows(shape, by_queue):
            best = (by_queue, frozenset(slots), " AND ".join(dict.fromkeys(texts[top])))
    return best


def _same_kind(atom: Compare) -> bool:
    kinds = {atom.left.kind, atom.right.kind}
    return kinds <= WHOLE or (len(kinds) == 1 and not kinds & {Kind.DECIMAL, Kind.BINARY, Kind.BOOLEAN})


def bounds_of(shape: Shape, across: Across) -> list[Bound]:
    found: list[Bound] = []
    for atom, text in _compared(shape):
        kinds = {atom.left.kind, atom.right.kind}
        if atom.operator not in SWAPPED or not (kinds <= WHOLE or kinds == {Kind.DOUBLE}):
            continue
        sides = ((atom.left, atom.operator, atom.right), (atom.right, SWAPPED[atom.operator], atom.left))
        for side, sign, other in sides:
            mine, others = slots_of(side), slots_of(other)
            if len(mine) == 1 and not mine & others:
                (slot,) = mine
                column = across.column_of(side)
                value = across.plain_value(other)
                if value is not None:
                    found.append(Bound(slot, column, sign, value, frozenset(others), text))
    return found + _implied(found)


def _implied(found: list[Bound]) -> list[Bound]:
    """a < b and b < c: also a < c, so that the outer ones bound each other while the one between is still open."""
    made: list[Bound] = []
    known = {(each.slot, each.slots) for each in found}
    queue = [each for each in found if len(each.slots) == 1]
    of_value: dict[tuple[int, int], dict[tuple[frozenset[int], str], Bound]] = {}
    """By the value that is bounded, for each slot and direction the first bound: more of them imply nothing more."""

    def note(bound: Bound) -> None:
        of_value.setdefault((bound.column, bound.slot), {}).setdefault((bound.slots, bound.sign[0]), bound)

    for each in queue:
        note(each)
    for first in queue:
        for second in list(of_value.get((first.value.column, first.value.slot), {}).values()):
            if first.slot in second.slots or first.sign[0] != second.sign[0] or (first.slot, second.slots) in known:
                continue
            sign = first.sign if len(first.sign) == 1 else second.sign
            both = " AND ".join(dict.fromkeys((first.text, second.text)))
            implied = Bound(first.slot, first.column, sign, second.value, second.slots, both)
            known.add((implied.slot, implied.slots))
            made.append(implied)
            queue.append(implied)
            note(implied)
    return made


def finds_rows(shape: Shape, equal: Mapping[int, Expression]) -> bool:
    """Whether an index on these values is on an attribute of the key, where it is on a table."""
    tables = shape.branch.table_queues
    return all(isinstance(each, Field) and each.attribute in tables[queue] for queue, each in equal.items() if queue in tables)


def add_tables(shape: Shape, values: Across, catalogue: Catalogue) -> None:
    for queue, key in shape.branch.table_queues.items():
        schema, slot = catalogue[shape.branch.queue_types[queue]], shape.slots_of(queue)[0]
        kinds = {name: schema.type_of(name).kind for name in key}
        if queue not in shape.equal:
            shape.equal = {**shape.equal, queue: Field(0, key[0], kinds[key[0]])}
        indexed = shape.equal[queue]
        rest = [name for name in key if not (isinstance(indexed, Field) and indexed.attribute == name)]
        for name in rest:
            if kinds[name] not in COMPARED:
                raise Refused(f"a table whose key has an attribute of type {kinds[name]} after the first")
        shape.table_columns[queue] = tuple(values.column_of(Field(slot, name, kinds[name])) for name in rest)
    if shape.table_columns and len({each.kind in NUMBERED_APART for each in shape.equal.values()}) > 1:
        raise Refused("tables with keys of different kinds, of text and of numbers")
