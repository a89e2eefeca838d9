"""The vocabulary of kernels: what a branch comes down to before it is code.

Gives: `Shape` and what it is made of. Never: decides whether a branch has a kernel (shape_builder.py) or makes code.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.planning.runs.gathered_run import RunPlan
from fairlead.matching.compiled.representation.contents import same
from fairlead.matching.compiled.representation.formulas import Formula, NumberComparison, SlotColumn
from fairlead.matching.noted_events import NotedEventPolicy
from fairlead.model.events.types import Kind
from fairlead.model.expressions.expression import Expression
from fairlead.model.limits import LIMITS
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.retention import Horizon, Retention, horizons

if TYPE_CHECKING:
    from fairlead.matching.compiled.planning.folds.fold_plan import FoldPlan
    from fairlead.matching.compiled.planning.sequences.sequence_plan import SequencePlan


class Refused(Exception):
    """The branch has no kernel; the message says which part, `text` is the condition as people wrote it, if it is one."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(reason)
        self.text = text


@dataclass(frozen=True)
class ValueColumn:
    """An expression over one event of one queue (slot 0 stands for it), as int64 or float64: texts by their numbers
    (keys.py), decimals as whole numbers at the scale of their attribute."""

    queue: int
    expression: Expression
    truth: bool = False
    """The column is 1 where the expression (an atom) is true, else 0, and never NULL."""

    @property
    def is_double(self) -> bool:
        return self.expression.kind is Kind.DOUBLE


@dataclass(frozen=True)
class Sides:
    """A test that is one comparison `left sign right`, each side of one slot: either is a whole number or a float."""

    left: int
    sign: str
    right: int
    left_value: Formula
    right_value: Formula
    is_double: bool = False


@dataclass(frozen=True)
class Test:
    """One thing to test once `slots` are bound."""

    slots: frozenset[int]
    condition: Formula
    text: str = ""
    """What people wrote."""
    link: Sides | None = None
    equal: tuple[tuple[int, Expression], tuple[int, Expression]] | None = None
    """It is that two values are equal, each of one slot (slot 0 stands for it in the expression)."""


@dataclass(frozen=True)
class Order:
    """The event at slot `before` stands before the one at slot `after`."""

    before: int
    after: int
    word: str
    """Of the clause that asks for it."""


@dataclass(frozen=True)
class Bound:
    """A comparison `column of slot  sign  value`, where the value is that of another slot: an ordered index can serve it."""

    slot: int
    column: int
    sign: str
    value: SlotColumn
    slots: frozenset[int]
    text: str

    def decides(self, test: Test) -> bool:
        """The test is this comparison and nothing more: what the index finds satisfies it."""
        mine = SlotColumn(self.column, self.slot)
        both = NumberComparison(mine, self.sign, self.value), NumberComparison(self.value, SWAPPED[self.sign], mine)
        return any(same(test.condition, each) for each in both)


SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class NotedQueue:
    """The events that a clause notes: they are queued too, after the queues of members; `condition` tests one of them, at
    `slot`, with the members. Between `since` and `until`; before `until`, if `since` is None; or after `since`, for `within`
    microseconds, if `until` is None: then relations wait."""

    queue: int
    slot: int
    since: int | None
    until: int | None
    condition: Formula
    policy: NotedEventPolicy
    within: int = 0
    word: str = ""
    alias: str = ""
    """Of the clause, for people."""
    reads_members: bool = False
    """The condition reads more than the places of members."""
    forbids: bool = True
    """There can be such events."""

    @property
    def waits(self) -> bool:
        return self.until is None

    @property
    def searched(self) -> bool:
        """A search asks whether it forbids the members."""
        return not self.waits and not self.policy.early

    @property
    def compares_all(self) -> bool:
        """Every event that was noted may have to be compared with a relation."""
        policy = self.policy
        return self.reads_members or (policy.before and policy.timed and not policy.decisive)


@dataclass(frozen=True)
class Lane:
    """Concrete types whose events go the same way: into `queues` (those of noted events after those of members), by the key
    `key`. A lane without queues only tells the time, for what waits for a deadline."""

    types: tuple[str, ...]
    queues: tuple[int, ...]
    key: tuple[str, ...]
    timed: bool
    joined: tuple[tuple[str, ...], ...] = ()
    """Further keys, where queues name different ones: the lane is for events that have the same value in all of these and in
    `key`, and in no other key of their type. Such an event arrives once, in all the queues."""


