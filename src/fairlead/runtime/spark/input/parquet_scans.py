"""Frames that only name Parquet files are read by Arrow in the workers, not row by row through the JVM.

Spark passes rows to Python one by one, which costs more than everything that is done with them there. A frame that only names
Parquet files (a plain `spark.read.parquet`, perhaps with a selection of columns) does not need that: the same columns are read
directly from the files. Each file must contain exactly what Spark would read from it, or this path is not used: one schema, no
partition columns, no options, no old calendars or 96-bit times, and files that every worker can open by their path.

Takes: frames and the meaning of their columns. Gives: `Scan`, whose batches have the columns of frames.py; or None. Never:
reads rows on the driver; it reads only footers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairlead.order.log_holdback import STORED
from fairlead.order.total import SEQUENCE, SOURCE, order_column
from fairlead.runtime.spark.input.arrivals import CODE, TYPE
from fairlead.runtime.spark.setup.jvm import is_plain_parquet
from fairlead.runtime.spark.setup.readiness import zone_of
from fairlead.runtime.spark.setup.workers import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILES_MAX = 2_000
"""Files whose footers are read, a millisecond each; if there are more, Spark reads them."""
READ_ROWS = 262_144
OLD = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
"""Metadata of a file whose times use the calendar before 1582."""


@dataclass(frozen=True)
class Recipe:
    """How columns of a file become those of the input. `code`: the type of all rows, if no column contains it."""

    order: tuple[str, ...]
    values: Mapping[str, str]
    types: tuple[str, ...]
    code: int | None = None
    type_column: str | None = None
    source: str | None = None
    sequence: str | None = None
    times: frozenset[str] = frozenset()
    """Of `values`, those that are read as a TIMESTAMP."""
    stored: str | None = None
    """The column that says when the log stored a row, if that matters."""
    sourced: bool = False
    """Whether rows have a source and a sequence, if not in this frame."""
    logged: bool = False
    """Whether rows say where in a log they are; then they are not in a file."""

    @property
    def columns(self) -> list[str]:
        named = (*self.order, *self.values.values(), self.type_column, self.source, self.sequence, self.stored)
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class RowGroup:
    recipe: int
    path: str
    number: int
    rows: int
    bytes: int
    lasts: tuple[tuple[int, int, int] | None, ...]
    """For each order column: nulls, smallest and largest value; None if the file does not say."""


@dataclass(frozen=True)
class Scan:
    recipes: tuple[Recipe, ...]
    tasks: tuple[tuple[RowGroup, ...], ...]

    @property
    def groups(self) -> list[RowGroup]:
        return [group for task in self.tasks for group in task]

    def read(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The rows of some tasks, in the form in which Spark passes the input."""
        for number in numbers:
            for group in self.tasks[number]:
                recipe = self.recipes[group.recipe]
                texts = [recipe.type_column] if recipe.type_column else []
                with pq.ParquetFile(group.path, read_dictionary=texts) as file:
                    for batch in file.iter_batches(READ_ROWS, [group.number], recipe.columns, use_threads=False):
                        yield _input(batch, recipe)

    def nulls(self) -> list[int] | None:
        """Rows without a value, by order column; None if some file does not say."""
        found = np.zeros(len(self.recipes[0].order), dtype=np.int64)
        for group in self.groups:
            for at, last in enumerate(group.lasts):
                if last is None:
                    return None
                found[at] += last[0]
        return found.tolist()

    def cuts(self, slices: int) -> npt.NDArray[np.int64]:
        """Values of the first order column that split the rows into about equal slices, according to the footers."""
        spans = [(last[1], last[2], group.rows) for group in self.groups if group.rows and (last := group.lasts[0]) is not None]
        edges = np.unique([edge for low, high, _ in spans for edge in (low, high)]).astype(np.float64)
        below = np.zeros(len(edges))
        for low, high, rows in spans:
            below += rows * np.clip((edges - low) / max(high - low, 1), 0, 1)
        wanted = np.interp(np.arange(1, slices) * below[-1] / slices, below, edges)
        return np.unique(wanted.astype(np.int64))


def scan_of(frames: Sequence[tuple[DataFrame, Recipe]], tasks: int) -> Scan | None:
    """The frames as files to read, over at least this many tasks; None if Spark has to read them."""
    groups: list[RowGroup] = []
    for number, (frame, recipe) in enumerate(frames):
        files = _files(frame)
        if files is None:
            return None
        for path in files:
            found = _row_groups(number, path, recipe, frame)
            if found is None:
                return None
            groups += found
    if not groups:
        return None
    return Scan(tuple(recipe for _, recipe in frames), _spread(groups, tasks))


