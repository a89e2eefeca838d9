"""python -m fairlead.testing.live.soak [--minutes 30] [--rate 20000] [--calm 20] [--seed 1] [--folder DIR]"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fairlead.errors import LogError
from fairlead.testing.live.soak.soak import Soak


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
    with tempfile.TemporaryDirectory(prefix="fairlead-soak-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with Soak(folder, given.rate, given.calm, given.seed, lambda line: print(line, flush=True)) as soak:
                report = soak.run(60 * given.minutes)
        except LogError as error:
            print(error, file=sys.stderr)
            return 1
    print(report)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
