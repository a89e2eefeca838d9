"""A run with fault injection, reported as it goes: python -m fairlead.testing.live [--seconds 600] [--faults 8] [--seed 1]
[--folder DIR]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairlead.testing.live.campaign import Campaign, Report
from fairlead.testing.live.cluster.schedule import schedule, until
from fairlead.testing.live.run_journal import Say, run_command


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fairlead.testing.live", description="Failures, with real servers.")
    parser.add_argument("--faults", type=int, default=1_000_000, help="how many injected faults at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to inject them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.25, help="seconds between a publisher's bursts")
    parser.add_argument("--folder", type=Path, help="keep data, logs and records there")
    given = parser.parse_args()

    def run(folder: Path, say: Say) -> Report:
        with Campaign(folder, given.pause, say) as campaign:
            return campaign.run(until(given.seconds, schedule(given.seed, given.faults)))

    return run_command(given.folder, run)


if __name__ == "__main__":
    sys.exit(main())
