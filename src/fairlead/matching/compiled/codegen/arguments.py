"""The arguments of a kernel, by name: the columns of each lane, or pairs of row and instance; and what no lane has for itself.

The program names its parameters by them (loop.py), and a batch is given to it under the same names (running/kernel_input.py).
"""

from __future__ import annotations

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.codegen.folds.fold_words import FOLD_TABLE, FOLDS, IDENTITIES, OUT_FOLDS, SEEDS
from fairlead.matching.compiled.codegen.kernel_names import (
    CHAIN_LEAST,
    CHAIN_LINKS,
    CHAINS,
    CHOSEN,
    COUNTERS,
    FIRED_AT,
    FIRED_BORN,
    FIRED_DUE,
    FIRED_REF,
    FRAMES,
    HEAP,
    KEY_TABLE,
    KEY_VALUES,
    KEYS,
    LEAST_KEYS,
    LINKS,
    LISTED,
    MEMBERS,
    NODES,
    OUT_AT,
    OUT_BORN,
    OUT_DUE,
    OUT_KEY,
    OUT_LENGTH,
    OUT_REF,
    OUT_START,
    PLANS,
    QUEUES,
    RANKS,
    RING,
    ROWS,
    SCRATCH,
    SEARCHES,
    TOLD,
    TREES,
    WAITING,
    base,
    kbase,
    last,
    until,
    within,
)  # fmt: skip
from fairlead.matching.compiled.codegen.runs.run_words import DIFFERENT, KEPT, KEPT_TABLE, OUT_LENGTHS, OUT_MEMBERS
from fairlead.matching.compiled.planning.shape import Lane, Shape
from fairlead.matching.compiled.representation.formulas import Array, Variable

CODES, LOCAL, WORDS = "codes", "local", "words"
"""Where rows are whole batches: the type of each row, the lane of each type, and the words of rows that are not dense."""
PAIR_LANE, PAIR_ROW, PAIR_KEY, PAIR_WORD, PAIR_BITS = "pair_lane", "pair_row", "pair_key", "pair_word", "pair_bits"
"""Where rows come as pairs of row and instance, one element for each pair."""
STATE: tuple[Array | Variable, ...] = (
    TOLD, RANKS, NODES, LINKS, TREES, CHAIN_LINKS, QUEUES, KEYS, CHAINS, CHAIN_LEAST, LEAST_KEYS, ROWS, WAITING, HEAP, COUNTERS,
    SCRATCH, PLANS, MEMBERS, CHOSEN, SEARCHES, FRAMES, LISTED, RING, KEY_TABLE, KEY_VALUES, OUT_AT, OUT_REF, OUT_KEY, OUT_DUE,
    FIRED_AT, FIRED_REF, FIRED_DUE, FIRED_BORN, OUT_MEMBERS, OUT_LENGTHS, DIFFERENT, KEPT, KEPT_TABLE, OUT_LENGTH, OUT_START,
    OUT_BORN, FOLDS, FOLD_TABLE, OUT_FOLDS, SEEDS, IDENTITIES, base, kbase, within, until, last,
)  # fmt: skip
"""The arguments that do not depend on the lanes, in their order."""


@dataclass(frozen=True)
class LaneArguments:
    """The names of one lane's columns, one element for each of its rows."""

    lane: int

    @property
    def time(self) -> str:
        return f"time{self.lane}"

    @property
    def key(self) -> str:
        return f"key{self.lane}"

    @property
    def bits(self) -> str:
        return f"bits{self.lane}"

    def bucket(self, number: int) -> str:
        """The numbers of one value of the hash index, of those that events of the lane have."""
        return _numbered(f"buckets{self.lane}", number)

    def column(self, number: int) -> str:
        """A value column."""
        return f"column{self.lane}_{number}"

    def all(self, shape: Shape, lane: Lane) -> list[str]:
        names = [self.time, self.key, self.bits]
        names += [self.bucket(number) for number in range(len(shape.equal_of(lane)))]
        return names + [self.column(number) for number, column in enumerate(shape.columns) if column.queue in lane.queues]


def pair_bucket(number: int) -> str:
    return _numbered("pair_bucket", number)


def _numbered(name: str, number: int) -> str:
    return f"{name}_{number}" if number else name


def parameters(shape: Shape, paired: bool, used: set[str]) -> list[Variable | Array]:
    """Those of a kernel that it uses, in their order."""
    names = [PAIR_LANE, PAIR_ROW, PAIR_KEY, PAIR_WORD, PAIR_BITS] if paired else [CODES, LOCAL, WORDS]
    names += [pair_bucket(number) for number in range(shape.equal_most)] if paired else []
    for at, lane in enumerate(shape.lanes):
        names += LaneArguments(at).all(shape, lane)
    return [each for each in (*map(Array, names), *STATE) if each.name in used]
