"""What Spark's Parquet sink has committed: which relations, and when a reader could see them.

A micro-batch is visible once its entry in `_spark_metadata` is there. The entry is written aside and renamed, so the change
time of the file is that moment. Every tenth entry is a compact one that repeats those before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq


def commits(out: Path) -> Iterator[tuple[float, list[Path]]]:
    """The moment and the files of each micro-batch, in order."""
    entries = {int(path.name.partition(".")[0]): path for path in (out / "_spark_metadata").glob("[0-9]*")}
    known: set[str] = set()
    for number in sorted(entries):
        lines = entries[number].read_text().splitlines()[1:]
        new = [path for path in (json.loads(line)["path"] for line in lines) if path not in known]
        known.update(new)
        yield entries[number].stat().st_ctime, [Path(unquote(urlparse(path).path)) for path in new]


def rows(out: Path) -> int:
    return sum(pq.ParquetFile(path).metadata.num_rows for _, paths in commits(out) for path in paths)


def completed(table: pa.Table) -> npt.NDArray[np.int64]:
    """The latest `at` of each row in microseconds: of its columns of times, or of its list of members."""
    latest = np.full(len(table), -1, np.int64)
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            found = _microseconds(column)
        elif pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type):
            members = column.combine_chunks()
            offsets = members.offsets.to_numpy()
            at = _microseconds(pa.chunked_array([members.values.field("at")]))
            found = np.maximum.reduceat(at, offsets[:-1]) if len(table) else latest
        else:
            continue
        latest = np.maximum(latest, found)
    if len(latest) and latest.min() < 0:
        raise ValueError(f"a relation without a time; its columns are {table.schema.names}")
    return latest


def _microseconds(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = (
        column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64()).fill_null(-1).to_numpy()
    )
    return found


def latencies(out: Path, clock_s: float, rate: float, from_s: float) -> npt.NDArray[np.float64]:
    """Seconds from the entry of a relation's last event to its commit, for events that entered `from_s` after the clock
    started or later."""
    from benchmarks.spark.pace import entered

    found = []
    for moment, paths in commits(out):
        for path in paths:
            at = entered(completed(pq.ParquetFile(path).read()), clock_s, rate)
            found.append(moment - at[at >= clock_s + from_s])
    return np.concatenate(found) if found else np.array([])
