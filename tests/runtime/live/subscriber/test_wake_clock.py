"""Those of one client who are not behind wake at the same strokes, later the longer they work, and never much later. A process
that has hardly a pause left gets slower strokes, and quicker ones when it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.runtime.live.core.block_columns import EVENTS_TOGETHER
from fairlead.runtime.live.subscriber.wake_clock import (
    BUSY,
    IDLE,
    LOOK_SECONDS,
    LOOKS,
    PAUSES,
    STROKE_SECONDS,
    STROKE_SECONDS_MAX,
    STROKE_SECONDS_MIN,
    WakeClock,
)

WORK = st.floats(0, 0.1)


def clock_after(*shares: float) -> WakeClock:
    """After looks at which the process had used these shares of a processor."""
    clock, now, busy = WakeClock(), 0.0, 0.0
    clock.look(now, busy)
    for share in shares:
        now, busy = now + 1.01 * LOOK_SECONDS, busy + 1.01 * LOOK_SECONDS * share
        clock.look(now, busy)
    return clock


@given(now=st.floats(0, 1e6), work=WORK)
def test_nobody_waits_for_more_than_a_stroke(now: float, work: float) -> None:
    clock = WakeClock()
    assert 0 < clock.pause(now, work) <= STROKE_SECONDS
    assert clock.pause(now, work) <= max(2 * PAUSES * work, 2 * STROKE_SECONDS_MIN) + 1e-9


@given(stroke=st.integers(0, 10**6), after=st.lists(st.floats(1e-4, STROKE_SECONDS / 2), min_size=2, max_size=2), work=WORK)
def test_those_who_work_alike_wake_together(stroke: int, after: list[float], work: float) -> None:
    clock = WakeClock()
    begin = stroke * STROKE_SECONDS
    begin += clock.pause(begin, 1.0)  # at a stroke for all
    ends = [begin + each for each in after]
    wakes = [end + clock.pause(end, 1.0) for end in ends]
    assert wakes[0] == pytest.approx(wakes[1], abs=1e-6)
    wake = ends[0] + clock.pause(ends[0], work)
    strokes = (wake - begin) / STROKE_SECONDS_MIN  # who works less wakes at a stroke of the fastest clock
    assert strokes == pytest.approx(round(strokes), abs=1e-3)


@given(st.lists(st.floats(0, 4), max_size=20))
def test_strokes_stay_within_their_bounds_and_are_multiples_of_the_quickest(shares: list[float]) -> None:
    clock = clock_after(*shares)
    assert clock.stroke in {STROKE_SECONDS, 2 * STROKE_SECONDS, STROKE_SECONDS_MAX}
    assert not clock.lags(EVENTS_TOGETHER - 1)
    assert clock.lags(int(EVENTS_TOGETHER * STROKE_SECONDS_MAX / STROKE_SECONDS))


def test_a_process_without_pauses_wakes_less_often_and_again_more_often_once_it_has_time() -> None:
    assert clock_after(0.1, BUSY - 0.01).stroke == STROKE_SECONDS
    assert clock_after(BUSY + 0.01).stroke == 2 * STROKE_SECONDS
    assert clock_after(*[1.0] * 9).stroke == STROKE_SECONDS_MAX
    between = (BUSY + IDLE) / 2
    assert clock_after(1.0, *[between] * 99).stroke == 2 * STROKE_SECONDS
    assert clock_after(1.0, *[0.1] * (LOOKS - 1), between, 0.1).stroke == 2 * STROKE_SECONDS
    assert clock_after(1.0, *[0.1] * LOOKS).stroke == STROKE_SECONDS
    assert clock_after(1.0, 1.0, *[0.1] * 2 * LOOKS).stroke == STROKE_SECONDS
