"""LATE REVISE over a sequence: deliveries and revisions fold to what the events in their order deliver, and are a function of
the sequence, however it is cut, saved and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.deliver.fold import remaining
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.relations.identity import to_hex
from fairlead.model.relations.relation import Relation
from fairlead.runtime.embedded import Run
from fairlead.runtime.event_time import EventTimeMatcher
from fairlead.runtime.event_time.reviser import SegmentLimits
from fairlead.transport.events import read_events
from tests.marks import sample_size
from tests.runtime.event_time.sequences import (
    PLANS,
    TYPES,
    Record,
    as_microseconds,
    at,
    batch_ids,
    compiled,
    cuts,
    judged,
    sequence,
    sorted_columns,
    stored_times,
)

ORDERS = (
    "ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 3 SECONDS ",
    "ORDER BY at, k DESC DELAY 0 SECONDS AHEAD 2 SECONDS LATE REVISE WITHIN 5 SECONDS ",
    "ORDER BY TIME DELAY 2 SECONDS PER SOURCE IDLE 4 SECONDS LATE REVISE WITHIN 100 SECONDS ",
)
ROUND_BITS = (0, 2, 3, 10)


SMALL = SegmentLimits(events=4, kept_max=5)
"""Segments of a few events, so that short sequences have many."""


class Followed:
    """What a matcher delivers and says of a sequence."""

    def __init__(self, plan: fairlead.Plan, bits: int, **arguments: Any) -> None:
        self.plan, self.bits, self.arguments = plan, bits, {"limits": SMALL} | arguments
        self.matcher = EventTimeMatcher(plan, bits, **self.arguments)
        self.relations: list[Relation] = []
        self.words: list[str] = []
        self.by: list[int] = []
        self.rounds: list[int] = []
        self.verdicts: list[tuple[int, EventVerdict]] = []

    def follow(
        self, records: Sequence[Record], random: Random | None, stored: Sequence[int] | None = None, reload: float = 0.0
    ) -> Followed:
        for columns in cuts(self.plan, records, random):
            mine = None if stored is None else [stored[position] for position in columns.positions]
            self.note(self.matcher.step(columns, mine))
            if random is not None and random.random() < reload:
                self.reload()
        return self

    def reload(self) -> None:
        dumped, before = self.matcher.dump(), self.matcher.buffer.state
        self.matcher = EventTimeMatcher.load(self.plan, dumped, self.bits, **self.arguments)
        assert self.matcher.dump() == dumped
        after = self.matcher.buffer.state
        assert (after.at, after.ends, after.waiting, after.counts) == (before.at, before.ends, before.waiting, before.counts)

    def note(self, found: Any) -> None:
        words = to_hex(delivery_words(found.relations))
        assert len(words) == len(found.relations) == len(found.by)
        self.words += words
        self.relations += found.relations
        self.by += found.by.tolist()
        self.rounds += [-1] * len(words) if found.rounds is None else found.rounds.tolist()
        self.verdicts += zip(found.verdicts.columns.positions, found.verdicts.verdicts, strict=True)

    def finish(self) -> Followed:
        self.note(self.matcher.finish())
        return self

    def fold(self) -> list[str]:
        words = delivery_words(self.relations)
        left = remaining(words)
        assert all(self.relations[at].sign == 1 for at in left.tolist())
        return [self.relations[at].id for at in left.tolist()]

    @property
    def told(self) -> tuple[Any, ...]:
        shown = [each.to_json() for each in self.relations]
        return self.words, shown, self.by, self.rounds, self.verdicts


@given(st.integers(0, 2**32), st.sampled_from(ORDERS), st.sampled_from(sorted(PLANS)), st.sampled_from(ROUND_BITS))
def test_the_fold_is_that_of_the_sorted_events_and_no_cut_or_dump_matters(seed: int, order: str, name: str, bits: int) -> None:
    random, plan = Random(seed), compiled(TYPES + order + PLANS[name])
    records = sequence(random, random.randrange(60))
    stored = stored_times(records, random)
    ahead = as_microseconds(stored)
    by_definition = judged(plan, records, stored)

    whole = Followed(plan, bits).follow(records, None, ahead)
    cut = Followed(plan, bits).follow(records, random, ahead, reload=0.3)
    assert cut.matcher.dump() == whole.matcher.dump()
    assert cut.finish().told == whole.finish().told
    assert sorted(whole.fold()) == sorted(batch_ids(plan, by_definition.accepted(records)))
    others = (EventVerdict.LATE, EventVerdict.AHEAD, EventVerdict.REPEATED)
    assert whole.verdicts == [(at, v) for at, v in enumerate(by_definition.verdicts) if v in others]


@given(st.integers(0, 2**32), st.sampled_from(sorted(PLANS)))
def test_after_every_round_the_fold_is_that_of_the_events_so_far(seed: int, name: str) -> None:
    random, bits = Random(seed), Random(seed).choice((0, 2, 3))
    plan = compiled(TYPES + ORDERS[0] + PLANS[name])
    records = sequence(random, 30)
    by_definition = judged(plan, records)
    followed = Followed(plan, bits)
    for low in range(0, len(records), 1 << bits):
        high = min(low + (1 << bits), len(records))
        (columns,) = cuts(plan, records[:high], None)
        followed.note(followed.matcher.step(columns.part(low, high), closed=True))
        frontier = followed.matcher.buffer.frontier.at
        accepted = [
            each
            for each, verdict in zip(records[:high], by_definition.verdicts[:high], strict=True)
            if verdict is EventVerdict.IN_ORDER and as_microseconds([each["at"]])[0] < frontier
        ]
        assert sorted(followed.fold()) == sorted(batch_ids(plan, accepted))
        assert followed.matcher.reviser is not None
        assert followed.matcher.reviser.next == len(sorted_columns(plan, accepted))


@given(st.integers(0, 2**32), st.sampled_from(sorted(PLANS)), st.sampled_from(ROUND_BITS))
def test_without_late_events_nothing_is_revised_and_deliveries_are_those_of_late_tag(seed: int, name: str, bits: int) -> None:
    random = Random(seed)
    revising = compiled(TYPES + ORDERS[0] + PLANS[name])
    records = sequence(random, 50)
    while any(late := judged(revising, records).late):  # without it, its repeat is no repeat
        records = [each for each, is_late in zip(records, late, strict=True) if not is_late]
    revised = Followed(revising, bits).follow(records, random, reload=0.2).finish()
    tagged = Followed(compiled(TYPES + "ORDER BY at DELAY 1 SECOND " + PLANS[name]), bits)
    tagged.follow(records, random, reload=0.2).finish()
    assert all(each.sign == 1 for each in revised.relations)
    assert set(revised.rounds) <= {-1}
    members = [[[member.to_json() for member in each.members] for each in told.relations] for told in (revised, tagged)]
    assert members[0] == members[1]
    assert revised.by == tagged.by


@given(st.integers(0, 2**32), st.sampled_from(sorted(PLANS)))
def test_relations_are_mentioned_only_if_a_round_changes_them(seed: int, name: str) -> None:
    """A revision never takes back what it adds, never adds what is there, and never takes back what is not."""
    random, plan = Random(seed), compiled(TYPES + ORDERS[2] + PLANS[name])
    followed = Followed(plan, 2).follow(sequence(random, 60), None).finish()
    there: set[str] = set()
    for number, (relation, of) in enumerate(zip(followed.relations, followed.rounds, strict=True)):
        assert (relation.id in there) == (relation.sign == -1), number
        there ^= {relation.id}
        assert relation.sign == 1 or of >= 0
    for low, high in pairwise(range(len(followed.relations))):
        if followed.rounds[low] == followed.rounds[high] >= 0:  # taken back first, then added
            assert followed.relations[low].sign <= followed.relations[high].sign
    by_round: dict[int, set[str]] = {}
    for relation, of in zip(followed.relations, followed.rounds, strict=True):
        if of >= 0:
            assert relation.id not in by_round.setdefault(of, set())
            by_round[of].add(relation.id)


@pytest.mark.sampled
@pytest.mark.parametrize("name", sorted(PLANS))
@pytest.mark.parametrize("arguments", [{"kernels_from": 0}, {"kernels_from": None}], ids=["kernels", "events"])
def test_both_matchers_say_the_same(name: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    for seed in range(sample_size(6)):
        random, plan = Random(seed), compiled(TYPES + ORDERS[seed % 3] + PLANS[name])
        records = sequence(random, 50)
        usual = Followed(plan, 3).follow(records, None)
        other = Followed(plan, 3, **arguments).follow(records, Random(seed), reload=0.1)
        assert other.matcher.dump() == usual.matcher.dump()
        assert other.finish().told == usual.finish().told
        assert sorted(other.fold()) == sorted(batch_ids(plan, judged(plan, records).accepted(records)))


def test_segments_are_dropped_when_no_late_event_can_reach_them_and_joined_when_there_are_too_many() -> None:
    plan = compiled(TYPES + ORDERS[0] + PLANS["pairs"])
    followed = Followed(plan, 4).follow(sequence(Random(1), 500, late=0.05), Random(2))
    past = followed.matcher.reviser
    assert past is not None
    assert 1 < len(past.segments) <= 5
    assert len(past) < 40
    kept = compiled(TYPES + ORDERS[2].replace("100 SECONDS", "30 DAYS") + PLANS["pairs"])
    followed = Followed(kept, 4).follow(sequence(Random(1), 500, late=0.05), Random(2))
    past = followed.matcher.reviser
    assert past is not None
    assert 1 < len(past.segments) <= 5
    assert len(past) == past.next
    sizes = [len(each) for each in past.segments]
    assert sizes[0] > sizes[-2]
    borders = [(past.segments[at].after, np.concatenate([b.keys for b in past.segments[at].batches])[0]) for at in (1, 2)]
    assert all(after < first for after, first in borders)


def test_what_is_kept_reaches_back_to_the_last_event_that_revises() -> None:
    """Segments of one event each, a quarter of a second apart: the late event lies a microsecond after a border."""
    plan = compiled(TYPES + "ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 5 SECONDS " + PLANS["pairs"])
    records: list[Record] = [{"type": "A", "k": 1, "x": 1, "at": at(step / 4)} for step in range(80)]
    last = records[-1]["at"] + timedelta(microseconds=1)
    records += [{"type": "B", "k": 1, "x": 1, "at": last}, {"type": "B", "k": 1, "x": 2, "at": last - timedelta(seconds=5)}]
    followed = Followed(plan, 0, limits=SegmentLimits(events=1, kept_max=1_000))
    (columns,) = cuts(plan, records, None)
    for low, high in ((0, 81), (81, 82)):  # when the segments are dropped, the late event has not arrived
        followed.note(followed.matcher.step(columns.part(low, high)))
    past = followed.matcher.reviser
    assert past is not None
    assert len(past) < 30
    assert followed.verdicts == []
    assert sorted(followed.finish().fold()) == sorted(batch_ids(plan, records))
    records[-1]["at"] -= timedelta(microseconds=1)
    again = Followed(plan, 0, limits=SegmentLimits(events=1, kept_max=1_000)).follow(records, None)
    assert again.verdicts == [(81, EventVerdict.LATE)]


@pytest.mark.parametrize(("kind", "first"), [("A", 0), ("Heartbeat", 1)])
def test_how_far_back_late_events_are_accepted_counts_from_the_frontier(kind: str, first: int) -> None:
    """After an event at 10 seconds the frontier is there, after a heartbeat a microsecond later."""
    text = (
        "TYPE A (n INT, at TIMESTAMP) TIME at ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 5 SECONDS SUBSCRIPTION R MATCH A a"
    )
    plan = fairlead.compile(text)
    for more, late in ((first, []), (first - 1, [EventVerdict.LATE])):
        records: list[Record] = [{"type": "A", "n": 1, "at": at(0)}, {"type": kind, "at": at(10)}]
        records[1] |= {"n": 2} if kind == "A" else {}
        records.append({"type": "A", "n": 3, "at": at(5) + timedelta(microseconds=more)})
        run = Run(plan)
        found = [*(each for columns in read_events(records, plan.catalogue) for each in run.feed(columns)), *run.finish()]
        assert sorted(each.events[0]["n"] for each in found) == [1] + [2] * (kind == "A") + [3] * (not late)
        assert list(run.verdicts.elements()) == late
