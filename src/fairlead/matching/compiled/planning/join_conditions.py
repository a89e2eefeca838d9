"""Conditions across events: what is left of a predicate once the parts that read one event are value columns.

`SlotColumn(3, 1)` is value column 3 of the event at slot 1. A value is an expression and the tests that say it is not NULL;
they come first, so the expression is only reached where it has a value. A DOUBLE column holds NaN where it is NULL:
comparisons are unknown for both, so those tests are *soft*: left out unless NULL and NaN must be distinguished.

Takes: a condition. Gives: an expression that is true exactly where the condition is true (not false, not unknown), and adds the
value columns and helpers it uses to the Shape. Raises `Refused` for what a kernel cannot do.
"""

from __future__ import annotations

import math
from dataclasses import replace

from fairlead.matching.compiled.codegen.kernel_names import RANKS
from fairlead.matching.compiled.planning.condition_value import (
    LOWEST,
    ConditionValue,
    constant,
)
from fairlead.matching.compiled.planning.decimal_values import DecimalValues, folded
from fairlead.matching.compiled.planning.pushdown import Extreme, First, Pushed, pushed
from fairlead.matching.compiled.planning.shape import Refused, Sides, ValueColumn
from fairlead.matching.compiled.representation.formulas import (
    HIGHEST,
    Between,
    Binary,
    Constant,
    Formula,
    NumberComparison,
    SlotColumn,
    all_of,
    any_of,
    between,
    call,
    choice,
    intrinsic,
    negated,
    total,
)
from fairlead.matching.expressions.closures import compile_atom, compile_value
from fairlead.model.events.types import Kind
from fairlead.model.events.values import DAY, TIMESTAMP_RANGE
from fairlead.model.expressions.expression import (
    COMPARISONS,
    Aggregate,
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
    StructField,
    Truth,
    condition_slots,
    slots_of,
)
from fairlead.model.expressions.function_table import DATE_PARTS

OF_ARRAYS = frozenset({"size", "array_contains", "element_at"})
TEXTS = frozenset({Kind.STRING, Kind.BINARY})
"""Known to a kernel by their numbers (keys.py)."""
WHOLE = frozenset({Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL})
BITS_OF_A_DOUBLE = 53


