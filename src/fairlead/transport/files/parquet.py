"""Parquet files as record batches, row group by row group.

Takes: a path. Gives: record batches, each with its first row and the rows of the whole file. Never: holds a whole file.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fairlead.errors import DataError
from fairlead.transport.admission.problems import no_bytes
from fairlead.transport.files.text_lines import BatchSize, unreadable
from fairlead.transport.tables.table_reader import TABLE_ROWS

EXPORTED = b"fairlead.export"
"""In the metadata of a file with the events of a log: a reader accepts everything that the log accepted, including NaN and
infinities."""
BUFFER_BYTES = 1_000_000
"""Columns are read in pieces of this size. Without a buffer Arrow reads whole column chunks, and with its `pre_buffer` it keeps
those of all row groups, so that memory grows with the file."""

SAMPLE_ROWS = 256


def parquet_batches(path: Path, size: BatchSize) -> Generator[tuple[pa.RecordBatch, int, int], None, None]:
    """Batches in the file's order, none empty. Without a number of rows their size suits speed and memory."""
    if path.exists() and not path.is_file():
        raise DataError("D029", "Parquet is not read from pipes", "copy it to a file", str(path))
    try:
        source = pa.OSFile(str(path))
    except OSError as error:
        raise unreadable(path, error) from None
    row = 0
    with source:
        if source.size() == 0:
            raise no_bytes(str(path))
        try:
            metadata = pq.read_metadata(source)
            rows = size.rows or _rows_at_once(source, metadata, size.bytes_max)
            with _opened(source, metadata, rows) as opened:
                for batch in opened.iter_batches(batch_size=rows):
                    _sound(batch)
                    if batch.num_rows:
                        yield batch, row, metadata.num_rows
                        row += batch.num_rows
        except Exception as error:  # of Arrow, of the file, of an invalid length or name
            reason = (str(error).splitlines() or ["unknown"])[0][:200]
            problem = f"the Parquet file is cut short or damaged: {reason}"
            raise DataError(
                "D012", problem, "wait until the writer has finished, or copy the file again", f"{path}, row {row}"
            ) from None


def _sound(batch: pa.RecordBatch) -> None:
    """Raises if names are not UTF-8, or a dictionary lacks an entry that rows refer to: here, before a reader fails."""
    for _, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)


def _opened(source: pa.NativeFile, metadata: pq.FileMetaData, rows: int) -> pq.ParquetFile:
    """Reading `type` as a dictionary saves a third of the work. But then a batch ends with its row group, so this is not done
    if row groups are smaller than batches."""
    is_text = any(each.path == "type" and each.physical_type == "BYTE_ARRAY" for each in metadata.schema)
    as_dictionary = is_text and metadata.num_rows >= rows * (metadata.num_row_groups - 1)
    named = ["type"] if as_dictionary else None
    return pq.ParquetFile(source, metadata=metadata, buffer_size=BUFFER_BYTES, read_dictionary=named)


def _rows_at_once(source: pa.NativeFile, metadata: pq.FileMetaData, bytes_max: int) -> int:
    """TABLE_ROWS, or fewer if rows are so wide that a batch would exceed `bytes_max`. The estimate uses the size of the row
    groups and the first rows of the texts, since a dictionary stores a text once however often it occurs. The file says which
    columns have a dictionary, but reading that (`RowGroupMetaData.column`) crashes the process if the file is damaged."""
    groups = [group for group in map(metadata.row_group, range(metadata.num_row_groups)) if group.num_rows]
    widest = max((group.total_byte_size / group.num_rows for group in groups), default=0.0)
    texts = {each.path for each in metadata.schema if each.physical_type == "BYTE_ARRAY"}
    if columns := sorted(texts - {"type"}):
        with pq.ParquetFile(source, metadata=metadata, buffer_size=BUFFER_BYTES) as opened:
            sample = next(opened.iter_batches(batch_size=SAMPLE_ROWS, columns=columns), None)
            widest += sample.nbytes / sample.num_rows if sample is not None and sample.num_rows else 0.0
    return max(1, min(TABLE_ROWS, int(bytes_max / max(widest, 1.0))))
