"""A streaming source that lets W1 in at a pace, and when each event entered.

Event i enters at a moment that is known beforehand, whether Spark asks then or not: latency counts from there, so a
micro-batch that keeps the source waiting is charged for it. W1's own time is a millisecond an event at any pace, so an
event's index can be read off its `at`, and the measured query needs no column beyond those of W1.

The first micro-batch gets WARM events at once, and the clock starts when Spark asks for the second: starting Python
workers is no part of the latency.

Options: `path` (W1 as an Arrow file), `rate`, `events`, `clock` (where the reader leaves the moment the clock started).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from benchmarks import workload
from benchmarks.spark.session import SCHEMA

WARM = 1_000
PARTITIONS = 2


def arrow_file(place: Path, events: int) -> Path:
    path = place / f"w1-seed{workload.SEED}-{events}.arrow"
    if not path.exists():
        table = workload.table(workload.stream(events))
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=events)  # one batch: a slice of it costs nothing
    return path


def entered(at_us: npt.NDArray[np.int64], clock_s: float, rate: float) -> npt.NDArray[np.float64]:
    """When the events with these times entered, in seconds since 1970."""
    index = (at_us - workload.START_US) // workload.STEP_US
    moments: npt.NDArray[np.float64] = clock_s + (index - WARM) / rate
    return moments


@dataclass
class Slice(InputPartition):
    begin: int
    end: int


class PacedReader(DataSourceStreamReader):
    def __init__(self, options: Any) -> None:
        self.path, self.clock_path = options["path"], options["clock"]
        self.rate, self.events = float(options["rate"]), int(options["events"])
        self.clock_s: float | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"events": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        if start["events"] == 0:
            return {"events": WARM}
        if self.clock_s is None:
            self.clock_s = time()
            Path(self.clock_path).write_text(repr(self.clock_s))
        due = WARM + int((time() - self.clock_s) * self.rate)
        return {"events": max(start["events"], min(due, self.events))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Slice]:
        edges = np.linspace(start["events"], end["events"], PARTITIONS + 1).astype(int).tolist()
        return [Slice(begin, end) for begin, end in pairwise(edges) if begin < end]

    def read(self, partition: Slice) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(self.path) as file:
            batch = pa.ipc.open_file(file).get_batch(0)
            yield batch.slice(partition.begin, partition.end - partition.begin)

    def commit(self, end: dict[str, int]) -> None: ...

    def stop(self) -> None: ...


class Paced(DataSource):
    @classmethod
    def name(cls) -> str:
        return "paced"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> PacedReader:
        return PacedReader(self.options)
