"""Processes are killed, and every relation is delivered once.

`FAIRLEAD_CRASH_EVENTS=1000000` makes it long: more events, more micro-batches, more kills.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fairlead
from fairlead.matching.results.relation_batches import relation_table
from fairlead.model.relations.layout import layout_of
from tests.root import ROOT
from tests.runtime.spark.stream.streams import RULES, cut, events, written
from tests.waiting import wait_until

EVENTS = int(os.environ.get("FAIRLEAD_CRASH_EVENTS", "40000"))
IS_LONG = EVENTS > 40_000
MICRO_BATCHES = 20 if IS_LONG else 5
KILLS = 6 if IS_LONG else 2
PATIENCE_S = 600


@pytest.fixture(scope="module")
def wanted() -> pa.Table:
    """What the embedded runtime gives."""
    plan = fairlead.compile(RULES)
    given = relation_table(fairlead.match(plan, events(EVENTS), order_by="at").batches, layout_of(plan))
    return compared(given.rename_columns(["relation_id" if name == "id" else name for name in given.column_names]))


def compared(table: pa.Table) -> pa.Table:
    members = table.column("members").combine_chunks()
    positions = pa.ListArray.from_arrays(members.offsets, members.values.field("position"))
    chosen = table.select(["subscription", "relation_id", "completed_at", "place"]).append_column("positions", positions)
    plain = pa.schema([("subscription", pa.string()), *zip(chosen.column_names[1:], chosen.schema.types[1:], strict=True)])
    return chosen.cast(plain.set(4, pa.field("positions", pa.list_(pa.int64())))).sort_by("relation_id").combine_chunks()


class Driver:
    """The driver process with all its children, which it leaves behind neither alive nor dead."""

    def __init__(self, master: str, folder: Path, *more: str, module: str = "tests.runtime.spark.stream.crash_driver") -> None:
        self.folder = folder
        command = [sys.executable, "-m", module, master, str(folder), *more]
        (folder / "tmp").mkdir(exist_ok=True)  # who is killed cannot clean up
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "TMPDIR": str(folder / "tmp")}
        self.output = (folder / "output.txt").open("a")
        self.process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=self.output, stderr=self.output, start_new_session=True
        )

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something to be so, which it is before the process ends."""
        wait_until(lambda: is_so() or self.process.poll() is not None, PATIENCE_S)
        assert is_so(), self.said()

    def said(self) -> str:
        return (self.folder / "output.txt").read_text()[-5000:]

    def executors(self) -> list[int]:
        return [each for each in self.family() if b"CoarseGrainedExecutorBackend" in _command(each)]

    def family(self) -> list[int]:
        """Its process and everything that this started, youngest last."""
        parents = {}
        for each in Path("/proc").iterdir():
            if each.name.isdigit():
                with contextlib.suppress(OSError):
                    parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        found = [self.process.pid]
        for each in found:
            found += [child for child, parent in parents.items() if parent == each]
        return found

    def kill(self) -> None:
        for each in self.family():
            _kill(each)
        self.process.wait(60)
        self.output.close()


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _command(process: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


@contextlib.contextmanager
def driver(master: str, folder: Path, *more: str, **module: str) -> Iterator[Driver]:
    made = Driver(master, folder, *more, **module)
    try:
        yield made
    finally:
        made.kill()


def micro_batches(folder: Path, log: str) -> int:
    """How many have begun (`offsets`), or ended (`commits`)."""
    there = folder / "checkpoint" / log
    return len([each for each in there.iterdir() if each.name.isdigit()]) if there.is_dir() else 0


def test_a_driver_that_is_killed_again_and_again_delivers_every_relation_once(
    spark: SparkSession, tmp_path: Path, wanted: pa.Table
) -> None:
    random = Random(11)
    written(tmp_path / "in", cut(events(EVENTS), MICRO_BATCHES))
    for after in sorted(random.sample(range(1, MICRO_BATCHES), KILLS)):
        with driver("local[2]", tmp_path) as running:
            begun = max(micro_batches(tmp_path, "offsets"), after)
            running.until(lambda: micro_batches(tmp_path, "offsets") > begun or (tmp_path / "done").exists())  # noqa: B023
            time.sleep(random.uniform(0, 1))  # anywhere in a micro-batch: reading, matching, writing, committing
    with driver("local[2]", tmp_path) as running:
        running.until((tmp_path / "done").exists)
    assert compared(spark.read.parquet(str(tmp_path / "stream")).toArrow()).equals(wanted)


def test_executors_that_are_killed_change_nothing(spark: SparkSession, tmp_path: Path, wanted: pa.Table) -> None:
    written(tmp_path / "in", cut(events(EVENTS), MICRO_BATCHES))
    with driver("local-cluster[2,1,1024]", tmp_path, "batch") as running:
        running.until(lambda: micro_batches(tmp_path, "commits") > 1)
        first = running.executors()
        _kill(first[0])
        running.until((tmp_path / "batch-begins").exists)
        running.until(lambda: len(running.executors()) > 1)
        time.sleep(1)  # the new one has been given tasks by then, which nothing outside Spark shows
        second = running.executors()
        assert first[0] not in second
        _kill(second[0])
        running.until((tmp_path / "done").exists)
    assert compared(spark.read.parquet(str(tmp_path / "stream")).toArrow()).equals(wanted)
    assert compared(spark.read.parquet(str(tmp_path / "batch")).toArrow()).equals(wanted)
