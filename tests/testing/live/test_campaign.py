"""Three servers whose leaders, links, readers and writers fail by a schedule: nothing is lost or doubled, nobody disagrees,
in the order of the log and in event time.

`FAIRLEAD_FAILURE_SECONDS=1800 FAIRLEAD_FAILURE_SEED=7 pytest tests/testing/live/test_campaign.py`, or `make failures`, for
more.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairlead.testing.live.campaign import Campaign
from fairlead.testing.live.cluster.faults import OF_SERVERS
from fairlead.testing.live.cluster.schedule import schedule, until

SECONDS = float(os.environ.get("FAIRLEAD_FAILURE_SECONDS", "75"))
SEED = int(os.environ.get("FAIRLEAD_FAILURE_SEED", "135"))
FAULTS = 1_000_000 if "FAIRLEAD_FAILURE_SECONDS" in os.environ else len(OF_SERVERS)
"""Each kind once, those of workers together with others, where the machine is fast enough. With this seed one takes long."""


@pytest.mark.server
@pytest.mark.slow
def test_whatever_fails_nothing_is_lost_or_doubled_and_nobody_disagrees(tmp_path: Path) -> None:
    with Campaign(tmp_path) as campaign:
        report = campaign.run(until(SECONDS, schedule(SEED, FAULTS)))
    assert not report.problems, str(report)
    assert report.counts["stored"]["events"] > 100, str(report)
    assert report.counts["kept"]["deliveries"] > 100, str(report)
    for each in ("deliveries", "taken back", "late events", "ahead events"):
        assert report.counts["revised"][each] > 10, str(report)
