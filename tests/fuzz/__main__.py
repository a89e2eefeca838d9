"""`make fuzz MINUTES=10 SEED=1`, or by hand:

    python -m tests.fuzz --minutes 10 --seed 1 [--target plans ...] [--json] [--keep]
    python -m tests.fuzz --case plans 1234 [--shrink]

Ends with 1 if it found something. `--keep` writes the seeds of findings into tests/fuzz/corpus.txt, which the tests replay.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from importlib import import_module
from typing import Any

from tests.fuzz import runner
from tests.fuzz.child import CASE_SECONDS
from tests.fuzz.shrinking import shrunk


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1, help="the first one; each target counts on from it")
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="at most so many of each target")
    parser.add_argument("--target", action="append", help="only this one (may be repeated)")
    parser.add_argument("--json", action="store_true", help="the report as JSON, progress on the standard error")
    parser.add_argument("--keep", action="store_true", help="write the seeds of findings into the corpus")
    parser.add_argument("--case", nargs=2, metavar=("TARGET", "SEED"), help="run this one case, in this process")
    parser.add_argument("--shrink", action="store_true", help="with --case: make a finding smaller, then show it")
    asked = parser.parse_args()
    if asked.case:
        return one(asked.case[0], int(asked.case[1]), asked.shrink)
    known = runner.targets()
    unknown = set(asked.target or ()) - set(known)
    if unknown:
        parser.error(f"there is no target {sorted(unknown)[0]}; there are {', '.join(known)}")
    told = sys.stderr if asked.json else sys.stdout
    report = runner.run(
        asked.target or known, asked.minutes, asked.seed, lambda line: print(line, file=told, flush=True), asked.cases
    )
    if asked.keep:
        runner.keep(report.findings)
    if asked.json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        for name, count in report.cases.items():
            more = ", ".join(f"{each}: {number}" for each, number in sorted(report.seen.get(name, {}).items()))
            print(f"{name}: {count} cases ({more})" if more else f"{name}: {count} cases")
        print(f"{len(report.findings)} findings in {report.seconds:.0f} s, from seed {report.first_seed}")
        for each in report.findings:
            print(f"  {each.command}")
    return 1 if report.findings else 0


def one(target: str, seed: int, shrink: bool) -> int:
    module = import_module(f"tests.fuzz.{target}")
    if not shrink or not hasattr(module, "trial"):
        module.case(seed)
        print("no finding")
        return 0
    print(smallest(module, seed))
    return 1


def smallest(module: Any, seed: int) -> str:
    """The case with as little as still fails in the same manner. In this process: what crashes it cannot be made smaller so."""

    def failure(trial: Any) -> str:
        signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
        try:
            module.run(trial)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return ""

    def manner(told: str) -> str:
        """What stays the same while a finding shrinks: numbers and names do not."""
        words = told.split(":")
        return words[0] + ("" if len(words) < 3 else " ".join(word for word in words[2].split()[:3] if word.isalpha()))

    def hangs(*_: object) -> None:
        raise TimeoutError("hang")

    signal.signal(signal.SIGPROF, hangs)
    whole = module.trial(seed)
    first = failure(whole)
    if not first:
        return "no finding"
    made = shrunk(whole, module.smaller, lambda each: manner(failure(each)) == manner(first))
    return f"{made}\n{failure(made)}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KeyboardInterrupt, subprocess.SubprocessError):
        sys.exit(130)
