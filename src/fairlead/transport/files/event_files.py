"""Files: JSON Lines (also of CloudEvents), CSV and Parquet become Columns, one after the other, in bounded memory.

Takes: paths of files and directories. Gives: Columns whose positions continue, or increase, over all files.
Never: writes, reorders, or reads a second file before the first has ended.

A bad record stops the reading, or is skipped and passed to `rejects`. An error of a whole file (it does not exist, its header
does not fit, a Parquet file is truncated) stops in both modes, since there is no record to skip.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from fairlead.dataclass import dataclass
from fairlead.errors import DataError
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue
from fairlead.transport.admission.gate import BATCH_ROWS, Intake, OnBad
from fairlead.transport.admission.problems import Rejects, did_you_mean
from fairlead.transport.admission.sequences import LastSequences
from fairlead.transport.files.csv_rows import csv_records
from fairlead.transport.files.json_lines import json_records
from fairlead.transport.files.parquet import EXPORTED, parquet_batches
from fairlead.transport.files.text_lines import BATCH_BYTES_MAX, BatchSize, Lines, Progress, batches
from fairlead.transport.tables.table_reader import TablePart, examined, take_rows
from fairlead.transport.threads.read_ahead import read_ahead

FORMATS = {  # the first suffix that fits
    ".cloudevents.jsonl": "cloudevents",
    ".cloudevents.jsonl.gz": "cloudevents",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".jsonl.gz": "json",
    ".ndjson.gz": "json",
    ".json.gz": "json",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".parquet": "parquet",
}
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Validation:
    """The result of a full pass over the input. `records` counts all of them: accepted, duplicate and rejected."""

    records: int
    events: int
    duplicates: int
    rejected: int


def read_files(
    paths: PathLike | Iterable[PathLike],
    catalogue: Catalogue,
    *,
    on_bad: OnBad = "stop",
    rejects: Rejects | None = None,
    allow_nan: bool = False,
    batch_rows: int | None = None,
    batch_bytes_max: int = BATCH_BYTES_MAX,
    progress: Progress | None = None,
    start: int = 0,
    last_sequences: LastSequences | None = None,
    position: str | None = None,
) -> Generator[Columns, None, None]:
    """The records of the files as Columns. Checks at once that every file exists and has a known format; checks the rest while
    reading. Without `batch_rows`, text is read in batches of BATCH_ROWS and Parquet of up to TABLE_ROWS records; none
    has many more than `batch_bytes_max` bytes. `progress` is
    called with the number of bytes (of the files, as stored) read since its last call. `position`: the field or column with the
    positions, which increase over all files; without it they count from `start`.

    A thread reads Parquet ahead; it ends with the iterator, or when that is closed."""
    files = resolve(paths)
    intake = Intake(catalogue, start, allow_nan, on_bad, rejects, last_sequences or LastSequences(), position)
    return _read(files, intake, BatchSize(batch_rows, batch_bytes_max), progress or (lambda count: None))


def validate_files(
    paths: PathLike | Iterable[PathLike],
    catalogue: Catalogue,
    *,
    on_bad: OnBad = "stop",
    rejects: Rejects | None = None,
    allow_nan: bool = False,
    batch_rows: int | None = None,
    progress: Progress | None = None,
    start: int = 0,
    last_sequences: LastSequences | None = None,
    position: str | None = None,
) -> Validation:
    """Reads everything and keeps nothing: raises what `read_files` would raise, before a run begins. `last_sequences` is not
    changed."""
    seen = LastSequences.load(last_sequences.dump()) if last_sequences is not None else LastSequences()
    intake = Intake(catalogue, start, allow_nan, on_bad, rejects, seen, position)
    events = sum(map(len, _read(resolve(paths), intake, BatchSize(batch_rows), progress or (lambda count: None))))
    return Validation(intake.records, events, intake.duplicates, intake.rejected)


def resolve(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """The files to read: a directory stands for its files of known formats, by name. Raises D013, D029."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files: list[Path] = []
    for each in map(Path, given):
        if each.is_dir():
            found = [file for file in each.iterdir() if file.is_file() and format_of(file) and file.name[0] not in "._"]
            if not found:
                raise DataError("D029", "the directory has no file of a known format", _known(), str(each))
            files.extend(sorted(found, key=lambda file: file.name))
        elif not each.exists():
            near = did_you_mean(each.name, _neighbours(each))
            raise DataError("D013", "the file does not exist", near or "check the path", str(each))
        elif format_of(each) is None:
            raise DataError("D029", "the file has an unknown format", _known(), str(each))
        else:
            files.append(each)
    return files


def bytes_of(paths: PathLike | Iterable[PathLike]) -> int:
    """The size of everything that would be read: the total for `progress`."""
    return sum(each.stat().st_size for each in resolve(paths))


def format_of(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for ending, kind in FORMATS.items() if name.endswith(ending)), None)


def _known() -> str:
    return f"known formats: {', '.join(FORMATS)}"


def _neighbours(path: Path) -> list[str]:
    try:
        return [each.name for each in path.parent.iterdir()]
    except OSError:
        return []


def _read(files: list[Path], intake: Intake, size: BatchSize, progress: Progress) -> Generator[Columns, None, None]:
    for path in files:
        read = _parquet if format_of(path) == "parquet" else _text
        yield from read(path, intake, size, progress)


def _text(path: Path, intake: Intake, size: BatchSize, progress: Progress) -> Iterator[Columns]:
    kind = format_of(path)
    is_csv = kind == "csv"
    shapes = intake.text if is_csv else intake.typed
    records = csv_records if is_csv else json_records
    if kind == "cloudevents":
        from fairlead.transport.output.cloud_events import cloudevent_records as records
    lines = Lines(path)
    told = 0
    try:
        for batch in batches(records(lines, shapes, str(path)), str(path), size.rows or BATCH_ROWS, size.bytes_max):
            yield intake.take(batch, shapes)
            progress(lines.bytes_read - told)
            told = lines.bytes_read
        progress(lines.bytes_read - told)
    finally:
        lines.close()


def _parquet(path: Path, intake: Intake, size: BatchSize, progress: Progress) -> Iterator[Columns]:
    length, told = path.stat().st_size, 0
    parts = _examined(path, intake, size)
    with closing(read_ahead(parts)) as ahead:
        for part, first_row, rows in ahead:
            yield take_rows(part, intake, file=str(path), first_row=first_row)
            reached = length * (first_row + part.rows) // rows
            progress(reached - told)
            told = reached
    progress(length - told)


def _examined(path: Path, intake: Intake, size: BatchSize) -> Generator[tuple[TablePart, int, int], None, None]:
    """The record batches of a file, checked as far as that does not depend on earlier ones."""
    for batch, first_row, rows in parquet_batches(path, size):
        shapes = intake.stored if EXPORTED in (batch.schema.metadata or {}) else intake.typed
        yield examined(batch, shapes, str(path)), first_row, rows
