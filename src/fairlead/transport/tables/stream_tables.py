"""Tables whose rows are events of several streams, as a disjunction reads them: each stream has its own positions.

The order of the rows is the merged order of all streams. Consecutive rows of one stream are read together.

Takes: record batches with a column that names the stream, by its types. Gives: Columns and their stream's number. Never:
assigns a row to another stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.errors import DataError, UsageError
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue
from fairlead.transport.admission.gate import Intake
from fairlead.transport.admission.positions import no_column
from fairlead.transport.files.event_files import format_of
from fairlead.transport.files.parquet import parquet_batches
from fairlead.transport.files.text_lines import BatchSize, Progress
from fairlead.transport.tables.table_reader import examined, take_rows


def read_streams(
    batches: Iterable[pa.RecordBatch], catalogue: Catalogue, streams: Sequence[str], position: str, stream: str
) -> Iterator[tuple[int, Columns]]:
    """`streams`: the names of the expected streams; others are an error. `position`, `stream`: the names of these columns.
    Raises DataError."""
    intakes = [Intake(catalogue, position_field=position) for _ in streams]
    row = 0
    for batch in batches:
        if stream not in batch.schema.names:
            raise no_column(stream, batch.schema.names, "table")
        told = batch.column(batch.schema.get_field_index(stream))
        numbers = _numbers(told, streams, stream, row)
        rest = batch.drop_columns([stream])
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for low, high in pairwise(cuts):
            if low < high:
                intake = intakes[int(numbers[low])]
                yield int(numbers[low]), take_rows(examined(rest.slice(low, high - low), intake.typed), intake)
        row += batch.num_rows


def stream_files(
    paths: Iterable[Path],
    catalogue: Catalogue,
    streams: Sequence[str],
    position: str,
    stream: str,
    *,
    batch_rows: int | None = None,
    progress: Progress,
) -> Iterator[tuple[int, Columns]]:
    """The same for Parquet files, one after the other. Raises DataError, UsageError."""
    files = list(paths)
    for each in files:
        if format_of(each) != "parquet":
            fix = "pass the Parquet files that `fairlead export` wrote"
            raise UsageError("A217", f"`stream` needs Parquet files, and {each} is not one", fix)
    yield from read_streams(_batches(files, batch_rows, progress), catalogue, streams, position, stream)


def _batches(files: Iterable[Path], batch_rows: int | None, progress: Progress) -> Iterator[pa.RecordBatch]:
    for path in files:
        size, told = path.stat().st_size, 0
        for batch, first_row, rows in parquet_batches(path, BatchSize(batch_rows)):
            yield batch
            reached = size * (first_row + batch.num_rows) // rows
            progress(reached - told)
            told = reached


def _numbers(told: pa.Array, streams: Sequence[str], column: str, row: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    texts = told.cast(pa.string()) if not pa.types.is_dictionary(told.type) else told.cast(told.type.value_type)
    found = pc.index_in(texts, pa.array(streams, pa.string()))
    if found.null_count:
        at = found.is_null().index(True).as_py()
        problem = f"{texts[at].as_py()!r} is none of the streams that the rules read: {', '.join(map(repr, streams))}"
        place = f"row {row + at}, column '{column}'"
        raise DataError("D025", problem, "pass the events that were exported for these rules", place)
    return found.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
