"""All sides of `--stream`: the top rate of each, then latency at a tenth and at half of it, every run in a fresh process."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import Child, load, module, short
from benchmarks.spark import batch, pace, session, stream
from benchmarks.spark.tree import Watch

SIDES = stream.SIDES
SHARES = (0.1, 0.5)
EVENTS_MOST = 20_000_000
"""In the Arrow file of a paced run: 660 MB. A pace that would need more runs shorter, and the line says how long."""

Watched = Callable[..., tuple[Child, Watch]]
HEADER = (
    "| side | query | micro-batch | events/s after the first | micro-batch s, best to most | CPU s | peak MB (JVM, Python) "
    "| relations |\n|---|---|---|---|---|---|---|---|"
)


def run(watched: Watched, place: Path, given: argparse.Namespace, seconds: float, *arguments: object) -> dict[str, Any]:
    fresh = Path(tempfile.mkdtemp(prefix="stream-", dir=place))
    side, query, what, source, *options = arguments
    options += ["--tuned"] if given.tuned else []
    command = module("spark.stream", side, query, what, fresh, source, *options, "--seconds", seconds)
    child, _ = watched(command, seconds + 60)
    shutil.rmtree(fresh, ignore_errors=True)
    return child.json()


def top_rate(
    watched: Watched, side: str, query: str, events: int, place: Path, given: argparse.Namespace
) -> list[dict[str, Any]]:
    source = session.files(place, events, -(-events // given.file_events))
    rows = []
    for files in map(int, given.files_per_trigger.split(",")):
        options = ("--events", events, "--files-per-trigger", files, "--file-events", given.file_events)
        row = {"side": side, "query": query, "load": load(), "exact": SIDES[side].exact}
        row |= run(watched, place, given, given.limit, side, query, "rate", source, *options)
        row.setdefault("micro_batch_events", files * given.file_events)
        print(rate_line(row), flush=True)
        rows.append(row)
    return rows


def rate_line(row: dict[str, Any]) -> str:
    start = f"| {row['side']} | {row['query']} | {row['micro_batch_events']:,} |"
    if "failed" in row:
        return f"{start} {row['failed']} | | | | |"
    lasts = row["micro_batch_s"]
    memory = f"{row['peak_mb']:.0f} ({row['peak_jvm_mb']:.0f}, {row['peak_python_mb']:.0f})"
    relations = f"{row['relations']:,} of {row['events']:,} events"
    if "wanted" in row and row["relations"] != row["wanted"]:
        relations += f"; {'BUT' if row['exact'] else 'other meaning,'} Fairlead's: {row['wanted']:,}"
    return (
        f"{start} {short(row['events_per_s'])} | {lasts['best']:.2f} to {lasts['most']:.2f}, {row['micro_batches']} of them "
        f"| {row['cpu_s']:.1f} | {memory} | {relations} |"
    )


def at_pace(watched: Watched, side: str, query: str, rate: float, place: Path, given: argparse.Namespace) -> dict[str, Any]:
    events = min(EVENTS_MOST, pace.WARM + int(rate * given.seconds))
    source = pace.arrow_file(place, events)
    row = {"side": side, "query": query, "rate": rate, "load": load()}
    row |= run(watched, place, given, given.limit, side, query, "latency", source, "--events", events, "--rate", rate)
    source.unlink()
    start = f"- {side} {query} at {short(rate)} events/s for {(events - pace.WARM) / rate:.0f} s:"
    if "failed" in row:
        print(start, row["failed"], flush=True)
    else:
        values = ", ".join(f"{name} {row[f'{name}_ms']:.0f} ms" for name in ("p50", "p95", "p99"))
        counts = f"{row['relations']:,} relations in {row['micro_batches']} micro-batches"
        print(f"{start} {values}; {counts}, {row['behind_s']:.1f} s behind in the end, {row['cpu_s']:.1f} CPU s", flush=True)
    return row


def everything(
    watched: Watched, sizes: list[int], queries: list[str], sides: list[str], place: Path, given: argparse.Namespace
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    print(f"\n{HEADER}")
    for events in sizes:
        for side in sides:
            reason = batch.missing(side)
            if reason is not None:
                print(f"| {side} | | | {reason} | | | | |")
                continue
            for query in SIDES[side].queries if side == "floor" else [each for each in queries if each in SIDES[side].queries]:
                rows += top_rate(watched, side, query, events, place, given)
    print("\nLatency from the entry of a relation's last event to its commit by the Parquet sink:")
    tops: dict[tuple[str, str], float] = {}
    for row in rows:
        name = row["side"], row["query"]
        tops[name] = max(tops.get(name, 0.0), row.get("events_per_s", 0.0))
    paced = [(name, share * top) for name, top in tops.items() if top for share in SHARES]
    return rows + [at_pace(watched, side, query, rate, place, given) for (side, query), rate in paced]
