"""`fairlead run` as a user types it: a Parquet file in, a Parquet file out, start of the process included.

Takes: a query and a number of events. Gives: events a second, CPU seconds and peak memory of the process, and the same with
`--on-bad skip`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import workload
from benchmarks.measure import Timing, spawn

WAYS: dict[str, list[str]] = {"default": [], "--on-bad skip": ["--on-bad", "skip"]}


def measure(query: workload.Query, events: int, repeat: int, limit: float) -> dict[str, Any]:
    source = workload.parquet(events, query.backlog_of(events))
    command = str(Path(sys.executable).with_name("fairlead"))
    found: dict[str, Any] = {"events": events, "file_mb": source.stat().st_size / 2**20}
    with tempfile.TemporaryDirectory() as place:
        rules, out = Path(place) / "rules.fl", Path(place) / "relations.parquet"
        rules.write_text(query.rules())
        for way, options in WAYS.items():
            timing, peak = Timing(events), 0.0
            for _ in range(repeat):
                child = spawn([command, "run", str(rules), "--events", str(source), "--out", str(out), "-q", *options], limit)
                if child.code != 0:
                    found[way] = child.json()
                    break
                timing.add(child.wall_s, child.cpu_s)
                peak = max(peak, child.peak_mb)
                relations = pq.ParquetFile(out).metadata.num_rows
                found[way] = {**(timing.to_json() or {}), "peak_mb": peak, "relations": relations}
                if sum(timing.wall_s) > limit / 3:
                    break
    return found


def help_seconds(repeat: int) -> float:
    """`fairlead --help`, the best of some."""
    command = [str(Path(sys.executable).with_name("fairlead")), "--help"]
    return min(spawn(command, 30).wall_s for _ in range(repeat))
