"""Those of one process who are not behind wake at the same strokes, later the longer they work, and never much later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.runtime.live.subscriber.group_task import PAUSES, STROKE_SECONDS_MAX, STROKE_SECONDS_MIN, pause

WORK = st.floats(0, 0.1)


@given(now=st.floats(0, 1e6), work=WORK)
def test_nobody_waits_for_more_than_a_stroke(now: float, work: float) -> None:
    assert 0 < pause(now, work) <= STROKE_SECONDS_MAX
    assert pause(now, work) <= max(2 * PAUSES * work, 2 * STROKE_SECONDS_MIN) + 1e-9


@given(stroke=st.integers(0, 10**6), after=st.lists(st.floats(1e-4, STROKE_SECONDS_MAX / 2), min_size=2, max_size=2), work=WORK)
def test_those_who_work_alike_wake_together(stroke: int, after: list[float], work: float) -> None:
    begin = stroke * STROKE_SECONDS_MAX
    begin += pause(begin, 1.0)  # at a stroke for all
    ends = [begin + each for each in after]
    wakes = [end + pause(end, 1.0) for end in ends]
    assert wakes[0] == pytest.approx(wakes[1], abs=1e-6)
    wake = ends[0] + pause(ends[0], work)
    strokes = (wake - begin) / STROKE_SECONDS_MIN  # who works less wakes at a stroke of the fastest clock
    assert strokes == pytest.approx(round(strokes), abs=1e-3)
