"""HAVING for a kernel: conditions on whole runs, read off the values that are made while their events are gathered.

Takes: a condition. Gives: an expression that is true exactly where the condition is true, and the values that it reads. Raises
`Refused` for what a kernel cannot do: functions of texts that a run makes, and constant texts beside a run that may be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairlead.matching.compiled.planning.condition_value import DIGITS_OF_A_RESULT, DIGITS_OF_A_WORD, ConditionValue
from fairlead.matching.compiled.planning.join_conditions import TEXTS, Across
from fairlead.matching.compiled.planning.runs.gathered_run import (
    ANY,
    COUNT,
    DISTINCT,
    DOUBLE,
    HALVES,
    LARGE,
    LEAST,
    MEAN,
    MOST,
    PLAIN,
    ROUNDED,
    SUM,
    TEXT,
    RunValue,
    count_of_run,
)
from fairlead.matching.compiled.planning.shape import SWAPPED, Refused, Shape
from fairlead.matching.compiled.representation.formulas import TRUE, Formula, between
from fairlead.matching.expressions.functions import unknown
from fairlead.model.events.types import DataType, EventType, Kind
from fairlead.model.expressions.expression import (
    Aggregate,
    Atom,
    Call,
    Cast,
    Compare,
    Condition,
    Expression,
    Field,
    IsNull,
    Literal,
    Truth,
    condition_slots,
    slots_of,
)

DIGITS_OF_A_COUNT = 10
"""A run has fewer than ten thousand million events."""
BITS_OF_A_COUNT = 33


class WholeConditions(Across):
    def __init__(self, shape: Shape, types: Sequence[EventType]) -> None:
        super().__init__(shape, types)
        self.slots = frozenset(shape.branch.runs)
        self.made: dict[tuple[Expression, str], RunValue] = {}
        self.read: set[int] = set()
        """Of the last condition, the numbers of its values."""
        self.reached: dict[Compare, RunValue] = {}
        """Comparisons of an extreme that are true if one event compares so, with the count of those that do."""
        self.counts: dict[Aggregate, RunValue] = {}
        self._homes: tuple[int, ...] = ()

    def whole(self, condition: Condition) -> Formula:
        self.read, self._homes = set(), condition_slots(condition)
        return self.condition(condition)

    def _is_alone(self, slots: frozenset[int]) -> bool:
        return len(slots) == 1 and slots.isdisjoint(self.slots)

    def _value(self, node: Expression, must: bool) -> ConditionValue:
        slots = slots_of(node)
        if isinstance(node, Aggregate) and slots & self.slots:
            return self._of_run(node)
        if node.kind in TEXTS:
            if not slots and not (isinstance(node, Literal) and node.value is None):
                return self._constant_text(node)
            if slots & self.slots and not (isinstance(node, Call) and node.function == "coalesce"):
                raise Refused("a text that is made of a run")
        elif isinstance(node, Call) and slots & self.slots and any(each.kind in TEXTS for each in node.arguments):
            raise Refused(f"{node.function} of a text of a run")
        return super()._value(node, must)

    def _text(self, node: Expression) -> ConditionValue:
        if slots_of(node) & self.slots:
            raise Refused("a function of a text of a run")
        return super()._text(node)

    def _constant_text(self, node: Expression) -> ConditionValue:
        """Its number, which is known at run time: of a member, or of each event of a run that has one."""
        singles = [slot for slot in self._homes if slot not in self.slots]
        if singles:
            self.home = singles[0]
            return super()._value(node, False)
        filled = [slot for slot in self._homes if self.shape.branch.runs[slot].least > 0]
        if not filled:
            raise Refused("a constant text beside a run that may be empty")
        self.home = filled[0]
        code = super()._value(node, False).code
        return ConditionValue(self._made(node, ANY, TEXT, filled[0], code, TRUE).total)

    def _decimal(self, node: Expression, must: bool) -> ConditionValue:
        if isinstance(node, Aggregate) and set(node.slots) & self.slots:
            return self._of_run(node)
        return super()._decimal(node, must)

    # Comparisons of an extreme with a number: counts of the events that compare so

    def _compare(self, atom: Compare, must: bool) -> list[Formula]:
        """`max(q.x) > 3` is true if some x is greater and none is NaN, `max(q.x) < 3` if all are less: counts can be kept of a
        queue (kept_values.py), extremes cannot."""
        side, sign, number = atom.left, atom.operator, atom.right
        if isinstance(side, Literal):
            side, sign, number = atom.right, SWAPPED.get(sign, sign), atom.left
        if not self._is_extreme(side) or sign not in SWAPPED or not isinstance(number, Literal) or unknown(number.value):
            return super()._compare(atom, must)
        assert isinstance(side, Aggregate)
        assert side.attribute is not None
        (slot,) = side.slots
        read = Field(slot, side.attribute, self._declared(slot, side.attribute).kind)
        comparing = self._counted(Compare(sign, read, number), slot)
        if (side.function == MOST) == (sign[0] == ">"):
            self.reached[atom] = comparing
            nans = Call("isnan", (read,), Kind.BOOLEAN)
            return [comparing.total > 0, *([self._counted(Truth(nans), slot).total == 0] if read.kind is Kind.DOUBLE else [])]
        present = self._counted(IsNull(read, True), slot)
        return [present.total > 0, comparing.total == present.total]

    def _is_extreme(self, node: Expression) -> bool:
        return (
            isinstance(node, Aggregate)
            and node.function in (LEAST, MOST)
            and node.kind not in TEXTS
            and not self.slots.isdisjoint(node.slots)
        )

    def _counted(self, atom: Atom, slot: int) -> RunValue:
        """How many events of a run an atom is true of."""
        present = self._column(atom, truth=True) != 0
        return self._made(atom, COUNT, PLAIN, slot, present, present)

    # Aggregates of runs

    def _of_run(self, node: Aggregate) -> ConditionValue:
        (slot,) = node.slots
        if node.attribute is None:
            return ConditionValue(count_of_run(slot), bits=BITS_OF_A_COUNT)
        declared = self._declared(slot, node.attribute)
        read = Field(slot, node.attribute, declared.kind)
        if node.function == COUNT:
            self.counts[node] = self._counted(IsNull(read, True), slot)
            return ConditionValue(self.counts[node].total, bits=BITS_OF_A_COUNT)
        if node.function == DISTINCT:
            return self._distinct(node, read, declared)
        if node.function == MEAN:
            return self._mean(node, read, slot)
        each = self._attribute(read, False) if declared.kind is Kind.DECIMAL else self._alone(read, False)
        if node.function == SUM:
            return self._sum_of_run(node, each, slot, declared)
        form = TEXT if declared.kind in TEXTS else DOUBLE if declared.kind is Kind.DOUBLE else LARGE if each.wide else PLAIN
        if node.function in (LEAST, MOST):
            if declared.kind in TEXTS:
                self.shape.ranked = True
                self._helper("lesser_text" if node.function == LEAST else "greater_text")
            elif declared.kind is Kind.DOUBLE:
                self._helper("lesser" if node.function == LEAST else "greater")
        made = self._made(node, node.function, form, slot, each.code, each.is_known)
        return replace(each, code=made.total, known=(made.counted > 0,), soft=())

    def _mean(self, node: Aggregate, read: Field, slot: int) -> ConditionValue:
        each = self._as_double(read, False) if read.kind is Kind.DECIMAL else self._alone(read, False)
        made = self._made(node, MEAN, DOUBLE, slot, each.code, each.is_known, small=read.kind is Kind.INT)
        return ConditionValue(made.total / made.counted, (made.counted > 0,))

    def _distinct(self, node: Aggregate, read: Field, declared: DataType) -> ConditionValue:
        """Decimals beyond 64 bits are counted by their texts."""
        wide = declared.kind is Kind.DECIMAL and declared.precision > DIGITS_OF_A_WORD
        counted: Expression = Cast(read, DataType(Kind.STRING)) if wide else read
        each = self._alone(counted, False)
        form = DOUBLE if read.kind is Kind.DOUBLE else PLAIN
        made = self.counts[node] = self._made(node, DISTINCT, form, read.slot, each.code, each.is_known)
        return ConditionValue(made.total, bits=BITS_OF_A_COUNT)

    def _sum_of_run(self, node: Aggregate, each: ConditionValue, slot: int, declared: DataType) -> ConditionValue:
        if declared.kind is Kind.DOUBLE:
            made = self._made(node, SUM, DOUBLE, slot, each.code, each.is_known)
            return ConditionValue(made.total, (made.counted > 0,))
        if declared.kind is Kind.DECIMAL:
            digits = each.digits + DIGITS_OF_A_COUNT
            form = PLAIN if digits <= DIGITS_OF_A_WORD else LARGE if digits <= DIGITS_OF_A_RESULT else ROUNDED
            if form == ROUNDED:
                self._wide_helper("rounded")
            wide = form != PLAIN
            made = self._made(node, SUM, form, slot, each.widened.code if wide else each.code, each.is_known)
            return replace(each, code=made.total, known=(made.counted > 0,), soft=(), digits=digits, wide=wide)
        form = PLAIN if declared.kind is Kind.INT else HALVES
        made = self._made(node, SUM, form, slot, each.code, each.is_known)
        if form == PLAIN:
            return ConditionValue(made.total, (made.counted > 0,), bits=64)
        fits = between(-(2**31), made.high, 2**31 - 1)  # the lower half is below 2 ** 32, once the run is gathered
        return ConditionValue(made.high * 2**32 + made.total, (made.counted > 0, fits))

    def _made(
        self, node: Expression, function: str, form: str, slot: int, code: Formula, known: Formula, small: bool = False
    ) -> RunValue:
        text = node.text(self.shape.branch.alias_names())
        fresh = RunValue(len(self.made), slot, function, form, code, known, text, small)
        made = self.made.setdefault((node, f"{function} {slot}"), fresh)
        self.read.add(made.number)
        return made