class Across(DecimalValues):
    def condition(self, condition: Condition, must: bool = True) -> Formula:
        """With `must`, no relation is formed unless the condition is true."""
        self.home = min(condition_slots(condition), default=0)
        single = must and len(condition.terms) == 1
        terms = [all_of(*(test for atom in term for test in self._tests(atom, single))) for term in condition.terms]
        return any_of(*terms)

    def _is_alone(self, slots: frozenset[int]) -> bool:
        """What reads these slots is computed from single events beforehand."""
        return len(slots) == 1

    def _atom(self, atom: Atom, must: bool) -> Formula:
        return all_of(*self._tests(atom, must))

    def _tests(self, atom: Atom, must: bool) -> list[Formula]:
        """All of them hold where the atom is true. With `must`, a relation needs this atom: an event whose value is NULL is
        kept out of the slot beforehand."""
        slots = slots_of(atom)
        if not slots:
            return [Constant(compile_atom(atom, [])([]) is True)]
        if self._is_alone(slots):
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
        return [*tests, NumberComparison(left.code, sign, right.code)]

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

    def _exact(self, left: ConditionValue, right: ConditionValue, operator: str, swapped: bool) -> Formula:
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
        return NumberComparison(order, sign, Constant(number))

    def _value(self, node: Expression, must: bool) -> ConditionValue:
        slots = slots_of(node)
        if not slots:
            known = node if isinstance(node, Literal) else Literal(compile_value(node, [])([]), node.kind)
            if node.kind in TEXTS and known.value is not None:  # its number is only known at run time: a column of it
                column = ValueColumn(self.shape.queue_of(self.home), known)
                return ConditionValue(SlotColumn(self._number(column), self.home))
            return constant(known)
        if node.kind is Kind.DECIMAL:
            return self._decimal(node, must)
        if self._is_alone(slots):
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
                return ConditionValue(value.code != value.code, (*value.known, *value.soft), bits=1)
            case Call(function="coalesce"):
                return self._coalesce([self._value(each, False) for each in node.arguments])
            case Call(function=name) if name in DATE_PARTS:
                value = self._value(node.arguments[0], must)
                return ConditionValue(call(self._helper(name), value.code), value.known, value.soft, bits=31)
            case Call() | StructField():
                return self._text(node)
            case Aggregate():
                return self._aggregate(node)
            case Compare() | IsNull() | In() | Like() | Truth():
                return self._truth(node)
            case Logic():
                return self._logic(node)
            case CaseWhen():
                return self._case(node, [self._value(each, False) for each in node.values])
            case Cast(operand=operand) if node.kind is Kind.DOUBLE and operand.kind in (Kind.INT, Kind.BIGINT, Kind.DECIMAL):
                return self._as_double(operand, must)
            case Cast(operand=operand) if {node.kind, operand.kind} == {Kind.TIMESTAMP, Kind.DATE}:
                value = self._value(operand, must)
                if node.kind is Kind.TIMESTAMP:
                    return replace(value, code=value.code * DAY, bits=58)
                return replace(value, code=value.code // DAY, bits=22)
        raise Refused(f"{getattr(node, 'function', type(node).__name__)} across events")

    def _truth(self, atom: Atom) -> ConditionValue:
        """A condition as a value: known where it, or its negation, is true."""
        holds, denied = self._atom(atom, False), self._atom(_negated(atom), False)
        return ConditionValue(holds, (any_of(holds, denied),), bits=1)

    def _logic(self, node: Logic) -> ConditionValue:
        parts = [each if isinstance(each, Atom) else Truth(each) for each in node.operands]
        true, false = [self._atom(each, False) for each in parts], [self._atom(_negated(each), False) for each in parts]
        holds, denied = (any_of(*true), all_of(*false)) if node.operator == "OR" else (all_of(*true), any_of(*false))
        return ConditionValue(holds, (any_of(holds, denied),), bits=1)

    def _case(self, node: CaseWhen, values: list[ConditionValue]) -> ConditionValue:
        """The steps from behind: each chooses between its value and that of the steps after it."""
        tests = [self._atom(each if isinstance(each, Atom) else Truth(each), False) for each in node.conditions]
        found = values[-1]
        for test, value in zip(reversed(tests), reversed(values[:-1]), strict=True):
            known = any_of(all_of(test, value.is_known), all_of(negated(test), found.is_known))
            found = ConditionValue(choice(value.code, test, found.code), (known,), bits=max(value.bits, found.bits))
        return found

    def _text(self, node: Expression) -> ConditionValue:
        """A function of a text that several events make."""
        chosen = pushed(node)
        if isinstance(node, StructField) or getattr(node, "function", "") in OF_ARRAYS:
            raise Refused("an ARRAY or STRUCT and values of different events")
        if chosen is None:
            raise Refused(f"{getattr(node, 'function', type(node).__name__).lower()} of a text and numbers of different events")
        return self._chosen(chosen)

    def _chosen(self, chosen: Pushed) -> ConditionValue:
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
                return ConditionValue(code, (any_of(*(text.is_known for text in texts)),), bits=values[0].bits)
        return self._value(chosen, False)

    def _arithmetic(self, node: Arithmetic, left: ConditionValue, right: ConditionValue) -> ConditionValue:
        known, soft = (*left.known, *right.known), (*left.soft, *right.soft)
        if node.operator in "/%":
            known = (*known, right.code != 0)
        if node.kind is Kind.DOUBLE:
            one, two = intrinsic("float", left.code), intrinsic("float", right.code)
            if node.operator == "%":
                self._helper("remainder_double")
                return ConditionValue(call("remainder_double", one, two), known, soft)
            return ConditionValue(Binary(node.operator, one, two), known, soft)
        if node.operator == "%":
            self._helper("remainder")
            return ConditionValue(call("remainder", left.code, right.code), known, soft, left.bits)
        code, bits = Binary(node.operator, left.code, right.code), max(left.bits, right.bits) + 1
        if node.operator == "*":
            bits = left.bits + right.bits
        if bits > 62:
            test, bits = {"+": "sum_fits", "-": "difference_fits", "*": "product_fits"}[node.operator], 64
            self._helper(test)
            known = (*known, call(test, left.code, right.code))
        if node.kind is Kind.TIMESTAMP:
            known, bits = (*known, between(TIMESTAMP_RANGE[0], code, TIMESTAMP_RANGE[1])), 58
        return ConditionValue(code, known, soft, bits)

    def _signed(self, kind: Kind, value: ConditionValue, absolute: bool = False) -> ConditionValue:
        code: Formula = intrinsic("abs", value.code) if absolute else -value.code
        known = value.known
        if kind is Kind.INT:
            known = (*known, code <= 2147483647)
        elif kind is not Kind.DOUBLE and value.bits > 62:
            known = (*known, value.code != LOWEST)
        return ConditionValue(code, known, value.soft, value.bits)

    def _rounded(self, node: Call, must: bool) -> ConditionValue:
        """floor and ceil give whole numbers, NULL where 64 bits do not hold them."""
        operand = node.arguments[0]
        if operand.kind is Kind.DECIMAL:
            return self._rounded_decimal(node.function == "floor", self._decimal(operand, must))
        value = self._value(operand, must)
        if operand.kind is not Kind.DOUBLE:
            return value
        self._helper(f"{node.function}_whole")
        fits = Between(-Constant(2.0**63), ("<=", "<"), (value.code, Constant(2.0**63)))
        return ConditionValue(call(f"{node.function}_whole", value.code), (*value.known, *value.soft, fits))

    def _aggregate(self, node: Aggregate) -> ConditionValue:
        assert node.attribute is not None or node.function == "count"
        if node.attribute is None:
            return ConditionValue(Constant(len(node.slots)), bits=8)
        kind = self._declared(node.slots[0], node.attribute).kind
        fields = [Field(slot, node.attribute, kind) for slot in node.slots]
        if node.function == "count":
            return ConditionValue(total([self._column(IsNull(each, True), truth=True) for each in fields]), bits=8)
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
            return ConditionValue(summed / counted, known)
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
        return ConditionValue(folded(name, values, empty), known, bits=values[0].bits)

    def _extreme_text(self, least: bool, values: list[ConditionValue]) -> ConditionValue:
        """The number of the first or last text in order; a NULL has the number -1."""
        self.shape.ranked = True
        name = "lesser_text" if least else "greater_text"
        self._helper(name)
        code = values[0].code
        for value in values[1:]:
            code = call(name, code, value.code, RANKS)
        return ConditionValue(code)

    @staticmethod
    def _sum(values: list[ConditionValue], kind: Kind, known: tuple[Formula, ...]) -> ConditionValue:
        zero = 0.0 if kind is Kind.DOUBLE else 0
        terms: list[Formula] = [choice(value.code, value.is_known, zero) for value in values]
        bits = values[0].bits + len(values).bit_length()
        if kind is Kind.DOUBLE or bits <= 62:
            return ConditionValue(total(terms), known, bits=bits)
        # Only the exact total must fit, so it is added up in halves.
        low = total([term & (2**32 - 1) for term in terms])
        high = total([term >> 32 for term in terms]) + (low >> 32)
        known = (*known, between(-(2**31), high, 2**31 - 1))
        return ConditionValue(high * 2**32 + (low & (2**32 - 1)), known)


def _negated(atom: Atom) -> Atom:
    if isinstance(atom, Compare):
        return replace(atom, operator=COMPARISONS[atom.operator])
    return replace(atom, negated=not atom.negated)


def _nan(node: Expression) -> bool:
    return node.kind is Kind.DOUBLE
