"""Two source trees side by side: `python -m benchmarks.side_by_side ../before` compares the matcher there with this one.

Each tree has a process for each round, the trees in turn, so that a busy neighbour disturbs both; all read the same events, and
have the interpreter and packages of this environment. Compare the best CPU seconds, and look at their spread over the processes
before a difference is believed. `--alone` holds a processor while something is timed, which needs the right to do so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks import measure, workload

HERE = Path(__file__).resolve().parent.parent
STEPS = ("matcher alone", "match")


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    options.add_argument("tree", help="the root of another checkout")
    options.add_argument("--queries", default="Q1,Q2,Q3,Q4,Q5,Q6", metavar="Q1,…")
    options.add_argument("--events", type=int, default=workload.EVENTS)
    options.add_argument("--rounds", type=int, default=3, help="processes of each tree")
    options.add_argument("--repeat", type=int, default=5, help="runs in each of them")
    options.add_argument("--alone", action="store_true", help="run before all other processes while it is timed")
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    names = given.queries.split(",")
    if given.child:
        print(json.dumps({name: timed(workload.QUERIES[name], given.events, given.repeat, given.alone) for name in names}))
        return
    trees = {"before": Path(given.tree).resolve(), "now": HERE}
    if not (trees["before"] / "src" / "fairlead").is_dir():
        options.error(f"{trees['before']} has no src/fairlead")
    print(measure.machine(), "load average", measure.load())
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in trees}
    for _ in range(given.rounds):
        for side, tree in trees.items():
            found[side].append(one(tree))
    print("\n| query | CPU s, best of each process | before | now | best now / best before |\n|---|---|---|---|---|")
    for name in names:
        assert len({each[name]["relations"] for runs in found.values() for each in runs}) == 1, "the trees disagree"
        for step in STEPS:
            before, now = (sorted(min(each[name][step]) for each in found[side]) for side in trees)
            told = [", ".join(f"{each:.4f}" for each in side) for side in (before, now)]
            print(f"| {name} | {step} | {told[0]} | {told[1]} | {now[0] / before[0]:.2f} |")
    print("\nload average", measure.load())


def one(tree: Path) -> dict[str, Any]:
    """A process that has the fairlead of that tree."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    command = [sys.executable, "-m", "benchmarks.side_by_side", *sys.argv[1:], "--child"]
    done = subprocess.run(command, cwd=HERE, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def timed(query: workload.Query, events: int, repeat: int, alone: bool) -> dict[str, Any]:
    """CPU seconds of every run. Only names that have long been there are imported."""
    import pyarrow as pa

    import fairlead
    from fairlead.engine import Engine
    from fairlead.transport.events import read_events

    pa.set_cpu_count(1)
    plan = fairlead.compile(query.rules())
    table = workload.table(workload.stream(events, query.backlog_of(events)))
    given = list(read_events(table, plan.catalogue))

    def feed() -> int:
        engine = Engine(plan)
        return sum(len(engine.feed(columns)) for columns in given) + len(engine.finish())

    runs: dict[str, Callable[[], int]] = {"matcher alone": feed, "match": lambda: len(fairlead.match(plan, table))}
    relations = {run() for run in runs.values()}
    made: dict[str, Any] = {"relations": relations.pop(), **{step: [] for step in STEPS}}
    assert not relations, "the matcher alone finds as many as `match`"
    with first_of_all() if alone else nullcontext():
        for _ in range(repeat):
            for step in STEPS:
                start = process_time()
                runs[step]()
                made[step].append(process_time() - start)
    return made


@contextmanager
def first_of_all() -> Iterator[None]:
    """A process is not interrupted by others: CPU seconds then do not contain what it costs to fill the caches again."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


if __name__ == "__main__":
    main()
