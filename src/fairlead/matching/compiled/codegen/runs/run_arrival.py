"""What an event completes beside runs: one relation, that contains it.

Where the event can be in a run it is queued before it is searched, and in any case before its relation disposes of anything.
There has to be room for the members of a relation, as many as are queued; otherwise the batch ends at its row (`reached`), and
another call handles its rest.

Takes: a shape, its queues and searches. Gives: code. Never: decides what leaves (run_disposal.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import k
from fairlead.matching.compiled.codegen.queue_entry import Entering
from fairlead.matching.compiled.codegen.queues import Queues
from fairlead.matching.compiled.codegen.runs.run_disposal import RunDisposing
from fairlead.matching.compiled.codegen.runs.run_tables import ADDED, added, place
from fairlead.matching.compiled.codegen.runs.run_words import (
    AMONG,
    DIFFERENT,
    OUT_MEMBERS,
    among,
    end,
    written,
)
from fairlead.matching.compiled.codegen.searches.search import Searching
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import Formula, all_of
from fairlead.matching.compiled.representation.statements import KernelFunction


class RunArrival:
    def __init__(self, shape: Shape, queues: Queues, entering: Entering, searching: Searching) -> None:
        self.shape, self.queues, self.entering, self.searching = shape, queues, entering, searching
        self.disposing = RunDisposing(shape, queues)
        self.most = max(len(lane.queues) for lane in shape.lanes)
        """Queues that one event enters."""

    def opening(self, code: Code) -> None:
        """Before the first row."""
        code.assign(written, 0)

    def complete(
        self, code: Code, queue: int | None, enough: Sequence[Formula], hit: Callable[[Code, int | None], None]
    ) -> None:
        """What the newest event completes. `queue` None: it is queued already, in several."""
        accesses = self.searching.accesses
        if queue is not None and not accesses.is_free(queue):
            self._bound(code, queue, enough, hit)
            return
        code.assign(end, 0)
        with code.when(all_of(*enough)):
            if queue is not None:
                self.entering.enter(code, queue)
            possible = self.queues.kept.possible(k)
            with code.when(all_of(*possible)) if possible else nullcontext():
                code.assign(end, self.searching.calls["search_free"])
                with code.when(end > 0):
                    self._found(code, hit)
        if queue is not None:
            with code.otherwise():
                self.entering.alive(code, queue)

    def _bound(self, code: Code, queue: int, enough: Sequence[Formula], hit: Callable[[Code, int | None], None]) -> None:
        """It can be at one slot only, and is in no run."""
        code.assign(end, 0)
        with code.when(all_of(*enough, *self.queues.kept.possible(k))):
            code.assign(end, self.searching.calls[f"search_{queue}"])
        with code.when(end > 0):
            self.entering.enter(code, queue)
            self._found(code, hit)
        with code.otherwise():
            self.entering.alive(code, queue)

    def _found(self, code: Code, hit: Callable[[Code, int | None], None]) -> None:
        self.disposing.dispose(code)
        code.assign(written, end)
        hit(code, None)
        self.queues.trim_dead(code)
        self.queues.note_oldest(code)

    def functions(self, called: set[str]) -> list[KernelFunction]:
        made = [among()] if AMONG in called else []
        made += [added()] if ADDED in called else []
        return made + ([place()] if made or self.queues.accesses.kept.tables else [])

    def has_room(self) -> Formula:
        """For the members of a relation, and for all different values among them."""
        queued = counter("QUEUED") + self.most
        room: list[Formula] = [OUT_MEMBERS.length - written >= queued + self.shape.size]
        if self.shape.runs.counts_different:
            room.append(DIFFERENT.length >= 2 * queued)
        return all_of(*room, *self.queues.kept.has_room(queued))

    @contextmanager
    def at_end(self, code: Code, rows: Formula) -> Iterator[None]:
        yield
        code.assign(counter("WRITTEN"), written)