@dataclass
class Shape:
    subscription: Subscription
    branch: Branch
    queue_of_slot: list[int]
    needed: list[int]
    lanes: list[Lane] = field(default_factory=list)
    columns: list[ValueColumn] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    required: list[tuple[int, int]] = field(default_factory=list)
    """(slot, column): an event can be the member at the slot only if the column is not NULL there."""
    helpers: list[str] = field(default_factory=list)
    """The functions of functions.py that the tests call."""
    noted: list[NotedQueue] = field(default_factory=list)
    whole_key: str | None = None
    """The key is one whole number (the type of its column): a kernel numbers it by itself where numbers lie close together."""
    ranked: bool = False
    """Texts are ordered: the kernel takes their ranks (keys.py), by number, after the value columns."""
    overlapping: bool = False
    """An event can sit in several queues."""
    equal: dict[int, Expression] = field(default_factory=dict)
    """By queue, the expression (slot 0) of the class of equal values that the hash index is on."""
    equal_slots: frozenset[int] = frozenset()
    equal_text: str = ""
    sequence: SequencePlan | None = None
    """What is searched, if the branch is a sequence."""
    virtual: list[int] = field(default_factory=list)
    """Of a sequence: slots after those of the branch, each with the slot whose type it has (running_values.py)."""
    runs: RunPlan = field(default_factory=RunPlan)
    """What is gathered beside the other members."""
    fold: FoldPlan | None = None
    """What is kept of the run, if it is folded."""
    table_columns: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By queue that is a table, the value columns of its key beside the value that the hash index is on."""

    @property
    def size(self) -> int:
        return len(self.queue_of_slot)

    @property
    def singles(self) -> list[int]:
        """The slots that are searched: those of runs follow from them."""
        return [slot for slot in range(self.size) if slot not in self.branch.runs]

    @property
    def queue_names(self) -> tuple[str, ...]:
        """The type of each queue: those of the members, then one for each clause that notes events."""
        return (*self.branch.queue_types, *(each.type for each in self.branch.noting))

    @property
    def stride(self) -> int:
        """Queues of one key."""
        return len(self.needed) + len(self.branch.noting)

    @property
    def recent(self) -> bool:
        return self.subscription.matching.recent

    @property
    def contiguous(self) -> bool:
        return self.subscription.matching.contiguous

    @property
    def disposal(self) -> Disposal:
        return self.subscription.disposal_of(self.branch)

    @property
    def anchored(self) -> bool:
        """Relations contain the newest event, by definition."""
        return self.subscription.is_anchored(self.branch)

    @property
    def every(self) -> bool:
        """Every relation is found, not only the first."""
        return self.subscription.matching.all

    @property
    def parted(self) -> bool:
        """A batch can end before its last row, where there is no room for what an event completes."""
        return self.every or bool(self.branch.runs)

    @property
    def relations_max(self) -> int:
        """The most relations that are looked for when an event arrives: without a limit, one more than there may be."""
        if not self.every:
            return 1
        return self.subscription.limit_per_event or LIMITS.relations_per_event_max + 1

    @property
    def waits(self) -> bool:
        """Relations wait for a deadline."""
        return bool(self.branch.waiting) or (self.sequence is not None and self.branch.timed)

    @property
    def windowed(self) -> bool:
        """Queued events leave by the clock of their key."""
        return self.subscription.is_clocked

    @property
    def horizons(self) -> tuple[Horizon, ...]:
        """Of each queue of members."""
        return horizons(self.subscription, self.branch)

    @property
    def unlike_horizons(self) -> bool:
        """Queues have horizons of their own, beside that of the window."""
        return self.windowed and any(each.span_us is not None or not each for each in self.horizons)

    def retention(self, queue: int) -> Retention | None:
        return self.branch.retention.get(self.branch.queue_types[queue])

    @property
    def timed(self) -> bool:
        """Times of events matter beside what conditions read of them."""
        limited = self.sequence is not None and self.sequence.limited
        return self.windowed or limited or any(each.timed for each in self.branch.noting)

    @property
    def paired(self) -> bool:
        """Some type goes several ways: rows come as pairs of row and lane."""
        types = [name for lane in self.lanes for name in lane.types]
        return len(types) != len(set(types))

    def keys_of(self, name: str) -> list[tuple[str, ...]]:
        """The keys of a concrete type: several where queues that it enters name different attributes."""
        return [lane.key for lane in self.lanes if name in lane.types and not lane.joined]

    def slots_of(self, queue: int) -> list[int]:
        return [slot for slot, each in enumerate(self.queue_of_slot) if each == queue]

    def queue_of(self, slot: int) -> int:
        if slot >= self.size and self.virtual:
            return self.queue_of_slot[self.virtual[slot - self.size]]
        return self.queue_of_slot[slot] if slot < self.size else len(self.needed) + slot - self.size

    def follows(self, slot: int) -> bool:
        """The slot is a further instance of the type of the slot before it."""
        return slot > 0 and self.queue_of_slot[slot - 1] == self.queue_of_slot[slot]

    def known_bit(self, column: int) -> int:
        return self.size + column

    def accept_bit(self, lane: Lane, queue: int) -> int:
        return ACCEPTED - lane.queues.index(queue)

    def equal_of(self, lane: Lane) -> list[Expression]:
        """What events of the lane are numbered by in the hash index: queues that share an event may name different values."""
        return list(dict.fromkeys(self.equal[queue] for queue in lane.queues if queue in self.equal))

    @property
    def equal_most(self) -> int:
        """The most values that events of one lane are numbered by."""
        return max((len(self.equal_of(lane)) for lane in self.lanes), default=0)

    def newest_slot(self, queue: int) -> int:
        """The newest event of a queue can only be the last instance of its type, or under RECENT the first one."""
        slots = self.slots_of(queue)
        return slots[0] if self.recent else slots[-1]


ACCEPTED = 62
TOO_MANY = "too many slots and value columns for the bits of an event"
"""The bit that says that the first queue of the lane accepts the event; those of further queues stand below it."""


def every_bit(shape: Shape, lane: Lane) -> int:
    """The bits of an event of the lane for which everything holds and nothing is NULL."""
    bits = sum(1 << shape.accept_bit(lane, queue) for queue in lane.queues)
    bits += sum(1 << slot for slot, queue in enumerate(shape.queue_of_slot) if queue in lane.queues)
    return bits + sum(1 << shape.known_bit(at) for at, column in enumerate(shape.columns) if column.queue in lane.queues)
