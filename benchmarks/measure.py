"""Clocks, limits and the machine: what makes a number readable a year later.

Everything is timed twice: on the wall, and in CPU seconds of the process, which a neighbour on the same machine disturbs less.
Spread is slowest over fastest repeat, so 1.00 is a quiet machine.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeVar

Result = TypeVar("Result")
ROOT = Path(__file__).resolve().parent.parent


class TimeLimit(Exception):
    """The stated time was over."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Ends Python code that takes too long. Machine code is not interrupted: the limit then strikes when it returns."""

    def strike(number: int, frame: object) -> None:
        raise TimeLimit

    before = signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Timing:
    """Repeats of one measurement over `events` events."""

    events: int
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def run(self, action: Callable[[], Result]) -> Result:
        wall, cpu = perf_counter(), process_time()
        result = action()
        self.cpu_s.append(process_time() - cpu)
        self.wall_s.append(perf_counter() - wall)
        return result

    def add(self, wall_s: float, cpu_s: float) -> None:
        self.wall_s.append(wall_s)
        self.cpu_s.append(cpu_s)

    def to_json(self) -> dict[str, Any] | None:
        if not self.wall_s:
            return None
        return {
            "events": self.events,
            "repeats": len(self.wall_s),
            "events_per_s_best": self.events / min(self.wall_s),
            "events_per_s_median": self.events / statistics.median(self.wall_s),
            "events_per_cpu_s_best": self.events / min(self.cpu_s),
            "events_per_cpu_s_median": self.events / statistics.median(self.cpu_s),
            "spread": max(self.wall_s) / min(self.wall_s),
            "cpu_s_best": min(self.cpu_s),
            "wall_s_best": min(self.wall_s),
        }


def peak_mb() -> float:
    """The most memory this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine() -> dict[str, Any]:
    model = "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = next(
            (line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line), model
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ("fairlead", "numba", "llvmlite", "numpy", "pyarrow")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": _commit(),
        **{name: version(name) for name in packages},
    }


def load() -> list[float]:
    return [round(each, 2) for each in os.getloadavg()]


def version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "src")
    return f"{git('rev-parse', '--short', 'HEAD') or 'unknown'}{' with uncommitted changes in src' if changed else ''}"


@dataclass(frozen=True)
class Child:
    """A process that has ended: its own clock and memory, not the parent's. `code` is None if the limit struck."""

    code: int | None
    out: str
    error: str
    wall_s: float
    cpu_s: float
    peak_mb: float

    def json(self) -> dict[str, Any]:
        """What it printed on its last line, or why there is nothing."""
        if self.code == 0 and self.out.strip():
            found: dict[str, Any] = json.loads(self.out.strip().splitlines()[-1])
            return found
        if self.code is None:
            return {"failed": f"stopped after {self.wall_s:.0f} s"}
        return {"failed": (self.error.strip().splitlines() or [f"exit code {self.code}"])[-1]}


def spawn(command: list[str], seconds: float, environment: dict[str, str] | None = None, *, cores: int | None = None) -> Child:
    """Runs a command in the repository, within a limit; on the first of the cores only, if `cores` says how many."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
        began = perf_counter()
        variables = {**os.environ, **(environment or {})}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its bytecode
        allowed = os.sched_getaffinity(0)
        if cores is not None:
            os.sched_setaffinity(0, sorted(allowed)[:cores])  # the command inherits it
        try:
            process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=error, env=variables, start_new_session=True)
        finally:
            os.sched_setaffinity(0, allowed)
        struck = False

        def strike(number: int, frame: object) -> None:
            nonlocal struck
            struck = True
            os.killpg(process.pid, signal.SIGKILL)

        before = signal.signal(signal.SIGALRM, strike)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        wall = perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        error.seek(0)
        code = None if struck else process.returncode
        return Child(code, out.read(), error.read(), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def module(name: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)]


def short(number: float | None) -> str:
    """1234567 as 1.23 M."""
    if number is None:
        return "–"
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}" if number < 100 * size else f"{number / size:.0f}{unit}"
    return f"{number:.3g}"
