"""Generated cases of early deliveries against a model that is written from the documentation alone (docs/live-order.md, "Not
waiting"; docs/semantics.md, "Order by value" and "Revisions"; tests/runtime/event_time/definition.py).

A case is a sequence of events in blocks, and subscribers that read it in portions of any size, some of them empty. They settle
now and then, dump their state anywhere, acknowledge, are killed, and resume from an older state. The model:

    1. a delivery is early or confirmed; of each id, early ones alternate between delivered and taken back, and so do confirmed
    2. what is confirmed has been delivered early before; and what is left of it has been given early, too
    3. when a subscriber has settled, what it has been given early is left of it what all events so far are matched to, sorted
    4. in the end nothing is open
    5. the confirmed deliveries are those of a matcher without early ones, under the same ids in the same order, by the same
       events; and those of the definition
    6. what a subscriber has acknowledged is neither early nor confirmed again

    python -m tests.runtime.live.core.early_cases --runs 1000 --seed 1

prints the seeds of the cases that fail.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import fairlead
from fairlead.dataclass import dataclass
from fairlead.model.relations.relation import Relation
from fairlead.runtime.event_time import EventTimeMatcher
from fairlead.runtime.event_time.reviser import SegmentLimits
from fairlead.runtime.event_time.tentative_run import RunLimits
from fairlead.runtime.live.core.early import EarlyMatcher, LineageRuns, SharedRuns
from tests.runtime.event_time.definition import (
    NOTHING,
    RULES,
    TYPES,
    DefinedOrder,
    DefinedRule,
    Label,
    Record,
    defined,
    defined_so_far,
    rules_text,
)
from tests.runtime.event_time.test_definition import ORDERS, SECOND, START, batches, generated

MORE_ORDERS = {
    "long delay": DefinedOrder(delay=8 * SECOND),
    "long delay, revised": DefinedOrder((("x", False),), 8 * SECOND, revise=5 * SECOND),
    "long delay by source": DefinedOrder((("k", True),), 6 * SECOND, idle=3 * SECOND, ahead=6 * SECOND),
    "no delay": DefinedOrder(delay=NOTHING),
}
EARLY_ORDERS = ORDERS | MORE_ORDERS
EARLY_RULES = (
    *(each for each in RULES if each.types == "ABC"),
    DefinedRule("Alone", "ABC", "SUBSCRIPTION Alone MATCH A a OR B b OR C c WHERE c.k = 1\n"),
    DefinedRule("First", "ABC", "SUBSCRIPTION First MATCH A a OR B b OR C c LIMIT 4\n"),
    DefinedRule("Near", "ABC", "SUBSCRIPTION Near MATCH A a AND B b OR C c[2] PER k WITHIN 1 SECOND\n"),
    DefinedRule("All", "ABC", "SUBSCRIPTION All MATCH A a THEN B b OR A a THEN C c MATCHING ALL WITHIN 1 SECOND\n"),
    DefinedRule("Silent", "ABC", "SUBSCRIPTION Silent MATCH A a WITHOUT B b WITHIN 2 SECONDS OF a CLOCK BY C PER k\n"),
    DefinedRule("Before", "ABC", "SUBSCRIPTION Before MATCH A a THEN C c WITHOUT B b BEFORE a WITHIN 2 SECONDS PER k\n"),
    DefinedRule("Runs", "ABC", "SUBSCRIPTION Runs MATCH A a+ THEN B b THEN C c PER k WITHIN 4 SECONDS\n"),
)
LIMITS = (RunLimits(2, 3, 1), RunLimits(4, 2, 2), RunLimits(7, 16, 8), RunLimits())
Confirmed = tuple[int, int, str]
"""The event by which it was released, its sign, its id."""


@dataclass(frozen=True, eq=False)
class SavedState:
    """A dump, after so many events and confirmed deliveries."""

    dumped: bytes
    at: int
    count: int


class EarlyCase:
    """One sequence and its definition. `blocks`: where they end."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"early {seed}")
        order = random.choice(sorted(EARLY_ORDERS))
        self.order, self.rule = EARLY_ORDERS[order], random.choice(EARLY_RULES)
        self.label = f"{order}, {self.rule.name}"
        self.plan = fairlead.compile(TYPES + rules_text(self.order, [self.rule]))
        self.bits = random.choice((0, 0, 2, 3))
        self.arguments: dict[str, Any] = {"rejects": True, "limits": SegmentLimits(events=random.choice((2, 8)), kept_max=4)}
        self.engine: dict[str, Any] = {} if random.random() < 0.9 else {"kernels_from": 0}
        last = {"_source": "p", "_stored": START + 2000 * SECOND, "type": "Heartbeat"}
        ends = [{"at": START + each * SECOND, **last} for each in (1000.05, 1900.05)]  # the second releases the first
        self.records: list[Record] = [*generated(random, random.choice((6, 30, 60))), *ends]
        (self.columns,) = batches(self.plan, self.records, _Whole(), "at")
        step = 1 << self.bits
        self.blocks = [*range(step, len(self.records), step), len(self.records)]
        self._so_far, self.counts = dict[int, Counter[Label]](), Counter[str]()
        matcher = self.matcher()
        found = matcher.step(self.columns, self.columns.stored, closed=True)
        self.confirmed = _confirmed(found, self.rule.name)
        self.counts.update("confirmed" if sign > 0 else "revised" for _, sign, _ in self.confirmed)
        rounds = [at >> self.bits for at in range(len(self.records))]
        told = defined(self.order, [self.rule], self.records, rounds).of(self.rule.name)
        mine = [each for each in found.relations if each.subscription == self.rule.name]
        assert [(each.sign, label(each)) for each in mine] == [(sign, members) for sign, _, members in told], "definition"

    def matcher(self) -> EventTimeMatcher:
        return EventTimeMatcher(self.plan, self.bits, **self.arguments, **self.engine)

    def loaded(self, dumped: bytes) -> EventTimeMatcher:
        return EventTimeMatcher.load(self.plan, dumped, self.bits, **self.arguments, **self.engine)

    def so_far(self, count: int) -> Counter[Label]:
        if count not in self._so_far:
            self._so_far[count] = Counter(defined_so_far(self.order, self.rule, self.records[:count]))
        return self._so_far[count]


