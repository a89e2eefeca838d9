"""How the candidate events of each slot are reduced before any of them is tried: a plan for one search.

A depth-first search (search.py, codegen/searches/search.py) is fast as long as its attempts succeed; if they fail repeatedly,
its steps multiply. Then the candidates of all slots are reduced instead, by semi-joins (Yannakakis 1981; arc consistency): a
candidate stays only if some candidate of the other slot satisfies all conditions between them. One pass over an *edge*, a pair
of open slots with conditions between them, is linear if these are a place in the order and one comparison (`Narrow.is_linear`).

In a graph of edges without circles two sweeps, from the leaves to a root and back, leave only candidates that are in some
relation. So the first candidate of the first slot is right; it is fixed, candidates that it excludes elsewhere are removed, and
the next slot's first is right too: no candidate is tried in vain. If there are circles, or conditions on three open slots
(which are ignored until two of them are open), a fixed candidate can turn out wrong: then the next is tried.

Takes: the slots that each condition reads. Gives: stages of steps. Stage 0 begins; stage i follows the fixing of open slot i.
Never: sees an event. The relation found is the first in signature order, since slots are fixed in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.dataclass import dataclass


@dataclass(frozen=True)
class SlotComparison:
    """`left sign right`, where each side reads one slot."""

    left: int
    sign: str
    right: int


@dataclass(frozen=True)
class Constraint:
    """A test that can run once `slots` are bound. `order`: the first precedes the second; `beside`: the second is the neighbour
    of the first in their queue, in the direction of the matching."""

    slots: frozenset[int]
    link: SlotComparison | None = None
    order: tuple[int, int] | None = None
    beside: tuple[int, int] | None = None


@dataclass(frozen=True)
class Filter:
    """Candidates of `slot` stay if they satisfy all of `tests` (numbers of constraints) with the slots that are fixed."""

    slot: int
    tests: tuple[int, ...]


@dataclass(frozen=True)
class Narrow:
    """Candidates of `slot` stay if some candidate of `partner` satisfies all of `tests` with them."""

    slot: int
    partner: int
    tests: tuple[int, ...]
    side: int
    """-1: the partner must come before, 1: after, 0: anywhere."""
    link: int = -1
    """The comparison among the tests, if there is one and it is the only test beside the place."""
    beside: int = 0
    """-1, 1: the partner can only be the neighbour of that side (counted in the direction of the matching)."""
    always: bool = False
    """Even if the partner lost no candidate in this stage."""

    @property
    def is_exact(self) -> bool:
        """Whether place and comparison are the only tests."""
        return self.link >= 0 or not self.tests

    @property
    def is_linear(self) -> bool:
        return self.is_exact or self.beside != 0


@dataclass(frozen=True)
class Stage:
    filters: tuple[Filter, ...]
    narrows: tuple[Narrow, ...]
    is_forest: bool


class Reduction:
    """The stages of one search."""

    def __init__(self, size: int, newest: int | None, constraints: Sequence[Constraint]) -> None:
        self.size, self.newest, self.constraints = size, newest, constraints
        self.open = [slot for slot in range(size) if slot != newest]
        self.before = _closed(each.order for each in constraints if each.order is not None)
        fixed = frozenset() if newest is None else frozenset({newest})
        self.given = tuple(at for at, each in enumerate(constraints) if each.slots <= fixed)
        """The constraints that are decided before the search."""
        self.stages = [self._stage(fixed, None)]
        for slot in self.open[:-1]:
            fixed |= {slot}
            self.stages.append(self._stage(fixed, slot))

    @property
    def wide(self) -> int:
        """How many slots are fixed in vain at worst: those after which circles or conditions on three open slots are left."""
        last = 0
        fixed = frozenset() if self.newest is None else frozenset({self.newest})
        for at, stage in enumerate(self.stages):
            fixed |= {self.open[at - 1]} if at else frozenset()
            if not stage.is_forest or any(len(each.slots - fixed) > 2 for each in self.constraints):
                last = at + 1
        return last

    @property
    def is_linear(self) -> bool:
        """Whether every pass is linear."""
        return all(narrow.is_linear for stage in self.stages for narrow in stage.narrows)

    def _stage(self, fixed: frozenset[int], just: int | None) -> Stage:
        """`just`: the slot that was fixed last; None for the first stage, in which everything is new."""
        alone: dict[int, list[int]] = {}
        edges: dict[tuple[int, int], list[int]] = {}
        for at, each in enumerate(self.constraints):
            left = sorted(each.slots - fixed)
            if len(left) == 1 and (just is None or just in each.slots):
                alone.setdefault(left[0], []).append(at)
            elif len(left) == 2:
                edges.setdefault((left[0], left[1]), []).append(at)
        filters = tuple(Filter(slot, tuple(tests)) for slot, tests in sorted(alone.items()))
        opened = [slot for slot in self.open if slot not in fixed]
        order = _outwards(opened, edges, sorted(alone) if just is not None else [])
        rank = {slot: at for at, slot in enumerate(order)}
        inwards: list[Narrow] = []
        outwards: list[Narrow] = []
        for pair, tests in sorted(edges.items(), key=lambda item: _ranks(item[0], rank)):
            near, far = sorted(pair, key=rank.__getitem__)
            fresh = just is None or any(just in self.constraints[at].slots for at in tests)
            inwards += self._narrows(near, far, tests, fresh)
            outwards += self._narrows(far, near, tests, fresh)
        inwards.sort(key=lambda each: -rank[each.partner])
        outwards.sort(key=lambda each: rank[each.partner])
        return Stage(filters, (*inwards, *outwards), _is_forest(edges))

    def _narrows(self, slot: int, partner: int, tests: list[int], always: bool) -> list[Narrow]:
        """Several conditions on a pair: each comparison by itself first, since that is cheap."""
        side = -1 if (partner, slot) in self.before else 1 if (slot, partner) in self.before else 0
        rest = tuple(at for at in tests if self.constraints[at].order is None)
        for at in rest:
            beside = self.constraints[at].beside
            if beside is not None:
                more = tuple(each for each in rest if each != at)
                return [Narrow(slot, partner, more, side, beside=1 if beside == (slot, partner) else -1, always=always)]
        links = [at for at in rest if self.constraints[at].link is not None]
        made = [Narrow(slot, partner, (at,), side, at, always=always) for at in links]
        if len(rest) == 1 and links:
            return made
        return [*made, Narrow(slot, partner, rest, side, always=always)]


def _closed(orders: Iterable[tuple[int, int]]) -> frozenset[tuple[int, int]]:
    """The orders with all that follow from them (Warshall: a branch of 64 events has up to 2,016 of them)."""
    after: dict[int, set[int]] = {}
    for one, two in orders:
        after.setdefault(one, set()).add(two)
    for middle in sorted(after):
        for reached in after.values():
            if middle in reached:
                reached |= after[middle]
    return frozenset((one, two) for one, reached in after.items() for two in reached)


def reduced_orders(orders: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The orders without those that follow from others. Orders in a circle, which nothing satisfies, stay."""
    known = _closed(orders)
    if any(a == b for a, b in known):
        return sorted(known)
    return sorted(
        (a, b) for a, b in known if not any((a, middle) in known and (middle, b) in known for middle in {d for _, d in known})
    )


def _outwards(slots: list[int], edges: Iterable[tuple[int, int]], roots: list[int]) -> list[int]:
    """Breadth first along the edges."""
    beside: dict[int, list[int]] = {slot: [] for slot in slots}
    for a, b in sorted(edges):
        beside[a].append(b)
        beside[b].append(a)
    order: list[int] = []
    reached: set[int] = set()
    for root in (*roots, *slots):
        waiting = [] if root in reached else [root]
        reached.add(root)
        while waiting:
            slot = waiting.pop(0)
            order.append(slot)
            more = [each for each in beside[slot] if each not in reached]
            reached |= set(more)
            waiting += more
    return order


def _ranks(pair: tuple[int, int], rank: dict[int, int]) -> tuple[int, int]:
    low, high = sorted(rank[slot] for slot in pair)
    return low, high


def _is_forest(edges: Iterable[tuple[int, int]]) -> bool:
    parent: dict[int, int] = {}

    def root(slot: int) -> int:
        while parent.setdefault(slot, slot) != slot:
            slot = parent[slot]
        return slot

    for a, b in edges:
        one, two = root(a), root(b)
        if one == two:
            return False
        parent[one] = two
    return True
