"""Expressions that read one event, evaluated for a whole column of events at once.

Takes: an expression over a single slot and the rows of one type. Gives: `Vector`: values, and where they are known. Equal
to the scalar evaluators, element by element: numbers by NumPy; functions of one text, binary or decimal attribute once per
distinct value, by the scalar evaluator itself; what is left (rare mixtures) row by row, likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.running.keys import ValueNumbering, where_known
from fairlead.matching.expressions.closures import compile_value
from fairlead.matching.expressions.functions import in_range, like_pattern
from fairlead.model.events.columns import (
    arrow_array,
    as_numbers,
    attribute_column,
    canonical_rows,
    canonical_values,
    fixed_words,
)
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import Attribute, EventType, Kind
from fairlead.model.events.values import DAY, INT_RANGE, TIMESTAMP_RANGE
from fairlead.model.expressions.data_types import data_type_of
from fairlead.model.expressions.expression import (
    Arithmetic,
    Atom,
    Call,
    CaseWhen,
    Cast,
    Compare,
    Condition,
    Expression,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Logic,
    Negative,
    PositionOf,
    StructField,
    TimeOf,
    Truth,
    leaves,
    with_leaves,
)
from fairlead.model.expressions.text_tests import regular_expression
from fairlead.model.plans.key_parts import bucketed, part_of

Mask = npt.NDArray[np.bool_]
WHOLE = frozenset({Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL})
NUMBERS = WHOLE | {Kind.DOUBLE, Kind.BOOLEAN}
MANY = 256
"""Rows from which loading a library for them pays."""
SIGN = {"=": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True)
class TypeRows:
    """The events of one concrete type in a batch: attributes, times (NULL-free) and numbers in the order."""

    schema: EventType
    table: pa.RecordBatch
    times: npt.NDArray[np.int64] | None
    find_majors: Callable[[], npt.NDArray[np.int64]]

    @cached_property
    def majors(self) -> npt.NDArray[np.int64]:
        return self.find_majors()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.Array:
        """Of an attribute, of a field of one, or of a bucket of either."""
        part = part_of(name)
        return bucketed(attribute_column(self.table, self.schema, part.attribute), part)

    def known(self, names: Iterable[str]) -> Mask | None:
        """Where none of these attributes is NULL or NaN; None: everywhere."""
        return where_known([self.column(name) for name in names])

    def events(self) -> Iterator[Event]:
        """The rows as events, for what only the scalar evaluators can do."""
        times = [None] * len(self) if self.times is None else self.times.tolist()
        rows = canonical_rows(self.table, self.schema)
        for row, time, major in zip(rows, times, self.majors.tolist(), strict=True):
            yield Event(self.schema, row, Position(major), time)


@dataclass(frozen=True)
class Vector:
    """`known` is False where the value is NULL; the value there is arbitrary."""

    values: npt.NDArray[Any]
    known: Mask


def truth(condition: Condition, rows: TypeRows) -> Mask:
    """Where the condition is true, as opposed to false or unknown."""
    result = np.zeros(len(rows), dtype=bool)
    for term in condition.terms:
        holds = np.ones(len(rows), dtype=bool)
        for atom in term:
            holds &= _atom(atom, rows)
        result |= holds
    return result


def is_columnwise(condition: Condition) -> bool:
    """Whether `truth` handles many rows without going through them, or their distinct values, one by one."""
    return all(_is_columnwise(atom) for term in condition.terms for atom in term)


def _is_columnwise(node: Expression) -> bool:
    match node:
        case Literal() | Field():
            return node.kind in NUMBERS
        case TimeOf() | IsNull(operand=Field()) | Truth(operand=Field()):
            return True
        case Arithmetic():
            return node.operator in "+-*/" and _numeric(*node.parts) and all(map(_is_columnwise, node.parts))
        case Negative():
            return node.kind is Kind.DOUBLE and _is_columnwise(node.operand)
        case Truth(operand=Logic() | Call(function="rlike", arguments=(Field(), _)) as inner):
            return isinstance(inner, Call) or all(map(_is_columnwise, inner.parts))
        case Compare() if _comparable(node):
            return _is_columnwise(node.left) and _is_columnwise(node.right)
        case Compare() | In():
            return _texts(node) is not None
    return False


def evaluate(node: Expression, rows: TypeRows) -> Vector:
    """A numeric or boolean expression as int64, float64 or bool values; a DECIMAL attribute at its scale."""
    match node:
        case Literal():
            return _constant(node, len(rows))
        case Field() if node.kind in NUMBERS:
            return _column(rows.column(node.attribute), node.kind)
        case Field() | StructField() | Call(function="element_at") if node.kind is Kind.DECIMAL:
            return _decimal(_decimal_column(node, rows))
        case Call(function=("low word" | "high word") as word, arguments=(decimal,)):
            return _decimal(_decimal_column(decimal, rows), at=("low word", "high word").index(word))
        case PositionOf():
            return Vector(rows.majors, np.ones(len(rows), dtype=bool))
        case TimeOf() if rows.times is not None:
            return Vector(rows.times, np.ones(len(rows), dtype=bool))
        case Arithmetic() if node.operator in "+-*" and _numeric(node.left, node.right):
            return _arithmetic(node, evaluate(node.left, rows), evaluate(node.right, rows))
        case Arithmetic(operator="/") if _numeric(node.left, node.right):
            return _quotient(evaluate(node.left, rows), evaluate(node.right, rows))
        case Negative() if node.kind is Kind.DOUBLE and _numeric(node.operand):
            operand = evaluate(node.operand, rows)
            return Vector(-operand.values, operand.known)
        case Compare() if _comparable(node):
            return _compared(node, rows)
        case Logic():
            return _logic(node.operator == "OR", [evaluate(each, rows) for each in node.operands])
        case Cast(operand=operand) if node.kind is Kind.TIMESTAMP and operand.kind is Kind.DATE:
            days = evaluate(operand, rows)
            return Vector(days.values * DAY, days.known)
        case Cast(operand=operand) if node.kind is Kind.DATE and operand.kind is Kind.TIMESTAMP:
            moments = evaluate(operand, rows)
            return Vector(moments.values // DAY, moments.known)
        case CaseWhen() if _numeric(*node.values):
            return _case([evaluate(each, rows) for each in node.conditions], [evaluate(each, rows) for each in node.values])
    return _by_scalar(node, rows)


def _atom(atom: Atom, rows: TypeRows) -> Mask:
    match atom:
        case Compare() if _comparable(atom):
            vector = _compared(atom, rows)
            both: Mask = vector.known & vector.values
            return both
        case IsNull(operand=Field() as field):
            present: Mask = rows.column(field.attribute).is_valid().to_numpy(zero_copy_only=False)
            return present if atom.negated else ~present
        case Truth(operand=Field() | Logic()):
            flag = evaluate(atom.operand, rows)
            holds: Mask = flag.known & (flag.values != atom.negated)
            return holds
    if len(rows) >= MANY:
        texts = _texts(atom)
        if texts is not None:
            return _among(rows.column(texts[0]), texts[1])
        alike = _alike(atom, rows)
        if alike is not None:
            return alike
    vector = _by_scalar(atom, rows)
    found: Mask = vector.known & vector.values.astype(bool)
    return found


def _texts(atom: Atom) -> tuple[str, list[str]] | None:
    """The attribute and the texts, where the condition is that it is one of these."""
    match atom:
        case Compare(operator="=", left=Field(kind=Kind.STRING) as field, right=Literal() as literal):
            options: tuple[Expression, ...] = (literal,)
        case In(operand=Field(kind=Kind.STRING) as field, negated=False):
            options = atom.options
        case _:
            return None
    found = [each.value for each in options if isinstance(each, Literal) and isinstance(each.value, str)]
    return (field.attribute, found) if len(found) == len(options) else None


def _among(column: pa.Array, texts: Sequence[str]) -> Mask:
    import pyarrow.compute as pc  # loading it takes a twentieth of a second

    equal = [pc.equal(column, pa.scalar(each, column.type)).fill_null(False) for each in texts]
    found: Mask = np.logical_or.reduce([each.to_numpy(zero_copy_only=False) for each in equal])
    return found


def _alike(atom: Atom, rows: TypeRows) -> Mask | None:
    """LIKE and RLIKE on an attribute."""
    match atom:
        case Like(operand=Field(kind=Kind.STRING) as field):
            column = rows.column(field.attribute)
            found = like_pattern(atom.pattern).of_column(column)
        case Truth(operand=Call(function="rlike", arguments=(Field() as field, Literal(value=str() as pattern)))):
            column = rows.column(field.attribute)
            found = regular_expression(pattern).of_column(column)
        case _:
            return None
    if found is None or not atom.negated:
        return found
    present: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return present & ~found


def _numeric(*nodes: Expression) -> bool:
    return all(node.kind in NUMBERS for node in nodes)


def _comparable(atom: Compare) -> bool:
    return _numeric(atom.left, atom.right) and not _mixed(atom.left, atom.right)


def _compared(atom: Compare, rows: TypeRows) -> Vector:
    left, right = evaluate(atom.left, rows), evaluate(atom.right, rows)
    both = left.known & right.known
    for side in (left, right):
        if side.values.dtype == np.float64:
            both &= ~np.isnan(side.values)
    return Vector(SIGN[atom.operator](left.values, right.values), both)


def _mixed(left: Expression, right: Expression) -> bool:
    """A 64-bit whole number beside a float: NumPy would round it, the definition compares exactly."""
    kinds = {left.kind, right.kind}
    return Kind.DOUBLE in kinds and not kinds.isdisjoint({Kind.BIGINT, Kind.TIMESTAMP, Kind.INTERVAL})


def _constant(node: Literal, length: int) -> Vector:
    if node.value is None:
        return Vector(np.zeros(length, dtype=np.int64), np.zeros(length, dtype=bool))
    return Vector(np.full(length, node.value, dtype=_dtype(node.kind)), np.ones(length, dtype=bool))


def _dtype(kind: Kind) -> Any:
    return np.float64 if kind is Kind.DOUBLE else np.bool_ if kind is Kind.BOOLEAN else np.int64


def _column(column: pa.Array, kind: Kind) -> Vector:
    known = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else np.ones(len(column), dtype=bool)
    plain = as_numbers(column) if kind in WHOLE else column
    if column.null_count:
        plain = plain.fill_null(False if kind is Kind.BOOLEAN else 0)
    return Vector(plain.to_numpy(zero_copy_only=False), known)


def _decimal_column(node: Expression, rows: TypeRows) -> pa.Array:
    """DECIMALs of one event, at the scale of what they are taken from."""
    if isinstance(node, Field):
        return rows.column(node.attribute)
    results, codes = _results(node, rows)
    column = arrow_array(results, data_type_of(node, [rows.schema]))
    return column if codes is None else column.take(pa.array(codes))


def _decimal(column: pa.Array, at: int = 0) -> Vector:
    """Half of Arrow's 128 bits: of at most 18 digits the lower one (0) is the whole number at the column's scale."""
    words = fixed_words(column, np.dtype(np.int64), 2)[at::2]
    return Vector(words, column.is_valid().to_numpy(zero_copy_only=False))


def _arithmetic(node: Arithmetic, left: Vector, right: Vector) -> Vector:
    apply = {"+": np.add, "-": np.subtract, "*": np.multiply}[node.operator]
    known = left.known & right.known
    if node.kind is Kind.DOUBLE:
        with np.errstate(all="ignore"):
            return Vector(apply(left.values.astype(np.float64), right.values.astype(np.float64)), known)
    low, high = _bounds(node.operator, left.values, right.values)
    if INT_RANGE[Kind.BIGINT][0] <= low <= high <= INT_RANGE[Kind.BIGINT][1]:
        within = apply(left.values, right.values)
        if in_range(low, node.kind) is None or in_range(high, node.kind) is None:
            least, most = TIMESTAMP_RANGE if node.kind is Kind.TIMESTAMP else INT_RANGE[node.kind]
            known = known & (within >= least) & (within <= most)
        return Vector(within, known)
    exact = apply(left.values.astype(object), right.values.astype(object))
    fits = np.array([in_range(value, node.kind) is not None for value in exact], dtype=bool)
    return Vector(np.where(fits, exact, 0).astype(np.int64), known & fits)


def _bounds(operator: str, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> tuple[int, int]:
    """Between which numbers every result lies."""
    if not len(left):
        return 0, 0
    (a, b), (c, d) = ((int(each.min()), int(each.max())) for each in (left, right))
    if operator == "*":
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    return (a + c, b + d) if operator == "+" else (a - d, b - c)


def _logic(decisive: bool, parts: Sequence[Vector]) -> Vector:
    """Decided by one part that is `decisive` (true for OR), or by all that are known."""
    decided = np.logical_or.reduce([each.known & (each.values.astype(bool) == decisive) for each in parts])
    return Vector(decided == decisive, decided | np.logical_and.reduce([each.known for each in parts]))


def _case(conditions: Sequence[Vector], values: Sequence[Vector]) -> Vector:
    """Of the last step first, so that an earlier one overrules it."""
    result, known = values[-1].values, values[-1].known
    for condition, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
        holds = condition.known & condition.values.astype(bool)
        result, known = np.where(holds, value.values, result), np.where(holds, value.known, known)
    return Vector(result, known)


def _quotient(left: Vector, right: Vector) -> Vector:
    with np.errstate(all="ignore"):
        values = left.values.astype(np.float64) / right.values.astype(np.float64)
    return Vector(values, left.known & right.known & (right.values != 0))


def _by_scalar(node: Expression, rows: TypeRows) -> Vector:
    """By the scalar evaluator: once per distinct value where one attribute is all that is read, else row by row."""
    results, codes = _results(node, rows)
    vector = _vector(results, node.kind)
    return vector if codes is None else Vector(vector.values[codes], vector.known[codes])


def _results(node: Expression, rows: TypeRows) -> tuple[list[Any], npt.NDArray[np.int64] | None]:
    """The values of the scalar evaluator, and which of them each row has; None: one a row."""
    read = {leaf.attribute if isinstance(leaf, Field) else None for leaf in leaves(node)}
    if len(read) != 1 or None in read:
        scalar = compile_value(node, [rows.schema])
        return [scalar([event]) for event in rows.events()], None
    name = read.pop() or ""
    declared, column, codes = rows.schema.type_of(name), rows.column(name), None
    if not declared.is_nested:
        encoded = column.dictionary_encode()
        codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        column = encoded.dictionary
    values = [*canonical_values(column, declared.kind), *([] if codes is None else [None])]
    only = EventType("value", (Attribute("value", declared),))
    scalar = compile_value(with_leaves(node, lambda leaf: Field(0, "value", leaf.kind)), [only])
    return [scalar([Event(only, (value,), Position(0))]) for value in values], codes


def _vector(results: Sequence[Any], kind: Kind) -> Vector:
    known = np.array([value is not None for value in results], dtype=bool)
    filled = [0 if value is None else value for value in results]
    return Vector(np.array(filled, dtype=_dtype(kind)), known)


def evaluate_text(node: Expression, rows: TypeRows, numbering: ValueNumbering) -> tuple[npt.NDArray[np.int64], Mask]:
    """A text (or binary) expression as the numbers of its values: equal texts have equal numbers."""
    if isinstance(node, Field):
        numbers = numbering.of_column(rows.column(node.attribute))
        return numbers, numbers >= 0
    if not any(leaves(node)):
        value = compile_value(node, [rows.schema])([])
        numbers = np.full(len(rows), -1 if value is None else numbering.number(value), dtype=np.int64)
        return numbers, numbers >= 0
    found, codes = _results(node, rows)
    numbers = np.array([-1 if value is None else numbering.number(value) for value in found], dtype=np.int64)
    if codes is not None:
        numbers = numbers[codes]
    return numbers, numbers >= 0
