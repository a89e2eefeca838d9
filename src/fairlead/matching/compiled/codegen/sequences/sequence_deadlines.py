"""When time alone decides: of each key the moment until which its open path may get a row, and a heap of keys.

A run that continues moves its deadline with every row, so the heap changes only for earlier ones: a key whose deadline has
moved away is put back when its turn comes.

Takes: a shape. Gives: code and functions; none where no clock but that of the rows decides. Never: searches by itself.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.counters import counter
from fairlead.matching.compiled.codegen.kernel_names import COUNTERS, HEAD, HEAP, LISTED, NODES, QUEUES, SEARCHES, TAIL, k, w
from fairlead.matching.compiled.codegen.sequences.search_state import DUE, LOWEST, PLACE, due, of_search
from fairlead.matching.compiled.codegen.sequences.sequence_layout import SequenceLayout
from fairlead.matching.compiled.machine_code.interruption import count_step, is_halted
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import NONE, Array, Formula, FunctionCall, all_of, variables
from fairlead.matching.compiled.representation.statements import KernelFunction
from fairlead.model.events.values import TIMESTAMP_RANGE

LAST_TIME = TIMESTAMP_RANGE[1]
"""No event is later."""
now, fired, before = variables("now fired due_before")
"""The time by the clock of the subscription; the deadline that decides, or NOT_FIRED; and until when deadlines are decided."""
NOT_FIRED = LOWEST
HEAPED: tuple[Array, ...] = (HEAP, LISTED, SEARCHES, COUNTERS)
at, other, place = variables("at other place")


class SequenceDeadlines:
    def __init__(self, shape: Shape, layout: SequenceLayout) -> None:
        self.shape, self.layout = shape, layout

    def schedule(self, code: Code) -> None:
        """The open path of the key k ends after `due`."""
        code.assign(of_search(k, DUE), due)
        code.assign(place, of_search(k, PLACE))
        with code.when(place == NONE):
            with code.when(due <= LAST_TIME):
                code.call("list_key", k, due, *HEAPED)
        with code.or_when(due < LISTED[place]):
            code.call("rise", place, k, due, *HEAPED)

    def functions(self, search: FunctionCall, parameters: list[Array]) -> list[KernelFunction]:
        """`search`: how a search is called, of the key k, at the time `now` and by the deadline `fired`."""
        return [_list_key(), _rise(), _sink(), self._fire(search, parameters)]

    def _fire(self, search: FunctionCall, parameters: list[Array]) -> KernelFunction:
        """The searches whose deadline is before a time, the earliest first, as far as there is room for what they find."""
        code = Code()
        with code.loop(all_of(counter("HEAP") > 0, LISTED[0] < before)):
            count_step(code)
            with code.when(is_halted()):
                code.leave()
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
        given = [each for each in parameters if each.name not in {one.name for one in (*HEAPED, QUEUES, NODES)}]
        return code.function("fire", before, w, *HEAPED, QUEUES, NODES, *given, rare=True)

    @staticmethod
    def _move(code: Code) -> None:
        """A key whose deadline is later than the heap says, or that has none."""
        with code.when(fired > LAST_TIME):
            code.assign(of_search(k, PLACE), NONE)
            code.decrease(counter("HEAP"))
            with code.when(counter("HEAP") > 0):
                code.call("sink", HEAP[counter("HEAP")], LISTED[counter("HEAP")], *HEAPED)
        with code.otherwise():
            code.call("sink", k, fired, *HEAPED)


def _list_key() -> KernelFunction:
    code = Code()
    code.increase(counter("HEAP"))
    code.call("rise", counter("HEAP") - 1, k, due, *HEAPED)
    code.give(0)
    return code.function("list_key", k, due, *HEAPED)


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
