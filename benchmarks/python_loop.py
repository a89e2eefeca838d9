"""Plain Python: the engine held to its incremental matcher, one event after the other.

Takes: a rule text and an Arrow table. Gives: the relations, or how many events it got through in a given time.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter, process_time

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fairlead
from benchmarks import fairlead_side
from benchmarks.fairlead_side import python_engine
from benchmarks.runs_by_hand import Runs
from fairlead.model.events.event import Event
from fairlead.model.plans.plan import Plan
from fairlead.transport.events import read_events

CLOCK_EVERY = 16
"""Events between two looks at the clock: at 50 ns a look it does not show, and Q6's milliseconds still stop in time."""


def _events(plan: Plan, table: pa.Table) -> Iterator[Event]:
    for columns in read_events(table, plan.catalogue):
        yield from columns.events(plan.catalogue)


def positions(rules: str, table: pa.Table, like: npt.NDArray[np.int64] | Runs) -> npt.NDArray[np.int64] | Runs:
    """The members' positions of all relations, in the order of delivery."""
    plan = fairlead.compile(rules)
    engine = python_engine(plan)
    return fairlead_side.positions([found for event in _events(plan, table) for found in engine.arrive(event)], like)


def timed(rules: str, table: pa.Table, seconds: float, backlog: int = 0) -> dict[str, float | int]:
    """As many events of the table as fit into the time, from building the Event objects to the relations. The first
    `backlog` events are fed untimed. Queues that grow make later events dearer, so the rate over a short prefix flatters
    this matcher; the number of events is given with it."""
    plan = fairlead.compile(rules)
    engine = python_engine(plan)
    fed = relations = 0
    wall, cpu = perf_counter(), process_time()
    for event in _events(plan, table):
        if fed == backlog:
            wall, cpu = perf_counter(), process_time()
        relations += len(engine.arrive(event))
        fed += 1
        if fed > backlog and fed % CLOCK_EVERY == 0 and perf_counter() - wall > seconds:
            break
    wall, cpu = perf_counter() - wall, process_time() - cpu
    events = fed - backlog
    return {
        "fed": fed,
        "events": events,
        "relations": relations,
        "wall_s": wall,
        "cpu_s": cpu,
        "events_per_s": events / wall,
        "events_per_cpu_s": events / cpu,
    }
