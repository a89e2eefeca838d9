"""Which snapshots are kept: never is the one removed from which a slow subscriber of a trimmed log has to resume."""

from __future__ import annotations

import pytest

from fairlead.runtime.live.subscriber.snapshots import NEWEST, thinned


@pytest.mark.parametrize("planned", [0, 3, 50])
@pytest.mark.parametrize("trimmed", [0, 1, 7, 40, 99])
def test_the_oldest_snapshot_that_is_not_behind_the_trim_is_kept(trimmed: int, planned: int) -> None:
    """And the oldest one that would not be, if more were trimmed: that may not happen."""
    listed: list[tuple[int, int]] = []
    for steps in range(1, 101):
        listed = thinned([*listed, (steps, steps // 2)], [min(trimmed, steps), min(trimmed + planned, steps)])
        assert listed == sorted(listed)
        assert listed[-1][0] == steps
        assert len(listed) <= NEWEST + 10
    assert {max(1, trimmed), min(100, max(1, trimmed + planned))} <= {steps for steps, _ in listed}
