"""One subscriber, in a process of its own: reads the events, matches, and writes what it delivered with its receipt.

    python subscriber.py market.parquet --batch-rows 16384 --out delivered.json

It prints the number of events read so far, one number a line, and shares nothing with any other subscriber but the rules.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import fairlead
from fairlead.transport import read_files

RULES = Path(__file__).with_name("rules.fl")
TELL_EVERY = 2_000
"""Events between two numbers: at 20,000 events a second, ten a second for a progress bar."""


def subscribe(events: Path, batch_rows: int) -> dict[str, Any]:
    """Read and match `events` to their end. Memory holds one batch and the open matches, whatever the file's size."""
    plan = fairlead.compile(RULES.read_text(encoding="utf-8"), RULES.name)
    run = fairlead.Run(plan)
    relations: list[dict[str, Any]] = []
    told = 0
    began = time.perf_counter()
    for columns in read_files(events, plan.catalogue, batch_rows=batch_rows):
        relations += [relation.to_json() for relation in run.feed(columns)]
        if run.events - told >= TELL_EVERY:
            told = run.events
            print(told, flush=True)
    relations += [relation.to_json() for relation in run.finish()]
    seconds = time.perf_counter() - began
    return {"events": run.events, "seconds": seconds, "receipt": run.receipt.to_json(), "relations": relations}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("events", type=Path)
    parser.add_argument("--batch-rows", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    delivered = subscribe(arguments.events, arguments.batch_rows)
    print(delivered["events"], flush=True)
    arguments.out.write_text(json.dumps(delivered), encoding="utf-8")
