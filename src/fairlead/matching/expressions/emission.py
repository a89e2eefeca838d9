"""EMIT for many relations at once: a column for each attribute of the derived event.

Takes: a branch, and the members of its relations as position words. Gives: Arrow columns of the attributes' types. Equal to the
scalar evaluator, relation by relation: attributes are copied unchanged; numbers go through running/vector.py, as expressions
over one wide event with the attributes of all slots; the rest is evaluated by the scalar evaluator itself, once for each
distinct value if it reads one attribute only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import repeat
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from fairlead.matching.compiled.running.vector import NUMBERS, TypeRows, Vector, evaluate
from fairlead.matching.expressions.aggregates import aggregated
from fairlead.matching.expressions.closures import Evaluator, compile_value, slot_types
from fairlead.matching.expressions.run_emission import run_values
from fairlead.matching.results.event_store import View
from fairlead.matching.results.member_words import MemberWords
from fairlead.matching.results.taken_rows import Taken
from fairlead.model.events.columns import arrow_array, arrow_type, canonical_values, decimals_at, of_numbers
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import NESTED, PATH, Attribute, Catalogue, DataType, EventType, Kind
from fairlead.model.events.values import DECIMAL_CONTEXT
from fairlead.model.expressions.data_types import data_type_of
from fairlead.model.expressions.expression import (
    Aggregate,
    Call,
    Expression,
    Field,
    Leaf,
    PositionOf,
    TimeOf,
    leaves,
    with_leaves,
)
from fairlead.model.plans.plan import Branch
from fairlead.model.relations.identity import majors_of


class NoColumnForm(Exception):
    """An expression that whole columns do not serve: it is evaluated relation by relation."""


def compile_field(node: Expression, types: Sequence[EventType], wanted: DataType) -> Evaluator:
    """The scalar evaluator of an attribute of a derived event: a DECIMAL at its scale, NULL beyond the digits of its type."""
    evaluate_one = compile_value(node, types)
    if wanted.kind is not Kind.DECIMAL:
        return evaluate_one
    return lambda binding: fitted(evaluate_one(binding), wanted)


def fitted(value: Decimal | None, wanted: DataType) -> Decimal | None:
    """Zero has no sign: a column could not keep it."""
    if value is None:
        return None
    try:
        scaled = Decimal(value).quantize(Decimal(1).scaleb(-wanted.scale), context=DECIMAL_CONTEXT)
    except InvalidOperation:
        return None
    if scaled and scaled.adjusted() >= wanted.precision - wanted.scale:
        return None
    return scaled if scaled else scaled.copy_abs()


def emitted_columns(branch: Branch, catalogue: Catalogue, view: View, refs: MemberWords) -> list[pa.Array]:
    """The attributes of the derived event, one row per relation, in the order of its type. The branch has an EMIT."""
    assert branch.emission is not None
    members, fields = Members(branch, catalogue, view, refs), dict(branch.emission.fields)
    return [members.emitted(fields[each.name], each.type) for each in catalogue[branch.emission.type].attributes]


class Members:
    """The members of many relations, slot by slot, as columns."""

    def __init__(self, branch: Branch, catalogue: Catalogue, view: View, refs: MemberWords) -> None:
        self.types, self.catalogue, self.view, self.refs = slot_types(branch, catalogue), catalogue, view, refs
        self.runs = branch.runs.keys()
        self._slots: dict[int, Taken] = {}
        self._columns: dict[Leaf, pa.Array] = {}

    def __len__(self) -> int:
        return len(self.refs)

    def emitted(self, node: Expression, wanted: DataType) -> pa.Array:
        try:
            return self._by_columns(node, wanted)
        except (NoColumnForm, pa.ArrowInvalid):  # ArrowInvalid: a decimal that does not fit
            return self._by_scalar(node, wanted)

    def _by_columns(self, node: Expression, wanted: DataType) -> pa.Array:
        if not any(leaves(node)):
            value = compile_field(node, self.types, wanted)(())
            if value is None:
                return pa.nulls(len(self), arrow_type(wanted))
            return pa.repeat(arrow_array([value], wanted)[0], len(self))
        match node:
            case Field() if node.kind is Kind.DECIMAL and wanted.kind is Kind.DECIMAL:
                return decimals_at(self.column(node), arrow_type(wanted))
            case Field():
                return self.column(node).cast(arrow_type(wanted))
            case Call(function="coalesce"):
                import pyarrow.compute as pc

                return pc.coalesce(*(self._by_columns(each, wanted) for each in node.arguments))
        if any(each.kind not in NUMBERS for each in (node, *leaves(node))):
            raise NoColumnForm(node)
        return as_arrow(self._numbers(node), wanted)

    def _numbers(self, node: Expression) -> Vector:
        read = list(dict.fromkeys(leaves(node)))
        schema = EventType("members", tuple(Attribute(str(at), DataType(leaf.kind)) for at, leaf in enumerate(read)))
        columns = [self.column(leaf) for leaf in read]
        table = pa.RecordBatch.from_arrays(columns, [str(at) for at in range(len(read))])
        fields = {leaf: Field(0, str(at), leaf.kind) for at, leaf in enumerate(read)}
        over_one = with_leaves(node, fields.__getitem__)
        return evaluate(over_one, TypeRows(schema, table, None, lambda: np.zeros(len(self), dtype=np.int64)))

    def column(self, leaf: Leaf) -> pa.Array:
        """The column that an expression reads from the members."""
        if leaf not in self._columns:
            self._columns[leaf] = self._column(leaf)
        return self._columns[leaf]

    def _is_of_run(self, leaf: Leaf) -> TypeGuard[Aggregate]:
        return isinstance(leaf, Aggregate) and not self.runs.isdisjoint(leaf.slots)

    def _of_run(self, leaf: Aggregate) -> list[Any]:
        return run_values(leaf, self.types[leaf.slots[0]], self.refs, self.view, self.catalogue)

    def _column(self, leaf: Leaf) -> pa.Array:
        if self._is_of_run(leaf):
            return arrow_array(self._of_run(leaf), data_type_of(leaf, self.types))
        match leaf:
            case Field():
                schema = self.types[leaf.slot]
                sources = {name: self.catalogue[name].place(leaf.attribute) for name in self.catalogue.accepts(schema.name)}
                return self._slot(leaf.slot).column(arrow_type(schema.type_of(leaf.attribute)), sources)
            case PositionOf():
                return pa.array(majors_of(self.refs.column(leaf.slot)))
            case TimeOf():
                values, known = self._slot(leaf.slot).times(self.catalogue)
                return as_arrow(Vector(values, known), DataType(Kind.TIMESTAMP))
            case Aggregate(attribute=None):
                return as_arrow(
                    Vector(np.full(len(self), len(leaf.slots)), np.ones(len(self), dtype=bool)), DataType(leaf.kind)
                )
            case Aggregate(attribute=str() as attribute):
                kinds = [_kind(self.types[slot], attribute) for slot in leaf.slots]
                if not kinds or not NUMBERS.issuperset(kinds):
                    raise NoColumnForm(leaf)
                vectors = [self._numbers(Field(slot, attribute, kind)) for slot, kind in zip(leaf.slots, kinds, strict=True)]
                return as_arrow(aggregated(leaf.function, vectors, leaf.kind), DataType(leaf.kind))
        raise NoColumnForm(leaf)

    def _slot(self, slot: int) -> Taken:
        if slot not in self._slots:
            self._slots[slot] = self.view.take(self.refs.column(slot))
        return self._slots[slot]

    def _by_scalar(self, node: Expression, wanted: DataType) -> pa.Array:
        scalar, read = compile_field(node, self.types, wanted), list(dict.fromkeys(leaves(node)))
        slots = [Event(schema, (None,) * len(schema.attributes), Position(0)) for schema in self.types]
        if len(read) == 1 and isinstance(read[0], Field) and read[0].kind not in NESTED:
            encoded = self.column(read[0]).dictionary_encode()
            distinct = [*canonical_values(encoded.dictionary, read[0].kind), None]
            results = self._over_leaves(node, read, [distinct], wanted)
            return results.take(encoded.indices.fill_null(len(distinct) - 1))
        if any(map(self._is_of_run, read)) or all(isinstance(each, Field) for each in read):
            values = [
                self._of_run(leaf) if self._is_of_run(leaf) else canonical_values(self.column(leaf), leaf.kind) for leaf in read
            ]
            return self._over_leaves(node, read, values, wanted)
        used = {slot for leaf in read for slot in leaf.slots}
        columns = [self._events(slot, read) if slot in used else repeat(slots[slot], len(self)) for slot in range(len(slots))]
        return arrow_array([scalar(binding) for binding in zip(*columns, strict=True)], wanted)

    def _over_leaves(self, node: Expression, read: Sequence[Leaf], values: Sequence[list[Any]], wanted: DataType) -> pa.Array:
        """As an expression over one wide event that has what is read of the members."""
        types = [data_type_of(leaf, self.types) for leaf in read]
        schema = EventType("members", tuple(Attribute(str(at), each) for at, each in enumerate(types)))
        fields = {leaf: Field(0, str(at), leaf.kind) for at, leaf in enumerate(read)}
        scalar = compile_field(with_leaves(node, fields.__getitem__), [schema], wanted)
        return arrow_array([scalar((Event(schema, row, Position(0)),)) for row in zip(*values, strict=True)], wanted)

    def _events(self, slot: int, read: Sequence[Leaf]) -> Iterator[Event]:
        """The members at a slot as events with the attributes that are read."""
        schema, names = self.types[slot], {_head(leaf) for leaf in read if isinstance(leaf, Field | Aggregate)}
        values = [
            canonical_values(self.column(Field(slot, each.name, each.type.kind)), each.type.kind)
            if each.name in names
            else repeat(None, len(self))
            for each in schema.attributes
        ]
        rows = zip(*values, strict=True) if values else repeat((), len(self))
        timed = any(isinstance(leaf, TimeOf) and leaf.slot == slot for leaf in read)
        times = canonical_values(self.column(TimeOf(slot)), Kind.TIMESTAMP) if timed else repeat(None, len(self))
        for row, time, major in zip(rows, times, majors_of(self.refs.column(slot)).tolist(), strict=True):
            yield Event(schema, row, Position(major), time)


def as_arrow(vector: Vector, wanted: DataType) -> pa.Array:
    plain = {Kind.INT: np.int32, Kind.BOOLEAN: np.bool_, Kind.DOUBLE: np.float64}.get(wanted.kind, np.int64)
    made = pa.array(vector.values.astype(plain), mask=None if vector.known.all() else ~vector.known)
    return of_numbers(made, arrow_type(wanted))


def _kind(schema: EventType, attribute: str) -> Kind:
    return schema.type_of(attribute).kind


def _head(leaf: Field | Aggregate) -> str | None:
    """The attribute that has what it reads."""
    return None if leaf.attribute is None else leaf.attribute.partition(PATH)[0]
