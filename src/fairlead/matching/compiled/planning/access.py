"""How a search reaches the events of each slot: the plan of indexes of a branch. (What it costs: cost.py.)

For every queue that the newest event can enter, the slots are bound in signature order, the newest event's first. A slot is
reached by the best of: the hash index (an equality with a bound slot), the ordered index (a comparison with bound slots), the
neighbour (CONTIGUOUS), the head of its queue (nothing to test), or a walk along the queue.

Takes: a shape. Gives: `Accesses`. Never: makes code (search.py does) or says what it costs (cost.py does).
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.planning.runs.kept_values import KeptValues
from fairlead.matching.compiled.planning.runs.run_plan import can_complete
from fairlead.matching.compiled.planning.shape import Bound, Shape, Test, ValueColumn
from fairlead.matching.compiled.representation.contents import columns_read
from fairlead.model.events.types import Kind
from fairlead.model.expressions.expression import Field


class Way(Enum):
    """How the events of a slot are reached."""

    NEWEST = "newest"
    HASH = "hash"
    TREE = "tree"
    NEIGHBOUR = "neighbour"
    ORDER = "order"
    """By place in the order alone; a search has no need to distinguish it from HEAD, its cost has (cost.py)."""
    HEAD = "head"
    WALK = "walk"


@dataclass(frozen=True)
class Access:
    """One slot of one search."""

    slot: int
    way: Way
    partner: int = -1
    """The bound slot whose value is looked up in the hash index."""
    bound: Bound | None = None
    served: str = ""
    """The predicate that the index serves, in the user's words."""


@dataclass(frozen=True)
class Tree:
    """The ordered index of a queue: on a value column, for `<` (its least values) or `>`; or on the order alone."""

    column: int | None
    sign: str = ""
    slot: int = -1


class ShortKey(Enum):
    """How 32 bits hold a key."""

    UPPER = "upper"
    """Its upper half: of a float that is sign, exponent and 20 binary digits."""
    ENTIRE = "entire"


@dataclass(frozen=True)
class ChainKey:
    """What the events of a queue are compared by along a chain of the hash index: for `<` the least values count."""

    column: int
    sign: str
    slot: int
    form: ShortKey | None


