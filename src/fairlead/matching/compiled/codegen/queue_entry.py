"""An event enters a queue: it gets a node with its values, its key in the ordered index, and its place at the end.

Takes: a shape, its accesses and queues. Gives: code. Never: decides whether it enters, but for what can be in no relation
to come.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.indexes.ordered_index import WORST, key_of
from fairlead.matching.compiled.codegen.kernel_names import (
    CHAINS,
    COUNT,
    FLAGS,
    HEAD,
    KEYS,
    LEAST_KEYS,
    OLDEST,
    QUEUES,
    TAIL,
    b,
    bk,
    bucket_of,
    c,
    e,
    free,
    fresh,
    k,
    key,
    rising,
    tm,
    value_of,
    w,
)
from fairlead.matching.compiled.codegen.queues import LATE, Queues
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.shape import Lane, Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    NONE,
    TRUE,
    Formula,
    all_of,
    any_of,
    as_bits,
    as_float,
    bit,
    choice,
    negated,
)


class Entering:
    def __init__(self, shape: Shape, accesses: Accesses, queues: Queues) -> None:
        self.shape, self.accesses, self.queues = shape, accesses, queues

    def bucket(self, lane: Lane, queue: int) -> Formula:
        """The number of the event in the hash index of a queue; in a lane of one queue it is `bk`."""
        values = self.shape.equal_of(lane)
        return bucket_of(values.index(self.shape.equal[queue])) if queue in self.shape.equal else NONE

    def enter(self, code: Code, queue: int, bucket: Formula = bk) -> None:
        """A node for the event at the end of a queue."""
        shape, layout = self.shape, self.queues.layout
        with code.when(free != NONE):
            code.assign(e, free)
            code.assign(free, layout.field("NEXT")[e])
        with code.otherwise():
            code.assign(e, fresh)
            code.increase(fresh)
        code.assign(layout.field("REF")[e], w)
        if "TIME" in layout:
            code.assign(layout.field("TIME")[e], tm)
        if "BITS" in layout:
            code.assign(layout.field("BITS")[e], b)
        if "BUCKET" in layout:
            code.assign(layout.field("BUCKET")[e], bucket if queue in shape.equal else NONE)
        for number, column in enumerate(shape.columns):
            if column.queue == queue and number in layout.place_of_column:
                value = value_of(number)
                code.assign(layout.column(number)[e], as_bits(value) if column.is_double else value)
        if "KEY" in layout:
            self._key(code, queue)
        at = self.queues.at(queue)
        if queue < len(shape.needed) and shape.horizons[queue]:
            tail = QUEUES[at, TAIL]
            with code.when(all_of(negated(rising), tail != NONE, layout.field("TIME")[tail] > tm)):
                code.change(KEYS[k, FLAGS], "|", LATE)
            with code.when(tm < KEYS[k, OLDEST]):
                code.assign(KEYS[k, OLDEST], tm)
        tree = self.accesses.trees.get(queue)
        if tree is not None and tree.column is not None:
            with code.when(any_of(QUEUES[at, COUNT] == 0, key < LEAST_KEYS[at])):
                code.assign(LEAST_KEYS[at], key)
        chained = self.accesses.chained.get(queue)
        if chained is not None:
            is_double = self.shape.columns[chained.column].is_double
            code.assign(key, key_of(value_of(chained.column), is_double, chained.sign))
            self.queues.hash_index.note_key(code, bucket, queue, key)
        code.call("link", e, at, TRUE if tree is not None else FALSE, *self.queues.state)

    def _key(self, code: Code, queue: int) -> None:
        """The event's key in the ordered index of the queue."""
        KEY, HIGH = self.queues.layout.take("KEY HIGH")
        tree = self.accesses.trees.get(queue)
        if tree is None or tree.column is None:
            code.assign(KEY[e], 0)
            code.assign(HIGH[e], 0)
            return
        column, x = self.shape.columns[tree.column], value_of(tree.column)
        tests: list[Formula] = [bit(b, tree.slot) != 0] if tree.slot in self.accesses.chosen_bits else []
        tests += [x == x] if column.is_double else []
        value = key_of(x, column.is_double, tree.sign)
        code.assign(key, choice(value, all_of(*tests), WORST) if tests else value)
        code.assign(KEY[e], key)
        code.assign(HIGH[e], key >> 32)

    def into_tables(self, code: Code, lane: Lane) -> None:
        """Once everything else is done with the event."""
        for queue in (each for each in lane.queues if each in self.shape.table_columns):
            with code.when(bit(b, self.shape.accept_bit(lane, queue))):
                self._into_table(code, queue, self.bucket(lane, queue))

    def _into_table(self, code: Code, queue: int, bucket: Formula) -> None:
        """In place of the event with the same key."""
        layout, stride = self.queues.layout, self.shape.stride
        same: list[Formula] = []
        for number in self.shape.table_columns[queue]:
            mine, queued = value_of(number), layout.column(number)[c]
            same.append(as_float(queued) == mine if self.shape.columns[number].is_double else queued == mine)
        code.assign(c, CHAINS[bucket * stride + queue, HEAD])
        if same:
            with code.loop(all_of(c != NONE, negated(all_of(*same)))):
                count_step(code)
                code.assign(c, layout.field("BNEXT")[c])
        with code.when(c != NONE):
            self.queues.leave(code, queue, c, c)
        self.alive(code, queue, bucket)
        self.queues.trim_dead(code)

    def alive(self, code: Code, queue: int, bucket: Formula = bk) -> None:
        """Queued only if it can still be a member: the newest event stands after all that are queued."""
        needs = dict(self.queues.needs).get(queue)
        if needs is None:
            self.enter(code, queue, bucket)
            return
        with code.when(any_of(*(all_of(*self.queues.have(each)) for each in needs))):
            self.enter(code, queue, bucket)
