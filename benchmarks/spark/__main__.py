"""The command: `.venv/bin/python -m benchmarks.spark [--events 1000000,5000000] [--queries Q1,Q2,Q3] [--sides pandas,fairlead]
[--repeat 3] [--limit 300] [--stream] [--json FILE]`.

Prints machine and versions, then a line for each side, query and size: each in a fresh process, with a limit. `--stream` is
the streaming part instead: the top rate of each side, and latency at a tenth and a half of it. README.md says what each
number means.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks import by_hand, peers, workload
from benchmarks.measure import Child, load, machine, module, short, spawn
from benchmarks.spark import batch, session, streams
from benchmarks.spark.tree import Watch

FLINK = "flink"
SETUP_S = 60.0
"""What a process may take beyond its limit to start: on a busy machine a session alone took 35 s."""

HEADER = (
    "| side | query | events | events/s best | median | spread | CPU s, best | first run, s (CPU s) "
    "| peak MB (JVM, Python) | relations |\n|---|---|---|---|---|---|---|---|---|---|"
)


@cache
def wanted(query: str, events: int) -> int:
    """The number of relations by the kernel by hand, which `python -m benchmarks.by_hand` holds equal to the engine."""
    return by_hand.relations_in(by_hand.BY_HAND[query](workload.stream(events)))


def watched(command: list[str], seconds: float, environment: dict[str, str] | None = None) -> tuple[Child, Watch]:
    with Watch(with_root=False) as watch:
        try:
            child = spawn(command, seconds, environment)
        finally:
            watch.look()
            watch.end_strays()
    return child, watch


def on_spark(side: str, query: str, events: int, place: Path, given: argparse.Namespace) -> dict[str, Any]:
    reason = batch.missing(side)
    if reason is not None:
        return {"failed": reason}
    source, out = session.files(place, events), place / "out"
    command = module("spark.batch", side, query, events, source, out, "--repeat", given.repeat, "--seconds", given.limit)
    child, _ = watched(command, given.limit + SETUP_S)
    return child.json()


def on_flink(query: str, events: int, place: Path, given: argparse.Namespace) -> dict[str, Any]:
    """One run: the second job of its process. If it is not done within the limit, a tenth of the events are tried."""
    peer = next(each for each in peers.PEERS if each.script == "flink_q.py")
    reason = peers.install(peer)
    if reason is not None:
        return {"failed": reason}
    script = [peer.python, str(peers.SCRIPTS / peer.script)]
    ran_out_at = []
    for size in (events, events // 10):
        source = session.files(place, size)
        child, watch = watched(
            [*script, str(source), query, "2"], given.limit + SETUP_S, {"JAVA_HOME": peers.java_home() or ""}
        )
        if child.code is not None:
            break
        ran_out_at.append(size)
    found = child.json()
    if "failed" in found:
        return found
    wall, cpu = found["wall_s"], found["cpu_s"]
    rates = {"events_per_s_best": found["events"] / wall, "events_per_s_median": found["events"] / wall}
    return {**found, **rates, **watch.memory(), "cpu_s_best": cpu, "repeats": 1, "ran_out_at": ran_out_at}


def line(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"| {row['side']} | {row['query']} | {row['events']:,} | {row['failed']} | | | | | | |"
    spread = "1 run" if row["repeats"] == 1 else f"{row['spread']:.2f} of {row['repeats']} runs"
    spread = spread if row.get("warm", True) else "first run only"
    first = f"{row['first_wall_s']:.1f} ({row['first_cpu_s']:.1f})" if "first_wall_s" in row else "–"
    memory = f"{row['peak_mb']:.0f} ({row['peak_jvm_mb']:.0f}, {row['peak_python_mb']:.0f})"
    ran_out = "".join(f", {each:,} events were not done within the limit" for each in row.get("ran_out_at", []))
    return (
        f"| {row['side']} | {row['query']} | {row['events']:,} | {short(row['events_per_s_best'])} "
        f"| {short(row['events_per_s_median'])} | {spread} | {row['cpu_s_best']:.2f} | {first} | {memory} "
        f"| {verdict(row)}{ran_out} |"
    )


def verdict(row: dict[str, Any]) -> str:
    if "wanted" not in row:
        return "–"
    if not row["exact"]:
        return f"{row['relations']:,} (other meaning; Fairlead's: {row['wanted']:,})"
    agrees = all(row["relations"] == row[name] for name in ("wanted", "embedded") if name in row)
    return f"{row['relations']:,}" if agrees else f"{row['relations']:,}, BUT {row['wanted']:,} ARE RIGHT"


def tables(
    sizes: list[int], queries: list[str], sides: list[str], place: Path, given: argparse.Namespace
) -> list[dict[str, Any]]:
    """All sides of one size and query one after the other, so that they meet the same machine."""
    rows: list[dict[str, Any]] = []
    print(f"\n{HEADER}")
    for events in sizes:
        embedded: dict[str, int] = {}
        for query in (batch.ANY, *queries):
            for side in sides:
                if side == FLINK and query in ("Q2", "Q3"):
                    row = {"exact": False, **on_flink(query, events, place, given)}
                elif side != FLINK and query in batch.SIDES[side].queries:
                    row = {"exact": batch.SIDES[side].exact, **on_spark(side, query, events, place, given)}
                else:
                    continue
                row = {"side": side, "query": query, "load": load(), "events": events, **row}
                if query != batch.ANY:
                    row["wanted"] = wanted(query, row["events"])
                if side == "embedded" and "relations" in row:
                    embedded[query] = row["relations"]
                if query in embedded and row["exact"]:
                    row["embedded"] = embedded[query]
                print(line(row), flush=True)
                rows.append(row)
    return rows


def print_machine(found: dict[str, Any]) -> None:
    print(f"{found['processor']}, {found['cores']} cores, {found['memory_gib']} GiB, {found['system']}")
    print(
        ", ".join(f"{name} {found[name]}" for name in ("fairlead", "python", "pyspark", "java", "pandas", "pyarrow", "numpy"))
    )
    print(f"commit {found['commit']}; {session.MASTER}; load average {' '.join(map(str, load()))} of {found['cores']} cores")


def versions() -> dict[str, Any]:
    from benchmarks.measure import version

    java = spawn(["java", "-version"], 30).error.splitlines()
    return {"pyspark": version("pyspark"), "pandas": version("pandas"), "java": java[0].split('"')[1] if java else "not found"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description="Fairlead on Spark beside other ways.")
    known = [*batch.SIDES, FLINK]
    parser.add_argument("--events", default=str(workload.EVENTS), metavar="N,…", help="sizes of the table, or of the stream")
    parser.add_argument("--queries", default=",".join(batch.QUERIES), metavar="Q1,…")
    parser.add_argument("--sides", metavar="SIDE,…", help=f"of {', '.join(known)}; with --stream of {', '.join(streams.SIDES)}")
    parser.add_argument("--repeat", type=int, default=3, help="runs in one process after the first")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one side, query and size")
    parser.add_argument("--folder", metavar="DIR", help="where the files lie (a temporary folder that goes in the end)")
    parser.add_argument("--stream", action="store_true", help="the streaming part: top rate and latency")
    parser.add_argument("--tuned", action="store_true", help="streaming: with the settings of session.TUNED")
    parser.add_argument("--file-events", type=int, default=100_000, help="streaming: events in a file")
    parser.add_argument("--files-per-trigger", default="1,5", metavar="N,…", help="streaming: tried in turn")
    parser.add_argument("--seconds", type=float, default=40.0, help="streaming: how long events enter at a pace")
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    known = list(streams.SIDES) if given.stream else known
    queries, sides = given.queries.split(","), (given.sides.split(",") if given.sides else known)
    for name, allowed in [(each, batch.QUERIES) for each in queries] + [(each, known) for each in sides]:
        if name not in allowed:
            parser.error(f"no {name}; there are {', '.join(allowed)}")
    if "fairlead" in sides and "embedded" not in sides and not given.stream:
        sides.insert(0, "embedded")  # whose number of relations the other has to reach
    sides.sort(key=known.index)

    # Asked to end, it ends its children first: `spawn` does on any exception.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    everything: dict[str, Any] = {"machine": {**machine(), **versions()}, "load": load()}
    print_machine(everything["machine"])
    with tempfile.TemporaryDirectory(prefix="fairlead-benchmarks-") as temporary:
        place = Path(given.folder or temporary).resolve()
        sizes = [int(each) for each in given.events.split(",")]
        part = partial(streams.everything, watched) if given.stream else tables
        everything["rows"] = part(sizes, queries, sides, place, given)
    everything["load_after"] = load()
    print(f"\nload average {' '.join(map(str, load()))}")
    if given.json:
        Path(given.json).write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