class Accesses:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def searches(self) -> list[int | None]:
        """The searches that a kernel needs: by the queue of the newest event, None for one over everything."""
        found: list[int | None] = [queue for queue in range(len(self.shape.needed)) if self.is_possible(queue)]
        if self.shape.runs:
            bound = [queue for queue in found if not self.is_free(queue)]
            return ([None] if len(bound) < len(found) else []) + bound
        return ([None] if can_be_loose(self.shape) or self.shape.overlapping else []) + found

    def is_possible(self, queue: int) -> bool:
        """The newest event of a queue can complete a relation: nothing has to stand after it."""
        if queue in self.shape.table_columns:
            return False
        if self.shape.runs:
            return can_complete(self.shape, queue)
        return all(order.before != self.shape.newest_slot(queue) for order in self.shape.orders)

    def is_free(self, queue: int | None) -> bool:
        """Beside runs: the newest event of the queue may be at several slots, or in a run. All is searched with it."""
        return queue is None or self.shape.overlapping or queue in self.shape.runs.queues

    def bound_before(self, slot: int, newest: int | None) -> frozenset[int]:
        bound = frozenset() if newest is None else frozenset({self.shape.newest_slot(newest)})
        return bound | frozenset(range(slot))

    @cached_property
    def trees(self) -> dict[int, Tree]:
        """The ordered index of each queue that has one."""
        shape = self.shape
        wanted: dict[int, Counter[Tree]] = {}
        for newest in self.searches():
            for slot in shape.singles:
                bound = self.bound_before(slot, newest)
                if slot in bound or self._partner(slot, bound) is not None or self._is_neighbour(slot, newest):
                    continue
                for each in self._bounds(slot, bound):
                    tree = Tree(each.column, each.sign[0], slot)
                    wanted.setdefault(shape.queue_of_slot[slot], Counter())[tree] += 1
        chosen = {queue: max(found, key=lambda tree: (found[tree], -tree.slot)) for queue, found in wanted.items()}
        for queue in self._ordered():
            chosen.setdefault(queue, Tree(None))
        return chosen

    @cached_property
    def chained(self) -> dict[int, ChainKey]:
        """The value whose least is known of each chain of the hash index, by queue: a search that needs less need not walk."""
        shape = self.shape
        wanted: dict[int, Counter[ChainKey]] = {}
        for newest in self.searches():
            for slot in shape.singles:
                if self.of(slot, newest).way is Way.HASH:
                    for each in self._bounds(slot, self.bound_before(slot, newest)):
                        key = ChainKey(each.column, each.sign[0], slot, _short_key(shape.columns[each.column]))
                        wanted.setdefault(shape.queue_of_slot[slot], Counter())[key] += 1
        return {queue: max(found, key=lambda key: (found[key], -key.slot)) for queue, found in wanted.items()}

    def chain_bound(self, slot: int, newest: int | None) -> Bound | None:
        """The comparison that may say at once that no event of a chain can be at the slot."""
        key = self.chained.get(self.shape.queue_of_slot[slot])
        if key is not None and self.of(slot, newest).way is Way.HASH:
            for each in self._bounds(slot, self.bound_before(slot, newest)):
                if (key.column, key.sign, key.slot) == (each.column, each.sign[0], slot):
                    return each
        return None

    def _ordered(self) -> set[int]:
        """Queues in which the first event after another (or the last before it) is looked for."""
        queues = set()
        for order in self.shape.orders:
            queues.add(self.shape.queue_of_slot[order.before if self.shape.recent else order.after])
        return queues | {each.queue for each in self.shape.noted if each.searched}

    def _bounds(self, slot: int, bound: frozenset[int]) -> list[Bound]:
        return [each for each in self.shape.bounds if each.slot == slot and each.slots <= bound]

    def _partner(self, slot: int, bound: frozenset[int]) -> int | None:
        partners = sorted(self.shape.equal_slots & bound) if slot in self.shape.equal_slots else []
        return partners[0] if partners else None

    def _is_neighbour(self, slot: int, newest: int | None) -> bool:
        """Under CONTIGUOUS only one event can follow an instance, or lead up to the newest event of its queue."""
        shape = self.shape
        return shape.contiguous and (shape.follows(slot) or (newest == shape.queue_of_slot[slot] and not shape.recent))

    def of(self, slot: int, newest: int | None) -> Access:
        shape, bound = self.shape, self.bound_before(slot, newest)
        if newest is not None and slot == shape.newest_slot(newest):
            return Access(slot, Way.NEWEST)
        if self._is_neighbour(slot, newest):
            return Access(slot, Way.NEIGHBOUR)
        partner = self._partner(slot, bound)
        if partner is not None:
            return Access(slot, Way.HASH, partner, served=shape.equal_text)
        tree = self.trees.get(shape.queue_of_slot[slot])
        for each in self._bounds(slot, bound):
            if tree is not None and (tree.column, tree.sign, tree.slot) == (each.column, each.sign[0], slot):
                return Access(slot, Way.TREE, bound=each, served=each.text)
        return Access(slot, Way.WALK if self.tests_at(slot, newest) or slot in self.chosen_bits else Way.HEAD)

    @cached_property
    def chosen_bits(self) -> frozenset[int]:
        """Slots for which it must be tested that an event of the queue can stand there at all."""
        shape = self.shape
        unary = {slot for each in shape.branch.predicates if each.is_unary for slot in each.slots}
        required = {slot for slot, _ in shape.required}
        return frozenset(
            slot
            for slot in range(shape.size)
            if slot in required
            or (slot in unary and slot in shape.branch.read)
            or (len(mine := shape.slots_of(shape.queue_of_slot[slot])) > 1 and unary & set(mine))
        )

    @cached_property
    def kept(self) -> KeptValues:
        """What is kept of the queues of runs."""
        return KeptValues(self.shape.runs, self.chosen_bits)

    def tests_at(self, slot: int, newest: int | None) -> list[Test]:
        """The tests whose last open slot is this one; slot -1: those that the newest event alone decides."""
        bound = None if newest is None else self.shape.newest_slot(newest)
        found = []
        for test in self.shape.tests:
            open_slots = test.slots - {bound} if bound is not None else test.slots
            if (max(open_slots) if open_slots else (0 if bound is None else -1)) == slot:
                found.append(test)
        return found

    def tests_left(self, slot: int, newest: int | None) -> list[Test]:
        """Those at a slot that its index does not decide."""
        found = self.tests_at(slot, newest)
        if slot < 0:
            return found
        access = self.of(slot, newest)
        if access.way is Way.HASH:
            return [each for each in found if not self._is_chained(each, slot, access.partner)]
        return [each for each in found if access.bound is None or not access.bound.decides(each)]

    def _is_chained(self, test: Test, slot: int, partner: int) -> bool:
        """It says that the value of the slot is that of its partner, for which its chain is chosen: equal values, and only
        those, have equal numbers."""
        return test.equal is not None and all(
            each in (slot, partner)
            and each in self.shape.equal_slots
            and self.shape.equal[self.shape.queue_of_slot[each]] == value
            for each, value in test.equal
        )

    @cached_property
    def explosive(self) -> list[int | None]:
        """The searches in which a loop can continue inside another that does: their steps are counted, so that they
        can be reduced."""
        return [] if self.shape.parted else [newest for newest in self.searches() if self._explodes(newest)]

    def _explodes(self, newest: int | None) -> bool:
        ways = [self.of(slot, newest) for slot in range(self.shape.size)]
        loops = [each.slot for each in ways if each.way not in (Way.NEWEST, Way.NEIGHBOUR)]
        return any(
            self.depends(outer, newest) and any(self._goes_on(inner, newest) for inner in loops if inner > outer)
            for outer in loops
        )

    def _goes_on(self, slot: int, newest: int | None) -> bool:
        """More than one event can be visited until one passes, or until there is none."""
        way = self.of(slot, newest).way
        bits = slot in self.chosen_bits and way is not Way.TREE
        ordered = any(slot in (each.before, each.after) for each in self.shape.orders)
        return bits or ordered or bool(self.tests_left(slot, newest)) or self.depends(slot, newest)

    @cached_property
    def stored(self) -> frozenset[int]:
        """The columns that some search reads of queued events; of others, the newest event's value alone matters."""
        read = {(column, -1) for each in self.shape.noted for column, _ in columns_read(each.condition)}
        read |= {(column, -1) for each in self.shape.runs.formulas for column, _ in columns_read(each)}
        read |= {(column, -1) for columns in self.shape.table_columns.values() for column in columns}
        for newest in self.searches():
            mine = None if newest is None else self.shape.newest_slot(newest)
            if newest in self.explosive:  # a reduced search has the newest event in a node too
                read |= {(column, -1) for test in self.shape.tests for column, _ in columns_read(test.condition)}
            for slot in (-1, *self.shape.singles):
                bound = (self.of(slot, newest).bound or self.chain_bound(slot, newest)) if slot >= 0 else None
                tested = [each.condition for each in self.tests_left(slot, newest)] + ([bound.value] if bound else [])
                found = {pair for each in tested for pair in columns_read(each)}
                read |= {(column, there) for column, there in found if there != mine}
        return frozenset(column for column, _ in read)

    def depends(self, slot: int, newest: int | None) -> bool:
        """Whether another event at this slot could help where the slots after it failed."""
        shape = self.shape
        if shape.parted or any(each.searched for each in shape.noted):
            return True
        later = [each for each in range(slot + 1, shape.size) if newest is None or each != shape.newest_slot(newest)]
        if any(slot in test.slots and test.slots & set(later) for test in shape.tests):
            return True
        if shape.contiguous and slot + 1 in later and shape.follows(slot + 1):
            return True
        eased = [(o.after, o.before) if not shape.recent else (o.before, o.after) for o in shape.orders]
        return any(mine == slot and other in later for mine, other in eased)


def _short_key(column: ValueColumn) -> ShortKey | None:
    if column.is_double:
        return ShortKey.UPPER
    narrow = isinstance(column.expression, Field) and column.expression.kind in (Kind.INT, Kind.DATE)
    return ShortKey.ENTIRE if narrow else None


def leaves_loose(shape: Shape) -> bool:
    """After a match a relation without the newest event may be ready (see matching/interpreted/matcher.py)."""
    from fairlead.model.plans.options import Disposal

    if shape.anchored or shape.runs:
        return False
    return shape.disposal in (Disposal.FIRST_PREFIX, Disposal.ADVANCE) or (
        shape.contiguous and (shape.disposal is Disposal.INFIX or shape.overlapping)
    )


def can_be_loose(shape: Shape) -> bool:
    """Bit 0 of flags is ever set; without it, there is nothing but searches for relations with the newest event."""
    return leaves_loose(shape) or (shape.contiguous and shape.windowed and not shape.anchored)
