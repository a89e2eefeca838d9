"""Cases of the live simulation: the publishers, the subscribers and what fails, all of it a function of a seed.

Takes: a seed; a case that fails. Gives: a case; simpler ones. Never: reads anything but its seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from fairlead.dataclass import dataclass
from fairlead.testing.simulator.live.network import NetworkPlan

T = TypeVar("T")
TYPES = (
    "TOPIC left (A, B); TOPIC right (C);"
    + "".join(f"TYPE {name} (k INT, token STRING, at TIMESTAMP) TIME at;" for name in "ABC")
    + "TYPE Both (k INT, one STRING, other STRING);"
)
TOPICS = {"A": "left", "B": "left", "C": "right", "Both": "main"}
KEYS = 2
NOTES_MAX = 2


def types_with(notes: int) -> str:
    """The declarations, with so many attributes that are added while events flow."""
    return TYPES.replace("at TIMESTAMP)", f"at TIMESTAMP{''.join(f', note{at} STRING' for at in range(notes))})")


PAIR = "SUBSCRIPTION Pair MATCH A a AND B b PER k EMIT Both (k = a.k, one = a.token, other = b.token)"
AFTER = "SUBSCRIPTION After MATCH A a THEN B b PER k"
WIDE = "SUBSCRIPTION Wide MATCH A a AND C c PER k"
CHAIN = "SUBSCRIPTION Chain MATCH Both p AND Both q WHERE p.k < q.k"
MISSING = "SUBSCRIPTION Missing MATCH A a WITHOUT B b WITHIN 2 SECONDS OF a PER k"
EITHER = "SUBSCRIPTION Either MATCH (A a AND B b) OR (B d THEN B e) WHERE a.k = b.k AND d.k = e.k"
ROUTED = "SUBSCRIPTION Routed MATCH A a AND B b WHERE a.k = 1 AND b.k = 1"
STREAMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Pair", "After", "Missing", "Either", "Routed"), ("left",)),
    "Wide": ("left", "right"),
    "Chain": ("main",),
}
"""By subscription, the topics of the stream that it reads."""
MENU: tuple[tuple[str, ...], ...] = (
    (PAIR,),
    (PAIR, AFTER),
    (WIDE,),
    (AFTER, MISSING),
    (MISSING,),
    (ROUTED,),
    (PAIR, WIDE),
    (AFTER, ROUTED, WIDE),
    (EITHER,),
    (EITHER, PAIR),
)
ORDERS = (
    "ORDER BY at DELAY 200 MILLISECONDS",
    "ORDER BY at DELAY 200 MILLISECONDS LATE REVISE WITHIN 2 SECONDS",
    "ORDER BY at DELAY 200 MILLISECONDS AHEAD 60 SECONDS LATE REVISE WITHIN 2 SECONDS",
)
ORDERED_SHARE = 0.3
ORDERED_MENU: tuple[tuple[str, ...], ...] = (AFTER,), (PAIR,), (WIDE,), (PAIR, AFTER), (AFTER, WIDE)
LAGS_MS = 0, 0, 0, 150, 400, 1000, 1800, 4000
"""How far the time of an event is behind the clock, if subscribers have an order by time."""
EVOLVED_SHARE = 0.2
SWEPT_SHARE = 0.2
TRIMMED_SHARE = 0.3
TRIMMED_MENU: tuple[tuple[str, ...], ...] = (PAIR,), (AFTER,), (PAIR, AFTER), (AFTER, MISSING), (ROUTED,)
TRIMMED_STARTS = "earliest", "new", "snapshot"
STARTS = "earliest", "earliest", "new", "snapshot", "position", "datetime"
FAULTS = "crash", "crash", "pause", "cut", "stale", "skew"


@dataclass(frozen=True)
class Item:
    """An event to publish, then `gap_ms` of doing nothing. `wait`: until it is stored. `lag_ms`: how far its time is behind the
    clock. `notes`: how many added attributes its publisher declares before, unless it has, and has values for."""

    type: str
    key: int
    gap_ms: int = 0
    wait: bool = False
    lag_ms: int = 0
    notes: int = 0


@dataclass(frozen=True)
class ActorFault:
    """After so many steps of the process, counted from `moment`: its beginning, or the time number `turn` that it does this.
    `ms`: how long it lasts; of a skew, how far the clock is wrong from then on."""

    kind: str
    after: int
    ms: int
    moment: str = "begin"
    turn: int = 1


@dataclass(frozen=True)
class PublisherPlan:
    name: str
    items: tuple[Item, ...]
    faults: tuple[ActorFault, ...] = ()


@dataclass(frozen=True)
class SubscriberPlan:
    """`rules`: of its first process; `added`: of those after a crash, beside the first. `ack_every`: batches; `joins_ms`: when
    it starts; `slow_ms`: how long it works on each batch; `beside`: another subscriber of its client, without a name, has the
    same rules from the beginning; `order`: ORDER BY, or nothing."""

    name: str
    rules: tuple[str, ...]
    start: str = "earliest"
    joins_ms: int = 0
    ack_every: int = 1
    added: tuple[str, ...] = ()
    slow_ms: int = 0
    beside: bool = False
    faults: tuple[ActorFault, ...] = ()
    order: str = ""

    @property
    def all_rules(self) -> tuple[str, ...]:
        return self.rules + self.added


@dataclass(frozen=True)
class RetentionPlan:
    """A client that trims what all durable subscribers have read: so long after the beginning, then after each time before."""

    waits_ms: tuple[int, ...]
    faults: tuple[ActorFault, ...] = ()


@dataclass(frozen=True)
class SweepPlan:
    """A client that removes what no subscriber uses: so long after the beginning, then after each time before. `left`: there is
    a merged stream from the beginning, which was used before."""

    waits_ms: tuple[int, ...]
    faults: tuple[ActorFault, ...] = ()
    left: bool = False


@dataclass(frozen=True)
class Election:
    """The servers have no leader for a while."""

    at_ms: int
    ms: int


@dataclass(frozen=True)
class LiveCase:
    """`snapshots`: a state is saved after so many events."""

    seed: int
    publishers: tuple[PublisherPlan, ...]
    subscribers: tuple[SubscriberPlan, ...]
    network: NetworkPlan = NetworkPlan()
    elections: tuple[Election, ...] = ()
    snapshots: int = 5
    heartbeat_ms: int = 700
    retention: RetentionPlan | None = None
    sweeps: SweepPlan | None = None

    @property
    def size(self) -> int:
        """What shrinking makes smaller."""
        items = [item for each in self.publishers for item in each.items]
        rules = [rule for each in self.subscribers for rule in each.all_rules]
        plan = self.network
        return (
            5 * (len(self.publishers) + len(self.subscribers))
            + 2 * len(items)
            + sum((item.gap_ms > 0) + (item.lag_ms > 0) + item.notes for item in items)
            + 4 * sum(len(each.faults) for each in self.publishers)
            + 4 * sum(len(each.faults) for each in self.subscribers)
            + 4 * len(self.elections)
            + (0 if self.retention is None else 4 + 2 * len(self.retention.waits_ms) + 4 * len(self.retention.faults))
            + (0 if self.sweeps is None else 4 + self.sweeps.left + 2 * len(self.sweeps.waits_ms) + 4 * len(self.sweeps.faults))
            + 3 * len(rules)
            + sum(each.start != "earliest" for each in self.subscribers)
            + sum((each.order != "") + (each.joins_ms > 0) + (each.slow_ms > 0) + each.beside for each in self.subscribers)
            + (plan.loss > 0) + (plan.stray > 0) + (plan.again > 0)
        )  # fmt: skip


def live_case(seed: int) -> LiveCase:
    rolls = random.Random(f"case {seed}")
    harsh = rolls.random() < 0.7
    network = NetworkPlan(
        rolls.choice((1, 2, 10)),
        rolls.choice((0.0, 0.02, 0.1)) if harsh else 0.0,
        rolls.choice((0.0, 0.5, 0.9)),
        rolls.choice((0.0, 0.1)),
    )
    order = rolls.choice(ORDERS) if rolls.random() < ORDERED_SHARE else ""
    trims = not order and rolls.random() < TRIMMED_SHARE
    if trims:  # copies that arrive after the blocks were trimmed
        network = replace(network, again=rolls.choice((0.1, 0.5)))
    keys, lags = (1, LAGS_MS) if order else (KEYS, (0,))
    gaps = (0, 40, 400, 2500) if trims else (0, 0, 5, 40, 400)
    evolves = rolls.random() < EVOLVED_SHARE
    publishers = tuple(
        _publisher(rolls, f"p{number}", keys, lags, gaps, evolves) for number in range(rolls.choice((1, 2, 2, 3)))
    )
    subscribers = tuple(_subscribers(rolls, order, trims))
    swept = rolls.random() < SWEPT_SHARE
    return LiveCase(
        seed,
        publishers,
        subscribers,
        network,
        tuple(Election(rolls.randrange(3000), rolls.randrange(100, 4000)) for _ in range(rolls.choice((0, 0, 1)))),
        snapshots=rolls.choice((1, 3) if trims else (1, 4, 12)),
        heartbeat_ms=rolls.choice((600, 1500)),
        retention=_retention(rolls) if trims else None,
        sweeps=_sweeps(rolls) if swept else None,
    )


def _publisher(
    rolls: random.Random, name: str, keys: int, lags: Sequence[int], gaps: Sequence[int], evolves: bool
) -> PublisherPlan:
    types = rolls.choice(("AB", "ABC", "AC", "BC", "AABB"))
    waits = rolls.choice((0.0, 0.3, 1.0))
    items = tuple(
        Item(
            rolls.choice(types),
            rolls.randrange(keys),
            rolls.choice(gaps),
            rolls.random() < waits,
            rolls.choice(lags),
        )
        for _ in range(rolls.randrange(2, 10))
    )
    if evolves:
        borders = [rolls.randrange(len(items) + 1) for _ in range(NOTES_MAX)]
        items = tuple(replace(item, notes=sum(at >= border for border in borders)) for at, item in enumerate(items))
    return PublisherPlan(name, items, _faults(rolls, ("begin", "send", "write")))


def _sweeps(rolls: random.Random) -> SweepPlan:
    waits = tuple(rolls.choice((5, 50, 300, 2000)) for _ in range(rolls.randrange(1, 8)))
    return SweepPlan(waits, _faults(rolls, ("begin", "write")), rolls.random() < 0.7)


def _retention(rolls: random.Random) -> RetentionPlan:
    waits = tuple(rolls.choice((100, 700, 2500)) for _ in range(rolls.randrange(2, 6)))
    return RetentionPlan(waits, _faults(rolls, ("begin", "write")))


def _subscribers(rolls: random.Random, order: str, trims: bool) -> Iterator[SubscriberPlan]:
    """The first two or three have equal rules, so each also stores what the others derive; sometimes there is one only.
    Sometimes another reads what they emit."""
    rules = rolls.choice(ORDERED_MENU if order else TRIMMED_MENU if trims else MENU)
    starts = ("earliest",) if order else TRIMMED_STARTS if trims else STARTS
    added = rolls.choice(((), (), (AFTER,), (WIDE,)))
    for number in range(rolls.choice((1, 2, 2, 2, 3))):
        late = number > 0 and rolls.random() < 0.5
        yield SubscriberPlan(
            f"s{number}",
            rules,
            rolls.choice(starts) if late else "earliest",
            rolls.randrange(200, 4000) if late else 0,
            rolls.choice((1, 1, 2, 5)),
            tuple(each for each in added if each not in rules) if number == 0 and not trims else (),
            rolls.choice((0, 0, 30, 300)),
            rolls.random() < 0.2 and not trims,
            _faults(rolls, ("begin", "receive", "acknowledge", "write")),
            order,
        )
    if PAIR in rules and rolls.random() < 0.4:
        yield SubscriberPlan("chain", (CHAIN,), faults=_faults(rolls, ("begin", "receive")))


def _faults(rolls: random.Random, moments: Sequence[str]) -> tuple[ActorFault, ...]:
    found = []
    for _ in range(rolls.choice((0, 0, 1, 2, 3))):
        kind = rolls.choice(FAULTS)
        ms = rolls.randrange(-300_000, 300_000) if kind == "skew" else rolls.choice((20, 500, 3000, 9000))
        moment = rolls.choice(moments)
        after = rolls.randrange(
            1, rolls.choice((3, 3, 10) if moment == "write" else (10, 60, 400 if moment == "begin" else 10))
        )
        turn = rolls.randrange(1, 9) if moment == "write" else rolls.choice((1, 1, 2, 3, 5))
        found.append(ActorFault(kind, after, ms, moment, turn))
    return tuple(found)


def smaller_cases(case: LiveCase) -> Iterator[LiveCase]:
    """Simpler cases, the much simpler ones first."""
    for publishers in _without_one(case.publishers):
        yield replace(case, publishers=publishers)
    for subscribers in _without_one(case.subscribers):
        yield replace(case, subscribers=subscribers)
    for elections in _without_one(case.elections):
        yield replace(case, elections=elections)
    if case.retention is not None:
        yield replace(case, retention=None)
        for faults in _without_one(case.retention.faults):
            yield replace(case, retention=replace(case.retention, faults=faults))
        for waits in _without_one(case.retention.waits_ms):
            yield replace(case, retention=replace(case.retention, waits_ms=waits))
    if case.sweeps is not None:
        yield replace(case, sweeps=None)
        if case.sweeps.left:
            yield replace(case, sweeps=replace(case.sweeps, left=False))
        for faults in _without_one(case.sweeps.faults):
            yield replace(case, sweeps=replace(case.sweeps, faults=faults))
        for waits in _without_one(case.sweeps.waits_ms):
            yield replace(case, sweeps=replace(case.sweeps, waits_ms=waits))
    plan = case.network
    for simpler in (replace(plan, loss=0.0), replace(plan, stray=0.0), replace(plan, again=0.0)):
        yield replace(case, network=simpler)
    for at, publisher in enumerate(case.publishers):
        for one in _smaller_publishers(publisher):
            yield replace(case, publishers=(*case.publishers[:at], one, *case.publishers[at + 1 :]))
    for at, subscriber in enumerate(case.subscribers):
        for other in _smaller_subscribers(subscriber):
            yield replace(case, subscribers=(*case.subscribers[:at], other, *case.subscribers[at + 1 :]))


def _smaller_publishers(plan: PublisherPlan) -> Iterator[PublisherPlan]:
    half = len(plan.items) // 2
    if half:
        yield replace(plan, items=plan.items[:half])
        yield replace(plan, items=plan.items[half:])
    for items in _without_one(plan.items):
        yield replace(plan, items=items)
    for faults in _without_one(plan.faults):
        yield replace(plan, faults=faults)
    for at, item in enumerate(plan.items):
        for simpler in (replace(item, gap_ms=0), replace(item, lag_ms=0), replace(item, notes=0)):
            if simpler != item:
                yield replace(plan, items=(*plan.items[:at], simpler, *plan.items[at + 1 :]))


def _smaller_subscribers(plan: SubscriberPlan) -> Iterator[SubscriberPlan]:
    for faults in _without_one(plan.faults):
        yield replace(plan, faults=faults)
    if plan.added:
        yield replace(plan, added=())
    for rules in _without_one(plan.rules):
        if rules:
            yield replace(plan, rules=rules)
    if plan.beside:
        yield replace(plan, beside=False)
    if plan.slow_ms:
        yield replace(plan, slow_ms=0)
    if plan.joins_ms:
        yield replace(plan, joins_ms=0)
    if plan.start != "earliest":
        yield replace(plan, start="earliest")


def _without_one(some: Sequence[T]) -> Iterator[tuple[T, ...]]:
    for at in range(len(some)):
        yield (*some[:at], *some[at + 1 :])
