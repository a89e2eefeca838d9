"""Many runs of a simulation, one after the other or in several processes.

Takes: a simulation by its name, seeds. Gives: the seeds that fail, with their problems; progress. Never: stops at the first,
unless `stop` says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.testing.simulator.outcome import Simulation

CHUNK = 50
"""Seeds that a process is given at a time: a few seconds of the slowest simulation."""
SHIPPED = {"live": "fairlead.testing.simulator.live.simulation:LiveSimulation"}


@dataclass(frozen=True)
class Failure:
    seed: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class RunProgress:
    runs: int
    failures: tuple[Failure, ...]
    seconds: float


def simulation_of(name: str) -> Simulation[Any]:
    """One of those that are shipped, or `module:NAME`, a simulation or a class of one. Raises UsageError."""
    module, _, attribute = SHIPPED.get(name, name).partition(":")
    if attribute:
        with suppress(ModuleNotFoundError, AttributeError):
            found = getattr(import_module(module), attribute)
            return found() if isinstance(found, type) else found  # type: ignore[no-any-return]
    known = ", ".join(SHIPPED)
    raise UsageError("A014", f"there is no simulation '{name}'", f"use one of: {known}; or module:NAME, for one of your own")


def failures_in(name: str, seeds: range) -> list[Failure]:
    simulation, found = simulation_of(name), list[Failure]()
    for seed in seeds:
        problems = simulation.run(simulation.case(seed)).problems
        if problems:
            found.append(Failure(seed, problems))
    return found


def many(
    name: str, first: int, count: int, jobs: int, *, stop: Callable[[RunProgress], bool] = lambda told: False
) -> Iterator[RunProgress]:
    """Runs the seeds from `first` on; reports after every few. `stop`: whether a report is the last one."""
    chunks = (range(low, min(low + CHUNK, first + count)) for low in range(first, first + count, CHUNK))
    began, runs, failures = time.monotonic(), 0, list[Failure]()
    for size, found in _judged(name, chunks, jobs):
        runs += size
        failures += found
        told = RunProgress(runs, tuple(failures), time.monotonic() - began)
        yield told
        if stop(told):
            return


def _judged(name: str, chunks: Iterator[range], jobs: int) -> Iterator[tuple[int, list[Failure]]]:
    if jobs == 1:
        for seeds in chunks:
            yield len(seeds), failures_in(name, seeds)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        pending: dict[Future[list[Failure]], int] = {}
        try:
            while True:
                while len(pending) < 2 * jobs and (some := next(chunks, None)) is not None:
                    pending[pool.submit(failures_in, name, some)] = len(some)
                if not pending:
                    return
                for each in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(each), each.result()
        finally:
            for each in pending:
                each.cancel()
