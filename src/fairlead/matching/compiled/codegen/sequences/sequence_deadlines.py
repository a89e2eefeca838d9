"""When time alone decides: of each key the moment until which its open path may get a row, and the keys in that order.

Mostly a row moves the deadline of its key after those of all others. Keys whose deadlines come in order are therefore a list,
linked in both directions (RING), and moving to its end is a step or two. A key whose deadline is not the latest stands in a
heap. There a deadline that moves away changes nothing: a key is put back when its turn comes.

    RING      row 0 is both ends of the list, row k + 1 the key k; the deadline of a key in it is DUE
    HEAP      other keys, with the deadlines that they had when they were listed (LISTED)

Takes: a shape. Gives: code and functions; none where no clock but that of the rows decides. Never: searches by itself.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import (
    COUNTERS,
    HEAD,
    HEAP,
    LISTED,
    NODES,
    QUEUES,
    RING,
    SEARCHES,
    TAIL,
    k,
    w,
)
from fairlead.matching.compiled.codegen.sequences.search_state import DUE, LOWEST, PLACE, due, of_search
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout
from fairlead.matching.compiled.machine_code.interruption import count_step, is_halted
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    NONE,
    Array,
    ArrayElement,
    Constant,
    Formula,
    FunctionCall,
    all_of,
    any_of,
    named_constants,
    variables,
)
from fairlead.matching.compiled.representation.statements import KernelFunction
from fairlead.model.events.values import TIMESTAMP_RANGE

LAST_TIME = TIMESTAMP_RANGE[1]
"""No event is later."""
now, fired, before = variables("now fired due_before")
"""The time by the clock of the subscription; the deadline that decides, or NOT_FIRED; and until when deadlines are decided."""
NOT_FIRED = LOWEST
IN_RING = Constant(-2, "IN_RING")
"""The PLACE of a key that is in the list; NONE of one that has no deadline."""
LATER, EARLIER = named_constants("LATER EARLIER")
"""Columns of RING: the rows of the keys with the next deadlines, after and before."""
HEAPED: tuple[Array, ...] = (HEAP, LISTED, SEARCHES, COUNTERS)
ORDERED: tuple[Array, ...] = (HEAP, LISTED, RING, SEARCHES, COUNTERS)
at, other, place, newest = variables("at other place newest")


def _beside(row: Formula | int, column: Constant) -> ArrayElement:
    return RING[row, column]


def is_due(time: Formula) -> Formula:
    """Whether a deadline is before this time; of the heap it may be one that has moved away."""
    return any_of(_is_ring_due(time), all_of(counter("HEAP") > 0, LISTED[0] < time))


def _is_ring_due(time: Formula) -> Formula:
    first = _beside(0, LATER)
    return all_of(first != 0, of_search(first - 1, DUE) < time)


class SequenceDeadlines:
    def __init__(self, shape: Shape, layout: SequenceLayout) -> None:
        self.shape, self.layout = shape, layout

    def schedule(self, code: Code) -> None:
        """The open path of the key k ends after `due`."""
        code.assign(of_search(k, DUE), due)
        code.assign(place, of_search(k, PLACE))
        with code.when(place < 0):
            with code.when(place == IN_RING):
                code.assign(_beside(_beside(k + 1, EARLIER), LATER), _beside(k + 1, LATER))
                code.assign(_beside(_beside(k + 1, LATER), EARLIER), _beside(k + 1, EARLIER))
                code.assign(of_search(k, PLACE), NONE)
            with code.when(due <= LAST_TIME):
                code.call("list_key", k, due, *ORDERED)
        with code.or_when(due < LISTED[place]):
            code.call("rise", place, k, due, *HEAPED)

    def functions(self, search: FunctionCall, parameters: list[Array]) -> list[KernelFunction]:
        """`search`: how a search is called, of the key k, at the time `now` and by the deadline `fired`."""
        return [_list_key(), _append(), _rise(), _sink(), self._fire(search, parameters)]

    def _fire(self, search: FunctionCall, parameters: list[Array]) -> KernelFunction:
        """The searches whose deadline is before a time, the earliest first, as far as there is room for what they find."""
        code = Code()
        with code.loop(is_due(before)):
            count_step(code)
            with code.when(is_halted()):
                code.leave()
            with code.when(all_of(_is_ring_due(before), any_of(counter("HEAP") == 0, self._of_first() <= LISTED[0]))):
                code.assign(k, _beside(0, LATER) - 1)
                code.assign(fired, of_search(k, DUE))
            with code.otherwise():
                code.assign(k, HEAP[0])
                code.assign(fired, of_search(k, DUE))
                with code.when(fired != LISTED[0]):
                    self._move(code)
                    code.proceed()
            code.assign(now, fired + 1)
            with code.when(counter("RESUME") != 2):
                code.assign(counter("DECIDED"), 0)
                code.assign(counter("START"), self.layout.field("REF")[QUEUES[k, HEAD]])
                code.assign(counter("BORN"), self.layout.field("REF")[QUEUES[k, TAIL]])
            code.assign(counter("RESUME"), 0)
            code.call(search.function, *search.arguments)
            with code.when(counter("FULL") != 0):
                code.assign(counter("RESUME"), 2)
                code.leave()
        code.give(0)
        given = [each for each in parameters if each.name not in {one.name for one in (*ORDERED, QUEUES, NODES)}]
        return code.function("fire", before, w, *ORDERED, QUEUES, NODES, *given, rare=True)

    @staticmethod
    def _of_first() -> Formula:
        """The earliest deadline of the list."""
        return of_search(_beside(0, LATER) - 1, DUE)

    @staticmethod
    def _move(code: Code) -> None:
        """A key whose deadline is later than the heap says, or that has none."""
        code.assign(newest, _beside(0, EARLIER))
        with code.when(any_of(fired > LAST_TIME, newest == 0, of_search(newest - 1, DUE) <= fired)):
            code.assign(of_search(k, PLACE), NONE)
            code.decrease(counter("HEAP"))
            with code.when(counter("HEAP") > 0):
                code.call("sink", HEAP[counter("HEAP")], LISTED[counter("HEAP")], *HEAPED)
            with code.when(fired <= LAST_TIME):
                code.call("append", k, newest, RING, SEARCHES)
        with code.otherwise():
            code.call("sink", k, fired, *HEAPED)


def _list_key() -> KernelFunction:
    """A key that has no place: at the end of the list, unless another deadline is later."""
    code = Code()
    code.assign(newest, _beside(0, EARLIER))
    with code.when(any_of(newest == 0, of_search(newest - 1, DUE) <= due)):
        code.call("append", k, newest, RING, SEARCHES)
    with code.otherwise():
        code.increase(counter("HEAP"))
        code.call("rise", counter("HEAP") - 1, k, due, *HEAPED)
    code.give(0)
    return code.function("list_key", k, due, *ORDERED)


def _append() -> KernelFunction:
    """A key at the end of the list, after the row `newest`."""
    code = Code()
    code.assign(_beside(newest, LATER), k + 1)
    code.assign(_beside(0, EARLIER), k + 1)
    code.assign(_beside(k + 1, EARLIER), newest)
    code.assign(_beside(k + 1, LATER), 0)
    code.assign(of_search(k, PLACE), IN_RING)
    code.give(0)
    return code.function("append", k, newest, RING, SEARCHES)


def _rise() -> KernelFunction:
    """A key with this deadline, from a place upwards."""
    code = Code()
    code.assign(other, (at - 1) >> 1)
    with code.loop(all_of(at > 0, LISTED[other] > due)):
        _put(code, HEAP[other], LISTED[other])
        code.assign(at, other)
        code.assign(other, (at - 1) >> 1)
    _put(code, k, due)
    code.give(0)
    return code.function("rise", at, k, due, *HEAPED)


def _sink() -> KernelFunction:
    """A key with this deadline, in place of the first."""
    code = Code()
    code.assign(at, 0)
    code.assign(place, 1)
    with code.loop(place < counter("HEAP")):
        with code.when(all_of(place + 1 < counter("HEAP"), LISTED[place + 1] < LISTED[place])):
            code.increase(place)
        with code.when(due <= LISTED[place]):
            code.leave()
        _put(code, HEAP[place], LISTED[place])
        code.assign(at, place)
        code.assign(place, 2 * at + 1)
    _put(code, k, due)
    code.give(0)
    return code.function("sink", k, due, *HEAPED)


def _put(code: Code, key: Formula, deadline: Formula) -> None:
    code.assign(HEAP[at], key)
    code.assign(LISTED[at], deadline)
    code.assign(of_search(HEAP[at], PLACE), at)
