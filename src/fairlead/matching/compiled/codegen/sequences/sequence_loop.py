"""A sequence as a program: one loop over the rows of a batch, each of which becomes the last row of its key, whose search
continues.

Takes: a Shape with a sequence. Gives: `Source`, as loop.py does. Never: compiles or runs it.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.arguments import CODES, LOCAL, WORDS, LaneArguments, parameters
from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.functions import helper
from fairlead.matching.compiled.codegen.kernel_names import (
    COUNT,
    COUNTERS,
    FRAMES,
    HEAD,
    QUEUES,
    SEARCHES,
    TAIL,
    TOLD,
    b,
    base,
    count_of,
    e,
    i,
    j,
    k,
    lane_of,
    last,
    late,
    reached,
    tm,
    until,
    v,
    value_of,
    w,
)
from fairlead.matching.compiled.codegen.key_number import number_key
from fairlead.matching.compiled.codegen.sequences.search_machine import SearchMachine
from fairlead.matching.compiled.codegen.sequences.search_state import LOWEST, PC, of_search
from fairlead.matching.compiled.codegen.sequences.sequence_deadlines import LAST_TIME, NOT_FIRED, fired, is_due, now
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout
from fairlead.matching.compiled.codegen.sequences.stepwise_machine import StepwiseMachine
from fairlead.matching.compiled.machine_code.interruption import count_step, halted, is_halted
from fairlead.matching.compiled.planning.shape import Lane, Shape, every_bit
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.contents import uses_of
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    Array,
    all_of,
    as_bits,
    call,
    choice,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction, Program

limit, rows = variables("limit row_count")


class SequenceLoop:
    def __init__(self, shape: Shape) -> None:
        assert shape.sequence is not None
        self.shape, self.plan, self.layout = shape, shape.sequence, SequenceLayout(shape)
        self.machine = (StepwiseMachine if self.plan.stepwise else SearchMachine)(shape, self.layout)
        self.state = self.machine.state

    def program(self) -> tuple[Program, tuple[str, ...]]:
        search = self._search()
        self.call = call("search", *search.parameters)
        arrays = [each for each in search.parameters if isinstance(each, Array)]
        made = [search, *self.machine.functions()]
        if self.shape.waits:
            made += self.machine.deadlines.functions(self.call, arrays)
            self.fire = made[-1]
            made.append(self.state.anew())
        code = self._kernel()
        kernel = code.function("kernel", *parameters(self.shape, False, uses_of(code.body).names))
        made += [kernel, halted(), *(helper(name) for name in self.shape.helpers)]
        return Program(made), tuple(each.name for each in kernel.parameters)

    def _search(self) -> KernelFunction:
        body = self.machine.body()
        used = uses_of(body.body)
        arrays = parameters(self.shape, False, used.names)
        inside = [each for each in arrays if isinstance(each, Array)]
        return body.function("search", k, now, w, fired, *inside)

    def _kernel(self) -> Code:
        code = Code()
        shape = self.shape
        for name in ("FOUND", "MEMBERS", "FULL"):
            code.assign(counter(name), 0)
        code.assign(rows, Array(CODES).length)
        code.assign(reached, rows)
        self._search_again(code)
        for at in range(len(shape.lanes)):
            code.assign(count_of(at), 0)
        with code.count(i, rows):
            count_step(code)
            with code.when(is_halted()):
                code.leave()
            with code.when(counter("FULL") != 0):
                code.leave()
            code.assign(lane_of, Array(LOCAL)[Array(CODES)[i]])
            for at, lane in enumerate(shape.lanes):
                with code.or_when(lane_of == at) if at else code.when(lane_of == at):
                    self._lane(code, at, lane)
        self._close(code)
        code.give_results(counter("FOUND"), reached)
        return code

    def _search_again(self, code: Code) -> None:
        """After a state was loaded: searches find what they had found, and nothing new."""
        if not self.shape.waits:
            return
        with code.when(counter("DIRTY") != 0):
            with code.count(v, QUEUES.length):
                with code.when(QUEUES[v, HEAD] != NONE):
                    code.assign(k, v)
                    code.assign(now, counter("SEEN"))
                    code.assign(w, 0)
                    code.assign(fired, NOT_FIRED)
                    code.call(self.call.function, *self.call.arguments)
                    with code.when(counter("FULL") != 0):
                        code.leave()
            with code.when(counter("FULL") == 0):
                code.assign(counter("DIRTY"), 0)
            with code.otherwise():
                code.give_results(counter("FOUND"), 0)

    # A row

    def _lane(self, code: Code, at: int, lane: Lane) -> None:
        shape = self.shape
        words = Array(WORDS)
        code.assign(j, count_of(at))
        code.increase(count_of(at))
        code.assign(w, choice(words[i], words.length > 0, base + (i << 21)))
        if shape.timed:
            code.assign(tm, Array(LaneArguments(at).time)[j] if lane.timed else 0)
        code.assign(late, FALSE)
        if shape.waits:
            self._on_time(code, lane)
        if not lane.queues:
            return
        self._read(code, at, lane)
        self._search_on(code, at, lane)

    def _on_time(self, code: Code, lane: Lane) -> None:
        """What was due before this row is decided; then it tells the time."""
        told = TOLD.length > 0
        if lane.timed:
            code.assign(limit, tm)
            with code.when(all_of(told, TOLD[i] > tm)):
                code.assign(limit, TOLD[i])
        else:
            code.assign(limit, LOWEST)
            with code.when(told):
                code.assign(limit, TOLD[i])
        with code.when(is_due(limit)):
            code.call("fire", *(limit if each.name == "due_before" else each for each in self.fire.parameters))
            self._stop_if_full(code)
        if lane.timed:
            with code.when(counter("RESUME") != 1):
                code.assign(late, tm < counter("SEEN"))
                with code.when(tm > counter("SEEN")):
                    code.assign(counter("SEEN"), tm)

    @staticmethod
    def _stop_if_full(code: Code) -> None:
        with code.when(counter("FULL") != 0):
            code.assign(reached, i)
            code.leave()

    def _read(self, code: Code, at: int, lane: Lane) -> None:
        """The event's values; what has no key goes no further."""
        shape, names = self.shape, LaneArguments(at)
        bits = Array(names.bits)
        code.assign(b, choice(bits[j], bits.length > 0, every_bit(shape, lane)))
        code.assign(k, Array(names.key)[j] if lane.key else 0)
        if shape.whole_key is not None:
            number_key(code, at, lambda: self._fetch(code))
        if lane.key:
            with code.when(k < 0):
                code.proceed()
        for number, column in enumerate(shape.columns):
            if column.queue in lane.queues:
                code.assign(value_of(number), Array(names.column(number))[j])

    @staticmethod
    def _fetch(code: Code) -> None:
        """The memory of the key v."""
        code.prefetch(QUEUES[v, HEAD])
        code.prefetch(of_search(v, PC))

    def _search_on(self, code: Code, at: int, lane: Lane) -> None:
        """The row is the last of its key, unless it would be the first and cannot begin anything."""
        begins = sum(1 << slot for slot in self.plan.program.first_slots)
        with code.when(counter("RESUME") != 1):
            with code.when(all_of(QUEUES[k, HEAD] == NONE, (b & begins) == 0)):
                code.proceed()
            self._enter(code, at, lane)
            code.assign(counter("DECIDED"), 0)
        code.assign(counter("RESUME"), 0)
        code.assign(now, counter("SEEN") if self.shape.waits else LOWEST)
        code.assign(fired, NOT_FIRED)
        code.call(self.call.function, *self.call.arguments)
        with code.when(counter("FULL") != 0):
            code.assign(counter("RESUME"), 1)
            code.assign(reached, i)
            code.leave()

    def _enter(self, code: Code, at: int, lane: Lane) -> None:
        """A node at the end of the key's rows. A row that is late by a clock that other keys have moved too may fit where that
        clock has closed a path: then everything is searched again."""
        layout, shape = self.layout, self.shape
        code.assign(e, counter("FREE"))
        with code.when(e != NONE):
            code.assign(counter("FREE"), layout.field("NEXT")[e])
        with code.otherwise():
            code.assign(e, counter("FRESH"))
            code.increase(counter("FRESH"))
        code.assign(layout.field("NEXT")[e], NONE)
        code.assign(layout.field("LANE")[e], at)
        code.assign(layout.field("REF")[e], w)
        code.assign(layout.field("BITS")[e], b)
        for name in layout.failed:
            code.assign(layout.field(name)[e], 0)
        if shape.timed:
            code.assign(layout.field("TIME")[e], tm)
        for number, column in enumerate(shape.columns):
            if column.queue in lane.queues:
                value = value_of(number)
                code.assign(layout.column(number)[e], as_bits(value) if column.is_double else value)
        with code.when(QUEUES[k, HEAD] == NONE):
            code.assign(QUEUES[k, HEAD], e)
        with code.otherwise():
            code.assign(layout.field("NEXT")[QUEUES[k, TAIL]], e)
            if shape.waits and lane.timed:
                with code.when(late):
                    code.call("search_anew", k, SEARCHES, FRAMES, COUNTERS)
        code.assign(QUEUES[k, TAIL], e)
        code.increase(QUEUES[k, COUNT])
        code.increase(counter("QUEUED"))

    # The end

    def _close(self, code: Code) -> None:
        """The end of a finite input: `until` says up to when nothing more comes."""
        with code.when(all_of(reached == rows, counter("FULL") == 0, until > LOWEST)):
            if self.shape.waits:
                with code.when(is_due(until)):
                    code.assign(w, last)
                    code.call("fire", *(until if each.name == "due_before" else each for each in self.fire.parameters))
            else:
                with code.when(until > LAST_TIME):
                    self._end_all(code)
            with code.when(counter("FULL") != 0):
                code.assign(reached, NONE)

    def _end_all(self, code: Code) -> None:
        """Nothing follows, so no path is open any more."""
        code.assign(w, last)
        code.assign(now, LAST_TIME + 1)
        code.assign(fired, LAST_TIME)
        with code.count(v, QUEUES.length):
            with code.when(QUEUES[v, HEAD] != NONE):
                code.assign(k, v)
                with code.when(counter("RESUME") != 2):
                    code.assign(counter("DECIDED"), 0)
                    code.assign(counter("START"), self.layout.field("REF")[QUEUES[k, HEAD]])
                    code.assign(counter("BORN"), self.layout.field("REF")[QUEUES[k, TAIL]])
                code.assign(counter("RESUME"), 0)
                code.call(self.call.function, *self.call.arguments)
                with code.when(counter("FULL") != 0):
                    code.assign(counter("RESUME"), 2)
                    code.leave()