class _Whole(Random):
    """Draws the whole sequence as one batch."""

    def choice(self, seq: Sequence[Any]) -> Any:
        return seq[-1]


def label(relation: Relation) -> Label:
    return tuple(event["n"] for event in relation.members)


def _confirmed(found: Any, name: str) -> list[Confirmed]:
    return [
        (by, each.sign, each.id)
        for by, each in zip(found.by.tolist(), found.relations, strict=True)
        if each.subscription == name
    ]


class ModelledSubscriber:
    """Follows a case, and is held against the model. `shown`, `left`: by id, what is left of early and of confirmed deliveries;
    `labels`: of the ids."""

    def __init__(self, case: EarlyCase, random: Random, limits: RunLimits, runs: LineageRuns) -> None:
        self.case, self.random, self.limits, self.runs = case, random, limits, runs
        self.labels = dict[str, Label]()
        self.first, self.at, self.count = case.matcher(), 0, 0
        """`count`: deliveries of the matcher so far, of all subscriptions of the plan."""
        self.given: list[tuple[str, Confirmed]] = []
        """All confirmed deliveries, with the subscription."""
        self.acknowledged = 0
        self.saved = [SavedState(self.first.dump(), 0, 0)]
        self._begin()

    def _begin(self) -> None:
        known = self.acknowledged - self.count
        self.early = EarlyMatcher(self.first, self.runs, known=known, limits=self.limits, **self.case.engine)
        self.shown, self.left, self.been = Counter[str](), Counter[str](), set[str]()
        for name, (_, sign, each) in self.given[: self.acknowledged]:
            if name == self.case.rule.name:
                self.shown[each] += sign
                self.left[each] += sign

    def restart(self) -> None:
        """Killed, and back: from a state that is not after what it has acknowledged."""
        possible = [each for each in self.saved if each.count <= self.acknowledged]
        state = self.random.choice((possible[-1], self.random.choice(possible)))
        self.first, self.at, self.count = self.case.loaded(state.dumped), state.at, state.count
        self.saved = [each for each in self.saved if each.at <= state.at]
        del self.given[self.acknowledged :]
        self._begin()

    def save(self) -> None:
        self.saved.append(SavedState(self.first.dump(), self.at, self.count))

    def acknowledge(self) -> None:
        self.acknowledged = self.random.choice((len(self.given), self.random.randint(self.acknowledged, len(self.given))))

    @property
    def is_done(self) -> bool:
        return self.at == len(self.case.records)

    def step(self) -> None:
        """The next blocks; sometimes none has an event of these types."""
        ends = [each for each in self.case.blocks if each > self.at]
        size = self.random.choice((0, 1, 1, 2, 5, 20))
        high = ends[min(size, len(ends)) - 1] if size else self.at
        columns = self.case.columns.part(self.at, high)
        found = self.first.step(columns, columns.stored, closed=True)
        early = self.early.step(columns, columns.stored, found.relations)
        assert not len(early) or self.count + len(found.relations) >= self.acknowledged, "6: early before what is acknowledged"
        self._take_early(early)
        self.at = high
        for by, each in zip(found.by.tolist(), found.relations, strict=True):
            self.count += 1
            told = each.subscription, (by, each.sign, each.id)
            if self.count <= self.acknowledged:
                assert self.given[self.count - 1] == told, "what is read again is the same"
                continue
            self.given.append(told)
            if each.subscription == self.case.rule.name:
                self._confirm(each)
        if self.count >= self.acknowledged:
            assert all(self.shown[each] for each, number in self.left.items() if number), "2: left, and not given early"

    def _confirm(self, each: Relation) -> None:
        assert not each.early
        self.left[each.id] += each.sign
        assert self.left[each.id] in (0, 1), "1: confirmed twice"
        assert each.sign < 0 or each.id in self.been, "2: confirmed, and never early"
        self.labels[each.id] = label(each)

    def _take_early(self, found: Sequence[Relation]) -> None:
        for each in found:
            assert each.early
            if each.subscription == self.case.rule.name:
                self.shown[each.id] += each.sign
                assert self.shown[each.id] in (0, 1), "1: early twice"
                self.been.add(each.id)
                self.case.counts["early" if each.sign > 0 else "taken back"] += 1
                self.labels[each.id] = label(each)

    def settle(self) -> None:
        early = self.early.settle()
        assert not len(early) or self.count >= self.acknowledged, "6: early before what is acknowledged"
        self._take_early(early)
        assert self.early.is_settled
        assert not len(self.early.settle())
        if self.early.run is not None and self.early.run.last == self.first.buffer.last:  # no other one has given it more
            left = Counter(self.labels[each] for each, number in self.shown.items() if number)
            assert left == self.case.so_far(self.at), "3: not what is known so far"
            self.case.counts["compared"] += 1

    def finish(self) -> None:
        self.settle()
        assert +self.shown == +self.left, "4: open in the end"
        assert not len(self.early.open)
        mine = [told for name, told in self.given if name == self.case.rule.name]
        assert mine == self.case.confirmed, "5: other deliveries than without early ones"


