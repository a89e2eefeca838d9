"""`count(q) >= n` with FOLD and without it: CPU time per event, memory and the size of a state, one process for each point.

    .venv/bin/python -m benchmarks.folds
    .venv/bin/python -m benchmarks.folds --lengths 10000,100000 --events 1000000

Takes: lengths of runs. Gives: a table. Never: times by the wall clock.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.transport.events import read_events

RULES = """
TYPE Quote (symbol INT, price DOUBLE, volume INT, at TIMESTAMP) TIME at
SUBSCRIPTION Many MATCH Quote q+ HAVING count(q) >= {length} {fold}
EMIT Done (low = min(q.price), total = sum(q.volume), mean = avg(q.price), last = last(q.at))
"""
BATCH = 65_536


def batch(first: int, rows: int) -> pa.Table:
    at = np.arange(first, first + rows)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int8), ["Quote"]),
            "symbol": pa.array((at % 97).astype(np.int32)),
            "price": pa.array((at * 7919 % 100_003) / 16),
            "volume": pa.array((at * 31 % 1009).astype(np.int32)),
            "at": pa.array(at * 1000, pa.timestamp("us", "UTC")),
            "position": pa.array(at),
        }
    )


def fed(engine: Engine, first: int, count: int) -> float:
    """CPU seconds of the matcher alone."""
    spent = 0.0
    for low in range(first, first + count, BATCH):
        rows = min(BATCH, first + count - low)
        for columns in read_events(batch(low, rows), engine.plan.catalogue, position="position", batch_rows=rows):
            began = time.process_time()
            relations = engine.feed(columns)
            relations.ids()  # type: ignore[union-attr]
            spent += time.process_time() - began
    return spent


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def point(length: int, fold: bool, events: int) -> dict[str, float]:
    plan = compile_text(RULES.format(length=length, fold="FOLD q" if fold else ""))
    fed(Engine(plan, kernels_from=0), 0, min(BATCH, length // 2))  # the kernel is ready
    before = peak()
    engine = Engine(plan, kernels_from=0)
    spent = fed(engine, 0, length - 1)
    after = peak()
    dumped = len(engine.dump())
    spent += fed(engine, length - 1, max(1, events - length + 1))
    return {"ns": 1e9 * spent / max(events, length), "mb": after - before, "dump": dumped}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="10000,100000,1000000", help="events of a run")
    parser.add_argument("--events", type=int, default=3_000_000, help="events altogether")
    parser.add_argument("--point", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.point:
        print(json.dumps(point(int(given.point[0]), given.point[1] == "fold", given.events)))
        return
    print("| events a run | | CPU ns an event | more memory at its end | state before its end |\n|---|---|---|---|---|")
    for length in given.lengths.split(","):
        for kind in ("fold", "plain"):
            command = [sys.executable, "-m", "benchmarks.folds", "--events", str(given.events), "--point", length, kind]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            name = "`FOLD q`" if kind == "fold" else "without"
            numbers = f"{found['ns']:.0f} | {found['mb']:.0f} MB | {found['dump']:,.0f} bytes"
            print(f"| {int(length):,} | {name} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