def _files(frame: DataFrame) -> list[str] | None:
    """The paths of the Parquet files that the frame consists of, if it does nothing but read them."""
    if is_remote(frame):
        return None
    settings = frame.sparkSession.conf
    if any(settings.get(f"spark.sql.files.ignore{what}Files") == "true" for what in ("Corrupt", "Missing")):
        return None
    if not is_plain_parquet(frame):
        return None
    places = [urlparse(each) for each in frame.inputFiles()]
    if len(places) > FILES_MAX or any(each.scheme != "file" or each.netloc for each in places):
        return None
    return sorted(unquote(each.path) for each in places)


def _row_groups(number: int, path: str, recipe: Recipe, frame: DataFrame) -> list[RowGroup] | None:
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        with pq.ParquetFile(path) as file:
            schema, footer = file.schema_arrow, file.metadata
    except (OSError, pa.ArrowInvalid, NotImplementedError):  # Spark will report the error, or can read it
        return None
    if any(name in (footer.metadata or {}) for name in OLD):
        return None
    zoned = {recipe.values[each] for each in recipe.times} if zone_of(frame.sparkSession) is not None else ()
    for name in recipe.columns:
        kind = frame.schema[name].dataType
        if schema.names.count(name) != 1 or schema.field(name).type != to_arrow_type(kind, timezone="UTC"):
            return None
        if name in zoned and kind.simpleString() in ("timestamp_ntz", "string"):  # in the session's zone, unlike in Arrow
            return None
        if name == recipe.stored and kind.simpleString() != "timestamp":
            return None
        if name in recipe.order and kind.simpleString() not in ("timestamp", "bigint", "int", "smallint", "tinyint"):
            return None
    columns = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
    made = []
    for at in range(footer.num_row_groups):
        group = footer.row_group(at)
        lasts = tuple(_last(group.column(columns[name]).statistics) for name in recipe.order)
        made.append(RowGroup(number, path, at, group.num_rows, group.total_byte_size, lasts))
    return made


def _last(statistics: Any) -> tuple[int, int, int] | None:
    if statistics is None or not statistics.has_null_count:
        return None
    if not statistics.has_min_max:
        return (statistics.null_count, 0, 0) if statistics.num_values == 0 else None
    low, high = (
        value if isinstance(value, int) else pa.scalar(value, pa.timestamp("us", "UTC")).value
        for value in (statistics.min, statistics.max)
    )
    return statistics.null_count, low, high


def _spread(groups: Sequence[RowGroup], tasks: int) -> tuple[tuple[RowGroup, ...], ...]:
    """Row groups distributed over tasks with about equal numbers of rows, neighbours together."""
    ends = np.cumsum([group.rows for group in groups])
    middles = ends - np.array([group.rows for group in groups]) / 2
    owners = np.minimum(middles * tasks // max(1, ends[-1]), tasks - 1).astype(int)
    return tuple(tuple(group for group, owner in zip(groups, owners, strict=True) if owner == task) for task in range(tasks))


def _input(batch: pa.RecordBatch, recipe: Recipe) -> pa.RecordBatch:
    made = _types(batch, recipe)
    for at, name in enumerate(recipe.order):
        column = batch.column(name)
        made[order_column(at)] = column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column.cast(pa.int64())
    if recipe.sourced:
        nothing = pa.nulls(batch.num_rows)
        made[SOURCE] = (nothing if recipe.source is None else batch.column(recipe.source)).cast(pa.string())
        made[SEQUENCE] = (nothing if recipe.sequence is None else batch.column(recipe.sequence)).cast(pa.int64())
    if recipe.stored is not None:
        made[STORED] = batch.column(recipe.stored).view(pa.int64())
    for column, name in recipe.values.items():
        found = batch.column(name)
        made[column] = found.dictionary_decode() if pa.types.is_dictionary(found.type) else found
    return pa.RecordBatch.from_arrays(list(made.values()), list(made))


def _types(batch: pa.RecordBatch, recipe: Recipe) -> dict[str, pa.Array]:
    rows = batch.num_rows
    if recipe.type_column is None:
        return {CODE: pa.repeat(pa.scalar(recipe.code, pa.int32()), rows), TYPE: pa.nulls(rows, pa.string())}
    said = batch.column(recipe.type_column)
    known = pc.index_in(said.dictionary, value_set=pa.array(recipe.types, pa.string()))
    codes = known.take(said.indices)
    names = pa.nulls(rows, pa.string())
    if codes.null_count:
        names = pc.if_else(codes.is_null(), said.cast(pa.string()), pa.scalar(None, pa.string()))
    return {CODE: codes, TYPE: names}
