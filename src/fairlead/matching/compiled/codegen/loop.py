"""A branch as a program: one loop over the rows of a batch, with everything that happens to an event in it.

For an event of lane l, in the order of matching/interpreted/conjunction.py: its values are read from the columns of the lane;
the window moves; a relation with it is searched (search.py); what a match disposes of leaves; the event is queued unless it
left with the match; noted events that can forbid nothing any more are forgotten. Relations can have to wait (deadlines.py).

Takes: a Shape. Gives: `Source`: the program, and the names of the arguments. Never: compiles or runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.codegen.anchored_arrival import AnchoredArrival
from fairlead.matching.compiled.codegen.arguments import (
    CODES,
    LOCAL,
    PAIR_BITS,
    PAIR_KEY,
    PAIR_LANE,
    PAIR_ROW,
    PAIR_WORD,
    WORDS,
    LaneArguments,
    pair_bucket,
    parameters,
)
from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.deadlines import Waiting
from fairlead.matching.compiled.codegen.disposal import Disposing
from fairlead.matching.compiled.codegen.folds.fold_loop import FoldLoop
from fairlead.matching.compiled.codegen.functions import helper
from fairlead.matching.compiled.codegen.indexes.ordered_index import past, seek, seek_name, sortable, tree_functions
from fairlead.matching.compiled.codegen.indexes.queue_row import first, row_name, rowed_function
from fairlead.matching.compiled.codegen.kernel_names import (
    CLOCK,
    FLAGS,
    HEAD,
    KEYS,
    LEAST_KEYS,
    MEMBERS,
    OUT_AT,
    OUT_KEY,
    OUT_REF,
    QUEUES,
    TAIL,
    b,
    base,
    bucket_of,
    count_of,
    entered,
    found,
    free,
    fresh,
    i,
    j,
    k,
    lane_of,
    late,
    new,
    reached,
    tm,
    v,
    value_of,
    w,
)  # fmt: skip
from fairlead.matching.compiled.codegen.key_number import number_key
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.queue_entry import Entering
from fairlead.matching.compiled.codegen.queues import LOOSE, Queues
from fairlead.matching.compiled.codegen.runs.run_arrival import RunArrival
from fairlead.matching.compiled.codegen.searches.search import Searching
from fairlead.matching.compiled.codegen.sequences.sequence_loop import SequenceLoop
from fairlead.matching.compiled.machine_code.interruption import count_step, halted, is_halted
from fairlead.matching.compiled.planning.access import Accesses, can_be_loose, leaves_loose
from fairlead.matching.compiled.planning.shape import Lane, Shape, every_bit
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.contents import uses_of
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    TRUE,
    Array,
    Constant,
    Formula,
    all_of,
    any_of,
    bit,
    choice,
    negated,
)
from fairlead.matching.compiled.representation.statements import Program

SIGNS = ("<", "<=")


@dataclass(frozen=True)
class Source:
    program: Program
    arguments: tuple[str, ...]
    layout: Layout
    accesses: Accesses
    plans: npt.NDArray[np.int64]
    """Of the reduced searches (reduced_search.py); empty where there are none."""

    @property
    def text(self) -> str:
        return self.program.text


def source_of(shape: Shape, paired: bool) -> Source:
    """`paired`: rows come as pairs of row and instance (see family.py), not as whole batches."""
    accesses = Accesses(shape)
    if shape.sequence is not None:
        made = SequenceLoop(shape)
        return Source(*made.program(), made.layout, accesses, np.zeros(0, dtype=np.int64))
    if shape.fold is not None:
        folding = FoldLoop(shape)
        return Source(*folding.program(), folding.layout, accesses, np.zeros(0, dtype=np.int64))
    layout = Layout(shape, accesses)
    return _Loop(shape, accesses, layout, paired).source()


class _Loop:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout, paired: bool) -> None:
        self.shape, self.accesses, self.layout, self.paired = shape, accesses, layout, paired
        self.searching = Searching(shape, accesses, layout)
        self.waiting = Waiting(shape, layout, self.searching)
        self.queues = Queues(shape, accesses, layout)
        self.entering = Entering(shape, accesses, self.queues)
        self.disposing = Disposing(shape, self.queues)
        self.anchored = (RunArrival if shape.runs else AnchoredArrival)(shape, self.queues, self.entering, self.searching)

    def source(self) -> Source:
        searches = self.searching.functions()
        called = self.searching.called
        self.layout.rowed = any(row_name(sign) in called for sign in SIGNS)
        code = self._kernel()
        uses = uses_of(code.body)
        kernel = code.function("kernel", *parameters(self.shape, self.paired, uses.names))
        others = [*self.searching.semijoins.functions(), *self.waiting.functions()]
        rows = [first(self.layout.links, sign) for sign in SIGNS if row_name(sign) in called]
        made = [*searches, *others, kernel, *rows]
        called = called | uses.calls | uses_of(*(each.body for each in (*others, *rows))).calls
        made += [seek(self.layout.links, sign, self.shape.recent) for sign in reversed(SIGNS) if seek_name(sign) in called]
        made += [past(self.layout.links, "past", self.shape.recent)] if "past" in called else []
        made += [past(self.layout.links, "after", False)] if "after" in called else []
        if self.accesses.trees:
            made += tree_functions(self.layout.links)
            made += [rowed_function(self.layout.links)] if self.layout.rowed else []
        made.append(halted())
        made += [sortable()] if "sortable" in called else []
        made += self.queues.functions()
        made += self.anchored.functions(called)
        made += [helper(name) for name in self.shape.helpers]
        arguments = tuple(each.name for each in kernel.parameters)
        return Source(Program(made), arguments, self.layout, self.accesses, self.searching.semijoins.table)

    # The loop

    def _kernel(self) -> Code:
        code = Code()
        code.assign(found, 0)
        self.anchored.opening(code)
        code.assign(free, counter("FREE"))
        code.assign(fresh, counter("FRESH"))
        self.waiting.opening(code)
        if not self.paired:
            for at in range(len(self.shape.lanes)):
                code.assign(count_of(at), 0)
        rows = Array(PAIR_LANE if self.paired else CODES).length
        code.assign(reached, rows)
        with code.count(i, rows):
            count_step(code)
            with code.when(is_halted()):
                code.leave()
            if self.shape.parted:
                with code.when(any_of(negated(self.anchored.has_room()), counter("EXCEEDED") != 0)):
                    code.assign(reached, i)
                    code.leave()
            if self.paired:
                code.assign(lane_of, Array(PAIR_LANE)[i])
                code.assign(j, Array(PAIR_ROW)[i])
            else:
                code.assign(lane_of, Array(LOCAL)[Array(CODES)[i]])
            for at, lane in enumerate(self.shape.lanes):
                with code.or_when(lane_of == at) if at else code.when(lane_of == at):
                    self._lane(code, at, lane)
        with self.anchored.at_end(code, rows):
            self.waiting.closing(code)
        code.assign(counter("FREE"), free)
        code.assign(counter("FRESH"), fresh)
        code.give_results(found, reached)
        return code

    def _lane(self, code: Code, at: int, lane: Lane) -> None:
        shape = self.shape
        if self.paired:
            code.assign(w, Array(PAIR_WORD)[i])
        else:
            code.assign(j, count_of(at))
            code.increase(count_of(at))
            words = Array(WORDS)
            code.assign(w, choice(words[i], words.length > 0, base + (i << 21)))
        if shape.timed:
            code.assign(tm, Array(LaneArguments(at).time)[j] if lane.timed else 0)
        self.waiting.on_time(code, lane)
        if not lane.queues:
            return
        self._read(code, at, lane)
        if shape.overlapping and shape.anchored:
            code.assign(counter("NEWEST"), w)
        if shape.windowed and self._notes(lane):
            code.assign(new, negated(late))
        if len(lane.queues) > 1:
            self._into_several(code, lane)
        elif lane.queues[0] >= len(shape.needed):
            self._note(code, lane.queues[0])
        elif lane.queues[0] not in shape.table_columns:
            with self.queues.room(code, lane.queues[0]):
                self._into_one(code, lane.queues[0])
        self.entering.into_tables(code, lane)
        self.disposing.forget(code)

    def _notes(self, lane: Lane) -> bool:
        return any(queue >= len(self.shape.needed) for queue in lane.queues)

    def _read(self, code: Code, at: int, lane: Lane) -> None:
        """The event's values; what no queue accepts, or has no key, goes no further."""
        shape, names = self.shape, LaneArguments(at)
        if self.paired:
            code.assign(b, Array(PAIR_BITS)[i])
            code.assign(k, Array(PAIR_KEY)[i])
        else:
            bits = Array(names.bits)
            code.assign(b, choice(bits[j], bits.length > 0, every_bit(shape, lane)))
            code.assign(k, Array(names.key)[j] if lane.key else 0)
            if shape.whole_key is not None:
                number_key(code, at, lambda: self._fetch(code))
        with code.when(any_of(b == 0, k < 0) if lane.key or self.paired else b == 0):
            code.proceed()
        for number, column in enumerate(shape.columns):
            if column.queue in lane.queues:
                code.assign(value_of(number), Array(names.column(number))[j])
        for number in range(len(shape.equal_of(lane))):
            name, row = (pair_bucket(number), i) if self.paired else (names.bucket(number), j)
            code.assign(bucket_of(number), Array(name)[row])
        if shape.windowed:
            self.queues.move_window(code, self._notes(lane))

    def _fetch(self, code: Code) -> None:
        """The memory of the key v."""
        stride = self.shape.stride
        code.prefetch(QUEUES[v * stride, HEAD])
        if self.shape.windowed:
            code.prefetch(KEYS[v, CLOCK])
        if self.layout.rowed:
            code.prefetch(LEAST_KEYS[v * stride])

    def _into_one(self, code: Code, queue: int) -> None:
        """An event that can only be a member, of one queue: it is queued after the search, if it stays. Where a relation
        without the newest event may be ready, it is queued first and everything is searched."""
        if not can_be_loose(self.shape):
            with self._unbarred(code, queue):
                self._into_queue(code, queue)
            return
        with code.when(KEYS[k, FLAGS] & LOOSE):
            with self._unbarred(code, queue):
                self.entering.enter(code, queue)
            self._search_free(code)
            self.queues.trim_dead(code)
        with code.otherwise(), self._unbarred(code, queue):
            self._into_queue(code, queue)

    @contextmanager
    def _unbarred(self, code: Code, queue: int) -> Iterator[None]:
        """What is done unless noted events forbid every relation with the event in this queue."""
        early = [each for each in self.shape.noted if each.policy.early and self.shape.queue_of(each.policy.anchor) == queue]
        with ExitStack() as blocks:
            for each in early:
                blocks.enter_context(code.when(negated(self.searching.noted.barred(code, each, queue))))
            yield

    def _into_queue(self, code: Code, queue: int) -> None:
        shape = self.shape
        if not self.accesses.is_possible(queue):
            self.entering.alive(code, queue)
            return
        if shape.anchored or shape.runs:
            self.anchored.complete(code, queue, self._enough(queue), self._hit)
            return
        with code.when(all_of(*self._enough(queue), self.searching.calls[f"search_{queue}"])):
            self._hit(code, queue)
            self.disposing.with_newest(code, queue)
            if leaves_loose(shape):
                code.change(KEYS[k, FLAGS], "|", LOOSE)
            if not self.disposing.leaves_newest(queue):
                self.entering.enter(code, queue)
            self.queues.trim_dead(code)
            self.queues.note_oldest(code)
        with code.otherwise():
            self.entering.alive(code, queue)

    def _search_free(self, code: Code) -> None:
        enough = self.queues.have(enumerate(self.shape.needed))
        if self.shape.anchored or self.shape.runs:
            self.anchored.complete(code, None, enough, self._hit)
            return
        with code.when(all_of(*enough, self.searching.calls["search_free"])):
            self._hit(code, None)
            self.disposing.among_queued(code)
            if leaves_loose(self.shape):
                code.change(KEYS[k, FLAGS], "|", LOOSE)
        with code.otherwise():
            code.change(KEYS[k, FLAGS], "&", ~Constant(LOOSE))

    def _into_several(self, code: Code, lane: Lane) -> None:
        """An event that can be noted too, or enter several queues: then it is queued first and everything is searched."""
        shape = self.shape
        members = [queue for queue in lane.queues if queue < len(shape.needed) and queue not in shape.table_columns]
        noting = [queue for queue in lane.queues if queue >= len(shape.needed)]
        in_time: list[Formula] = [new] if shape.windowed and noting else []

        def accepted(queue: int) -> Formula:
            return bit(b, shape.accept_bit(lane, queue))

        if len(members) < 2:
            self._note_several(code, noting, accepted)
            for queue in members:
                with code.when(all_of(*in_time, accepted(queue))), self.queues.room(code, queue):
                    self._into_one(code, queue)
            return
        code.assign(entered, FALSE)
        for queue in members:
            with code.when(all_of(*in_time, accepted(queue))), self.queues.room(code, queue):
                with self._unbarred(code, queue):
                    self.entering.enter(code, queue, self.entering.bucket(lane, queue))
                    code.assign(entered, TRUE)
                if can_be_loose(shape):
                    with code.when(KEYS[k, FLAGS] & LOOSE):
                        code.assign(entered, TRUE)
        self._note_several(code, noting, accepted)
        with code.when(entered):
            self._search_free(code)
            self.queues.trim_dead(code)

    def _note_several(self, code: Code, queues: list[int], accepted: Callable[[int], Formula]) -> None:
        for queue in queues:
            with code.when(accepted(queue)):
                self._note(code, queue)

    def _note(self, code: Code, queue: int) -> None:
        policy = next(each.policy for each in self.shape.noted if each.queue == queue)
        if not policy.decisive:
            self.entering.enter(code, queue)
            self.waiting.cancel(code, queue)
            return
        tail = QUEUES[self.queues.at(queue), TAIL]
        decides: list[Formula] = [tail == NONE]
        decides += [self.layout.field("TIME")[tail] < tm] if policy.timed else []
        with code.when(any_of(*decides)):
            self.entering.enter(code, queue)

    def _enough(self, newest: int) -> list[Formula]:
        """Every queue has as many events as instances are needed, the newest event counted."""
        counts = [(at, n - 1 if at == newest else n) for at, n in enumerate(self.shape.needed)]
        return self.queues.have((at, n) for at, n in counts if n)

    # Matches

    def _hit(self, code: Code, newest: int | None) -> None:
        """The relation as a row of places, or as something that waits for its deadline."""
        bound = None if newest is None else self.shape.newest_slot(newest)
        if self.shape.waits:
            self.waiting.complete(code, bound)
            return
        REF = self.layout.field("REF")
        code.assign(OUT_AT[found], w)
        if self.paired:
            code.assign(OUT_KEY[found], k)
        for slot in () if self.shape.runs else range(self.shape.size):
            code.assign(OUT_REF[found, slot], w if slot == bound else REF[MEMBERS[slot]])
        code.increase(found)
