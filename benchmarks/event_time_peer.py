"""Event time beside Flink SQL: the same file of events out of order, and how often each answer changes.

    python -m benchmarks.event_time_peer --events 50000 --repeat 2

The file is W1 of workload.py (one event a millisecond), in the order of arrival: an event arrives up to `--disorder`
milliseconds after its time, and `--late` of a hundred twice the delay later than that. Times are rounded to `--tie`
milliseconds, so that events have equal times. Fairlead matches Q2 with ORDER BY at DELAY, from the Arrow table to ids and
receipt, cut into batches in several ways; Flink has the same watermark and the nearest pattern (peers/flink_event_time.py),
with several degrees of parallelism, from CSV to CSV.

    answers     different results among the runs
    changed     matches that a run has and the first run has not, or the reverse, of those of the first run
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fairlead
from benchmarks import peers, workload
from benchmarks.measure import load, machine, short, spawn

DEGREES = "1,2,4"
BATCHES = (1_000, 4_096, 1_000_000)


def arrivals(given: argparse.Namespace) -> pa.Table:
    table, random = workload.table(workload.stream(given.events)), np.random.default_rng(7)
    times = table["at"].cast(pa.int64()).to_numpy()
    lag = random.integers(0, 1_000 * given.disorder + 1, given.events)
    lag[random.random(given.events) < given.late / 100] += 2_000 * given.delay
    rounded = times // (1_000 * given.tie) * (1_000 * given.tie)
    at = table.schema.get_field_index("at")
    table = table.set_column(at, table.schema.field(at), pa.array(rounded).cast(table.schema.field(at).type))
    return table.take(pa.array(np.argsort(times + lag, kind="stable")))


def fairlead_side(given: argparse.Namespace, table: pa.Table) -> list[dict[str, Any]]:
    order = f"ORDER BY at DELAY {given.delay} MILLISECONDS"
    plan = fairlead.compile(f"{workload.TYPES} {order} {workload.Q2}")
    runs = []
    for size in BATCHES:
        pieces = pa.Table.from_batches(table.to_batches(max_chunksize=size))
        fairlead.match(plan, pieces.slice(0, 20_000))
        wall, cpu = perf_counter(), process_time()
        found = fairlead.match(plan, pieces)
        runs.append({"wall_s": perf_counter() - wall, "cpu_s": process_time() - cpu, "matches": len(found)})
        runs[-1]["answer"] = found.receipt.digest
    return runs


def flink_side(given: argparse.Namespace, path: Path, python: str) -> list[dict[str, Any]]:
    script = str(peers.SCRIPTS / "flink_event_time.py")
    command = [python, script, str(path), str(given.delay), given.parallelism, str(given.repeat), str(given.files)]
    child = spawn(command, given.limit, {"JAVA_HOME": peers.java_home() or ""})
    told = child.json()
    return told if isinstance(told, list) else [told]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--delay", type=int, default=500, help="milliseconds")
    parser.add_argument("--disorder", type=int, default=400, help="milliseconds")
    parser.add_argument("--late", type=float, default=1.0, help="of a hundred events")
    parser.add_argument("--tie", type=int, default=10, help="milliseconds to which times are rounded")
    parser.add_argument("--files", type=int, default=1, help="for Flink: rows are dealt out in turn")
    parser.add_argument("--parallelism", default=DEGREES)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for Flink")
    parser.add_argument("--python", help="of an environment with apache-flink; default: one is made")
    given = parser.parse_args()
    print(machine(), "load average", load(), vars(given), "\n")
    table = arrivals(given)
    path = workload.folder() / "event_time.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    print("| engine | runs | events/s, each | CPU s, each | matches, each | answers | changed, each |")
    print("|---|---|---|---|---|---|---|")
    ours = fairlead_side(given, table)
    name = f"Fairlead, batches of {', '.join(map(str, BATCHES))}"
    _line(name, given.events, ours, len({each["answer"] for each in ours}), "–")
    flink = next(each for each in peers.PEERS if "flink" in each.package)
    reason = None if given.python else peers.install(flink)
    runs = [{"failed": reason}] if reason else flink_side(given, path, given.python or flink.python)
    if "failed" in runs[0]:
        print(f"| Flink | – | – | – | – | – | {runs[0]['failed']} |")
        return
    answers = [{tuple(match) for match in each["matches"]} for each in runs]
    for degree in dict.fromkeys(each["parallelism"] for each in runs):
        mine = [at for at, each in enumerate(runs) if each["parallelism"] == degree]
        differences = [len(answers[0] ^ answers[at]) for at in mine]
        changed = ", ".join(f"{each} ({each / len(answers[0]):.1%})" for each in differences)
        shown = [{**runs[at], "matches": len(answers[at])} for at in mine]
        _line(f"Flink, parallelism {degree}", given.events, shown, len({frozenset(answers[at]) for at in mine}), changed)
    print(f"\nFlink: {len({frozenset(each) for each in answers})} answers in {len(answers)} runs; load average {load()}")


def _line(name: str, events: int, runs: list[dict[str, Any]], answers: int, changed: str) -> None:
    rates = ", ".join(short(events / each["wall_s"]) for each in runs)
    cpu = ", ".join(f"{each['cpu_s']:.2f}" for each in runs)
    found = ", ".join(f"{each['matches']:,}" for each in runs)
    print(f"| {name} | {len(runs)} | {rates} | {cpu} | {found} | {answers} | {changed} |", flush=True)


if __name__ == "__main__":
    main()
