"""What an arriving event costs on a kernel: which index serves which predicate, and the bound that results.

Bounds are upper bounds (cost_bound.py), expected ones where a tree is asked (ordered_index.py). The number of members is a
constant.

The search is nested loops (search.py), so a bound is a sum over the slots: how often a loop is entered, times how many
events it visits until one passes, times what a step costs. A loop continues after a failure further in only where another
event could help (`Accesses.depends`).

Takes: a shape. Gives: `Arrival`s with steps and bounds, as data. Never: runs anything, or words it (cost_words.py).
"""

from __future__ import annotations

from collections.abc import Hashable

from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.searches.search import Searching
from fairlead.matching.compiled.planning.access import Access, Accesses, Way, can_be_loose
from fairlead.matching.compiled.planning.arrival import (
    Arrival,
    BarredBy,
    Branching,
    ByHash,
    ByNeighbour,
    ByOrder,
    ByTree,
    Cause,
    EqualKeys,
    Excess,
    FirstQueued,
    Leaving,
    NextQueued,
    Note,
    NotedFor,
    Plainly,
    ReadsMembers,
    Step,
    Walked,
)
from fairlead.matching.compiled.planning.costs.cost_bound import (
    LOG,
    ONE,
    C,
    Cost,
    K,
    N,
    W,
    lengths_of,
    plus,
    power_of,
    size_of,
    times,
)
from fairlead.matching.compiled.planning.family import family_key
from fairlead.matching.compiled.planning.runs.run_cost import RunCosts
from fairlead.matching.compiled.planning.shape import Lane, NotedQueue, Refused, Shape, Test
from fairlead.matching.compiled.planning.shape_builder import shape_of
from fairlead.matching.reduction import Reduction
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import (
    Call,
    Compare,
    Expression,
    Field,
    PositionOf,
    Predicate,
    TimeOf,
    at_slot_zero,
    render,
    render_condition,
    slots_of,
)
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Plan


