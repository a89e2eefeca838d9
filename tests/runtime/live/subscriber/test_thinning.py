"""Which snapshots are kept: never is the one removed from which a slow subscriber of a trimmed log has to resume."""

from __future__ import annotations

import pytest

from fairlead.runtime.live.subscriber.snapshots import NEWEST, thinned


@pytest.mark.parametrize("trimmed", [0, 1, 7, 40, 99])
def test_the_oldest_snapshot_that_is_not_behind_the_trim_is_kept(trimmed: int) -> None:
    listed: list[tuple[int, int]] = []
    for steps in range(1, 101):
        listed = thinned([*listed, (steps, steps // 2)], min(trimmed, steps))
        assert listed == sorted(listed)
        assert listed[-1][0] == steps
        assert len(listed) <= NEWEST + 9
    assert any(steps == max(1, trimmed) for steps, _ in listed)
