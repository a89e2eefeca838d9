"""Relations that contain the newest event by definition (MATCHING ALL, DISPOSAL NONE and UPTO, KEEP): one, or all of them.

They can leave the event queued, so it is queued before they dispose of anything (union_disposal.py). An event can complete
many: before each there is room for the most, or the batch ends at its row (`reached`), and another call handles its rest.

Takes: a shape, its queues and searches. Gives: code. Never: decides what leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import (
    CHOSEN,
    FIRED_AT,
    HEAP,
    MEMBERS,
    NODES,
    OUT_AT,
    count,
    e,
    found,
    reached,
    relation,
)
from fairlead.matching.compiled.codegen.queue_entry import Entering
from fairlead.matching.compiled.codegen.queues import Queues
from fairlead.matching.compiled.codegen.searches.search import Searching
from fairlead.matching.compiled.codegen.union_disposal import UnionDisposing
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import Formula, all_of, negated
from fairlead.matching.compiled.representation.statements import KernelFunction


class AnchoredArrival:
    def __init__(self, shape: Shape, queues: Queues, entering: Entering, searching: Searching) -> None:
        self.shape, self.queues, self.entering, self.searching = shape, queues, entering, searching
        self.union = UnionDisposing(shape, queues)

    def complete(
        self, code: Code, queue: int | None, enough: Sequence[Formula], hit: Callable[[Code, int | None], None]
    ) -> None:
        """What the newest event completes. `queue` None: it is queued already, in several."""
        shape = self.shape
        search = self.searching.calls["search_free" if queue is None else f"search_{queue}"]
        code.assign(count, 0)
        with code.when(all_of(*enough)) if shape.every else code.when(all_of(*enough, search)):
            code.assign(count, search if shape.every else 1)
        with code.when(count > 0):
            if queue is not None:
                self.entering.enter(code, queue)
            self._choose(code, None if queue is None else shape.newest_slot(queue))
            with code.count(relation, count):
                for slot in range(shape.size):
                    code.assign(MEMBERS[slot], CHOSEN[relation, slot])
                hit(code, None)
            if shape.every and shape.subscription.limit_per_event is None:
                with code.when(count == shape.relations_max):
                    code.assign(counter("EXCEEDED"), 1)
            self.union.dispose(code)
            self.queues.trim_dead(code)
            self.queues.note_oldest(code)
        if queue is not None:
            with code.otherwise():
                self.entering.alive(code, queue)

    def _choose(self, code: Code, bound: int | None) -> None:
        """The newest event, now the node e, among the members."""
        if not self.shape.every:
            for slot in range(self.shape.size):
                code.assign(CHOSEN[0, slot], e if slot == bound else MEMBERS[slot])
        elif bound is not None:
            with code.count(relation, count):
                code.assign(CHOSEN[relation, bound], e)

    def opening(self, code: Code) -> None:
        """Before the first row: nothing."""

    def functions(self, called: set[str]) -> list[KernelFunction]:
        """What only these relations call: nothing."""
        return []

    def has_room(self) -> Formula:
        """For all relations that an event can complete."""
        most, size, waiting = self.shape.relations_max, self.shape.size, counter("HEAP")
        room: list[Formula] = [OUT_AT.length - found >= most]
        if self.shape.waits:
            queues = max(len(lane.queues) for lane in self.shape.lanes)
            used = counter("QUEUED") + waiting * size
            room += [HEAP.length - waiting >= most, self._can_fire()]
            room.append(NODES.length - used >= most * size + queues)
        return all_of(*room)

    @staticmethod
    def _can_fire() -> Formula:
        """There is room for all that wait to be decided."""
        return FIRED_AT.length - counter("FIRED") >= counter("HEAP")

    @contextmanager
    def at_end(self, code: Code, rows: Formula) -> Iterator[None]:
        """What is done after the last row, if there is room for it; otherwise `reached` is below 0."""
        if not (self.shape.every and self.shape.waits):
            yield
            return
        with code.when(all_of(reached == rows, negated(self._can_fire()))):
            code.assign(reached, -1)
        with code.when(reached == rows):
            yield
