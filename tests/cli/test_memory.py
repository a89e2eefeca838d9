"""Memory does not grow with the file: a two-type keyed conjunction over 80,000 and over 240,000 events."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow
RULES = """\
TYPE Order (account INT, at TIMESTAMP) TIME at
TYPE Payment (account INT, at TIMESTAMP) TIME at
SUBSCRIPTION Paid
MATCH Order o AND Payment p
PER account
WITHIN 10 SECONDS
"""
SMALL, LARGE = 80_000, 240_000
GROWTH_BYTES_MAX = 25_000_000
"""Three times the events are 160,000 more. Held as Event objects, a few hundred bytes each, they would be well beyond this.
Both runs are long enough to move to kernels, so that both load the compiler (about 100 MB)."""
BATCH_ROWS = 8192
"""Both runs take many batches, so that the largest batch is the same. (Of Parquet it would be 131,072 rows.)"""

MEASURE = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def write_events(path: Path, count: int) -> Path:
    generator = random.Random(11)
    rows = [
        {
            "type": generator.choice(("Order", "Payment")),
            "account": generator.randrange(500),
            "at": 1_760_000_000 + number // 200,
        }
        for number in range(count)
    ]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=20_000)
    else:
        with path.open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def peak_bytes(rules: Path, events: Path) -> int:
    run = [sys.executable, "-c", "from fairlead.cli.main import main; main()", "run", str(rules), "--events", str(events)]
    out = ["--out", str(events.with_suffix(".out.jsonl")), "--quiet", "--batch-rows", str(BATCH_ROWS)]
    measured = subprocess.run([sys.executable, "-c", MEASURE, *run, *out], capture_output=True, text=True, timeout=300)
    assert measured.returncode == 0, measured.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    return int(measured.stdout) * unit


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_three_times_the_events_need_no_more_memory(tmp_path: Path, ending: str) -> None:
    rules = tmp_path / "paid.fl"
    rules.write_text(RULES)
    small = peak_bytes(rules, write_events(tmp_path / f"small.{ending}", SMALL))
    large = peak_bytes(rules, write_events(tmp_path / f"large.{ending}", LARGE))
    assert large - small < GROWTH_BYTES_MAX, f"{small:,} bytes for {SMALL:,} events, {large:,} for {LARGE:,}"
