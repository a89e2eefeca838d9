"""Late events at the edges of what was released: ties with the last event, repeats within a round, interruptions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.model.events.values import microseconds
from fairlead.model.events.verdict import EventVerdict
from fairlead.runtime.event_time import EventTimeMatcher, Reviser
from fairlead.runtime.event_time.matcher import NO_ROUND
from fairlead.runtime.event_time.reviser import SegmentLimits
from fairlead.runtime.event_time.segment import NO_IDS, KeptBatch, KeptSegment
from tests.runtime.event_time.sequences import PLANS, TYPES, Record, at, batch_ids, compiled, cuts, judged, sorted_columns

ORDER = "ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 1 HOUR "
PAIRS = compiled(TYPES + ORDER + PLANS["pairs"])
BACK = compiled(TYPES + ORDER + "SUBSCRIPTION S MATCH B b THEN A a")
NUMBER_BITS = 4


def event(name: str, second: float, source: str, number: int, x: int = 0) -> Record:
    return {"type": name, "k": 0, "x": x, "at": at(second), "_source": source, "_sequence": number}


Verdicts = list[tuple[int, EventVerdict]]


def steps(matcher: EventTimeMatcher, records: list[Record], sizes: list[int]) -> tuple[list[str], Verdicts]:
    """The ids of the relations that hold, and the verdicts, with positions; in batches of these sizes."""
    (columns,) = cuts(matcher.plan, records, None)
    held, told, low = dict[str, int](), Verdicts(), 0
    found = []
    for size in sizes:
        found.append(matcher.step(columns.part(low, low + size)))
        low += size
    assert low == len(records)
    for each in (*found, matcher.finish()):
        told += zip(each.verdicts.columns.positions, each.verdicts.verdicts, strict=True)
        for relation in each.relations:
            held[relation.id] = held.get(relation.id, 0) + relation.sign
    assert set(held.values()) <= {0, 1}
    return sorted(name for name, count in held.items() if count), told


@pytest.mark.parametrize(("plan", "first", "late"), list(product((PAIRS, BACK), "pq", "pq")))
def test_a_late_event_that_ties_with_the_last_released_one_is_placed_by_its_source(plan: object, first: str, late: str) -> None:
    assert plan in (PAIRS, BACK)
    mine = PAIRS if plan is PAIRS else BACK
    for names in ("AB", "BA"):
        records = [event(names[0], 10, first, 5), event("C", 20, "c", 0), event(names[1], 10, late, 5 + (late > first))]
        records[2]["_sequence"] += first == late
        found, told = steps(EventTimeMatcher(mine, NUMBER_BITS), records, [2, 1])
        assert (found, told) == (sorted(batch_ids(mine, records)), [])
        records[2]["_sequence"] = 3  # of one source, by its number: before the other
        found, told = steps(EventTimeMatcher(mine, NUMBER_BITS), records, [2, 1])
        assert (found, told) == (sorted(batch_ids(mine, records)), [])


@pytest.mark.parametrize("sizes", [[6], [2, 4], [3, 3], [3, 1, 1, 1], [1] * 6], ids=str)
@pytest.mark.parametrize("saved", [False, True], ids=["", "saved"])
def test_a_late_event_that_comes_again_in_its_round_is_a_repeat(sizes: list[int], saved: bool) -> None:
    records = [event("A", 10, "p", 0), event("C", 20, "c", 0)]
    records += [event("B", 12, "p", 1), event("B", 12, "p", 1), event("B", 13, "p", 2), event("B", 12, "p", 1)]
    matcher = EventTimeMatcher(PAIRS, NUMBER_BITS)
    if saved:
        (columns,) = cuts(PAIRS, records, None)
        low, told = 0, Verdicts()
        for size in sizes:
            found = matcher.step(columns.part(low, low + size))
            told += zip(found.verdicts.columns.positions, found.verdicts.verdicts, strict=True)
            matcher = EventTimeMatcher.load(PAIRS, matcher.dump(), NUMBER_BITS)
            low += size
    else:
        found_ids, told = steps(matcher, records, sizes)
        assert found_ids == sorted(batch_ids(PAIRS, judged(PAIRS, records).accepted(records)))
    assert told == [(3, EventVerdict.REPEATED), (5, EventVerdict.REPEATED)]


def test_an_interrupted_revision_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [event("B", 15, "p", 0), event("C", 20, "c", 0), event("A", 12, "p", 1)]
    matcher = EventTimeMatcher(PAIRS, NUMBER_BITS)
    (columns,) = cuts(PAIRS, records, None)
    assert not len(matcher.step(columns).relations)
    reviser = matcher.reviser
    assert reviser is not None
    before = matcher.dump()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Reviser, "_compared", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reviser.revise()
    assert matcher.dump() == before
    assert [each.id for each in reviser.revise().added] == batch_ids(PAIRS, records) != []


WITHIN = "ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 5 SECONDS "
SINGLE = SegmentLimits(events=1, kept_max=1_000)


@pytest.mark.parametrize("saved", [False, True], ids=["", "saved"])
def test_segments_are_kept_as_long_as_late_events_of_the_open_round_need_them(saved: bool) -> None:
    """An event every microsecond, and a segment for each. The oldest kept one is the last that begins after a smaller key than
    any late event has, of this round or of a later one."""
    plan = compiled(TYPES + WITHIN.replace("SECONDS ", "MICROSECONDS ") + PLANS["pairs"])
    columns = sorted_columns(plan, [event("A", number / 1_000_000, "p", number) for number in range(50)])
    start = microseconds(at(0))
    reviser, low = Reviser(plan, limits=SINGLE), 0

    def fed(high: int, needed: int | None = None) -> int:
        """The event after which the oldest kept segment begins."""
        nonlocal low, reviser
        reviser.feed(columns.part(low, high), *([] if needed is None else [start + needed]))
        low = high
        if saved:
            state, reviser = reviser.dump(), Reviser(plan, Engine.load(plan, reviser.engine.dump()), limits=SINGLE)
            assert reviser.load(state)
        assert [each.after for each in reviser.segments[1:]] == [*range(reviser.segments[0].after + 1, start + high - 1)]
        return reviser.segments[0].after - start

    assert fed(11) == 4  # the last event is at 10, late ones are from 5 on
    assert fed(14, 9) == 7  # at 13, others of the round are from 8 on
    assert fed(15, 8) == 7
    assert fed(20, 12) == 7
    assert fed(21) == 7
    assert not len(reviser.revise())  # the round ends
    assert fed(31) == 24
    assert fed(33, 28) == 26
    assert fed(40) == 27


@pytest.mark.parametrize("late", [(6, 9), (9, 6), (5, 5.5), (9, 5)], ids=str)
@pytest.mark.parametrize("sizes", [[16], [11, 5], [12, 4], [13, 3], [11, 1, 1, 3]], ids=str)
def test_the_earliest_late_event_of_a_round_is_revised_whatever_passes_meanwhile(
    late: tuple[float, float], sizes: list[int]
) -> None:
    plan = compiled(TYPES + WITHIN + PLANS["pairs"])
    records = [event("A", second, "p", second) for second in range(11)]
    records += [*(event("B", second, "q", number) for number, second in enumerate(late))]
    records += [event("A", second, "p", second) for second in (20, 30, 40)]
    found, told = steps(EventTimeMatcher(plan, NUMBER_BITS, limits=SINGLE), records, sizes)
    assert (found, told) == (sorted(batch_ids(plan, records)), [])


def test_a_revision_keeps_what_the_engine_has_worked_for_its_kernels() -> None:
    """Otherwise a sequence with late events in every round would be matched event by event for ever."""
    matcher = EventTimeMatcher(PAIRS, NUMBER_BITS, limits=SegmentLimits(events=600))
    records = [event("A" if number % 2 else "C", number, "p", number) for number in range(1800)]
    (columns,) = cuts(PAIRS, [*records, event("B", 1797.5, "q", 0)], None)
    matcher.step(columns)
    before = matcher.engine.owed
    assert before > 0
    matcher.passed(None)
    assert matcher.engine.owed >= before


def test_a_round_that_has_ended_is_no_longer_open() -> None:
    """Also one whose late events were all repeats."""
    for late in (event("B", 12, "p", 1), event("A", 10, "p", 0)):
        matcher = EventTimeMatcher(PAIRS, NUMBER_BITS)
        (columns,) = cuts(PAIRS, [event("A", 10, "p", 0), event("C", 20, "c", 0), late], None)
        matcher.step(columns)
        assert matcher.round == 0
        matcher.passed(1 << NUMBER_BITS)
        assert matcher.round == NO_ROUND
        assert matcher.reviser is not None
        assert matcher.reviser._known is None  # or it would grow with every round


def test_the_state_of_other_rounds_is_refused() -> None:
    state = EventTimeMatcher(PAIRS, NUMBER_BITS).dump()
    EventTimeMatcher.load(PAIRS, state, NUMBER_BITS)
    with pytest.raises(StateError, match="S119"):
        EventTimeMatcher.load(PAIRS, state, NUMBER_BITS + 1)


def test_what_the_end_releases_is_by_the_last_event() -> None:
    for order in (ORDER, ORDER.replace(" LATE REVISE WITHIN 1 HOUR", "")):
        matcher = EventTimeMatcher(compiled(TYPES + order + PLANS["pairs"]), NUMBER_BITS)
        (columns,) = cuts(matcher.plan, [event("C", 1, "c", 0), event("A", 10, "p", 0), event("B", 10, "q", 0)], None)
        assert not len(matcher.step(columns).relations)
        assert matcher.finish().by.tolist() == [2]


def test_an_event_is_held_only_if_its_whole_identity_is() -> None:
    segment = KeptSegment(0, 0, b"")
    (columns,) = cuts(PAIRS, [event("A", 10, "p", 0), event("B", 10, "p", 1)], None)
    words = np.array([[1, 2], [3, 4]], dtype=np.uint64)
    segment.add(KeptBatch(replace(columns, identities=words), np.array([10, 10])), NO_IDS)
    found = {
        (key, *pair): segment.holds(key, np.array(pair, dtype=np.uint64)) for key in (9, 10) for pair in product((1, 3), (2, 4))
    }
    assert [each for each, held in found.items() if held] == [(10, 1, 2), (10, 3, 4)]
