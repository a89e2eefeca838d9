"""Marks that say what a test needs, so that `make quick` can leave out what takes long: `spark`, `server` and `slow`.

`spark` and `server` follow from the folder or the fixtures, where those say it; other tests are marked where they stand, and a
test that starts a JVM or a server without its mark fails. `slow` is given by hand to what takes more than about two seconds of
processor time, and to modules of many processes that add up to more.

`sampled` is given to tests with many cases of one kind: with `FAIRLEAD_QUICK=1` a sixth of them runs, always the same, as a
sixth of the generated cases is drawn (tests/conftest.py); and folders that need Spark or a server are not even read.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.root import ROOT

FOLDERS = {
    "spark": ("runtime/spark",),
    "server": ("cli/live", "runtime/kafka", "runtime/spark/log", "web"),
}
"""Below tests/: everything there needs it."""
FIXTURES = {"spark": {"spark"}, "server": {"server"}}
READERS = {"test_clauses.py", "test_codes.py", "test_habits.py", "test_names.py", "test_private_apis.py"}
"""Of tests/: they read the source as syntax trees (tests/source_trees.py), so one process parses it for all of them."""
QUICK = "FAIRLEAD_QUICK" in os.environ
SAMPLED = 6
"""One in so many."""
PROGRAMS = {"spark": {"java", "spark-submit", "spark-class"}, "server": {"nats-server"}}
"""What only tests with the mark may start."""

_started: list[str] = []
"""The programs that the running test has started."""
_popen = subprocess.Popen.__init__


def _noted(self: Any, args: Any, *more: Any, **named: Any) -> None:
    first = args if isinstance(args, str | bytes | Path) else args[0]
    _started.append(Path(first.decode() if isinstance(first, bytes) else first).name)
    _popen(self, args, *more, **named)


subprocess.Popen.__init__ = _noted  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)  # xdist, and `-m`, read the marks in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        below = item.path.relative_to(ROOT / "tests").as_posix()
        used = set(getattr(item, "fixturenames", ()))
        for name in ("spark", "server"):
            if used & FIXTURES[name] or below.startswith(tuple(f"{each}/" for each in FOLDERS[name])):
                item.add_marker(name)
        if config.pluginmanager.hasplugin("xdist") and (group := _group(item, below, used)):
            item.add_marker(pytest.mark.xdist_group(group))
    if QUICK:
        _sample(config, items)
    if hasattr(config, "workerinput"):  # xdist gives out the largest groups, then the rest in its order: what takes long first
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _group(item: pytest.Item, below: str, used: set[str]) -> str | None:
    """What one process of several runs. If little runs of each module, a process runs all of it: its plans and kernels are made
    once."""
    if "spark" in used:
        return "spark"
    if below in READERS:
        return "source"
    return below if QUICK and item.get_closest_marker("xdist_group") is None else None


def _sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """By a checksum of the names: every third would be the same value of a parameter that has three."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    left = set()
    for mine in cases.values():
        mine.sort(key=lambda item: crc32(item.nodeid.encode()))
        left |= set(mine[-(-len(mine) // SAMPLED) :])
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def sample_size(count: int) -> int:
    """How many of the cases that one test draws it runs: with `FAIRLEAD_QUICK=1` a sixth."""
    return -(-count // SAMPLED) if QUICK else count


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fixtures have begun before, and are checked with it."""
    yield
    for name, programs in PROGRAMS.items():
        found = programs.intersection(_started)
        assert not found or item.get_closest_marker(name), f"it starts {', '.join(found)}: mark it with pytest.mark.{name}"


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    _started.clear()
