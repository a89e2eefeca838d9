"""python -m fairlead.testing.live.soak [--minutes 30] [--rate 20000] [--calm 20] [--seed 1] [--folder DIR]"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairlead.testing.live.run_journal import Say, run_command
from fairlead.testing.live.soak.soak import Soak, SoakReport


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fairlead.testing.live.soak", description="A steady load, failures, retention."
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long")
    parser.add_argument("--rate", type=float, default=20_000.0, help="events a second")
    parser.add_argument("--calm", type=float, default=20.0, help="seconds between injected faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep data, logs and records there")
    given = parser.parse_args()

    def run(folder: Path, say: Say) -> SoakReport:
        with Soak(folder, given.rate, given.calm, given.seed, say) as soak:
            return soak.run(60 * given.minutes)

    return run_command(given.folder, run)


if __name__ == "__main__":
    sys.exit(main())
