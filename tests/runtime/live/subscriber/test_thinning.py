"""Which snapshots are kept: never is the one removed from which a slow subscriber of a trimmed log has to resume."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from fairlead.runtime.live.subscriber.snapshots import NEWEST, SnapshotList, thinned


@pytest.mark.parametrize("trimmed", [0, 1, 7, 40, 99])
def test_the_oldest_snapshot_that_is_not_behind_the_trim_is_kept(trimmed: int) -> None:
    listed: list[tuple[int, int]] = []
    for steps in range(1, 101):
        listed = thinned([*listed, (steps, steps // 2)], min(trimmed, steps))
        assert listed == sorted(listed)
        assert listed[-1][0] == steps
        assert len(listed) <= NEWEST + 9
    assert max(1, trimmed) in {steps for steps, _ in listed}


@pytest.mark.parametrize("seed", range(20))
def test_snapshots_that_are_held_stay(seed: int) -> None:
    """Wherever they are, whatever was trimmed: until the marks change."""
    rolls, told, steps = random.Random(seed), SnapshotList(), 0
    for _ in range(200):
        steps += rolls.randint(1, 5)
        told = SnapshotList.of([], 0) if not told.snapshots and rolls.random() < 0.5 else told
        told = told.with_state(steps, steps // 2, rolls.randint(0, steps))
        listed = [each for each, _ in told.snapshots]
        assert {*told.held} <= {*listed}
        assert all(one < other for one, other in pairwise(listed))
        if rolls.random() < 0.1:
            told = told.holding(sorted(rolls.sample(listed, min(len(listed), rolls.randint(0, 3)))))


def test_marks_are_read_again_and_earlier_releases_leave_them_out() -> None:
    told = SnapshotList(((1, 0), (3, 1), (4, 1)), (1, 4), 7)
    assert told.to_bytes() == b"[[1, 0], [3, 1], [4, 1], [1, 0, 1], [4, 1, 1]]"
    assert SnapshotList.of([[1, 0], [3, 1], [4, 1], [1, 0, 1], [4, 1, 1]], 7) == told
    assert SnapshotList.of([[3, 1], [1, 0]], 2) == SnapshotList(((1, 0), (3, 1)), (), 2)