class Costs:
    """The costs of one branch."""

    def __init__(self, shape: Shape, catalogue: Catalogue) -> None:
        self.shape, self.catalogue, self.accesses = shape, catalogue, Accesses(shape)
        self.searching = Searching(shape, self.accesses, Layout(shape, self.accesses))
        self.names = shape.branch.alias_names()
        self.runs = RunCosts(shape, self.accesses)
        self.noted = [each for each in shape.noted if each.forbids]
        self.between = [each for each in shape.noted if each.searched]

    def arrivals(self) -> list[Arrival]:
        return [self._arrival(lane) for lane in self.shape.lanes]

    def leaving(self) -> Leaving:
        """What it costs that events leave, by disposal or by the window."""
        return Leaving(LOG if self.accesses.trees else ONE, N if self.shape.windowed else None, self.shape.waits)

    def loosely(self) -> Cost | None:
        """The bound of a search over everything, where one can follow a match or an expiry."""
        return self.search(None) if can_be_loose(self.shape) and not self.shape.overlapping else None

    def _arrival(self, lane: Lane) -> Arrival:
        shape = self.shape
        if not lane.queues:
            return Arrival(lane.types, (), ONE, (Plainly.TELLS_TIME,))
        tables = [queue for queue in lane.queues if queue in shape.table_columns]
        members = [queue for queue in lane.queues if queue < len(shape.needed) and queue not in tables]
        notes: list[Note] = [EqualKeys((lane.key, *lane.joined))] if lane.joined else []
        costs = [LOG if set(lane.queues) & set(self.accesses.trees) else ONE]
        steps: tuple[Step, ...] = ()
        early = [each for each in shape.noted if each.policy.early and shape.queue_of(each.policy.anchor) in members]
        costs += [C if each.compares_all else ONE for each in early]
        notes += [BarredBy(each.word, each.alias, each.compares_all) for each in early]
        if members:
            newest = members[0] if len(members) == 1 else None
            if newest is None or self.accesses.is_possible(newest):
                newest = None if shape.runs and self.accesses.is_free(newest) else newest
                costs.append(self.search(newest))
                steps = tuple(
                    self.step(slot, newest) for slot in range(shape.size) if slot in self.searching.order.opened(newest)
                )
                notes += self.runs.notes()
                if shape.overlapping and shape.disposal is not Disposal.FIRST_PREFIX:
                    costs.append(N)
                    notes.append(Plainly.OVERLAPS)
                if shape.waits and self.noted:
                    costs.append(C)
                notes += [] if not shape.waits else [Plainly.WAITS if self.noted else Plainly.IS_DELAYED]
            else:
                notes.append(Plainly.IS_QUEUED)
            if len(members) > 1:
                notes.append(Plainly.IS_SEVERAL)
        if tables:
            notes.append(Plainly.REPLACES)
        for each in self.noted:
            if each.queue in lane.queues:
                costs += [W] if each.waits else []
                notes.append(NotedFor(each.word, each.alias, each.waits))
        return Arrival(lane.types, steps, plus(*costs), tuple(notes))

    # The search

    def search(self, newest: int | None) -> Cost:
        """For one search; `newest` None: over everything."""
        accesses, opened = self.accesses, sorted(self.searching.order.opened(newest))
        reached = {slot: accesses.of(slot, newest) for slot in opened}
        fallible = {slot: bool(self._tests(slot, newest) or self._bits(reached[slot])) for slot in opened}
        firm = not any(fallible.values()) and not any(each.way is Way.NEIGHBOUR for each in reached.values())
        unordered = {slot for slot in opened if not firm and self._order_texts(slot, newest)}
        cost = plus(ONE, *(self._unspoilt(each) for each in self.between))
        again = bool(self.shape.runs) and (self.runs.can_fail or not firm)
        if self.shape.runs and (again or not opened):
            cost = plus(cost, self.runs.each(newest, opened))
        fails = bool(self.between) or again
        for slot in reversed(opened):
            cost = self._loop(reached[slot], newest, slot in unordered, fails, cost)
            fails = fails or fallible[slot] or slot in unordered
        nested = plus(cost, self.runs.last if self.shape.runs else ONE, *(LOG for _ in self.searching.order.timely(newest)))
        if newest not in accesses.explosive:
            return nested
        asks = any(each.way is Way.TREE or self.searching.order.ahead(each.slot, newest) for each in reached.values())
        reduced = self._reduced(self.searching.semijoins.plans[newest], asks)
        return min(nested, reduced, key=size_of)

    def _reduced(self, plan: Reduction, asks: bool) -> Cost:
        """After some steps for each queued event, which may each ask a tree, a search is reduced: linear passes, or passes over
        pairs, as often as a candidate can be fixed in vain."""
        passes = plus(N if plan.is_linear else times(N, N), times(N, LOG) if asks else ONE)
        for _ in range(plan.wide):
            passes = times(N, passes)
        for each in self.between:
            passes = times(passes, self._unspoilt(each))
        return passes

    def _loop(self, access: Access, newest: int | None, unordered: bool, fails: bool, inner: Cost) -> Cost:
        """One slot. `unordered`: the first may be on the wrong side of THEN; `fails`: what is further in may fail."""
        slot, shape = access.slot, self.shape
        again = (fails or shape.every) and access.way is not Way.NEIGHBOUR and self.accesses.depends(slot, newest)
        first = not self._rest(access, newest) and not self._bits(access) and not unordered
        reach = {Way.HASH: K, Way.NEIGHBOUR: ONE}.get(access.way, N)
        visited = times(ONE if first and not again else reach, LOG if access.way is Way.TREE else ONE)
        start = LOG if self.searching.order.ahead(slot, newest) else ONE
        if access.way is Way.HASH and shape.follows(slot) and slot - 1 not in shape.equal_slots:
            start = plus(start, K)
        return plus(start, visited, times(reach if again else ONE, inner))

    def _bits(self, access: Access) -> list[str]:
        """What is tested of each event alone, whether it can stand at the slot; a tree has only those that can, and a chain of
        the hash index only those whose value is there."""
        shape, slot = self.shape, access.slot
        if slot not in self.accesses.chosen_bits or access.way is Way.TREE:
            return []
        mine = [each for each in shape.branch.predicates if each.slots == (slot,)]
        several = len(shape.slots_of(shape.queue_of_slot[slot])) > 1
        found = [each.text or render_condition(each.condition, self.names) for each in mine if several]
        answered = shape.equal.get(shape.queue_of_slot[slot]) if access.way is Way.HASH else None
        needed = [_whole(shape.columns[at].expression) for each, at in shape.required if each == slot]
        open_ones = [each for each in needed if each != answered and self._can_be_null(each, slot)]
        found += [f"{_plain(render(each, [self.names[slot]]))} IS NOT NULL" for each in open_ones]
        return list(dict.fromkeys(found))

    def _can_be_null(self, expression: Expression, slot: int) -> bool:
        """All but places and times, and the attribute that TIME names."""
        schema = self.catalogue[self.shape.branch.slots[slot].type]
        timed = isinstance(expression, Field) and schema.time_attribute == expression.attribute
        return not timed and not isinstance(expression, TimeOf | PositionOf)

    @staticmethod
    def _unspoilt(noted: NotedQueue) -> Cost:
        return plus(LOG, C if noted.compares_all else ONE)

    def _tests(self, slot: int, newest: int | None) -> list[Test]:
        """The tests of a slot. That no event is two members at once (tests without a text) fails once for each other member."""
        return [each for each in self.accesses.tests_at(slot, newest) if each.text]

    def _rest(self, access: Access, newest: int | None) -> list[Test]:
        """The tests of a slot that its index does not answer."""
        tests = self._tests(access.slot, newest)
        if access.way is Way.TREE and access.bound is not None:
            whole = {each.text for each in self.shape.branch.predicates if _single(each)}
            return [each for each in tests if not (each.text in whole and each.text == access.bound.text)]
        if access.way is Way.HASH:
            equal = {each.text for each in self.shape.branch.predicates if self._in_class(each)}
            return [each for each in tests if each.text not in equal]
        return tests

    def _in_class(self, predicate: Predicate) -> bool:
        """An equality between two members of the class that the hash index is on."""
        atom = _single(predicate)
        return (
            isinstance(atom, Compare)
            and atom.operator == "="
            and all(self._has_class(each) for each in (atom.left, atom.right))
        )

    def _has_class(self, side: Expression) -> bool:
        slots = slots_of(side)
        if len(slots) != 1:
            return False
        (slot,) = slots
        return slot in self.shape.equal_slots and self.shape.equal.get(self.shape.queue_of_slot[slot]) == at_slot_zero(side)

    # How members are reached

    def step(self, slot: int, newest: int | None) -> Step:
        shape, access, name = self.shape, self.accesses.of(slot, newest), self.names[slot]
        rest = [each.text for each in self._rest(access, newest)]
        rest = rest or self._bits(access)
        orders = self._order_texts(slot, newest)
        if access.way is Way.TREE and access.bound is not None:
            column = shape.columns[access.bound.column]
            return ByTree(name, (access.served,), tuple(rest), _plain(render(column.expression, [name])))
        if access.way is Way.HASH:
            index = _plain(render(shape.equal[shape.queue_of_slot[slot]], [name]))
            return ByHash(name, (access.served,), (*rest, *orders), index)
        if access.way is Way.NEIGHBOUR:
            back = shape.follows(slot) and not (newest == shape.queue_of_slot[slot] and not shape.recent)
            return ByNeighbour(name, (), (*rest, *orders), self.names[slot - 1] if back else "")
        if rest or (shape.every and not orders):
            return Walked(name, (), (*rest, *orders))
        if orders:
            return ByOrder(name, tuple(orders))
        if shape.follows(slot) and slot - 1 in self.searching.order.opened(newest):
            return NextQueued(name, after=self.names[slot - 1], older=shape.recent)
        return FirstQueued(name, newest=shape.recent)

    def _order_texts(self, slot: int, newest: int | None) -> list[str]:
        """The order between this slot and others that are still open."""
        opened = self.searching.order.opened(newest)
        mine = [each for each in self.shape.orders if slot in (each.before, each.after) and {each.before, each.after} <= opened]
        return list(dict.fromkeys(f"{self.names[each.before]} {each.word} {self.names[each.after]}" for each in mine))