def follow(seed: int) -> Counter[str]:
    """Runs one case; returns how many deliveries of each kind it has, and how often they were compared."""
    case = EarlyCase(seed)
    random, runs = case.random, SharedRuns().of("lineage")
    limits, settles = random.choice(LIMITS), random.choice((1.0, 0.5, 0.1))
    subscribers = [ModelledSubscriber(case, random, limits, runs) for _ in range(random.choice((1, 1, 2, 3)))]
    kills = random.choice((0, 3, 8))
    while reading := [each for each in subscribers if not each.is_done]:
        one = random.choice(reading)
        one.step()
        if random.random() < settles:
            one.settle()
        if random.random() < 0.2:
            one.save()
        if random.random() < 0.2:
            one.acknowledge()
        if kills and random.random() < 0.1:
            kills -= 1
            one.restart()
    for each in subscribers:
        each.finish()
    return case.counts


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    failed, counts = list[int](), Counter[str]()
    for seed in range(given.seed, given.seed + given.runs):
        try:
            counts += follow(seed)
        except Exception:
            failed.append(seed)
            print(f"seed {seed}:", traceback.format_exc().splitlines()[-1], flush=True)
    told = ", ".join(f"{each} {counts[each]}" for each in sorted(counts))
    print(f"{given.runs} cases ({told}), {len(failed)} failed{': ' if failed else ''}{failed or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
