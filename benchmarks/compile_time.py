"""How long until a plan's kernel is ready: `python -m benchmarks.compile_time Q1` in a fresh process prints one line of JSON.

Two batches of 65,536 events are fed twice, to a new run each time. The second pass finds the machine code in memory, so
what the first one takes beyond it is the price of getting there: compiling, or loading from the cache that FAIRLEAD_CACHE
names.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from time import perf_counter, process_time
from typing import Any

from benchmarks import workload
from benchmarks.measure import module, spawn

BATCH_ROWS = 65_536
BATCHES = 2


def measure(query: workload.Query) -> dict[str, Any]:
    began, began_cpu = perf_counter(), process_time()
    import fairlead
    from fairlead.engine import Engine

    imported = perf_counter()
    rules = query.rules()
    compiling = perf_counter()
    plan = fairlead.compile(rules)
    compiled = perf_counter()

    from benchmarks.fairlead_side import batches, matcher_of

    rows = BATCHES * BATCH_ROWS
    given = batches(plan, workload.table(workload.stream(rows, query.backlog_of(rows))))
    passes = []
    for _ in range(2):
        engine, start = Engine(plan), perf_counter()
        for columns in given:
            engine.feed(columns)
        passes.append(perf_counter() - start)
    return {
        "import_s": imported - began,
        "plan_s": compiled - compiling,
        "passes_s": passes,
        "kernel_ready_s": passes[0] - passes[1],
        "matcher": matcher_of(engine),
        "cpu_s": process_time() - began_cpu,
    }


def cold_and_cached(query: workload.Query, limit: float) -> dict[str, Any]:
    """Twice in fresh processes, the second with the cache that the first one left."""
    with tempfile.TemporaryDirectory() as cache:
        command = module("compile_time", query.name)
        cold = spawn(command, limit, {"FAIRLEAD_CACHE": cache}).json()
        cached = spawn(command, limit, {"FAIRLEAD_CACHE": cache}).json() if "failed" not in cold else {}
    return {"cold": cold, "cached": cached}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query", choices=sorted(workload.QUERIES))
    print(json.dumps(measure(workload.QUERIES[parser.parse_args().query])))


if __name__ == "__main__":
    main()
