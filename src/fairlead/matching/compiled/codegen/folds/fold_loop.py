"""A branch whose run is folded, as a program: one loop over the rows of a batch, each of which is added to the run of its key.

    if folds[key, COUNT] == 0: … start
    else: … load what is kept
    folds[key, LANE_A] = … roll the place into the id
    total0 += value0
    … store
    if folds[key, COUNT] >= least and …: out_folds[found] = folds[key]; folds[key, COUNT] = 0

The order of these steps is that of interpreted/folds/folded_conjunction.py. With `DIRTY` set nothing is a relation: a state is
loaded by adding the events that stand for its runs.

Takes: a shape with a fold. Gives: a program and its arguments. Never: compiles or runs it.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import lru_cache

from fairlead.matching.compiled.codegen.arguments import CODES, LOCAL, WORDS, LaneArguments, parameters
from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.folds.fold_words import (
    CLOCK,
    COUNT,
    FIRST,
    FOLD_TABLE,
    FOLDS,
    IDENTITIES,
    LANE_A,
    LANE_B,
    LAST,
    LAST_TIME,
    LATEST,
    LATEST_TIME,
    NAMES,
    NUMBER,
    OUT_FOLDS,
    SEEDS,
    FoldWords,
    ValuePlace,
)
from fairlead.matching.compiled.codegen.functions import helper
from fairlead.matching.compiled.codegen.kernel_names import (
    OUT_AT,
    b,
    base,
    count_of,
    found,
    i,
    j,
    k,
    lane_of,
    reached,
    tm,
    v,
    value_of,
    w,
)
from fairlead.matching.compiled.codegen.key_number import number_key
from fairlead.matching.compiled.codegen.node_layout import Fields, Layout
from fairlead.matching.compiled.codegen.runs import run_values
from fairlead.matching.compiled.codegen.runs.run_tables import PLACE, place, word_of
from fairlead.matching.compiled.machine_code.interruption import count_step, halted, is_halted
from fairlead.matching.compiled.planning.runs.gathered_run import DOUBLE, HALVES, SUM, count_of_run
from fairlead.matching.compiled.planning.shape import Lane, Shape, every_bit
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.contents import replaced, uses_of
from fairlead.matching.compiled.representation.formulas import (
    FLOAT,
    UNSIGNED,
    WHOLE,
    Array,
    ArrayElement,
    Constant,
    Formula,
    SlotColumn,
    SlotField,
    Variable,
    all_of,
    any_of,
    as_bits,
    as_float,
    call,
    choice,
    intrinsic,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction, Program
from fairlead.model.relations.identity import FIRST as FIRST_FACTOR
from fairlead.model.relations.identity import SECOND as SECOND_FACTOR
from fairlead.model.relations.identity import STEP

NONE = Constant(-1)
MIXED, FIRST_LANE, SECOND_LANE, ADDED = "mixed", "first_lane", "second_lane", "value_added"
clock, cut, copied, fresh_run = variables("clock cut copied number_of_run")
VALUE, OWNER, EVENT = (Constant(at, name) for at, name in enumerate(("VALUE", "OWNER", "EVENT")))


def kept(column: int, key: Formula = k) -> ArrayElement:
    return FOLDS[key, Constant(column, NAMES[column] if column < len(NAMES) else "")]


class FoldLayout(Layout):
    """No event is a node."""

    def __init__(self) -> None:
        self.keyed, self.rowed, self.kept_width, self.width = False, False, 0, 1
        self.place_of_column: dict[int, int] = {}
        self.fields: dict[str, int] = {}
        self.linked = {"links": 2, "trees": 0, "chain_links": 0}
        self.links = Fields(())


class FoldLoop:
    def __init__(self, shape: Shape) -> None:
        assert shape.fold is not None
        self.shape, self.plan, self.layout = shape, shape.fold, FoldLayout()
        self.words = FoldWords(shape.fold)
        self.run = shape.branch.runs[shape.fold.folding.slot]
        self.was = {each.value.number: Variable(f"was{each.value.number}", each.value.total.type) for each in self.words.places}

    def program(self) -> tuple[Program, tuple[str, ...]]:
        code = self._kernel()
        uses = uses_of(code.body)
        kernel = code.function("kernel", *parameters(self.shape, False, uses.names))
        made = [kernel, mixed(), first_lane(), second_lane(), halted()]
        made += [added(), place()] if self.words.tables else []
        made += [helper(name) for name in self.shape.helpers]
        return Program(made), tuple(each.name for each in kernel.parameters)

    def _kernel(self) -> Code:
        code, rows = Code(), Array(CODES).length
        code.assign(found, 0)
        code.assign(reached, rows)
        for at in range(len(self.shape.lanes)):
            code.assign(count_of(at), 0)
        with code.count(i, rows):
            count_step(code)
            with code.when(is_halted()):
                code.leave()
            code.assign(lane_of, Array(LOCAL)[Array(CODES)[i]])
            for at, lane in enumerate(self.shape.lanes):
                with code.or_when(lane_of == at) if at else code.when(lane_of == at):
                    self._lane(code, at, lane)
        code.give_results(found, reached)
        return code

    def _lane(self, code: Code, at: int, lane: Lane) -> None:
        words, names = Array(WORDS), LaneArguments(at)
        code.assign(j, count_of(at))
        code.increase(count_of(at))
        code.assign(w, choice(words[i], words.length > 0, base + (i << 21)))
        if not lane.queues:
            return
        bits = Array(names.bits)
        code.assign(b, choice(bits[j], bits.length > 0, every_bit(self.shape, lane)))
        code.assign(k, Array(names.key)[j] if lane.key else 0)
        if self.shape.whole_key is not None:
            number_key(code, at, lambda: code.prefetch(kept(COUNT, v)))
        with code.when(any_of(b == 0, k < 0) if lane.key else b == 0):
            code.proceed()
        if lane.timed:
            code.assign(tm, Array(names.time)[j])
        for number, column in enumerate(self.shape.columns):
            if column.queue in lane.queues:
                code.assign(value_of(number), Array(names.column(number))[j])
        self._leave(code, lane)
        self._load(code)
        self._add(code, lane)
        self._match(code)

    def _leave(self, code: Code, lane: Lane) -> None:
        """1. the clock of the key: a run of an earlier bucket leaves, an event of one stays out · 2. RETAIN n EVENTS BATCH"""
        (horizon,) = self.shape.horizons
        if self.shape.windowed and lane.timed:
            code.assign(clock, kept(CLOCK))
            with code.when(tm > clock):
                code.assign(clock, tm)
                code.assign(kept(CLOCK), tm)
            if horizon:
                (at,) = horizon.cuts(clock)
                code.assign(cut, at)
                with code.when(all_of(kept(COUNT) > 0, kept(LAST_TIME) < cut)):
                    self._drop(code)
                with code.when(tm < cut):
                    code.proceed()
        bound = self.shape.retention(0)
        if bound is not None and bound.count is not None:
            with code.when(kept(COUNT) == bound.count):
                self._drop(code)

    @staticmethod
    def _drop(code: Code) -> None:
        code.assign(kept(COUNT), 0)
        code.decrease(counter("QUEUED"))

    def _load(self, code: Code) -> None:
        """What is kept as variables, of the run that there is or of a new one."""
        count = count_of_run(self.plan.folding.slot)
        with code.when(kept(COUNT) == 0):
            code.increase(counter("QUEUED"))
            code.assign(count, 0)
            code.assign(kept(LANE_A), SEEDS[0])
            code.assign(kept(LANE_B), SEEDS[1])
            code.assign(kept(FIRST), w)
            code.assign(kept(LATEST), NONE)
            for each in self.words.places:
                if each.different < 0:
                    run_values.begin(code, each.value)
                else:
                    code.assign(each.value.total, 0)
                    code.assign(each.value.counted, 0)
                if each.event >= 0:
                    code.assign(FOLDS[k, each.event], NONE)
            if self.words.tables:
                code.assign(kept(NUMBER), counter("COUNTS") + 1)
                code.increase(counter("COUNTS"), self.words.tables)
        with code.otherwise():
            code.assign(count, kept(COUNT))
            for each in self.words.places:
                stored = FOLDS[k, each.total]
                code.assign(each.value.total, as_float(stored) if each.value.total.type == FLOAT else stored)
                code.assign(each.value.counted, FOLDS[k, each.counted])
                if _is_halved(each):
                    code.assign(each.value.high, FOLDS[k, each.high])

    def _add(self, code: Code, lane: Lane) -> None:
        """3. the event."""
        count = count_of_run(self.plan.folding.slot)
        by_value = self.shape.subscription.order is not None
        for word in (IDENTITIES[i, 0], IDENTITIES[i, 1]) if by_value else (w,):
            code.assign(kept(LANE_A), call(FIRST_LANE, kept(LANE_A), word))
            code.assign(kept(LANE_B), call(SECOND_LANE, kept(LANE_B), word))
        code.increase(count)
        code.assign(kept(COUNT), count)
        code.assign(kept(LAST), w)
        if lane.timed:
            code.assign(kept(LAST_TIME), tm)
            if self.plan.folding.timed:
                with code.when(any_of(kept(LATEST) == NONE, tm > kept(LATEST_TIME))):
                    code.assign(kept(LATEST), w)
                    code.assign(kept(LATEST_TIME), tm)
        for each in self.words.places:
            self._value(code, each)
            stored = as_bits(each.value.total) if each.value.total.type == FLOAT else each.value.total
            code.assign(FOLDS[k, each.total], stored)
            code.assign(FOLDS[k, each.counted], each.value.counted)
            if _is_halved(each):
                code.assign(FOLDS[k, each.high], each.value.high)

    def _value(self, code: Code, at: ValuePlace) -> None:
        value = at.value
        if at.different >= 0:
            with code.when(_placed(value.known)):
                word = word_of(_placed(value.code), value.form == DOUBLE)
                code.assign(fresh_run, kept(NUMBER) + at.different)
                code.increase(value.total, call(ADDED, word, fresh_run, w, FOLD_TABLE))
            return
        if at.event < 0:
            run_values.add(code, value, _placed)
            if _is_halved(at):
                run_values.close(code, value)
            return
        was, had = self.was[value.number], Variable(f"had{value.number}", WHOLE)
        code.assign(was, value.total)
        code.assign(had, value.counted)
        run_values.add(code, value, _placed)
        changed: Formula = value.total != was
        if value.form == DOUBLE:  # a NaN stays
            changed = all_of(was == was, changed)
        with code.when(all_of(value.counted > had, any_of(had == 0, changed))):
            code.assign(FOLDS[k, at.event], w)

    def _match(self, code: Code) -> None:
        count = count_of_run(self.plan.folding.slot)
        tests: list[Formula] = [counter("DIRTY") == 0]
        tests += [count >= self.run.least] if self.run.least > 1 else []
        with ExitStack() as blocks:
            blocks.enter_context(code.when(all_of(*tests)))
            for each in self.plan.having:
                blocks.enter_context(code.when(_placed(each)))
            code.assign(OUT_AT[found], w)
            with code.count(copied, self.words.width):
                code.assign(OUT_FOLDS[found, copied], FOLDS[k, copied])
            code.increase(found)
            self._drop(code)


def _is_halved(at: ValuePlace) -> bool:
    return at.value.form == HALVES and at.value.function == SUM


def _placed(formula: Formula) -> Formula:
    """Where the values of the event are."""

    def place(part: SlotColumn | SlotField) -> Formula:
        return {"REF": w, "BITS": b, "TIME": tm}[part.field] if isinstance(part, SlotField) else value_of(part.column)

    made: Formula = replaced(formula, place)
    return made


# The id, as model/relations/identity.py has it


def _unsigned(number: Formula | int) -> Formula:
    return intrinsic("np.uint64", number)


@lru_cache(maxsize=1)
def mixed() -> KernelFunction:
    value, z = Variable("value", WHOLE), Variable("z", UNSIGNED)
    code = Code()
    code.assign(z, _unsigned(value))
    for shift, factor in ((30, FIRST_FACTOR), (27, SECOND_FACTOR)):
        code.assign(z, (z ^ (z >> _unsigned(shift))) * _unsigned(factor))
    code.give(intrinsic("np.int64", z ^ (z >> _unsigned(31))))
    return code.function(MIXED, value)


@lru_cache(maxsize=1)
def first_lane() -> KernelFunction:
    lane, word, z = *variables("value word"), Variable("z", UNSIGNED)
    code = Code()
    code.assign(z, _unsigned(word) + _unsigned(STEP))
    code.assign(z, _unsigned(lane) ^ _unsigned(call(MIXED, intrinsic("np.int64", z))))
    code.give(call(MIXED, intrinsic("np.int64", z)))
    return code.function(FIRST_LANE, lane, word)


@lru_cache(maxsize=1)
def second_lane() -> KernelFunction:
    lane, word, z = *variables("value word"), Variable("z", UNSIGNED)
    code = Code()
    code.assign(z, _unsigned(word) ^ _unsigned(STEP))
    code.assign(z, _unsigned(lane) + _unsigned(call(MIXED, intrinsic("np.int64", z))))
    code.give(call(MIXED, intrinsic("np.int64", z)))
    return code.function(SECOND_LANE, lane, word)


# Different values


@lru_cache(maxsize=1)
def added() -> KernelFunction:
    """Notes a value for the count with a number; 1 if it is new to it."""
    value, number, event, at, mask = variables("value number event at mask")
    code = Code()
    code.assign(mask, FOLD_TABLE.length - 1)
    code.assign(at, call(PLACE, value + number * 0x632BE5AB, mask))
    with code.loop(FOLD_TABLE[at, OWNER] != 0):
        with code.when(all_of(FOLD_TABLE[at, VALUE] == value, FOLD_TABLE[at, OWNER] == number)):
            code.give(0)
        code.assign(at, (at + 1) & mask)
    code.assign(FOLD_TABLE[at, VALUE], value)
    code.assign(FOLD_TABLE[at, OWNER], number)
    code.assign(FOLD_TABLE[at, EVENT], event)
    code.give(1)
    return code.function(ADDED, value, number, event, FOLD_TABLE)
