"""What the conditions of a sequence read beside single events: aggregates of a run so far, and earlier events of the path.

Both are slots of their own, after those of the branch: `first(d.price)` is a field of such a slot, as is `prev(d.price, 2)`.
Conditions over them are compiled like any others (join_conditions.py). What an aggregate is made of is a row of words, which a
path carries along and a choice point keeps.

Takes: conditions. Gives: formulas, and the words with how each changes when a row is taken. Raises `Refused` for what no word
can hold: DECIMALs.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.codegen.kernel_names import COUNTERS, LINKS, NODES, RANKS
from fairlead.matching.compiled.planning.condition_value import ConditionValue
from fairlead.matching.compiled.planning.join_conditions import TEXTS, Across
from fairlead.matching.compiled.planning.shape import Refused, Shape
from fairlead.matching.compiled.representation.formulas import (
    FLOAT,
    WHOLE,
    Array,
    Constant,
    Formula,
    SlotColumn,
    Variable,
    between,
    call,
    choice,
    intrinsic,
    variables,
)
from fairlead.model.events.types import EventType, Kind
from fairlead.model.expressions.expression import (
    DISTINCT,
    Aggregate,
    Atom,
    Condition,
    Expression,
    Field,
    Leaf,
    Predicate,
    Previous,
    leaves,
    slots_of,
    with_leaves,
)

SHORT = frozenset({Kind.INT})
"""Sums of these fit into a word, however long the run: 2**31 of them come to 2**62."""


@dataclass(frozen=True)
class RunningWord:
    """One number that a path carries along: how it changes when a row is taken for the slot. `first`: of a run without rows."""

    slot: int
    number: Variable
    then: Formula
    """In terms of the word itself and of the row, a column of the slot."""
    is_double: bool = False


UNSEEN: tuple[Variable | Array, ...] = (*variables("node top"), NODES, LINKS, COUNTERS)
"""What a function takes that says whether a path has a value already: the row that comes, the row that was taken last."""


def unseen_name(slot: int, column: int) -> str:
    return f"unseen{slot}_{column}"


@dataclass(frozen=True)
class SequencePredicate:
    """What is asked when a row is taken for a slot; not asked where the path has fewer than `looks_back` events before it."""

    formula: Formula
    looks_back: int


class RunningConditions(Across):
    """The conditions of one sequence. Words and earlier events are numbered in the order in which they are first read."""

    def __init__(self, shape: Shape, types: Sequence[EventType], runs: frozenset[int]) -> None:
        super().__init__(shape, list(types))
        self.runs = runs
        self.words: list[RunningWord] = []
        self.earlier: dict[int, tuple[int, int]] = {}
        """By slot after those of the branch: of which slot's type, and how many events before the one that is taken."""
        self._slot_of: dict[tuple[int, int] | Aggregate, int] = {}
        self._aggregates: dict[int, Aggregate] = {}
        self._values: dict[tuple[str, int, str | None], list[Variable]] = {}
        self._about: int | None = None
        self.unseen: list[tuple[int, int]] = []
        """The slots and columns of which different values are counted."""

    # Conditions

    def asked(self, predicate: Predicate) -> SequencePredicate:
        """Of one that is asked when a row is taken."""
        assert predicate.about is not None
        return SequencePredicate(self._formula(predicate, predicate.about), predicate.looks_back)

    def whole(self, predicate: Predicate) -> Formula:
        """Of one that is asked of a whole relation (HAVING)."""
        return self._formula(predicate, None)

    def _formula(self, predicate: Predicate, about: int | None) -> Formula:
        terms = tuple(tuple(self._moved(atom, about) for atom in term) for term in predicate.condition.terms)
        self._about = about
        try:
            return self.condition(Condition(terms), must=False)
        except Refused as refused:
            raise Refused(str(refused), predicate.text) from None

    def _moved(self, atom: Atom, about: int | None) -> Atom:
        """With the slots of aggregates and of earlier events."""

        def moved(leaf: Leaf) -> Expression:
            match leaf:
                case Previous():
                    return Field(self._earlier(leaf.slot if about is None else about, leaf.back), leaf.attribute, leaf.kind)
                case Aggregate() if len(leaf.slots) == 1:
                    return Field(self._aggregated(leaf), leaf.attribute or "", leaf.kind)
            return leaf

        made: Atom = with_leaves(atom, moved)  # type: ignore[assignment]
        return made

    def _earlier(self, slot: int, back: int) -> int:
        made = self._virtual((slot, back), slot)
        self.earlier[made] = slot, back
        return made

    def _aggregated(self, node: Aggregate) -> int:
        made = self._virtual(node, node.slots[0])
        self._aggregates[made] = node
        return made

    def _virtual(self, key: tuple[int, int] | Aggregate, slot: int) -> int:
        if key not in self._slot_of:
            self._slot_of[key] = self.shape.size + len(self.shape.virtual)
            self.shape.virtual.append(slot)
            self.types = [*self.types, self.types[slot]]
        return self._slot_of[key]

    def _is_alone(self, slots: frozenset[int]) -> bool:
        return len(slots) == 1 and self._aggregates.keys().isdisjoint(slots)

    def _tests(self, atom: Atom, must: bool) -> list[Formula]:
        if self._about is not None:
            self.home = self._about
        elif any(slot in self._aggregates or slot in self.runs for slot in slots_of(atom)):
            self.home = -1
        return super()._tests(atom, must)

    # Values

    def _value(self, node: Expression, must: bool) -> ConditionValue:
        if isinstance(node, Field) and node.slot in self._aggregates:
            return self._running(self._aggregates[node.slot])
        if not slots_of(node) and node.kind in TEXTS and self.home < 0:
            raise Refused("a text beside a run in HAVING")
        return super()._value(node, must)

    def _decimal(self, node: Expression, must: bool) -> ConditionValue:
        if any(slot in self._aggregates for slot in slots_of(node)):
            raise Refused("an aggregate of DECIMALs of a run")
        return super()._decimal(node, must)

    def _text(self, node: Expression) -> ConditionValue:
        if any(slot in self._aggregates for slot in slots_of(node)):
            raise Refused("a function of a text of a run")
        return super()._text(node)

    def _running(self, node: Aggregate) -> ConditionValue:
        """An aggregate of a run, of its words."""
        if node.attribute is None:
            return ConditionValue(self._count(node.slots[0], None), bits=40)
        kind = self._declared(node.slots[0], node.attribute).kind
        if node.function == DISTINCT:
            return ConditionValue(self._different(node), bits=40)
        if node.function == "count":
            return ConditionValue(self._count(node.slots[0], node.attribute), bits=40)
        if kind is Kind.DECIMAL or (kind in (Kind.STRING, Kind.BINARY) and node.function in ("sum", "avg")):
            raise Refused(f"{node.function} of {kind.name} of a run")
        if node.function in ("first", "last"):
            return self._end(node, kind)
        some = (self._count(node.slots[0], node.attribute) > 0,)
        if node.function == "avg":
            total = self._total(node, "avg", Kind.DOUBLE)
            return ConditionValue(total[0] / intrinsic("float", self._count(node.slots[0], node.attribute)), some)
        if node.function == "sum":
            words = self._total(node, "sum", kind)
            if len(words) == 1:
                return ConditionValue(words[0], some, bits=62)
            high = words[1] + (words[0] >> 32)
            return ConditionValue(high * 2**32 + (words[0] & (2**32 - 1)), (*some, between(-(2**31), high, 2**31 - 1)))
        return ConditionValue(self._extreme(node, kind), some, bits=31 if kind is Kind.INT else 64)

    def _row(self, node: Aggregate) -> ConditionValue:
        """The attribute of the row that is taken."""
        assert node.attribute is not None
        field = Field(node.slots[0], node.attribute, self._declared(node.slots[0], node.attribute).kind)
        return self._alone(field, False)

    def _new(self, name: str, slot: int, attribute: str | None, *types: str) -> tuple[list[Variable], bool]:
        """The variables of an aggregate, and whether they are new."""
        key = (name, slot, attribute)
        known = key in self._values
        if not known:
            first = sum(len(each) for each in self._values.values())
            self._values[key] = [Variable(f"so_far{first + at}", type) for at, type in enumerate(types)]
        return self._values[key], not known

    def _count(self, slot: int, attribute: str | None) -> Variable:
        (number,), new = self._new("count", slot, attribute, WHOLE)
        if new:
            one: Formula = Constant(1)
            if attribute is not None:
                field = Field(slot, attribute, self._declared(slot, attribute).kind)
                one = choice(1, self._alone(field, False).is_known, 0)
            self.words.append(RunningWord(slot, number, number + one))
        return number

    def _different(self, node: Aggregate) -> Variable:
        """How many different values: a row counts if no row of the run before it has its value."""
        slot, row = node.slots[0], self._row(node)
        if not isinstance(row.code, SlotColumn):
            raise Refused("different DECIMALs of more than 18 digits of a run")
        (number,), new = self._new(DISTINCT, slot, node.attribute, WHOLE)
        if new:
            column = row.code.column
            self.unseen.append((slot, column))
            one = choice(choice(1, call(unseen_name(slot, column), *UNSEEN), 0), row.is_known, 0)
            self.words.append(RunningWord(slot, number, number + one))
        return number

    def _total(self, node: Aggregate, name: str, kind: Kind) -> list[Variable]:
        slot, row = node.slots[0], self._row(node)
        if kind is Kind.DOUBLE:
            some = self._count(slot, node.attribute)
            words, new = self._new(name, slot, node.attribute, FLOAT)
            if new:
                value = intrinsic("float", row.code)
                then = choice(choice(value, some == 0, words[0] + value), row.is_known, words[0])
                self.words.append(RunningWord(slot, words[0], then, True))
            return words
        zero = choice(row.code, row.is_known, 0)
        if kind in SHORT:
            words, new = self._new(name, slot, node.attribute, WHOLE)
            if new:
                self.words.append(RunningWord(slot, words[0], words[0] + zero))
            return words
        words, new = self._new(name, slot, node.attribute, WHOLE, WHOLE)  # in halves: only the exact total must fit
        if new:
            self.words.append(RunningWord(slot, words[0], words[0] + (zero & (2**32 - 1))))
            self.words.append(RunningWord(slot, words[1], words[1] + (zero >> 32)))
        return words

    def _extreme(self, node: Aggregate, kind: Kind) -> Variable:
        slot, row, least = node.slots[0], self._row(node), node.function == "min"
        some = self._count(slot, node.attribute)
        double = kind is Kind.DOUBLE
        (number,), new = self._new(node.function, slot, node.attribute, FLOAT if double else WHOLE)
        if new:
            better: Formula
            if double:
                better = call(self._helper("lesser" if least else "greater"), number, row.code)
            elif kind in TEXTS:
                self.shape.ranked = True
                better = call(self._helper("lesser_text" if least else "greater_text"), number, row.code, RANKS)
            else:
                better = intrinsic("min" if least else "max", number, row.code)
            then = choice(choice(row.code, some == 0, better), row.is_known, number)
            self.words.append(RunningWord(slot, number, then, double))
        return number

    def _end(self, node: Aggregate, kind: Kind) -> ConditionValue:
        """first() and last(): a value and whether it is known, tested of DOUBLEs too: without a row it is no NaN."""
        slot, row, double = node.slots[0], self._row(node), kind is Kind.DOUBLE
        (number, known), new = self._new(node.function, slot, node.attribute, FLOAT if double else WHOLE, WHOLE)
        if new:
            value, there = row.code, choice(1, row.is_known, 0)
            then: list[Formula] = [value, there]
            if node.function == "first":
                rows = self._count(slot, None)
                then = [choice(value, rows == 0, number), choice(there, rows == 0, known)]
            self.words.append(RunningWord(slot, number, then[0], double))
            self.words.append(RunningWord(slot, known, then[1]))
        return ConditionValue(number, (known != 0,), bits=31 if kind is Kind.INT else 64)


def is_plain(predicate: Predicate) -> bool:
    """It reads one event, that which is taken, and nothing of its path: so it is a column of truth values."""
    return len(predicate.slots) <= 1 and not any(
        isinstance(leaf, Previous | Aggregate) for term in predicate.condition.terms for atom in term for leaf in leaves(atom)
    )
