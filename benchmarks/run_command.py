"""`fairlead run` as a user types it: a Parquet file in, a Parquet file out, start of the process included.

Takes: a query and a number of events. Gives: events a second, CPU seconds and peak memory of the process; the same on one core,
and with `--on-bad skip`. The ways take turns, so that a busy neighbour disturbs all of them alike.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import workload
from benchmarks.measure import Timing, spawn

WAYS: dict[str, tuple[list[str], int | None]] = {
    "default": ([], None),
    "one core": (["--jobs", "1"], 1),
    "--on-bad skip": (["--on-bad", "skip"], None),
}
"""Options, and on how many cores the process may run."""


def measure(query: workload.Query, events: int, repeat: int, limit: float) -> dict[str, Any]:
    source = workload.parquet(events, query.backlog_of(events))
    command = str(Path(sys.executable).with_name("fairlead"))
    found: dict[str, Any] = {"events": events, "file_mb": source.stat().st_size / 2**20}
    timings, peaks = {way: Timing(events) for way in WAYS}, dict.fromkeys(WAYS, 0.0)
    with tempfile.TemporaryDirectory() as place:
        rules, out = Path(place) / "rules.fl", Path(place) / "relations.parquet"
        rules.write_text(query.rules())
        for _ in range(repeat):
            for way, (options, cores) in WAYS.items():
                if "failed" in found.get(way, ()) or sum(timings[way].wall_s) > limit / 3:
                    continue
                arguments = [command, "run", str(rules), "--events", str(source), "--out", str(out), "-q", *options]
                child = spawn(arguments, limit, cores=cores)
                if child.code != 0:
                    found[way] = child.json()
                    continue
                timings[way].add(child.wall_s, child.cpu_s)
                peaks[way] = max(peaks[way], child.peak_mb)
                relations = pq.ParquetFile(out).metadata.num_rows
                found[way] = {**(timings[way].to_json() or {}), "peak_mb": peaks[way], "relations": relations}
    return found


def help_seconds(repeat: int) -> float:
    """`fairlead --help`, the best of some."""
    command = [str(Path(sys.executable).with_name("fairlead")), "--help"]
    return min(spawn(command, 30).wall_s for _ in range(repeat))
