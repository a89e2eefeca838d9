"""How near the matcher comes to the kernels by hand: `python -m benchmarks.ceiling [../before] --alone`.

CPU seconds of the matcher alone (fairlead_side.py: a new engine over ready batches) beside the kernel by hand, in turns within
one process, for each of the queries; with another checkout, processes of both trees in turn. A ratio of 1 is the ceiling.

Takes: queries and a number of events. Gives: for each tree the best CPU seconds of both sides, and the ratio: of the best ones,
and the median and range over repeats. `--alone` keeps other processes off while something is timed, which needs the right.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benchmarks import measure, workload
from benchmarks.side_by_side import HERE, first_of_all

HAND_REPEATS = 3
"""Passes of the kernel by hand for each of the matcher, of which the best counts: they last milliseconds."""


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.ceiling", description=__doc__)
    options.add_argument("tree", nargs="?", help="the root of another checkout")
    options.add_argument("--queries", default=",".join(workload.QUERIES), metavar="Q1,…")
    options.add_argument("--events", type=int, default=workload.EVENTS)
    options.add_argument("--rounds", type=int, default=2, help="processes of each tree for each query")
    options.add_argument("--repeat", type=int, default=9, help="runs in each of them")
    options.add_argument("--alone", action="store_true", help="run before all other processes while it is timed")
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    names = given.queries.split(",")
    if given.child:
        print(json.dumps(timed(workload.QUERIES[names[0]], given.events, given.repeat, given.alone)))
        return
    trees = {**({"before": Path(given.tree).resolve()} if given.tree else {}), "now": HERE}
    print(measure.machine(), "load average", measure.load())
    print(
        "\n| query | tree | matcher, CPU s | by hand | M events/s | best / best | median (range) | relations |\n|" + "---|" * 8
    )
    for name in names:
        runs: dict[str, list[dict[str, Any]]] = {side: [] for side in trees}
        for _ in range(given.rounds):
            for side, tree in trees.items():
                runs[side].append(one(tree, name))
        assert len({each["relations"] for side in runs.values() for each in side}) == 1, "the trees disagree"
        for side, found in runs.items():
            feed, hand = (min(each for run in found for each in run[what]) for what in ("feed", "by hand"))
            ratios = sorted(each for run in found for each in run["ratio"])
            told = f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            speed = f"{given.events / feed / 1e6:.1f}"
            count = f"{found[0]['relations']:,}"
            print(f"| {name} | {side} | {feed:.4f} | {hand:.4f} | {speed} | {hand / feed:.2f} | {told} | {count} |", flush=True)
    print("\nload average", measure.load())


def one(tree: Path, name: str) -> dict[str, Any]:
    """A process that has the fairlead of that tree, and the kernels by hand of this one."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    given = [each for each in sys.argv[1:] if each.startswith("-") or not Path(each).is_dir()]
    command = [sys.executable, "-m", "benchmarks.ceiling", *given, "--queries", name, "--child"]
    done = subprocess.run(command, cwd=HERE, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def timed(query: workload.Query, events: int, repeat: int, alone: bool) -> dict[str, Any]:
    """CPU seconds of every run."""
    import pyarrow as pa

    import fairlead
    from benchmarks import by_hand
    from benchmarks.fairlead_side import batches, feed

    pa.set_cpu_count(1)
    plan = fairlead.compile(query.rules())
    data = workload.stream(events, query.backlog_of(events))
    given, hand = batches(plan, workload.table(data)), by_hand.BY_HAND[query.name]
    relations = feed(plan, given)[1]
    assert by_hand.relations_in(hand(data)) == relations, "both find as many"
    feed(plan, given)
    made: dict[str, Any] = {"relations": relations, "feed": [], "by hand": [], "ratio": []}
    with first_of_all() if alone else nullcontext():
        for _ in range(repeat):
            start = process_time()
            feed(plan, given)
            mine = process_time() - start
            passes = []
            for _ in range(HAND_REPEATS):
                start = process_time()
                hand(data)
                passes.append(process_time() - start)
            made["feed"].append(mine)
            made["by hand"] += passes
            made["ratio"].append(min(passes) / mine)
    return made


if __name__ == "__main__":
    main()
