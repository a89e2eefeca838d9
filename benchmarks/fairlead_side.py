"""Fairlead as a user calls it, and an honest name for the matcher that did the work."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.runs_by_hand import Runs
from fairlead.engine import Engine
from fairlead.matching.interpreted.matcher import IncrementalSubscription
from fairlead.model.events.columns import Columns
from fairlead.model.plans.plan import Plan
from fairlead.transport.events import read_events


def batches(plan: Plan, table: pa.Table) -> list[Columns]:
    """The table as the matcher is given it: decoding and checking are then not part of what is timed."""
    return list(read_events(table, plan.catalogue))


def feed(plan: Plan, given: list[Columns]) -> tuple[Engine, int]:
    """The matcher alone: a new engine over ready batches, up to what `feed` returns. Relations are counted, not looked at."""
    engine = Engine(plan)
    found = 0
    for columns in given:
        found += len(engine.feed(columns))
    found += len(engine.finish())
    return engine, found


def python_engine(plan: Plan) -> Engine:
    """The engine held to its incremental matcher, whatever it would pick by itself."""
    options: dict[str, Any] = {"matcher": IncrementalSubscription}
    if "kernels_from" in inspect.signature(Engine).parameters:
        options["kernels_from"] = None
    return Engine(plan, **options)


def positions(relations: Any, like: npt.NDArray[np.int64] | Runs) -> npt.NDArray[np.int64] | Runs:
    """The members' positions, in the form that a kernel by hand gives."""
    told = [each.positions for each in relations]
    if isinstance(like, Runs):
        members = np.fromiter((at for each in told for at in each), dtype=np.int64)
        return Runs(members, np.array([len(each) for each in told], dtype=np.int64))
    return np.array(told, dtype=np.int64).reshape(-1, like.shape[1])


def matcher_of(engine: Any) -> str:
    """Which matcher has the subscriptions now, by where they are found."""
    units = getattr(engine, "units", (engine,))
    if all(each.lane is not None for each in units):
        return f"compiled kernels ({sum(len(each.lane.families) for each in units)})"
    running = [each for unit in units for each in unit.running]
    names = sorted({f"{type(each.matcher).__module__}.{type(each.matcher).__name__}" for each in running})
    return f"Python ({', '.join(names)})"
