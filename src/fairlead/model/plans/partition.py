"""Which subscriptions run in one engine: the one rule, for every runtime.

A subscription means the same as alone with its upstream: the subscriptions, transitively, that emit the derived types it reads.
Events that other subscriptions derive must not move the places (`7+1`) of events that its own upstream derives. So

    1. Subscriptions with the same upstream are one unit, with silent copies of that upstream: these derive and deliver nothing.
       If the upstream has an absence, they also read the same types themselves: their input advances its clock (clocks.py).
    2. If an event derives at most one other (no type has two readers that derive, nothing waits), the place of a derived
       event is its distance from the logged one, whatever else runs. Then emitters and readers are one unit, without copies,
       together with all others for which this still holds. A chain of ten thousand is one unit.
    3. A subscription that reads only logged types and waits for nothing is independent: if it runs as a copy, it is
       delivered there; all others are in the first unit.

`since` says where each subscription began, which matters if it has an upstream or waits: those began together.

Takes: a plan. Gives: units, each with its own plan, whose `silent` subscriptions are not delivered. Never: changes what is
found.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from fairlead.dataclass import dataclass
from fairlead.errors import UnsupportedError
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.model.limits import LIMITS
from fairlead.model.plans.plan import Plan, Subscription

START = -1
"""The last position before the first event."""


@dataclass(frozen=True)
class Unit:
    """`frame`: identifies the numbering of places of derived events; empty if the unit is independent, else determined by the
    upstream. `numbers`: the numbers of its subscriptions in the whole plan."""

    plan: Plan
    frame: str
    since: int
    numbers: tuple[int, ...]
    begun_otherwise: Mapping[str, int] = field(default_factory=dict)
    """For independent subscriptions: where they began, if not with the others."""

    @property
    def delivered(self) -> list[Subscription]:
        return [each for each in self.plan.subscriptions if each.name not in self.plan.silent]

    @property
    def first(self) -> int:
        """The number in the whole plan of the first subscription that it delivers."""
        silent = self.plan.silent
        return min(at for at, each in zip(self.numbers, self.plan.subscriptions, strict=True) if each.name not in silent)

    def frame_of(self, subscription: Subscription) -> str:
        """The frame of its state: a subscription that does not need one order has no places of derived events in its state."""
        return self.frame if self.frame and needs_one_order(self.plan, subscription) else ""

    def begun(self, subscription: Subscription) -> int:
        """The last position before its first event."""
        return self.begun_otherwise.get(subscription.name, self.since)


@dataclass
class _Room:
    """A unit under construction, in which every event derives at most one other: by type, which of them do."""

    since: int
    counts: Counter[str] = field(default_factory=Counter)
    names: set[str] = field(default_factory=set)
    delivered: set[str] = field(default_factory=set)
    others: dict[str, int] = field(default_factory=dict)

    def has_place_for(self, counts: Mapping[str, int]) -> bool:
        return not any(name in self.counts for name in counts)

    def add(self, names: Iterable[str], delivered: Iterable[str], counts: Mapping[str, int]) -> None:
        self.names.update(names)
        self.delivered.update(delivered)
        self.counts.update(counts)


def partition(plan: Plan, since: Mapping[str, int] | None = None) -> tuple[Unit, ...]:
    """The units of a plan; the unit of the independent subscriptions comes first. Raises UnsupportedError."""
    begun = since or {}
    delivered = [each for each in plan.subscriptions if each.name not in plan.silent]
    moments: dict[int, list[Subscription]] = {}
    for each in delivered:
        moments.setdefault(begun.get(each.name, START), []).append(each)
    homes = {moment: _Room(moment) for moment in sorted(moments)}
    rooms, apart, placed = list(homes.values()), list[_Apart](), set[str]()
    for moment, room in homes.items():
        names_here = {each.name for each in moments[moment]}
        for names in _components(plan, [each for each in moments[moment] if plan.derived_types(each)]):
            counts, mine = derivations(plan, names), names & names_here
            if counts is None:  # 1
                mine = {name for name in mine if plan.derived_types(plan[name])}
                apart += _apart(plan, mine, moment)
            else:  # 2
                home = room if room.has_place_for(counts) else _Room(moment)
                home.add(names, mine, counts)
                rooms += [home] if home is not room else []
            placed |= mine
    for each in delivered:  # 3
        if each.name not in placed:
            first = next(iter(homes.values()))
            stays, moment = each.by_time, begun.get(each.name, START)
            copy = next((one for one in apart if each.name in one.above and one.since == moment), None)
            if copy is not None and not stays:
                copy.delivered.add(each.name)  # it runs there anyway
                continue
            home = homes[moment] if stays or each.name in first.names else first
            home.add((each.name,), (each.name,), {})
            home.others |= {each.name: moment} if moment != home.since else {}
    made = [_unit(plan, room.names, room.delivered, "", room.since, room.others) for room in rooms if room.names]
    units = [_unit(plan, {*each.above, *each.delivered}, each.delivered, each.frame, each.since) for each in apart]
    base, rest = made[:1], [*made[1:], *units]
    return (*base, *sorted(rest, key=lambda unit: unit.first))


def upstream_of(plan: Plan, *subscriptions: Subscription) -> frozenset[str]:
    """The subscriptions, transitively, that emit what these read."""
    found, waiting = set[str](), list(subscriptions)
    while waiting:
        above = _emitters(plan, waiting.pop()) - found
        found |= above
        waiting += [plan[name] for name in above]
    return frozenset(found)


def needs_one_order(plan: Plan, subscription: Subscription) -> bool:
    """Whether its branches need one order of everything that it reads: derived events and decisions of deadlines have places in
    it. Other branches are functions of the events of their own types, and other keys of those of the key."""
    return bool(plan.derived_types(subscription)) or subscription.waits


def needs_one_stream(plan: Plan, subscription: Subscription) -> bool:
    """Whether its branches must be matched together: they need one order, or a LIMIT counts the relations of all of them."""
    counted = subscription.limit is not None and len(subscription.branches) > 1
    return counted or needs_one_order(plan, subscription)


def logged_types(plan: Plan, names: Iterable[str]) -> frozenset[str]:
    """The concrete types of the log that some subscriptions read."""
    return _reads(plan, names) - plan.emitters.keys()


def alone(plan: Plan, names: Sequence[str]) -> Plan:
    """Some subscriptions of a plan, with silent copies of the subscriptions that they read from."""
    wanted = {*names, *upstream_of(plan, *(plan[name] for name in names))}
    chosen = tuple(each for each in plan.subscriptions if each.name in wanted)
    return replace(plan, subscriptions=chosen, guarantees={}, silent=frozenset(wanted - set(names)))


def derivations(plan: Plan, names: Iterable[str]) -> Counter[str] | None:
    """By type, how many events an event of it derives that one of these reads; None if some event can derive several, as with
    sequences, or something waits before it derives."""
    chosen = [plan[name] for name in names]
    read = {name for each in chosen for name in plan.derived_types(each)}
    counts: Counter[str] = Counter()
    for each in chosen:
        if each.emits not in read:
            continue
        for branch in each.branches:
            if branch.waiting or branch.sequence is not None or (each.matching.all and each.limit_per_event != 1):
                return None
            keys = dict(branch.keys)
            for name, _ in {(name, keys.get(named)) for named, name in _accepted(branch.queue_types, plan.catalogue)}:
                counts[name] += 1
                if counts[name] > 1:
                    return None
    return counts


def _accepted(named: Iterable[str], catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    for each in named:
        for name in catalogue.accepts(each):
            yield each, name


def _emitters(plan: Plan, subscription: Subscription) -> set[str]:
    return {one.name for name in plan.derived_types(subscription) for one in plan.emitters[name]}


def _components(plan: Plan, readers: Sequence[Subscription]) -> list[set[str]]:
    """Readers of derived types and their upstream, grouped into connected components; in the order of the text."""
    beside: dict[str, set[str]] = {}
    waiting = [each.name for each in readers]
    while waiting:
        name = waiting.pop()
        if name not in beside:
            beside[name] = _emitters(plan, plan[name])
            waiting += beside[name]
    below: dict[str, list[str]] = {}
    for name, above in beside.items():
        for each in above:
            below.setdefault(each, []).append(name)
    found, done = list[set[str]](), set[str]()
    for start in (each.name for each in plan.subscriptions if each.name in beside):
        if start in done:
            continue
        component, stack = set[str](), [start]
        while stack:
            name = stack.pop()
            if name not in component:
                component.add(name)
                stack += [*beside[name], *below.get(name, ())]
        done |= component
        found.append(component)
    return found


@dataclass
class _Apart:
    """A unit under construction, with copies of its upstream."""

    above: frozenset[str]
    delivered: set[str]
    frame: str
    since: int


def _apart(plan: Plan, names: set[str], since: int) -> Iterator[_Apart]:
    """One unit for the subscriptions with the same upstream, with copies of that upstream."""
    upstream = _upstreams(plan, names)
    together: dict[tuple[frozenset[str], frozenset[str]], list[str]] = {}
    for each in plan.subscriptions:
        if each.name in names:
            above = upstream[each.name]
            waits = any(plan[name].waits for name in above)
            together.setdefault((above, _reads(plan, (each.name,)) if waits else frozenset()), []).append(each.name)
    for (above, reads), mine in together.items():
        both = {*above, *mine}
        frame = "" if derivations(plan, both) is not None else _frame(plan, above, reads)
        yield _Apart(above, set(mine), frame, since)


def _upstreams(plan: Plan, names: set[str]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    copies = 0
    for each in plan.emitters_first:
        direct = _emitters(plan, each)
        found[each.name] = frozenset(direct).union(*(found[name] for name in direct)) if direct else frozenset()
        copies += len(found[each.name]) if each.name in names else 0
        if copies > LIMITS.copies_max:
            problem = f"subscriptions need more than {LIMITS.copies_max:,} copies of the subscriptions that they read from"
            raise UnsupportedError("U003", problem, "shorten the chains of EMIT, or split the rules")
    return found


def _reads(plan: Plan, names: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(plan[name].reads(plan.catalogue) for name in names)) - {HEARTBEAT.name}


def _frame(plan: Plan, upstream: Iterable[str], reads: Iterable[str]) -> str:
    told = [*sorted(plan[name].digest for name in upstream), *sorted(reads)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _unit(
    plan: Plan, names: set[str], delivered: set[str], frame: str, since: int, others: Mapping[str, int] | None = None
) -> Unit:
    """In the order of the text; if places are counted over several emitters, upstream comes first, by digest, so that the order
    of the text does not matter."""
    numbers = [number for number, each in enumerate(plan.subscriptions) if each.name in names]
    silent = frozenset(names - delivered)
    if frame:
        read = upstream_of(plan, *(plan[name] for name in names))
        above = sorted((plan.subscriptions[at].id_digest, at) for at in numbers if plan.subscriptions[at].name in read)
        numbers = [*(at for _, at in above), *(at for at in numbers if plan.subscriptions[at].name not in read)]
    chosen = tuple(plan.subscriptions[at] for at in numbers)
    if chosen == plan.subscriptions and silent == plan.silent:
        return Unit(plan, frame, since, tuple(numbers), others or {})
    own = replace(plan, subscriptions=chosen, guarantees={}, silent=silent, whole=plan.whole or plan)
    return Unit(own, frame, since, tuple(numbers), others or {})
