"""Early deliveries of matchers over generated sequences: with what is confirmed, they are at any time what sorting the events
so far gives, however these arrive, are settled and shared."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.matching.results.delivery_order import ids_of
from fairlead.model.events.columns import Columns
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.relations.identity import to_hex
from fairlead.model.relations.relation import Relation
from fairlead.runtime.event_time import EventTimeMatcher
from fairlead.runtime.event_time.tentative_run import RunLimits
from fairlead.runtime.live.core.early import EarlyMatcher, LineageRuns, SharedRuns, no_turns
from tests.runtime.event_time.sequences import (
    PLANS,
    TYPES,
    Record,
    as_microseconds,
    at,
    batch_ids,
    compiled,
    judged,
    read,
    sequence,
    stored_times,
)

ORDERS = (
    "ORDER BY at DELAY 2 SECONDS ",
    "ORDER BY at, k DESC DELAY 3 SECONDS AHEAD 2 SECONDS ",
    "ORDER BY TIME DELAY 2 SECONDS PER SOURCE IDLE 4 SECONDS ",
    "ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 3 SECONDS ",
    "ORDER BY at DELAY 3 SECONDS AHEAD 2 SECONDS LATE REVISE WITHIN 100 SECONDS ",
)
LIMITS = (RunLimits(2, 3, 1), RunLimits(4, 2, 2), RunLimits(7, 16, 8), RunLimits())
ALONE = "SUBSCRIPTION S MATCH C c WHERE c.k = 1"
EVENT_BITS = 0
"""Every event is a round of its own, so that no cut goes through one."""


class DrawnSequence:
    """A sequence as columns, and what it comes to by definition."""

    def __init__(self, plan: fairlead.Plan, records: list[Record], random: Random) -> None:
        self.plan = plan
        self.drawn = len(records)
        stored = stored_times(records, random)
        beats = [at(10_000), at(20_000)]  # the second releases the first
        self.records, times = [*records, *({"type": "Heartbeat", "at": each} for each in beats)], [*stored, *beats]
        (self.columns,) = read(plan, self.records)
        self.stored = np.array(as_microseconds(times), dtype=np.int64)
        self.accepted = judged(plan, self.records, times)

    def cut(self, random: Random, low: int = 0) -> list[tuple[int, int]]:
        """From where to where: batches that go to the matcher."""
        made = []
        while low < len(self.records):
            high = min(len(self.records), low + random.choice((1, 1, 2, 5, 20)))
            made.append((low, high))
            low = high
        return made

    def ids(self, count: int) -> list[str]:
        """Of the relations of the first events that take part, sorted."""
        mine = [
            each
            for each, verdict in zip(self.records[:count], self.accepted.verdicts, strict=False)
            if verdict is EventVerdict.IN_ORDER
        ]
        return sorted(batch_ids(self.plan, mine))


class FollowingSubscriber:
    """Follows a sequence in its own batches. `shown`: by id, the sum of early signs; `confirmed`: of the others."""

    def __init__(self, given: DrawnSequence, random: Random, limits: RunLimits, runs: LineageRuns, **arguments: Any) -> None:
        self.given, self.random, self.limits, self.runs, self.arguments = given, random, limits, runs, arguments
        self.first = EventTimeMatcher(given.plan, EVENT_BITS, **arguments)
        self.shown, self.confirmed = dict[str, int](), dict[str, int]()
        self.left = given.cut(random)
        self.at = 0
        self.begin()

    def begin(self) -> None:
        """As a subscriber that returns: nothing is early but what is found from here on."""
        self.early = EarlyMatcher(self.first, self.runs, limits=self.limits, **self.arguments)
        self.shown = dict(self.confirmed)

    def reload(self) -> None:
        self.first = EventTimeMatcher.load(self.given.plan, self.first.dump(), EVENT_BITS, **self.arguments)
        self.begin()

    def step(self) -> None:
        low, self.at = self.left.pop(0)
        columns, stored = self.given.columns.part(low, self.at), self.given.stored[low : self.at]
        found = self.first.step(columns, stored, closed=True)
        self.take_early(self.early.step(columns, stored, found.relations))
        for each in found.relations:
            self.confirmed[each.id] = self.confirmed.get(each.id, 0) + each.sign
            assert self.confirmed[each.id] in (0, 1)
        assert all(self.shown.get(each) for each, count in self.confirmed.items() if count)

    def settle(self) -> None:
        self.take_early(self.early.settle())
        assert self.early.is_settled

    def settle_by_definition(self) -> None:
        """And compare with the sorted events, unless another subscriber has given the run more of them."""
        self.settle()
        assert [each.id for each in self.early.open.relations] == to_hex(self.early.open.ids)
        still_open = (each for each, count in self.shown.items() if count > self.confirmed.get(each, 0))
        assert sorted(to_hex(self.early.open.ids)) == sorted(still_open)
        assert self.early.run is not None
        if self.early.run.last == self.at - 1:
            assert self.held(self.shown) == self.given.ids(self.at)

    def take_early(self, found: Sequence[Relation]) -> None:
        for each in found:
            assert each.early
            self.shown[each.id] = self.shown.get(each.id, 0) + each.sign
            assert self.shown[each.id] in (0, 1), "each is delivered once, and taken back once"

    @staticmethod
    def held(counts: dict[str, int]) -> list[str]:
        return sorted(each for each, count in counts.items() if count)


def followed(
    given: DrawnSequence, random: Random, subscribers: int, limits: RunLimits, settles: float, **arguments: Any
) -> None:
    """Subscribers of one client in any order, which settle now and then, and restart."""
    runs = SharedRuns().of("lineage")
    following = [FollowingSubscriber(given, random, limits, runs, **arguments) for _ in range(subscribers)]
    while left := [each for each in following if each.left]:
        one = random.choice(left)
        one.step()
        if random.random() < settles:
            (one.settle_by_definition if random.random() < 0.3 else one.settle)()
        if random.random() < 0.04:
            one.reload()
    for each in following:
        each.settle()
        assert each.held(each.shown) == each.held(each.confirmed) == given.ids(len(given.records))
        assert not len(each.early.open)


@given(
    st.integers(0, 2**32),
    st.sampled_from(ORDERS),
    st.sampled_from([*sorted(PLANS), "alone"]),
    st.sampled_from(LIMITS),
    st.sampled_from((1.0, 0.5, 0.1)),
)
def test_what_is_early_folds_to_the_sorted_events_so_far(
    seed: int, order: str, name: str, limits: RunLimits, settles: float
) -> None:
    random, plan = Random(seed), compiled(TYPES + order + (PLANS | {"alone": ALONE})[name])
    drawn = DrawnSequence(plan, sequence(random, random.randrange(30), late=random.choice((0, 0.1, 0.6))), random)
    followed(drawn, random, random.choice((1, 1, 2, 3)), limits, settles)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
def test_on_kernels_too(seed: int) -> None:
    random = Random(seed)
    plan = compiled(TYPES + ORDERS[seed % len(ORDERS)] + PLANS[sorted(PLANS)[seed % len(PLANS)]])
    followed(DrawnSequence(plan, sequence(random, 60), random), random, 2, LIMITS[seed % len(LIMITS)], 0.5, kernels_from=0)


@given(st.integers(0, 2**32), st.sampled_from(ORDERS), st.sampled_from(sorted(PLANS)))
def test_batches_one_by_one_and_all_at_once_lead_to_the_same(seed: int, order: str, name: str) -> None:
    random, plan = Random(seed), compiled(TYPES + order + PLANS[name])
    drawn = DrawnSequence(plan, sequence(random, 24), random)
    ends = random.sample(range(1, len(drawn.records)), 3)
    opened = []
    for size in (1, 1000):
        one = FollowingSubscriber(drawn, random, random.choice(LIMITS), LineageRuns(no_turns))
        one.left = []
        for low, high in zip([0, *sorted(ends)], [*sorted(ends), len(drawn.records)], strict=True):
            one.left = [(at, min(high, at + size)) for at in range(low, high, size)]
            while one.left:
                one.step()
                if size == 1:
                    one.settle()
            one.settle()
            opened.append((high, to_hex(one.early.open.ids), one.held(one.shown)))
    assert opened[: len(ends) + 1] == opened[len(ends) + 1 :]


def in_order(count: int, every: float, behind: Any = lambda number: 0) -> list[Record]:
    made = []
    for number in range(count):
        told = {"type": "AB"[number % 2], "k": 0, "x": 0, "_source": "p", "_sequence": number}
        made.append(told | {"at": at(10 + number * every - behind(number))})
    return made


PAIRS = compiled(TYPES + ORDERS[0] + PLANS["pairs"])
BETWEEN = compiled(TYPES + "ORDER BY at DELAY 8 SECONDS " + PLANS["between"])


def test_events_in_order_are_fed_once() -> None:
    drawn = DrawnSequence(PAIRS, in_order(400, 0.1), Random(1))
    one = FollowingSubscriber(drawn, Random(1), RunLimits(8, 4, 2), LineageRuns(no_turns))
    one.step()
    one.settle()
    begun = one.early.run
    assert begun is not None
    while one.left:
        one.step()
        one.settle()
    assert one.early.run is begun
    assert begun.fed <= len(drawn.records)


@pytest.mark.parametrize("disorder", [0.05, 0.5, 1.9])
def test_what_is_fed_again_is_in_proportion_to_the_disorder(disorder: float) -> None:
    """Not to the delay, nor to what has arrived so far."""
    random, size = Random(2), 10
    drawn = DrawnSequence(PAIRS, in_order(600, 0.01, lambda _: random.random() * disorder), random)
    one = FollowingSubscriber(drawn, random, RunLimits(20, 16, 1), LineageRuns(no_turns))
    one.left = [(low, min(low + size, drawn.drawn)) for low in range(0, drawn.drawn, size)]
    most, before = 0, 0
    while one.left:
        one.step()
        one.settle()
        assert one.early.run is not None
        most, before = max(most, one.early.run.fed - before), one.early.run.fed
    reach = disorder / 0.01 + size
    assert most <= 4 * max(reach, 20) + size


@pytest.mark.parametrize("late", [0, 0.3])
def test_what_is_kept_does_not_grow(late: float) -> None:
    random, limits = Random(3), RunLimits(16, 4, 2)
    drawn = DrawnSequence(PAIRS, sequence(random, 800, late=late), random)
    one = FollowingSubscriber(drawn, random, limits, LineageRuns(no_turns))
    kept = []
    while one.left:
        one.step()
        one.settle()
        assert one.early.run is not None
        assert len(one.early.run.segments) <= limits.segments_max
        kept.append(sum(map(len, one.early.run.segments)))
    assert max(kept) < 300


def test_runs_are_shared_by_those_at_the_same_place_and_gone_with_the_last_of_them() -> None:
    random = Random(4)
    drawn = DrawnSequence(PAIRS, sequence(random, 100), random)
    runs = SharedRuns().of("lineage")
    one, other, behind = (FollowingSubscriber(drawn, Random(5), RunLimits(4, 3, 1), runs) for _ in range(3))
    for _ in range(5):
        for each in (one, other):
            each.step()
            each.settle()
    assert one.early.run is other.early.run
    assert one.early.open is other.early.open
    fed = one.early.run.fed if one.early.run is not None else 0
    behind.step()
    behind.settle()  # it is too far behind, so it has a run of its own
    assert behind.early.run is not one.early.run
    assert (0 if one.early.run is None else one.early.run.fed) == fed
    while behind.at < one.at:
        behind.step()
    behind.settle()
    assert behind.early.run is one.early.run
    assert len(list(runs)) == 1
    del one, other, behind, each
    assert not list(runs)


@pytest.mark.parametrize("when", range(4))
def test_who_is_interrupted_leaves_no_broken_run_to_others(when: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(when)
    drawn = DrawnSequence(PAIRS, sequence(random, 60), random)
    runs = SharedRuns().of("lineage")
    one, other = (FollowingSubscriber(drawn, Random(6), RunLimits(4, 3, 2), runs) for _ in range(2))
    for _ in range(when + 1):
        for each in (one, other):
            each.step()
            each.settle()
    feed = Engine.feed

    def interrupted(engine: Engine, columns: Columns, *more: Any) -> Any:
        if engine is not one.first.engine:
            feed(engine, columns, *more)
            raise StateError("S115", "stopped", "subscribe again")
        return feed(engine, columns, *more)

    one.left = [(one.at, drawn.drawn)]
    one.step()
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "feed", interrupted)
        with pytest.raises(StateError):
            one.settle()
    while other.left:
        other.step()
        other.settle()
    assert other.held(other.shown) == other.held(other.confirmed) == drawn.ids(len(drawn.records))
    one.settle()  # and it may try again


def test_early_relations_are_a_sequence() -> None:
    random = Random(7)
    drawn = DrawnSequence(BETWEEN, sequence(random, 120, late=0.7), random)
    one = FollowingSubscriber(drawn, random, RunLimits(), LineageRuns(no_turns))
    taken_back = 0
    while one.left:
        one.step()
        found = one.early.settle()
        one.take_early(found)
        told = [(each.sign, each.id) for each in found]
        taken_back += sum(sign < 0 for sign, _ in told)
        assert len(found) == len(told)
        assert told == [(found[number].sign, found[number].id) for number in range(len(told))]
        for some in (slice(None), slice(1, None), slice(None, -1), slice(0, None, 2), slice(1, 5, 3), slice(None, None, -1)):
            assert [(each.sign, each.id) for each in found[some]] == told[some]
            assert all(each.early for each in found[some])
        assert len(ids_of(found)) == len(told)
    assert taken_back
