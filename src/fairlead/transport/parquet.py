"""Parquet files as record batches, row group by row group.

Takes: a path. Gives: record batches, each with its first row and the rows of the whole file. Never: holds a whole file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fairlead.errors import DataError
from fairlead.transport.lines import unreadable

BUFFER_BYTES = 1_000_000
"""Read a column in pieces of this size; without a buffer Arrow reads whole column chunks."""


def parquet_batches(path: Path, batch_rows: int) -> Iterator[tuple[pa.RecordBatch, int, int]]:
    """Batches in the file's order, none empty. A file of no bytes has no rows."""
    try:
        source = pa.OSFile(str(path))
    except OSError as error:
        raise unreadable(path, error) from None
    row = 0
    with source:
        if source.size() == 0:
            return
        try:
            with pq.ParquetFile(source, buffer_size=BUFFER_BYTES) as opened:
                for batch in opened.iter_batches(batch_size=batch_rows):
                    if batch.num_rows:
                        yield batch, row, opened.metadata.num_rows
                        row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            reason = (str(error).splitlines() or ["unknown"])[0]
            problem = f"the Parquet file is cut short or damaged: {reason}"
            raise DataError("D012", problem, "let the writer finish, or copy the file again", f"{path}, row {row}") from None
