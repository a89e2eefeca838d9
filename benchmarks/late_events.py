"""What LATE REVISE costs: `python -m benchmarks.late_events [EVENTS]` (CPU seconds; events by the million, seed 1).

Without late events, beside LATE TAG: the same sequence, a batch at a time, best of three each, in turns. With EVENTS events
kept: one late event, by how far back it belongs; the state of the past, dumped and loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import TypeVar

import numpy as np
import pyarrow as pa

import fairlead
from benchmarks.measure import machine
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.model.events.columns import Columns, arrow_schema, record_batch
from fairlead.model.plans.plan import Plan
from fairlead.runtime.event_time import EventTimeMatcher

Result = TypeVar("Result")
TYPES = "TYPE Order (k INT, at TIMESTAMP) TIME at TYPE Trade (k INT, at TIMESTAMP) TIME at "
RULES = {
    "pairs": "SUBSCRIPTION S MATCH Order o THEN Trade t PER k WITHIN 10 SECONDS",
    "absence": "SUBSCRIPTION S MATCH Order o WITHOUT Trade t WITHIN 2 SECONDS OF o PER k",
}
BATCH = 8_192
STEP_US = 1_000
"""A thousand events a second."""


def sequence(plan: Plan, events: int) -> list[Columns]:
    """Events in the order of time, of two types and a hundred keys."""
    random = np.random.default_rng(1)
    made = []
    for low in range(0, events, BATCH):
        count = min(BATCH, events - low)
        codes, keys = random.integers(0, 2, count).astype(np.int8), random.integers(0, 100, count).astype(np.int32)
        times = (np.arange(low, low + count, dtype=np.int64) + 1_000_000) * STEP_US
        made.append(batch(plan, codes, keys, times, low))
    return made


def batch(plan: Plan, codes: np.ndarray, keys: np.ndarray, times: np.ndarray, first: int) -> Columns:
    tables = {}
    for code, name in enumerate(("Order", "Trade")):
        mine = codes == code
        columns = [pa.array(keys[mine]), pa.array(times[mine]).cast(pa.timestamp("us", tz="UTC"))]
        if mine.any():
            tables[name] = record_batch(columns, arrow_schema(plan.catalogue[name]), int(mine.sum()))
    return Columns(("Order", "Trade"), codes, range(first, first + len(codes)), tables)


def followed(plan: Plan, batches: list[Columns]) -> tuple[EventTimeMatcher, int]:
    matcher, found = EventTimeMatcher(plan, kernels_from=0), 0
    for columns in batches:
        found += len(delivery_words(matcher.step(columns).relations))  # receipts need them in any case
    return matcher, found


def timed(run: Callable[[], Result]) -> tuple[float, Result]:
    start = process_time()
    result = run()
    return process_time() - start, result


def measure(name: str, events: int) -> None:
    text = f"{TYPES} ORDER BY at DELAY 1 SECOND %s {RULES[name]}"
    tag, revise = fairlead.compile(text % ""), fairlead.compile(text % "LATE REVISE WITHIN 30 DAYS")
    minute = fairlead.compile(text % "LATE REVISE WITHIN 1 MINUTE")
    batches = sequence(tag, events)
    followed(tag, batches[:4])
    plans = {"LATE TAG": tag, "within 1 minute": minute, "everything kept": revise}
    best = dict.fromkeys(plans, float("inf"))
    for _ in range(3):
        for label, plan in plans.items():
            best[label] = min(best[label], timed(partial(followed, plan, batches))[0])
    for label, seconds in best.items():
        print(f"{name:8} {label:16} {seconds:8.3f} s  {seconds / best['LATE TAG']:6.2f} × LATE TAG", flush=True)

    matcher, found = followed(revise, batches)
    assert matcher.reviser is not None
    kept, segments = len(matcher.reviser), len(matcher.reviser.segments)
    print(f"{name:8} {found:,} relations; {kept:,} events kept in {segments} segments", flush=True)
    position, end = events, (events + 1_000_000) * STEP_US
    for back in (2_000, 10_000, 100_000, 1_000_000):
        if back > events:
            break
        late = batch(
            revise, np.array([1], dtype=np.int8), np.array([1], dtype=np.int32), np.array([end - back * STEP_US]), position
        )
        position += 1
        seconds, revised = timed(partial(matcher.step, late, closed=True))
        count = len(revised.relations)
        print(f"{name:8} a late event, {back:>9,} events back: {seconds:7.3f} s, {count} deliveries", flush=True)
    dump, dumped = timed(matcher.dump)
    load, _ = timed(partial(EventTimeMatcher.load, revise, dumped, kernels_from=0))
    print(f"{name:8} state {len(dumped):,} bytes: dumped in {dump:.3f} s, loaded in {load:.3f} s", flush=True)


def main(events: int) -> None:
    print(machine())
    for name in RULES:
        measure(name, events)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
