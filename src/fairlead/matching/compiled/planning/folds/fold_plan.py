"""A folded run for a kernel: the values that are made of its events one by one, and HAVING over them.

Each aggregate that HAVING or EMIT reads is a `RunValue`, as for other runs; here it lives from event to event, in a row of
words for each key. Sums of whole numbers and DECIMALs are in halves, and exact.

Takes: a shape to which only this is missing. Gives: `FoldPlan`, or raises `Refused` with the reason. Never: makes code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.planning.condition_value import DIGITS_OF_A_WORD, ConditionValue
from fairlead.matching.compiled.planning.join_conditions import TEXTS, Across
from fairlead.matching.compiled.planning.runs.gathered_run import (
    ANY,
    COUNT,
    DISTINCT,
    DOUBLE,
    HALVES,
    LEAST,
    MEAN,
    MOST,
    PLAIN,
    SUM,
    TEXT,
    RunValue,
    count_of_run,
)
from fairlead.matching.compiled.planning.runs.whole_conditions import BITS_OF_A_COUNT, DIGITS_OF_A_COUNT, WholeConditions
from fairlead.matching.compiled.planning.shape import Refused, Shape
from fairlead.matching.compiled.representation.formulas import Formula, between, intrinsic
from fairlead.model.events.types import Catalogue, EventType, Kind
from fairlead.model.expressions.expression import Aggregate, Compare, Field, IsNull
from fairlead.model.plans.folding import Folding, folding_of

EXTREMES = (LEAST, MOST)


@dataclass
class FoldPlan:
    folding: Folding
    values: list[RunValue] = field(default_factory=list)
    having: list[Formula] = field(default_factory=list)
    kept: dict[tuple[str, str], RunValue] = field(default_factory=dict)
    """By function and attribute."""
    texts: frozenset[int] = frozenset()
    """The values that are numbers of texts."""


def fold_plan_of(shape: Shape, types: Sequence[EventType], catalogue: Catalogue) -> FoldPlan:
    folding = folding_of(shape.branch, catalogue)
    assert folding is not None
    if any(catalogue[name].derived for name in catalogue.accepts(folding.type)):
        raise Refused("a folded run of derived events")  # their places are known after the batch, and the id needs them
    conditions = FoldConditions(shape, types, folding)
    plan = FoldPlan(folding)
    for predicate in shape.branch.having:
        try:
            plan.having.append(conditions.whole(predicate.condition))
        except Refused as refused:
            raise Refused(str(refused), predicate.text) from None
    conditions.read_rest()
    plan.values, plan.kept, plan.texts = conditions.values, conditions.kept, frozenset(conditions.texts)
    return plan


class FoldConditions(WholeConditions):
    def __init__(self, shape: Shape, types: Sequence[EventType], folding: Folding) -> None:
        super().__init__(shape, types)
        self.folding = folding
        self.kept: dict[tuple[str, str], RunValue] = {}
        self.texts: set[int] = set()

    @property
    def values(self) -> list[RunValue]:
        return [*self.made.values()]

    def read_rest(self) -> None:
        """What only EMIT reads."""
        for function, attribute in (*(each.key for each in self.folding.totals), *self.folding.extremes):
            self._value_of(function, attribute)
        for attribute in self.folding.different:
            self._value_of(DISTINCT, attribute)

    def _compare(self, atom: Compare, must: bool) -> list[Formula]:
        """Extremes are kept as they are."""
        return Across._compare(self, atom, must)

    def _of_run(self, node: Aggregate) -> ConditionValue:
        (slot,) = node.slots
        if node.attribute is None:
            return ConditionValue(count_of_run(slot), bits=BITS_OF_A_COUNT)
        return self._value_of(node.function, node.attribute)

    def _value_of(self, function: str, attribute: str) -> ConditionValue:
        slot = self.folding.slot
        declared = self._declared(slot, attribute)
        read = Field(slot, attribute, declared.kind)
        if function == COUNT:
            present = self._column(IsNull(read, True), truth=True) != 0
            return ConditionValue(self._keep(COUNT, attribute, PLAIN, present, present).total, bits=BITS_OF_A_COUNT)
        if function == MEAN:
            each = self._as_double(read, False) if declared.kind is Kind.DECIMAL else self._alone(read, False)
            mean = self._keep(MEAN, attribute, DOUBLE, each.code, each.is_known)
            return ConditionValue(mean.total / mean.counted, (mean.counted > 0,))
        if declared.kind is Kind.DECIMAL and declared.precision > DIGITS_OF_A_WORD:
            raise Refused(f"{function} of DECIMALs of more than {DIGITS_OF_A_WORD} digits of a folded run")
        each = self._attribute(read, False) if declared.kind is Kind.DECIMAL else self._alone(read, False)
        double = declared.kind is Kind.DOUBLE
        if function == SUM and not double:
            return self._exact_sum(attribute, each, declared.kind is Kind.DECIMAL)
        form = DOUBLE if double else TEXT if declared.kind in TEXTS else PLAIN
        if function == DISTINCT:
            counted = self._keep(DISTINCT, attribute, form, each.code, each.is_known)
            return ConditionValue(counted.total, bits=BITS_OF_A_COUNT)
        if function in EXTREMES and form in (DOUBLE, TEXT):
            self.shape.ranked = self.shape.ranked or form == TEXT
            self._helper({DOUBLE: ("lesser", "greater"), TEXT: ("lesser_text", "greater_text")}[form][function == MOST])
        made = self._keep(function, attribute, form, each.code, each.is_known)
        known = made.counted == 1 if function in ("first", "last") else made.counted > 0  # 2: the first is NULL
        return replace(each, code=made.total, known=(known,), soft=())

    def _exact_sum(self, attribute: str, each: ConditionValue, is_decimal: bool) -> ConditionValue:
        made = self._keep(SUM, attribute, HALVES, each.code, each.is_known)
        some, total = made.counted > 0, made.high * 2**32 + made.total
        if not is_decimal:
            return ConditionValue(total, (some, between(-(2**31), made.high, 2**31 - 1)))
        digits = each.digits + DIGITS_OF_A_COUNT
        wide = digits > DIGITS_OF_A_WORD
        if wide:
            total = intrinsic("wide", made.high) * 2**32 + intrinsic("wide", made.total)
        return replace(each, code=total, known=(some,), soft=(), digits=digits, wide=wide)

    def _keep(self, function: str, attribute: str, form: str, code: Formula, known: Formula) -> RunValue:
        slot = self.folding.slot
        node = Aggregate(function, (slot,), attribute, Kind.BIGINT)
        made = self.kept[function, attribute] = self._made(node, function, form, slot, code, known)
        if form == TEXT:
            self.texts.add(made.number)
        return made

    def _made(self, *given: object, **further: object) -> RunValue:
        made = super()._made(*given, **further)  # type: ignore[arg-type]
        if made.function == ANY:
            self.texts.add(made.number)
        return made