LENGTHS_MAX = 1
"""More lengths of queues multiplied with each other are warned of."""


def excess(shape: Shape, catalogue: Catalogue) -> Excess | None:
    """None if no search can take more than O(n log n) steps."""
    costs = Costs(shape, catalogue)
    worst: Excess | None = None
    most = LENGTHS_MAX
    for newest in costs.accesses.searches():
        cost = costs.search(newest)
        if lengths_of(cost) > most:
            most = lengths_of(cost)
            name = None if newest is None else shape.queue_names[newest]
            worst = Excess(name, shape.overlapping, cost, _cause(costs, newest, cost))
    return worst


def _cause(costs: Costs, newest: int | None, cost: Cost) -> Cause:
    if costs.shape.every:
        return Branching.EVERY
    if costs.shape.runs:
        return Branching.RUNS
    if power_of(cost) <= LENGTHS_MAX or newest not in costs.accesses.explosive:
        return ReadsMembers(next((each.word for each in costs.between), "a clause"))
    plan = costs.searching.semijoins.plans[newest]
    if any(len(each.slots) > 2 for each in plan.constraints):
        return Branching.WIDE
    return Branching.CIRCLE if plan.wide else Branching.COMPARISONS


def _single(predicate: Predicate) -> object:
    """The one atom that a predicate consists of, or None."""
    terms = predicate.condition.terms
    return terms[0][0] if len(terms) == 1 and len(terms[0]) == 1 else None


def _plain(text: str) -> str:
    """Without the parentheses around all of it."""
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _whole(expression: Expression) -> Expression:
    """Of a DECIMAL that comes as two words, what people wrote."""
    return expression.arguments[0] if isinstance(expression, Call) and expression.function.endswith(" word") else expression


def may_take_long(plan: Plan) -> bool:
    """Whether some event of the plan can cost more than the logarithm of what is queued: then a batch can take any time. What
    has no kernel is matched event by event, at whatever cost."""
    try:
        return _may_take_long(plan)
    except Refused:
        return True


def _may_take_long(plan: Plan) -> bool:
    known: set[Hashable] = set()
    for subscription in plan.subscriptions:
        for branch in (each for each in subscription.branches if not each.folded):
            family = family_key(subscription, branch)
            if family is None or family not in known:
                known.add(family)
                costs = Costs(shape_of(subscription, branch, plan.catalogue), plan.catalogue)
                found = {costs.loosely() or ONE, *(each.cost for each in costs.arrivals())}
                if not found <= {ONE, LOG}:
                    return True
    return False
