"""Values of conditions that are read off value columns, and DECIMALs made of them.

Takes: expressions over events. Gives: values of a kernel (condition_value.py), and adds the value columns and helpers that they
use to the Shape. Raises `Refused` for what a kernel cannot do. Never: conditions (join_conditions.py).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from fairlead.matching.compiled.planning.condition_value import (
    DIGITS_OF_A_DOUBLE,
    DIGITS_OF_A_RESULT,
    DIGITS_OF_A_WORD,
    LOWEST,
    ConditionValue,
    at_one_scale,
    combined,
    constant,
)
from fairlead.matching.compiled.planning.shape import ACCEPTED, TOO_MANY, Refused, Shape, ValueColumn
from fairlead.matching.compiled.representation.formulas import (
    HIGHEST,
    Constant,
    Formula,
    SlotColumn,
    SlotField,
    any_of,
    between,
    bit,
    call,
    choice,
    intrinsic,
)
from fairlead.matching.expressions.closures import compile_value
from fairlead.model.events.types import NESTED, DataType, EventType, Kind
from fairlead.model.expressions.data_types import data_type_of
from fairlead.model.expressions.expression import (
    Aggregate,
    Arithmetic,
    Call,
    CaseWhen,
    Expression,
    Field,
    Literal,
    Negative,
    PositionOf,
    StructField,
    TimeOf,
    at_slot_zero,
    slots_of,
)


class ColumnValues:
    """Values that read one event."""

    def __init__(self, shape: Shape, types: Sequence[EventType]) -> None:
        self.shape, self.types = shape, types
        self.home = 0
        """A slot of the condition: where constants are read."""
        self._numbers = {column: number for number, column in enumerate(shape.columns)}

    def _alone(self, node: Expression, must: bool) -> ConditionValue:
        """A value that reads one event."""
        if node.kind in NESTED:
            raise Refused("a whole ARRAY or STRUCT across events")
        code = self._column(node)
        slot, at = code.slot, code.column
        present = bit(SlotField("BITS", slot), self.shape.known_bit(at)) != 0
        if node.kind is Kind.DOUBLE:
            return ConditionValue(code, soft=(present,))
        if must:
            self.shape.required.append((slot, at))
            return ConditionValue(code, bits=_bits(node))
        return ConditionValue(code, (present,), bits=_bits(node))

    def _column(self, node: Expression, truth: bool = False) -> SlotColumn:
        """A value column for an expression over one event; the same expression of two instances shares it."""
        (slot,) = slots_of(node)
        column = ValueColumn(self.shape.queue_of(slot), at_slot_zero(node), truth)
        return SlotColumn(self._number(column), slot)

    def _number(self, column: ValueColumn) -> int:
        for each in self.shape.columns[len(self._numbers) :]:  # of others who make conditions of the same shape
            self._numbers[each] = len(self._numbers)
        number = self._numbers.setdefault(column, len(self._numbers))
        if number == len(self.shape.columns):
            self.shape.columns.append(column)
            if self.shape.size + len(self.shape.columns) > ACCEPTED:  # here already: thousands take long to go through
                raise Refused(TOO_MANY)
        return number

    def column_of(self, node: Expression) -> int:
        """The number of the value column of an expression over one event."""
        return self._column(node).column

    def plain_value(self, node: Expression) -> SlotColumn | None:
        """A value that other events bound, if it is one value column or a constant; None for more."""
        return self._column(node) if len(slots_of(node)) == 1 else None

    def _declared(self, slot: int, attribute: str) -> DataType:
        found = self.types[slot].attribute(attribute)
        assert found is not None
        return found.type

    def _helper(self, name: str) -> str:
        if name not in self.shape.helpers:
            self.shape.helpers.append(name)
        return name

    def _wide_helper(self, name: str) -> str:
        """Those of wide numbers divide."""
        self._helper("quotient")
        return self._helper(name)


class DecimalValues(ColumnValues):
    """Whole numbers at a scale (condition_value.py)."""

    @abstractmethod
    def _is_alone(self, slots: frozenset[int]) -> bool:
        """What reads these slots is computed from single events beforehand."""

    @abstractmethod
    def _value(self, node: Expression, must: bool) -> ConditionValue:
        """Of any kind. With `must`, no relation is formed unless it is there."""

    def _decimals(self, left: Expression, right: Expression, must: bool) -> tuple[ConditionValue, ConditionValue]:
        """Both sides as whole numbers at one scale, or both as DOUBLE."""
        if Kind.DOUBLE in (left.kind, right.kind):
            return self._as_double(left, must), self._as_double(right, must)
        one, two = at_one_scale([self._exact_number(left, must), self._exact_number(right, must)])
        return one, two

    def _exact_number(self, node: Expression, must: bool) -> ConditionValue:
        """A DECIMAL or a whole number, with its digits and scale."""
        if node.kind is Kind.DECIMAL:
            return self._decimal(node, must)
        value = self._value(node, must)
        if isinstance(node, Literal) and node.value is not None:
            return replace(value, digits=len(str(abs(node.value))))
        value = replace(value, digits={Kind.INT: 10}.get(node.kind, 19))
        return value.widened if value.digits > DIGITS_OF_A_WORD else value

    @abstractmethod
    def _case(self, node: CaseWhen, values: list[ConditionValue]) -> ConditionValue:
        """The one of the values that its conditions choose."""

    def _decimal(self, node: Expression, must: bool) -> ConditionValue:
        if not slots_of(node):
            return constant(Literal(compile_value(node, [])([]), Kind.DECIMAL))
        match node:
            case Field():
                return self._attribute(node, must)
            case StructField() | Call(function="element_at") if self._is_alone(slots_of(node)):
                return self._of_type(node, data_type_of(node, self.types), must)
            case Arithmetic():
                left, right = self._exact_number(node.left, must), self._exact_number(node.right, must)
                return self._combined(node.operator, left, right)
            case Negative():
                value = self._decimal(node.operand, must)
                return replace(value, code=-value.code)
            case Call(function="abs"):
                value = self._decimal(node.arguments[0], must)
                return replace(value, code=intrinsic("abs", value.code))
            case Call(function="coalesce"):
                options = at_one_scale([self._decimal(each, False) for each in node.arguments])
                return _one_of(options, self._coalesce(options))
            case CaseWhen():
                options = at_one_scale([self._decimal(each, False) for each in node.values])
                return _one_of(options, self._case(node, options))
            case Aggregate(attribute=str()) if node.function in ("sum", "min", "max"):
                return self._decimal_aggregate(node)
        raise Refused(f"{getattr(node, 'function', type(node).__name__)} of DECIMAL across events")

    def _attribute(self, node: Field, must: bool) -> ConditionValue:
        return self._of_type(node, self._declared(node.slot, node.attribute), must)

    def _of_type(self, node: Expression, declared: DataType, must: bool) -> ConditionValue:
        """A DECIMAL of one event. One of more digits than 64 bits hold comes as two columns."""
        digits, scale = declared.precision, declared.scale
        if digits <= DIGITS_OF_A_WORD:
            return replace(self._alone(node, must), digits=digits, scale=scale)
        high, low = (Call(f"{name} word", (node,), Kind.BIGINT) for name in ("high", "low"))
        value = self._alone(high, must)
        return replace(value, code=intrinsic("joined", value.code, self._column(low)), digits=digits, scale=scale, wide=True)

    def _combined(self, operator: str, left: ConditionValue, right: ConditionValue) -> ConditionValue:
        if operator == "%":
            one, two = at_one_scale([left, right])
            name = self._wide_helper("remainder_wide") if one.wide else self._helper("remainder")
            known = (*left.known, *right.known, two.code != 0)
            if one.digits > DIGITS_OF_A_RESULT:
                whole = call("quotient", intrinsic("abs", one.code), intrinsic("abs", two.code))
                known = (*known, whole < 10**DIGITS_OF_A_RESULT)
            return replace(one, code=call(name, one.code, two.code), known=known, soft=(*left.soft, *right.soft))
        made = combined(operator, left, right)
        if made.digits > DIGITS_OF_A_RESULT:
            self._wide_helper("rounded")
        return made

    def _decimal_aggregate(self, node: Aggregate) -> ConditionValue:
        assert node.attribute is not None
        values = [self._attribute(Field(slot, node.attribute, Kind.DECIMAL), False) for slot in node.slots]
        known = (any_of(*(value.is_known for value in values)),)
        first = values[0]
        if node.function == "sum":
            zero = intrinsic("wide", 0) if first.wide else Constant(0)
            terms = [replace(v, code=choice(v.code, v.is_known, zero), known=(), soft=()) for v in values]
            total = terms[0]
            for count, term in enumerate(terms[1:], 2):  # one rounding a step, in the order of the instances
                total = replace(self._combined("+", total, term), digits=first.digits + len(str(count)))
            return replace(total, known=known)
        least, most = (Constant(10**76), -Constant(10**76)) if first.wide else (HIGHEST, LOWEST)
        empty = least if node.function == "min" else most
        return replace(first, code=folded(node.function, values, empty), known=known, soft=())

    def _as_double(self, node: Expression, must: bool) -> ConditionValue:
        """A number as a DOUBLE. A DECIMAL of few digits is exact over a power of ten, so one division rounds it right; an
        attribute of more is a column; what is made of several is divided bit by bit."""
        if node.kind is not Kind.DECIMAL:
            value = self._value(node, must)
            return value if node.kind is Kind.DOUBLE else replace(value, code=intrinsic("float", value.code))
        if isinstance(node, Field) and self._declared(node.slot, node.attribute).precision > DIGITS_OF_A_DOUBLE:
            value = self._alone(Arithmetic("/", node, Literal(1, Kind.INT), Kind.DOUBLE), must)
            return replace(value, known=value.soft, soft=())  # no DECIMAL is NaN, so nobody tests for it
        value = self._decimal(node, must)
        if value.digits <= DIGITS_OF_A_DOUBLE:
            few = intrinsic("int", value.code) if value.wide else value.code  # a remainder can be wide and of few digits
            return ConditionValue(intrinsic("float", few) / 10.0**value.scale, value.known, value.soft)
        if not slots_of(node):
            return constant(Literal(float(compile_value(node, [])([])), Kind.DOUBLE))
        self._wide_helper("ratio")
        return ConditionValue(call("ratio", value.widened.code, intrinsic("wide", 10**value.scale)), value.known, value.soft)

    def _rounded_decimal(self, down: bool, value: ConditionValue) -> ConditionValue:
        unit = 10**value.scale
        if not value.wide:
            return replace(value, code=value.code // unit if down else -(-value.code // unit), digits=0, scale=0)
        self._wide_helper("quotient")
        by = intrinsic("wide", unit)
        code = call("quotient", value.code, by) if down else -call("quotient", -value.code, by)
        fits = between(-(2**63), code, 2**63 - 1)
        return ConditionValue(intrinsic("int", code), (*value.known, *value.soft, fits))

    @staticmethod
    def _coalesce(options: list[ConditionValue]) -> ConditionValue:
        code = options[-1].code
        for option in reversed(options[:-1]):
            code = choice(option.code, option.is_known, code)
        known = any_of(*(option.is_known for option in options))
        return ConditionValue(code, (known,), bits=max(option.bits for option in options))


def _one_of(options: list[ConditionValue], chosen: ConditionValue) -> ConditionValue:
    """A choice among DECIMALs of one scale."""
    digits = max(each.digits for each in options)
    return replace(chosen, digits=digits, scale=options[0].scale, wide=options[0].wide)


def folded(name: str, values: list[ConditionValue], empty: Formula) -> Formula:
    """With a function of two values, or the `min` and `max` of the machine."""
    made = intrinsic if name in ("min", "max") else call
    code: Formula = choice(values[0].code, values[0].is_known, empty)
    for value in values[1:]:
        code = made(name, code, choice(value.code, value.is_known, empty))
    return code


def _bits(node: Expression) -> int:
    """The size of a whole number that one event gives."""
    if isinstance(node, Field | TimeOf | PositionOf | Aggregate | Call | StructField):
        return {Kind.INT: 31, Kind.DATE: 22, Kind.TIMESTAMP: 58, Kind.BOOLEAN: 1}.get(node.kind, 64)
    return 64
