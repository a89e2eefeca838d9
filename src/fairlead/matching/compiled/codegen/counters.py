"""The places in COUNTERS: what a kernel counts over batches, beside its nodes and queues (pool.py)."""

from __future__ import annotations

from fairlead.matching.compiled.codegen.kernel_names import COUNTERS
from fairlead.matching.compiled.representation.formulas import ArrayElement, Constant

NAMES = (
    "FREE",  # the first free node; the others hang on it
    "FRESH",  # nodes that were ever in use
    "HINT",  # where in its row the last search found its node (ordered_index.py)
    "SEEN",  # the latest time of all
    "HEAP",  # relations that wait
    "WAIT_FREE",
    "WAIT_FRESH",
    "FIRED",  # absences decided in this batch
    "SPARE",  # the first free row of nodes side by side
    "SIDES",  # such rows that were ever in use
    "KEYS",  # keys that the kernel has numbered
    "STEPS",  # steps left until the kernel asks whether to continue (interruption.py)
    "ASK",  # the address of the function that it asks
    "STOPPED",  # whether it must stop
    "QUEUED",  # events in all queues of all keys
    "NEWEST",  # the place of the newest event, where a search asks for it
    "EXCEEDED",  # whether an event completed more relations than there may be
    "WRITTEN",  # words of the members of relations with runs, in this batch
    "COUNTS",  # counts of different values so far (runs/run_tables.py)
    "FRAME_FREE",  # of a sequence: the first free choice point
    "FRAME_FRESH",  # choice points that were ever in use
    "FOUND",  # relations of this batch
    "MEMBERS",  # and their members
    "FULL",  # whether there is no room for a relation or a choice point: a search has paused in the middle
    "RESUME",  # what paused: 1 the search after a row, 2 one that a deadline has decided
    "START",  # the first row of the search that a deadline decides
    "BORN",  # and its last one
    "DECIDED",  # relations that one row, or one deadline, has decided so far
    "DIRTY",  # whether searches have to be begun again before the next row
)
FREE, FRESH, HINT, SEEN, HEAP, WAIT_FREE, WAIT_FRESH, FIRED, SPARE, SIDES, KEYS, STEPS, ASK, STOPPED, QUEUED = range(15)
EXCEEDED, WRITTEN = NAMES.index("EXCEEDED"), NAMES.index("WRITTEN")
FRAME_FREE, FRAME_FRESH, FOUND_COUNT, MEMBER_COUNT, FULL, RESUME, DIRTY = map(
    NAMES.index, ("FRAME_FREE", "FRAME_FRESH", "FOUND", "MEMBERS", "FULL", "RESUME", "DIRTY")
)
NONE_FREE = (FREE, WAIT_FREE, SPARE, FRAME_FREE)
_ELEMENTS = {name: ArrayElement(COUNTERS, (Constant(at, name),)) for at, name in enumerate(NAMES)}


def counter(name: str) -> ArrayElement:
    """In a kernel."""
    return _ELEMENTS[name]
