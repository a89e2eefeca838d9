"""Queues: an event is linked at the end, a stretch leaves, what falls behind a window expires, what can be in no relation to
come is trimmed.

Takes: a shape, its accesses and layout. Gives: functions of a kernel, and how they are called. Never: decides what leaves
after a match (disposal.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.indexes.hash_index import HashIndex
from fairlead.matching.compiled.codegen.indexes.ordered_index import BUILD, KEEP
from fairlead.matching.compiled.codegen.indexes.queue_row import enter_row, leave_row
from fairlead.matching.compiled.codegen.kernel_names import (
    CHAIN_LINKS,
    CHAINS,
    CLOCK,
    COUNT,
    COUNTERS,
    FLAGS,
    HEAD,
    KEYS,
    LINKS,
    NODES,
    OLDEST,
    QUEUES,
    ROOT,
    ROWS,
    TAIL,
    TREES,
    c,
    free,
    front_of,
    k,
    late,
    oldest,
    rising,
    tm,
    within,
)
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.runs.kept_values import KeptCode
from fairlead.matching.compiled.codegen.runs.run_words import KEPT, KEPT_TABLE
from fairlead.matching.compiled.machine_code.interruption import count_step
from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    HIGHEST,
    NONE,
    TRUE,
    TRUTH,
    WHOLE,
    Array,
    Constant,
    Formula,
    Variable,
    all_of,
    any_of,
    call,
    choice,
    negated,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction
from fairlead.matching.interpreted.dead_events import is_circular, needs_in_front

LOOSE = 1
"""The flag of a key for which a relation without the newest event may be ready."""
LATE = 2
"""The flag of a key with a queue that is not in the order of time."""
UNROLLED = 8
"""So many steps along a queue are written one after the other; more are a loop: a run can need a million events before it."""


class Queues:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout) -> None:
        self.shape, self.accesses, self.layout = shape, accesses, layout
        self.needs = needs_in_front(shape.branch)
        self.hash_index, self.kept = HashIndex(shape, accesses, layout), KeptCode(shape, accesses, layout)

    def functions(self) -> list[KernelFunction]:
        made = [self._link(), self._drop()]
        made += [self._trim()] if self.needs else []
        made += self.kept.functions()
        return [*made, self._expire()] if self.shape.windowed else made

    @property
    def state(self) -> list[Array]:
        """The arrays that these functions take."""
        chains = [CHAINS, CHAIN_LINKS] if self.shape.equal else []
        rows = [ROWS] if self.layout.rowed else []
        kept = [KEPT, *([KEPT_TABLE] if self.accesses.kept.tables else [])] if self.accesses.kept else []
        return [QUEUES, *chains, NODES, LINKS, *([TREES] if self.accesses.trees else []), *rows, *kept, COUNTERS]

    def at(self, queue: int) -> Formula:
        """The number of a queue of the key k."""
        return k * self.shape.stride + queue

    def have(self, counts: Iterable[tuple[int, int]]) -> list[Formula]:
        """Queues have at least so many events."""
        return [QUEUES[self.at(queue), COUNT] >= n for queue, n in counts]

    def leave(self, code: Code, queue: int, first: Formula, last: Formula) -> None:
        """A stretch of a queue leaves it."""
        code.assign(free, call("drop", first, last, self.at(queue), free, *self.state))

    def move_window(self, code: Code, notes: bool) -> None:
        """The clock of the key, by the newest event. `notes`: an event that is too late may be noted all the same."""
        if notes:
            code.assign(late, FALSE)
        code.assign(rising, tm > KEYS[k, CLOCK])
        with code.when(rising):
            code.assign(KEYS[k, CLOCK], tm)
            if self.shape.unlike_horizons:
                cuts = [cut for each in self.shape.horizons for cut in each.cuts(tm)]
                with code.when(any_of(*(KEYS[k, OLDEST] < cut for cut in cuts))):
                    code.assign(free, call("expire", k, tm, free, KEYS, *self.state))
                return
            with code.when(KEYS[k, OLDEST] < tm - within):
                code.assign(free, call("expire", k, tm - within, free, KEYS, *self.state))
        with code.or_when(tm < KEYS[k, CLOCK] - within):
            if notes:
                code.assign(late, TRUE)
            else:
                code.proceed()

    @contextmanager
    def room(self, code: Code, queue: int) -> Iterator[None]:
        """What is done with the newest event, once there is room for it in a queue where RETAIN counts events; and unless it is
        behind the horizon, where queues have horizons of their own."""
        bound, at = self.shape.retention(queue), self.at(queue)
        cuts = self.shape.horizons[queue].cuts(KEYS[k, CLOCK]) if self.shape.unlike_horizons else []
        with ExitStack() as blocks:
            if cuts:
                blocks.enter_context(code.when(all_of(*(tm >= cut for cut in cuts))))
            if bound is not None and bound.count is not None:
                with code.when(QUEUES[at, COUNT] >= bound.count):
                    self.leave(code, queue, QUEUES[at, HEAD], QUEUES[at, TAIL if bound.batch else HEAD])
                    self.trim_dead(code)
            yield

    def _link(self) -> KernelFunction:
        NEXT, PREV = self.layout.take("NEXT PREV")
        e, at, before = variables("entry at before")
        indexed = Variable("indexed", TRUTH)
        code = Code()
        code.assign(before, QUEUES[at, TAIL])
        code.assign(PREV[e], before)
        code.assign(NEXT[e], NONE)
        with code.when(before == NONE):
            code.assign(QUEUES[at, HEAD], e)
        with code.otherwise():
            code.assign(NEXT[before], e)
        code.assign(QUEUES[at, TAIL], e)
        code.increase(QUEUES[at, COUNT])
        code.increase(counter("QUEUED"))
        self.kept.enter(code, e, at)
        if self.shape.equal:
            self.hash_index.link(code, e, at)
        if self.accesses.trees:
            with code.when(QUEUES[at, ROOT] != NONE):
                code.call("attach", e, at, QUEUES, NODES, LINKS, TREES)
            with code.or_when(all_of(indexed, QUEUES[at, COUNT] > BUILD)):
                code.call("built", at, QUEUES, NODES, LINKS, TREES)
        if self.layout.rowed:
            enter_row(code, self.layout.links, at, e)
        return code.function("link", e, at, indexed, *self.state)

    def _drop(self) -> KernelFunction:
        """Takes a stretch of a queue, from `first` to `last`, out of it."""
        NEXT, PREV = self.layout.take("NEXT PREV")
        first, last, at, free, before, after, c, total = variables("first last at free before after node total")
        trees = bool(self.accesses.trees)
        code = Code()
        if self.layout.rowed:
            leave_row(code, self.layout.links, at, first, last)
        code.assign(before, PREV[first])
        code.assign(after, NEXT[last])
        with code.when(before == NONE):
            code.assign(QUEUES[at, HEAD], after)
        with code.otherwise():
            code.assign(NEXT[before], after)
        with code.when(after == NONE):
            code.assign(QUEUES[at, TAIL], before)
        with code.otherwise():
            code.assign(PREV[after], before)
        if trees:
            with code.when(all_of(before == NONE, after == NONE)):
                code.assign(QUEUES[at, ROOT], NONE)
        # the whole stretch becomes free as it is; its nodes are visited where others have to know, or to be counted
        known = not (self.accesses.kept or self.shape.equal or trees)
        code.assign(total, 1)
        code.assign(c, first)
        with code.when(all_of(before == NONE, after == NONE)) if known else nullcontext():
            if known:
                code.assign(total, QUEUES[at, COUNT])
        with code.otherwise() if known else nullcontext(), code.loop():
            self.kept.leave(code, c, at)
            if self.shape.equal:
                self.hash_index.drop(code, c, at)
            if trees:
                with code.when(QUEUES[at, ROOT] != NONE):
                    code.call("detach", c, at, QUEUES, NODES, LINKS, TREES)
            with code.when(c == last):
                code.leave()
            code.assign(c, NEXT[c])
            code.increase(total)
        code.assign(NEXT[last], free)
        code.assign(free, first)
        code.decrease(QUEUES[at, COUNT], total)
        code.decrease(counter("QUEUED"), total)
        if trees:
            with code.when(QUEUES[at, COUNT] < KEEP):
                code.assign(QUEUES[at, ROOT], NONE)
        code.give(free)
        return code.function("drop", first, last, at, free, *self.state)

    def _expire(self) -> KernelFunction:
        """What falls behind the window of a key leaves. LATE goes once all queues are in the order of time."""
        horizon, was, at, cut = variables("horizon was at cut")
        stride = self.shape.stride
        code = Code()
        code.assign(was, free)
        code.assign(oldest, HIGHEST)
        code.assign(late, FALSE)
        if self.shape.unlike_horizons:  # what is passed is the clock
            for queue, bound in enumerate(self.shape.horizons):
                if bound:
                    code.assign(at, k * stride + queue)
                    first, *rest = bound.cuts(horizon)
                    code.assign(cut, choice(rest[0], rest[0] > first, first) if rest else first)
                    self._expire_queue(code, at, cut)
        else:
            with code.count(at, k * stride + len(self.shape.needed), k * stride):
                self._expire_queue(code, at, horizon)
        code.assign(KEYS[k, OLDEST], oldest)
        with code.when(all_of(KEYS[k, FLAGS] & LATE, negated(late))):
            code.change(KEYS[k, FLAGS], "&", ~Constant(LATE))
        if self.needs:
            with code.when(free != was):
                code.assign(free, call("trim", k, free, *self.state))
        code.give(free)
        return code.function("expire", k, horizon, free, KEYS, *self.state)

    def _expire_queue(self, code: Code, at: Formula, horizon: Formula) -> None:
        """Of one queue; what is left there tells the oldest, and whether it is in the order of time."""
        NEXT, TIME = self.layout.take("NEXT TIME")
        before, step = variables("before step")
        code.assign(c, QUEUES[at, HEAD])
        code.assign(before, horizon)
        with code.loop(c != NONE):
            count_step(code)
            code.assign(step, NEXT[c])
            with code.when(TIME[c] < horizon):
                code.assign(free, call("drop", c, c, at, free, *self.state))
                if self.shape.contiguous and not self.shape.anchored:
                    code.change(KEYS[k, FLAGS], "|", 1)
            with code.otherwise():
                with code.when(TIME[c] < oldest):
                    code.assign(oldest, TIME[c])
                with code.when(negated(KEYS[k, FLAGS] & LATE)):
                    code.leave()
                with code.when(TIME[c] < before):
                    code.assign(late, TRUE)
                code.assign(before, TIME[c])
            code.assign(c, step)

    def _trim(self) -> KernelFunction:
        """Events that can be in no relation to come leave (see dead_events.py)."""
        was = Variable("was", WHOLE)
        code = Code()
        if is_circular(self.needs):
            code.assign(was, -2)
            with code.loop(free != was):
                code.assign(was, free)
                self._trim_queues(code)
        else:
            self._trim_queues(code)
        code.give(free)
        return code.function("trim", k, free, *self.state, rare=True)

    def trim_dead(self, code: Code) -> None:
        """What can be in no relation to come leaves."""
        if self.needs:
            code.assign(free, call("trim", k, free, *self.state))

    def note_oldest(self, code: Code) -> None:
        """What left may have been the oldest of its key: the next event need not look for what falls behind the window."""
        if not self.shape.windowed:
            return
        TIME = self.layout.field("TIME")
        with code.when(negated(KEYS[k, FLAGS] & LATE)):
            code.assign(oldest, HIGHEST)
            for queue in (queue for queue, bound in enumerate(self.shape.horizons) if bound):
                code.assign(c, QUEUES[self.at(queue), HEAD])
                with code.when(all_of(c != NONE, TIME[c] < oldest)):
                    code.assign(oldest, TIME[c])
            code.assign(KEYS[k, OLDEST], oldest)

    def _trim_queues(self, code: Code) -> None:
        NEXT, REF = self.layout.take("NEXT REF")
        alive, passed = Variable("alive", TRUTH), Variable("passed", WHOLE)
        for queue, needs in self.needs:
            head = QUEUES[self.at(queue), HEAD]
            code.assign(c, head)
            with code.loop(c != NONE):
                code.assign(alive, FALSE)
                for each in needs:
                    tests: list[Formula] = []
                    for other, n in each:
                        there = front_of(other)
                        code.assign(there, QUEUES[self.at(other), HEAD])
                        if n <= UNROLLED:
                            for _ in range(n - 1):
                                code.assign(there, choice(NEXT[there], there != NONE, NONE))
                        else:
                            code.assign(passed, 1)
                            with code.loop(all_of(passed < n, there != NONE)):
                                code.assign(there, NEXT[there])
                                code.assign(passed, passed + 1)
                        tests += [there != NONE, REF[there] < REF[c]]
                    with code.when(all_of(*tests)):
                        code.assign(alive, TRUE)
                with code.when(alive):
                    code.leave()
                self.leave(code, queue, c, c)
                code.assign(c, head)
