"""Conditions across events as source: what is left of a predicate once the parts that read one event are value columns.

`v3[c1]` is value column 3 of the event at slot 1. A value is a piece of source and the tests that say it is not NULL; they come
first, so the source is only reached where it has a value. A DOUBLE column holds NaN where it is NULL: comparisons are unknown
for both, so those tests are *soft*: left out unless NULL and NaN must be told apart.

Takes: a condition. Gives: source that is true exactly where the condition is true (not false, not unknown), and adds the value
columns and helpers it uses to the Shape. Raises `Refused` for what has no source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from fairlead.matching.expressions import compile_atom, compile_value
from fairlead.matching.kernel.parts import Refused, Shape, ValueColumn, at_slot_zero
from fairlead.model.expression import (
    Aggregate,
    Arithmetic,
    Atom,
    Call,
    Compare,
    Condition,
    Expression,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    PositionOf,
    TimeOf,
    Truth,
    slots_of,
)
from fairlead.model.types import DataType, EventType, Kind
from fairlead.model.values import TIMESTAMP_RANGE

WHOLE = frozenset({Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.INTERVAL})
LOWEST = "(-9223372036854775807 - 1)"
DIGITS_MAX = 18
"""Decimal digits that always fit into 64 bits."""
DIGITS_OF_A_DOUBLE = 15
BITS_OF_A_DOUBLE = 53


@dataclass(frozen=True)
class Value:
    """`code` has a value where all of `known` and `soft` hold; `bits`: a whole number is at most 2 ** bits in size."""

    code: str
    known: tuple[str, ...] = ()
    soft: tuple[str, ...] = ()
    bits: int = 64

    @property
    def is_known(self) -> str:
        return f"({' and '.join((*self.known, *self.soft)) or 'True'})"


class Across:
    def __init__(self, shape: Shape, types: Sequence[EventType]) -> None:
        self.shape, self.types = shape, types

    def condition(self, condition: Condition, must: bool = True) -> str:
        """With `must`, no relation is formed unless the condition is true."""
        single = must and len(condition.terms) == 1
        terms = [" and ".join(self._atom(atom, single) for atom in term) or "True" for term in condition.terms]
        return " or ".join(f"({term})" for term in terms) or "False"

    def _atom(self, atom: Atom, must: bool) -> str:
        """With `must`, a relation needs this atom: an event whose value is NULL is kept out of the slot beforehand."""
        slots = slots_of(atom)
        if not slots:
            return str(compile_atom(atom, [])([]) is True)
        if len(slots) == 1:
            return f"{self._column(atom, truth=True)} != 0"
        match atom:
            case Compare():
                return self._compare(atom, must)
            case In():
                sign = "!=" if atom.negated else "="
                each = [self._atom(Compare(sign, atom.operand, option), must and atom.negated) for option in atom.options]
                return f"({(' and ' if atom.negated else ' or ').join(f'({one})' for one in each)})"
            case IsNull():
                known = self._value(atom.operand, must and atom.negated).is_known
                return known if atom.negated else f"(not {known})"
            case Truth():
                value = self._value(atom.operand, must)
                return f"({value.is_known} and {'not ' if atom.negated else ''}{value.code})"
            case Like():
                raise Refused("LIKE of a text made from several events")

    def _compare(self, atom: Compare, must: bool) -> str:
        kinds = {atom.left.kind, atom.right.kind}
        sign = {"=": "=="}.get(atom.operator, atom.operator)
        if Kind.BINARY in kinds:
            raise Refused("BINARY compared across events")
        if Kind.DECIMAL in kinds:
            left, right = self._decimals(atom.left, atom.right, must)
        else:
            left, right = self._value(atom.left, must), self._value(atom.right, must)
        if Kind.STRING in kinds and atom.operator not in ("=", "!="):
            self.shape.ranked = True
            left, right = (replace(each, code=f"rank[{each.code}]") for each in (left, right))
        tests = [*left.known, *right.known]
        if kinds & WHOLE and Kind.DOUBLE in kinds:
            whole, swapped = (right, True) if atom.left.kind is Kind.DOUBLE else (left, False)
            if whole.bits > BITS_OF_A_DOUBLE:
                return _all([*tests, self._exact(left, right, atom.operator, swapped)])
        if sign == "!=":  # the other comparisons are false for NaN by themselves
            tests += [f"{one.code} == {one.code}" for one, side in ((left, atom.left), (right, atom.right)) if _nan(side)]
        return _all([*tests, f"{left.code} {sign} {right.code}"])

    def _exact(self, left: Value, right: Value, operator: str, swapped: bool) -> str:
        self._helper("exact")
        whole, double = (right, left) if swapped else (left, right)
        if swapped:
            operator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        order = f"exact({whole.code}, {double.code})"
        wanted = {"=": " == 0", "<": " == -1", "<=": " <= 0", ">": " == 1"}
        if operator == "!=":
            return f"{order} % 2 == 1"  # -1 and 1, neither 0 nor 2
        return f"0 <= {order} <= 1" if operator == ">=" else order + wanted[operator]

    def _decimals(self, left: Expression, right: Expression, must: bool) -> tuple[Value, Value]:
        """Both sides as whole numbers at one scale, or both as DOUBLE."""
        made = [(self._value(side, must), *self._digits(side)) for side in (left, right)]
        if Kind.DOUBLE in (left.kind, right.kind):
            return self._as_double(left, *made[0]), self._as_double(right, *made[1])
        common = max(scale for _, _, scale in made)
        if any(digits + common - scale > DIGITS_MAX for _, digits, scale in made):
            raise Refused(f"DECIMALs of more than {DIGITS_MAX} digits compared across events")
        one, two = (Value(f"({value.code} * {10 ** (common - scale)})", value.known) for value, _, scale in made)
        return one, two

    def _as_double(self, node: Expression, value: Value, digits: int, scale: int) -> Value:
        if node.kind is Kind.DOUBLE:
            return value
        if digits > DIGITS_OF_A_DOUBLE:
            raise Refused(f"a DECIMAL of more than {DIGITS_OF_A_DOUBLE} digits beside a DOUBLE across events")
        return Value(f"(float({value.code}) / {10.0**scale!r})", value.known)

    def _digits(self, node: Expression) -> tuple[int, int]:
        """Digits and scale of a side."""
        if isinstance(node, Field) and node.kind is Kind.DECIMAL:
            declared = self._declared(node.slot, node.attribute)
            return declared.precision, declared.scale
        if isinstance(node, Literal) and isinstance(node.value, Decimal):
            return _literal_digits(node.value)
        if node.kind is Kind.DOUBLE:
            return 0, 0
        if isinstance(node, Literal) and node.value is not None:
            return len(str(abs(node.value))), 0
        return {Kind.INT: 10, Kind.BIGINT: 19}.get(node.kind, DIGITS_MAX + 1), 0

    def _declared(self, slot: int, attribute: str) -> DataType:
        found = self.types[slot].attribute(attribute)
        assert found is not None
        return found.type

    def _value(self, node: Expression, must: bool) -> Value:
        slots = slots_of(node)
        if not slots:
            return _constant(node if isinstance(node, Literal) else Literal(compile_value(node, [])([]), node.kind))
        if len(slots) == 1:
            return self._alone(node, must)
        match node:
            case Arithmetic():
                return self._arithmetic(node, self._value(node.left, must), self._value(node.right, must))
            case Negative():
                return self._signed("-", node.kind, self._value(node.operand, must))
            case Call(function="abs"):
                return self._signed("abs", node.kind, self._value(node.arguments[0], must))
            case Call(function="isnan"):
                value = self._value(node.arguments[0], must)
                return Value(f"({value.code} != {value.code})", (*value.known, *value.soft), bits=1)
            case Call(function="coalesce"):
                return self._coalesce([self._value(each, False) for each in node.arguments], node.kind)
            case Aggregate():
                return self._aggregate(node)
        raise Refused(f"{getattr(node, 'function', type(node).__name__)} across events")

    def _arithmetic(self, node: Arithmetic, left: Value, right: Value) -> Value:
        if {node.left.kind, node.right.kind} & {Kind.DECIMAL, Kind.STRING, Kind.BINARY}:
            raise Refused("DECIMAL arithmetic across events")
        known, soft = (*left.known, *right.known), (*left.soft, *right.soft)
        if node.operator in "/%":
            known = (*known, f"{right.code} != 0")
        if node.kind is Kind.DOUBLE:
            one, two = f"float({left.code})", f"float({right.code})"
            if node.operator == "%":
                self._helper("remainder_double")
                return Value(f"remainder_double({one}, {two})", known, soft)
            return Value(f"({one} {node.operator} {two})", known, soft)
        if node.operator == "%":
            self._helper("remainder")
            return Value(f"remainder({left.code}, {right.code})", known, soft, left.bits)
        code, bits = f"({left.code} {node.operator} {right.code})", max(left.bits, right.bits) + 1
        if node.operator == "*":
            bits = left.bits + right.bits
        if bits > 62:
            test, bits = {"+": "sum_fits", "-": "difference_fits", "*": "product_fits"}[node.operator], 64
            self._helper(test)
            known = (*known, f"{test}({left.code}, {right.code})")
        if node.kind is Kind.TIMESTAMP:
            known, bits = (*known, f"{TIMESTAMP_RANGE[0]} <= {code} <= {TIMESTAMP_RANGE[1]}"), 58
        return Value(code, known, soft, bits)

    def _signed(self, sign: str, kind: Kind, value: Value) -> Value:
        if kind is Kind.DECIMAL:
            raise Refused("DECIMAL arithmetic across events")
        code, known = f"({sign}({value.code}))", value.known
        if kind is Kind.INT:
            known = (*known, f"{code} <= 2147483647")
        elif kind is not Kind.DOUBLE and value.bits > 62:
            known = (*known, f"{value.code} != {LOWEST}")
        return Value(code, known, value.soft, value.bits)

    def _coalesce(self, options: list[Value], kind: Kind) -> Value:
        if kind in (Kind.DECIMAL, Kind.BINARY):
            raise Refused(f"coalesce of {kind.value} across events")
        code = options[-1].code
        for option in reversed(options[:-1]):
            code = f"({option.code} if {option.is_known} else {code})"
        known = f"({' or '.join(option.is_known for option in options)})"
        return Value(code, (known,), bits=max(option.bits for option in options))

    def _aggregate(self, node: Aggregate) -> Value:
        assert node.attribute is not None or node.function == "count"
        if node.attribute is None:
            return Value(str(len(node.slots)), bits=8)
        kind = self._declared(node.slots[0], node.attribute).kind
        fields = [Field(slot, node.attribute, kind) for slot in node.slots]
        if node.function == "count":
            present = [self._column(IsNull(each, True), truth=True) for each in fields]
            return Value(f"({' + '.join(present)})", bits=8)
        if kind not in (Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.TIMESTAMP):
            raise Refused(f"{node.function} of {kind.value} across events")
        values = [self._alone(each, False) for each in fields]
        known = (f"({' or '.join(value.is_known for value in values)})",)
        if node.function == "avg":
            total = _sum([f"(float({value.code}) if {value.is_known} else 0.0)" for value in values])
            count = _sum([f"(1.0 if {value.is_known} else 0.0)" for value in values])
            return Value(f"({total} / {count})", known)
        if node.function == "sum":
            return self._sum(values, kind, known)
        least = node.function == "min"
        if kind is Kind.DOUBLE:
            name, empty = ("lesser", "1e999") if least else ("greater", "-1e999")
            self._helper(name)
        else:
            name, empty = ("min", "9223372036854775807") if least else ("max", LOWEST)
        code = f"({values[0].code} if {values[0].is_known} else {empty})"
        for value in values[1:]:
            code = f"{name}({code}, ({value.code} if {value.is_known} else {empty}))"
        return Value(code, known, bits=values[0].bits)

    @staticmethod
    def _sum(values: list[Value], kind: Kind, known: tuple[str, ...]) -> Value:
        zero = "0.0" if kind is Kind.DOUBLE else "0"
        terms = [f"({value.code} if {value.is_known} else {zero})" for value in values]
        bits = values[0].bits + len(values).bit_length()
        if kind is Kind.DOUBLE or bits <= 62:
            return Value(_sum(terms), known, bits=bits)
        # Only the exact total must fit, so it is added up in halves.
        low = _sum([f"({term} & 4294967295)" for term in terms])
        high = f"({_sum([f'({term} >> 32)' for term in terms])} + ({low} >> 32))"
        known = (*known, f"-2147483648 <= {high} <= 2147483647")
        return Value(f"(({high} * 4294967296) + ({low} & 4294967295))", known)

    def _alone(self, node: Expression, must: bool) -> Value:
        """A value that reads one event."""
        if node.kind is Kind.BINARY:
            raise Refused("BINARY across events")
        if node.kind is Kind.DECIMAL and not (isinstance(node, Field) and self._digits(node)[0] <= DIGITS_MAX):
            raise Refused(f"a DECIMAL across events that is no attribute of at most {DIGITS_MAX} digits")
        code = self._column(node)
        (slot,) = slots_of(node)
        at = int(code[1 : code.index("[")])
        present = f"(nbits[c{slot}] >> {self.shape.known_bit(at)}) & 1 != 0"
        if node.kind is Kind.DOUBLE:
            return Value(code, soft=(present,))
        if must:
            self.shape.required.append((slot, at))
            return Value(code, bits=_bits(node))
        return Value(code, (present,), bits=_bits(node))

    def _column(self, node: Expression, truth: bool = False) -> str:
        """A value column for an expression over one event; the same expression of two instances shares it."""
        (slot,) = slots_of(node)
        column = ValueColumn(self.shape.queue_of(slot), at_slot_zero(node), truth)
        if column not in self.shape.columns:
            self.shape.columns.append(column)
        return f"v{self.shape.columns.index(column)}[c{slot}]"

    def column_of(self, node: Expression) -> int:
        """The number of the value column of an expression over one event."""
        code = self._column(node)
        return int(code[1 : code.index("[")])

    def plain_value(self, node: Expression) -> str | None:
        """Source for a value that other events bound, if it is one value column or a constant; None for more."""
        return self._column(node) if len(slots_of(node)) == 1 else None

    def _helper(self, name: str) -> None:
        if name not in self.shape.helpers:
            self.shape.helpers.append(name)


def _constant(node: Literal) -> Value:
    value: Any = node.value
    if value is None:
        return Value("0.0" if node.kind is Kind.DOUBLE else "0", ("False",), bits=0)
    if node.kind in (Kind.STRING, Kind.BINARY):
        raise Refused("a text literal across events")
    if node.kind is Kind.DOUBLE:
        return Value(f"({value!r})".replace("inf", "1e999").replace("nan", "1e999 - 1e999"))
    if node.kind is Kind.DECIMAL:
        _, scale = _literal_digits(value)
        return Value(f"({int(value.scaleb(scale))})")
    return Value(LOWEST if value == -(2**63) else f"({value!r})", bits=abs(int(value)).bit_length())


def _literal_digits(value: Decimal) -> tuple[int, int]:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    return len(str(abs(int(value.scaleb(scale))))), scale


def _bits(node: Expression) -> int:
    """The size of a whole number that one event gives."""
    if isinstance(node, Field | TimeOf | PositionOf | Aggregate | Call):
        return {Kind.INT: 31, Kind.TIMESTAMP: 58, Kind.BOOLEAN: 1}.get(node.kind, 64)
    return 64


def _nan(node: Expression) -> bool:
    return node.kind is Kind.DOUBLE


def _sum(terms: list[str]) -> str:
    return f"({' + '.join(terms)})"


def _all(tests: list[str]) -> str:
    return " and ".join(tests)
