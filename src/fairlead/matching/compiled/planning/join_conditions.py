"""Conditions across events: what is left of a predicate once the parts that read one event are value columns.

`SlotColumn(3, 1)` is value column 3 of the event at slot 1. A value is an expression and the tests that say it is not NULL;
they come first, so the expression is only reached where it has a value. A DOUBLE column holds NaN where it is NULL:
comparisons are unknown for both, so those tests are *soft*: left out unless NULL and NaN must be told apart.

Takes: a condition. Gives: an expression that is true exactly where the condition is true (not false, not unknown), and adds the
value columns and helpers it uses to the Shape. Raises `Refused` for what a kernel cannot do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fairlead.matching.compiled.codegen.kernel_names import RANKS
from fairlead.matching.compiled.planning.condition_value import (
    DIGITS_OF_A_DOUBLE,
    DIGITS_OF_A_RESULT,
    DIGITS_OF_A_WORD,
    LOWEST,
    Value,
    at_one_scale,
    combined,
    constant,
)
from fairlead.matching.compiled.planning.pushdown import Extreme, First, Pushed, pushed
from fairlead.matching.compiled.planning.shape import ACCEPTED, TOO_MANY, Refused, Shape, Sides, ValueColumn, at_slot_zero
from fairlead.matching.compiled.representation.expressions import (
    HIGHEST,
    Between,
    Binary,
    Comparison,
    Constant,
    SlotColumn,
    SlotField,
    all_of,
    any_of,
    between,
    bit,
    call,
    choice,
    intrinsic,
    negated,
    total,
)
from fairlead.matching.compiled.representation.expressions import Expression as Formula
from fairlead.matching.expressions.closures import compile_atom, compile_value
from fairlead.model.expression import (
    COMPARISONS,
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
    condition_slots,
    slots_of,
)
from fairlead.model.types import DataType, EventType, Kind
from fairlead.model.values import TIMESTAMP_RANGE

TEXTS = frozenset({Kind.STRING, Kind.BINARY})
"""Known to a kernel by their numbers (keys.py)."""
WHOLE = frozenset({Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.INTERVAL})
BITS_OF_A_DOUBLE = 53
DATE_PARTS = frozenset({"year", "month", "day", "hour", "minute", "second", "dayofweek"})


class Across:
    def __init__(self, shape: Shape, types: Sequence[EventType]) -> None:
        self.shape, self.types = shape, types
        self.home = 0
        """A slot of the condition: where constants are read."""
        self._numbers: dict[ValueColumn, int] = {}

    def condition(self, condition: Condition, must: bool = True) -> Formula:
        """With `must`, no relation is formed unless the condition is true."""
        self.home = min(condition_slots(condition), default=0)
        single = must and len(condition.terms) == 1
        terms = [all_of(*(test for atom in term for test in self._tests(atom, single))) for term in condition.terms]
        return any_of(*terms)

    def _atom(self, atom: Atom, must: bool) -> Formula:
        return all_of(*self._tests(atom, must))

    def _tests(self, atom: Atom, must: bool) -> list[Formula]:
        """All of them hold where the atom is true. With `must`, a relation needs this atom: an event whose value is NULL is
        kept out of the slot beforehand."""
        slots = slots_of(atom)
        if not slots:
            return [Constant(compile_atom(atom, [])([]) is True)]
        if len(slots) == 1:
            return [self._column(atom, truth=True) != 0]
        match atom:
            case Compare():
                return self._compare(atom, must)
            case In():
                sign = "!=" if atom.negated else "="
                each = [self._atom(Compare(sign, atom.operand, option), must and atom.negated) for option in atom.options]
                return [all_of(*each) if atom.negated else any_of(*each)]
            case IsNull():
                known = self._value(atom.operand, must and atom.negated).is_known
                return [known if atom.negated else negated(known)]
            case Truth():
                value = self._value(atom.operand, must)
                return [all_of(value.is_known, negated(value.code) if atom.negated else value.code)]
            case Like():
                value = self._text(replace(atom, negated=False))
                return [all_of(value.is_known, negated(value.code) if atom.negated else value.code)]

    def _compare(self, atom: Compare, must: bool) -> list[Formula]:
        kinds = {atom.left.kind, atom.right.kind}
        sign = {"=": "=="}.get(atom.operator, atom.operator)
        if Kind.DECIMAL in kinds:
            left, right = self._decimals(atom.left, atom.right, must)
        else:
            left, right = self._value(atom.left, must), self._value(atom.right, must)
        if kinds & TEXTS and atom.operator not in ("=", "!="):
            self.shape.ranked = True
            left, right = (replace(each, code=RANKS[each.code]) for each in (left, right))
        tests = [*left.known, *right.known]
        if kinds & WHOLE and Kind.DOUBLE in kinds:
            whole, swapped = (right, True) if atom.left.kind is Kind.DOUBLE else (left, False)
            if whole.bits > BITS_OF_A_DOUBLE:
                return [*tests, self._exact(left, right, atom.operator, swapped)]
        if sign == "!=":  # the other comparisons are false for NaN by themselves
            tests += [one.code == one.code for one, side in ((left, atom.left), (right, atom.right)) if _nan(side)]
        return [*tests, Comparison(left.code, sign, right.code)]

    def sides(self, condition: Condition) -> Sides | None:
        """Of a condition that is one comparison between two slots; None for anything else, and for wide numbers."""
        match condition.terms:
            case ((Compare() as atom,),) if len(slots_of(atom.left)) == len(slots_of(atom.right)) == 1 != len(slots_of(atom)):
                kinds = {atom.left.kind, atom.right.kind}
            case _:
                return None
        required = len(self.shape.required)
        if Kind.DECIMAL in kinds:
            left, right = self._decimals(atom.left, atom.right, True)
        else:
            left, right = self._value(atom.left, True), self._value(atom.right, True)
        del self.shape.required[required:]  # `condition` has said the same
        mixed = kinds & WHOLE and Kind.DOUBLE in kinds
        whole = right if atom.left.kind is Kind.DOUBLE else left
        if left.known or right.known or left.wide or right.wide or (mixed and whole.bits > BITS_OF_A_DOUBLE):
            return None
        one, two = left.code, right.code
        if kinds & TEXTS and atom.operator not in ("=", "!="):
            one, two = RANKS[one], RANKS[two]
        (a,), (b,) = slots_of(atom.left), slots_of(atom.right)
        return Sides(a, atom.operator, b, one, two, Kind.DOUBLE in kinds)

    def _exact(self, left: Value, right: Value, operator: str, swapped: bool) -> Formula:
        self._helper("exact")
        whole, double = (right, left) if swapped else (left, right)
        if swapped:
            operator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        order = call("exact", whole.code, double.code)
        if operator == "!=":
            return order % 2 == 1  # -1 and 1, neither 0 nor 2
        if operator == ">=":
            return between(0, order, 1)
        sign, number = {"=": ("==", 0), "<": ("==", -1), "<=": ("<=", 0), ">": ("==", 1)}[operator]
        return Comparison(order, sign, Constant(number))

    def _decimals(self, left: Expression, right: Expression, must: bool) -> tuple[Value, Value]:
        """Both sides as whole numbers at one scale, or both as DOUBLE."""
        if Kind.DOUBLE in (left.kind, right.kind):
            return self._as_double(left, must), self._as_double(right, must)
        one, two = at_one_scale([self._exact_number(left, must), self._exact_number(right, must)])
        return one, two

    def _exact_number(self, node: Expression, must: bool) -> Value:
        """A DECIMAL or a whole number, with its digits and scale."""
        if node.kind is Kind.DECIMAL:
            return self._decimal(node, must)
        value = self._value(node, must)
        if isinstance(node, Literal) and node.value is not None:
            return replace(value, digits=len(str(abs(node.value))))
        value = replace(value, digits={Kind.INT: 10}.get(node.kind, 19))
        return value.widened if value.digits > DIGITS_OF_A_WORD else value

    def _decimal(self, node: Expression, must: bool) -> Value:
        match node:
            case Field():
                return self._attribute(node, must)
            case Literal():
                return constant(node)
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
                made = self._coalesce(options)
                digits = max(each.digits for each in options)
                return replace(made, digits=digits, scale=options[0].scale, wide=options[0].wide)
            case Aggregate(attribute=str()) if node.function in ("sum", "min", "max"):
                return self._decimal_aggregate(node)
        raise Refused(f"{getattr(node, 'function', type(node).__name__)} of DECIMAL across events")

    def _attribute(self, node: Field, must: bool) -> Value:
        """A DECIMAL of more digits than 64 bits hold comes as two columns."""
        declared = self._declared(node.slot, node.attribute)
        digits, scale = declared.precision, declared.scale
        if digits <= DIGITS_OF_A_WORD:
            return replace(self._alone(node, must), digits=digits, scale=scale)
        high, low = (Call(f"{name} word", (node,), Kind.BIGINT) for name in ("high", "low"))
        value = self._alone(high, must)
        return replace(value, code=intrinsic("joined", value.code, self._column(low)), digits=digits, scale=scale, wide=True)

    def _combined(self, operator: str, left: Value, right: Value) -> Value:
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

    def _decimal_aggregate(self, node: Aggregate) -> Value:
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
        return replace(first, code=_folded(node.function, values, empty), known=known, soft=())

    def _as_double(self, node: Expression, must: bool) -> Value:
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
            return Value(intrinsic("float", few) / 10.0**value.scale, value.known, value.soft)
        if not slots_of(node):
            return constant(Literal(float(compile_value(node, [])([])), Kind.DOUBLE))
        self._wide_helper("ratio")
        return Value(call("ratio", value.widened.code, intrinsic("wide", 10**value.scale)), value.known, value.soft)

    def _declared(self, slot: int, attribute: str) -> DataType:
        found = self.types[slot].attribute(attribute)
        assert found is not None
        return found.type

    def _value(self, node: Expression, must: bool) -> Value:
        slots = slots_of(node)
        if not slots:
            known = node if isinstance(node, Literal) else Literal(compile_value(node, [])([]), node.kind)
            if node.kind in TEXTS and known.value is not None:  # its number is only known at run time: a column of it
                column = ValueColumn(self.shape.queue_of(self.home), known)
                return Value(SlotColumn(self._number(column), self.home))
            return constant(known)
        if node.kind is Kind.DECIMAL:
            return self._decimal(node, must)
        if len(slots) == 1:
            return self._alone(node, must)
        match node:
            case Arithmetic():
                if Kind.DECIMAL in (node.left.kind, node.right.kind):  # of kind DOUBLE: a DECIMAL result came before
                    return self._arithmetic(node, self._as_double(node.left, must), self._as_double(node.right, must))
                return self._arithmetic(node, self._value(node.left, must), self._value(node.right, must))
            case Negative():
                return self._signed(node.kind, self._value(node.operand, must))
            case Call(function="abs"):
                return self._signed(node.kind, self._value(node.arguments[0], must), absolute=True)
            case Call(function="floor" | "ceil"):
                return self._rounded(node, must)
            case Call(function="isnan"):
                value = self._value(node.arguments[0], must)
                return Value(value.code != value.code, (*value.known, *value.soft), bits=1)
            case Call(function="coalesce"):
                return self._coalesce([self._value(each, False) for each in node.arguments])
            case Call(function=name) if name in DATE_PARTS:
                value = self._value(node.arguments[0], must)
                return Value(call(self._helper(name), value.code), value.known, value.soft, bits=31)
            case Call():
                return self._text(node)
            case Aggregate():
                return self._aggregate(node)
            case Compare() | IsNull() | In() | Like() | Truth():
                return self._truth(node)
        raise Refused(f"{getattr(node, 'function', type(node).__name__)} across events")

    def _truth(self, atom: Atom) -> Value:
        """A condition as a value: known where it, or its negation, is true."""
        holds, denied = self._atom(atom, False), self._atom(_negated(atom), False)
        return Value(holds, (any_of(holds, denied),), bits=1)

    def _text(self, node: Expression) -> Value:
        """A function of a text that several events make."""
        chosen = pushed(node)
        if chosen is None:
            raise Refused(f"{getattr(node, 'function', type(node).__name__).lower()} of a text and numbers of different events")
        return self._chosen(chosen)

    def _chosen(self, chosen: Pushed) -> Value:
        match chosen:
            case First():
                return self._coalesce([self._chosen(each) for each in chosen.options])
            case Extreme():
                texts = [self._alone(each, False) for each in chosen.texts]
                values = [self._value(each, False) for each in chosen.values]
                best = self._extreme_text(chosen.least, texts).code
                code = values[-1].code
                for text, value in zip(reversed(texts[:-1]), reversed(values[:-1]), strict=True):
                    code = choice(value.code, text.code == best, code)
                return Value(code, (any_of(*(text.is_known for text in texts)),), bits=values[0].bits)
        return self._value(chosen, False)

    def _arithmetic(self, node: Arithmetic, left: Value, right: Value) -> Value:
        known, soft = (*left.known, *right.known), (*left.soft, *right.soft)
        if node.operator in "/%":
            known = (*known, right.code != 0)
        if node.kind is Kind.DOUBLE:
            one, two = intrinsic("float", left.code), intrinsic("float", right.code)
            if node.operator == "%":
                self._helper("remainder_double")
                return Value(call("remainder_double", one, two), known, soft)
            return Value(Binary(node.operator, one, two), known, soft)
        if node.operator == "%":
            self._helper("remainder")
            return Value(call("remainder", left.code, right.code), known, soft, left.bits)
        code, bits = Binary(node.operator, left.code, right.code), max(left.bits, right.bits) + 1
        if node.operator == "*":
            bits = left.bits + right.bits
        if bits > 62:
            test, bits = {"+": "sum_fits", "-": "difference_fits", "*": "product_fits"}[node.operator], 64
            self._helper(test)
            known = (*known, call(test, left.code, right.code))
        if node.kind is Kind.TIMESTAMP:
            known, bits = (*known, between(TIMESTAMP_RANGE[0], code, TIMESTAMP_RANGE[1])), 58
        return Value(code, known, soft, bits)

    def _signed(self, kind: Kind, value: Value, absolute: bool = False) -> Value:
        code: Formula = intrinsic("abs", value.code) if absolute else -value.code
        known = value.known
        if kind is Kind.INT:
            known = (*known, code <= 2147483647)
        elif kind is not Kind.DOUBLE and value.bits > 62:
            known = (*known, value.code != LOWEST)
        return Value(code, known, value.soft, value.bits)

    def _rounded(self, node: Call, must: bool) -> Value:
        """floor and ceil give whole numbers, NULL where 64 bits do not hold them."""
        operand = node.arguments[0]
        if operand.kind is Kind.DECIMAL:
            return self._rounded_decimal(node.function == "floor", self._decimal(operand, must))
        value = self._value(operand, must)
        if operand.kind is not Kind.DOUBLE:
            return value
        self._helper(f"{node.function}_whole")
        fits = Between(-Constant(2.0**63), ("<=", "<"), (value.code, Constant(2.0**63)))
        return Value(call(f"{node.function}_whole", value.code), (*value.known, *value.soft, fits))

    def _rounded_decimal(self, down: bool, value: Value) -> Value:
        unit = 10**value.scale
        if not value.wide:
            return replace(value, code=value.code // unit if down else -(-value.code // unit), digits=0, scale=0)
        self._wide_helper("quotient")
        by = intrinsic("wide", unit)
        code = call("quotient", value.code, by) if down else -call("quotient", -value.code, by)
        fits = between(-(2**63), code, 2**63 - 1)
        return Value(intrinsic("int", code), (*value.known, *value.soft, fits))

    @staticmethod
    def _coalesce(options: list[Value]) -> Value:
        code = options[-1].code
        for option in reversed(options[:-1]):
            code = choice(option.code, option.is_known, code)
        known = any_of(*(option.is_known for option in options))
        return Value(code, (known,), bits=max(option.bits for option in options))

    def _aggregate(self, node: Aggregate) -> Value:
        assert node.attribute is not None or node.function == "count"
        if node.attribute is None:
            return Value(Constant(len(node.slots)), bits=8)
        kind = self._declared(node.slots[0], node.attribute).kind
        fields = [Field(slot, node.attribute, kind) for slot in node.slots]
        if node.function == "count":
            return Value(total([self._column(IsNull(each, True), truth=True) for each in fields]), bits=8)
        if kind is Kind.DECIMAL:  # avg: the others are of kind DECIMAL and came before
            values = [self._as_double(each, False) for each in fields]
        else:
            values = [self._alone(each, False) for each in fields]
        known = (any_of(*(value.is_known for value in values)),)
        if kind is Kind.STRING:
            return replace(self._extreme_text(node.function == "min", values), known=known)
        if node.function == "avg":
            summed = total([choice(intrinsic("float", value.code), value.is_known, 0.0) for value in values])
            counted = total([choice(1.0, value.is_known, 0.0) for value in values])
            return Value(summed / counted, known)
        if node.function == "sum":
            return self._sum(values, kind, known)
        least = node.function == "min"
        if kind is Kind.DOUBLE:
            infinite = Constant(math.inf)
            empty: Formula = infinite if least else -infinite
            name = "lesser" if least else "greater"
            self._helper(name)
        else:
            name, empty = ("min", HIGHEST) if least else ("max", LOWEST)
        return Value(_folded(name, values, empty), known, bits=values[0].bits)

    def _extreme_text(self, least: bool, values: list[Value]) -> Value:
        """The number of the first or last text in order; a NULL has the number -1."""
        self.shape.ranked = True
        name = "lesser_text" if least else "greater_text"
        self._helper(name)
        code = values[0].code
        for value in values[1:]:
            code = call(name, code, value.code, RANKS)
        return Value(code)

    @staticmethod
    def _sum(values: list[Value], kind: Kind, known: tuple[Formula, ...]) -> Value:
        zero = 0.0 if kind is Kind.DOUBLE else 0
        terms: list[Formula] = [choice(value.code, value.is_known, zero) for value in values]
        bits = values[0].bits + len(values).bit_length()
        if kind is Kind.DOUBLE or bits <= 62:
            return Value(total(terms), known, bits=bits)
        # Only the exact total must fit, so it is added up in halves.
        low = total([term & (2**32 - 1) for term in terms])
        high = total([term >> 32 for term in terms]) + (low >> 32)
        known = (*known, between(-(2**31), high, 2**31 - 1))
        return Value(high * 2**32 + (low & (2**32 - 1)), known)

    def _alone(self, node: Expression, must: bool) -> Value:
        """A value that reads one event."""
        code = self._column(node)
        slot, at = code.slot, code.column
        present = bit(SlotField("BITS", slot), self.shape.known_bit(at)) != 0
        if node.kind is Kind.DOUBLE:
            return Value(code, soft=(present,))
        if must:
            self.shape.required.append((slot, at))
            return Value(code, bits=_bits(node))
        return Value(code, (present,), bits=_bits(node))

    def _column(self, node: Expression, truth: bool = False) -> SlotColumn:
        """A value column for an expression over one event; the same expression of two instances shares it."""
        (slot,) = slots_of(node)
        column = ValueColumn(self.shape.queue_of(slot), at_slot_zero(node), truth)
        return SlotColumn(self._number(column), slot)

    def _number(self, column: ValueColumn) -> int:
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

    def _helper(self, name: str) -> str:
        if name not in self.shape.helpers:
            self.shape.helpers.append(name)
        return name

    def _wide_helper(self, name: str) -> str:
        """Those of wide numbers divide."""
        self._helper("quotient")
        return self._helper(name)


def _folded(name: str, values: list[Value], empty: Formula) -> Formula:
    """With a function of two values, or the `min` and `max` of the machine."""
    made = intrinsic if name in ("min", "max") else call
    code: Formula = choice(values[0].code, values[0].is_known, empty)
    for value in values[1:]:
        code = made(name, code, choice(value.code, value.is_known, empty))
    return code


def _bits(node: Expression) -> int:
    """The size of a whole number that one event gives."""
    if isinstance(node, Field | TimeOf | PositionOf | Aggregate | Call):
        return {Kind.INT: 31, Kind.TIMESTAMP: 58, Kind.BOOLEAN: 1}.get(node.kind, 64)
    return 64


def _negated(atom: Atom) -> Atom:
    if isinstance(atom, Compare):
        return replace(atom, operator=COMPARISONS[atom.operator])
    return replace(atom, negated=not atom.negated)


def _nan(node: Expression) -> bool:
    return node.kind is Kind.DOUBLE
