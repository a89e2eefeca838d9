"""What dumping and loading cost beside matching: `python -m benchmarks.state Q1 Q2 Q5` (CPU seconds, best of three)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import fairlead
from benchmarks import workload
from benchmarks.fairlead_side import batches
from fairlead.engine import Engine


def best(run: Callable[[], object]) -> float:
    found = []
    for _ in range(3):
        start = process_time()
        run()
        found.append(process_time() - start)
    return min(found)


def measure(query: workload.Query) -> str:
    plan = fairlead.compile(query.rules())
    given = list(batches(plan, workload.table(workload.stream(workload.EVENTS, query.backlog))))

    def fed() -> Engine:
        engine = Engine(plan, kernels_from=0)
        for columns in given:
            engine.feed(columns)
        return engine

    engine = fed()
    dumped = engine.dump()
    matching, dump, load = best(fed), best(engine.dump), best(lambda: Engine.load(plan, dumped))
    return f"{query.name:6}{matching:12.3f}{dump:10.4f}{load:10.4f}{len(dumped):12,}"


def main(names: list[str]) -> None:
    print(f"{'query':6}{'matching s':>12}{'dump s':>10}{'load s':>10}{'bytes':>12}")
    for name in names or list(workload.QUERIES):
        print(measure(workload.QUERIES[name]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
