"""Writes relations and rejected records to files: completely, or not at all.

The output goes to a file beside the target, which replaces the target only when `close` has succeeded, and is removed when
anything fails. Several outputs appear together: `prepare` all of them, which detects a full disk, then `close` them. `-` is the
standard output, for JSON Lines.

Takes: relations, or rejected records, in the order of delivery. Gives: JSON Lines or Parquet. Never: holds more than one batch
of them, or leaves an incomplete file under the target's name.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.types import is_binary, is_list, is_string, is_struct

from fairlead.errors import DataError, UsageError
from fairlead.matching.results.relation_batches import relation_table
from fairlead.matching.results.transferred import WrittenRelation
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.events.values import TIMESTAMP_RANGE, jsonable
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.layout import ResultLayout, column_paths, layout_of
from fairlead.model.relations.relation import Relation
from fairlead.transport.admission.problems import Rejected, unwritable
from fairlead.transport.threads.write_behind import WriteBehind

ROW_GROUP_RELATIONS = 65_536
ROW_GROUP_BYTES = 64_000_000
"""Relations held before they become a row group: this many, or this much text of them."""
BATCHES_HELD = 8
"""Batches whose relations become columns together: with them, the events of these batches are held, and those of two more such
groups while they are written."""
TEXTS_AT_ONCE, NUMBERS_AT_ONCE = 1024, 16_384
"""Values after which the Parquet writer checks whether a page is full; texts may be long."""
WORD_BYTES = 8
WHOLE = (Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL)


class RelationWriter(Protocol):
    """`close` makes the file appear, `abort` removes the incomplete file. As a context manager it does one or the other.
    `prepare` does everything of `close` that can fail, and leaves the target unchanged."""

    def write(self, relations: Sequence[Relation]) -> None: ...
    def prepare(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def open_relations(path: str | os.PathLike[str], plan: Plan) -> RelationWriter:
    """The writer of a plan's relations, by the path's suffix. Raises at once if the file cannot be written."""
    name = os.fspath(path).lower()
    if name == "-" or name.endswith((".jsonl", ".ndjson", ".json")):
        return JsonLinesWriter(path, signed=plan.revises)
    if name.endswith(".parquet"):
        return ParquetWriter(path, layout_of(plan))
    fix = "use a name that ends in .jsonl or .parquet, or - for JSON Lines"
    raise UsageError("A103", f"the name {os.fspath(path)!r} has no known format", fix)


class JudgedColumns(Protocol):
    """Events, and the verdict on each."""

    @property
    def columns(self) -> Columns: ...
    @property
    def verdicts(self) -> Sequence[EventVerdict]: ...
    @property
    def subscriptions(self) -> Sequence[str]:
        """For which, if not for all."""
        ...


class OutputFile:
    """A file that appears completely or not at all, with the permissions of the file it replaces. Devices and pipes
    (`/dev/null`) are written directly."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._shown = os.fspath(path)
        if not self._shown:
            raise DataError("D018", "the name of the output is empty", "name a file", "''")
        with self.guarded():
            mode = _mode_of(path)
            self.path = Path(os.path.realpath(path))
            if mode is not None and stat.S_ISDIR(mode):
                raise DataError("D018", "the output is a directory", "name a file in it", self._shown)
            direct = mode is not None and not stat.S_ISREG(mode)
            self._part = self.path if direct else self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
            self.file: IO[bytes] = self._part.open("wb") if direct else _opened(self._part, mode)
        self._prepared = False

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Raises errors of the operating system as D018 with the path."""
        try:
            yield
        except OSError as error:
            raise unwritable("the output", error, self._shown) from None

    def prepare(self) -> None:
        """Writes everything to the disk, not yet under its name: failures do not touch an earlier file."""
        self.file.flush()
        if self._part != self.path:
            os.fsync(self.file.fileno())
        self.file.close()
        self._prepared = True

    def commit(self) -> None:
        """1. everything on the disk; 2. under its name; 3. the name on the disk. In this order a crash leaves the old file or
        the new one, and of several outputs the later ones never exist without the earlier ones."""
        if not self._prepared:
            self.prepare()  # 1
        if self._part != self.path:
            os.replace(self._part, self.path)  # 2
            with suppress(OSError):  # 3: not every file system supports it, and it is too late to fail
                _sync(self.path.parent)

    def discard(self) -> None:
        with suppress(OSError):  # the file is discarded: what could not be flushed does not matter
            self.file.close()
        if self._part != self.path:
            self._part.unlink(missing_ok=True)


def _mode_of(path: str | os.PathLike[str]) -> int | None:
    """The mode of an existing file, or None. Raises if the path is a loop of symbolic links."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _opened(path: Path, mode: int | None) -> IO[bytes]:
    """A new file; at no time can anybody read it without access to the earlier one, whose `mode` it gets. Its name can be
    guessed: in a folder that others can write to, a link of that name must not be followed."""
    with suppress(FileNotFoundError):
        path.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    if mode is None:
        return os.fdopen(os.open(path, flags, 0o666), "wb")
    file = os.fdopen(os.open(path, flags, mode & 0o700), "wb")
    os.fchmod(file.fileno(), stat.S_IMODE(mode))
    return file


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Writer:
    """Common to all writers: the target, which appears completely or not at all."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._target = None if os.fspath(path) == "-" else OutputFile(path)
        self._prepared = self._done = False

    def _finish(self) -> None:
        """Writes what is still buffered."""

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Removes the incomplete file if anything inside fails."""
        try:
            with self._target.guarded() if self._target is not None else nullcontext():
                yield
        except BaseException:
            self.abort()
            raise

    def prepare(self) -> None:
        if self._prepared or self._done:
            return
        with self._all_or_nothing():
            if self._target is None:
                sys.stdout.flush()
            else:
                self._finish()
                self._target.prepare()
        self._prepared = True

    def close(self) -> None:
        if self._done:
            return
        self.prepare()
        if self._target is not None:
            with self._all_or_nothing():
                self._target.commit()
        self._done = True

    def abort(self) -> None:
        if not self._done and self._target is not None:
            self._target.discard()
        self._done = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _line(self, value: dict[str, Any]) -> None:
        self._text(json.dumps(value, ensure_ascii=False, allow_nan=False))

    def _text(self, line: str) -> None:
        if self._target is not None:
            with self._target.guarded():
                self._target.file.write(line.encode() + b"\n")
            return
        if not line.isascii() and (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
            line = json.dumps(json.loads(line))
        sys.stdout.write(line + "\n")


class JsonLinesWriter(_Writer):
    """One delivery per line, as `Relation.to_json` returns it. `signed`: each with its sign; else only those of which it is not
    1."""

    def __init__(self, path: str | os.PathLike[str], *, signed: bool = False) -> None:
        super().__init__(path)
        self._signed = signed

    def write(self, relations: Sequence[Relation]) -> None:
        for relation in relations:
            if isinstance(relation, WrittenRelation):  # by another process
                self._text(relation.text)
                continue
            told = relation.to_json()
            self._line(told | {"sign": relation.sign} if self._signed else told)


class ParquetWriter(_Writer):
    """The table of model/relations/layout.py. Two threads work while the next relations are matched: one converts relations to
    columns, the other writes row groups. Until they have ended, they own the tables and the file.

    The bytes of the file depend only on the relations of each call of `write`, not on how they are represented: batches are
    converted when there are BATCHES_HELD of them or enough for a row group, a row group ends with such a conversion, and its
    columns are contiguous."""

    row_group_relations = ROW_GROUP_RELATIONS

    def __init__(self, path: str | os.PathLike[str], layout: ResultLayout) -> None:
        super().__init__(path)
        if self._target is None:
            raise UsageError("A103", "Parquet is not supported on the standard output", "name a file")
        self._layout = layout
        self._found: list[Sequence[Relation]] = []
        self._held: list[pa.Table] = []
        self._converting, self._writing = WriteBehind(), WriteBehind()
        self._parquet = pq.ParquetWriter(self._target.file, layout.schema, **_options(layout))

    def write(self, relations: Sequence[Relation]) -> None:
        if not len(relations):
            return
        self._found.append(relations)
        if len(self._found) == BATCHES_HELD or sum(map(len, self._found)) >= self.row_group_relations:
            found, self._found = self._found, []
            self._converting.do(lambda: self._hold(found))

    def _hold(self, found: Sequence[Sequence[Relation]]) -> None:
        for piece in _pieces(relation_table(found, self._layout)):
            self._held.append(piece)
            if (
                sum(each.num_rows for each in self._held) >= self.row_group_relations
                or sum(map(text_bytes, self._held)) >= ROW_GROUP_BYTES
            ):
                held, self._held = self._held, []
                self._writing.do(lambda held=held: self._write(held))  # type: ignore[misc]

    def _write(self, held: Sequence[pa.Table]) -> None:
        assert self._target is not None
        table = held[0] if len(held) == 1 else pa.concat_tables(held).combine_chunks()
        with self._target.guarded():
            self._parquet.write_table(table)

    def _finish(self) -> None:
        self._converting.end()
        if self._found:
            self._hold(self._found)
            self._found = []
        self._writing.end()
        if self._held:
            self._write(self._held)
            self._held = []
        self._parquet.close()

    def abort(self) -> None:
        if not self._done and not self._prepared:
            for each in (self._converting, self._writing):
                with suppress(Exception):  # the error is known, or does not matter any more
                    each.end()
            with suppress(OSError, pa.ArrowException):
                self._parquet.close()
        super().abort()


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """The rows in pieces with contiguous columns: all together, or fewer if their texts are more than a row group may have."""
    rows = len(table) * ROW_GROUP_BYTES // max(text_bytes(table), ROW_GROUP_BYTES)
    for low in range(0, len(table), max(1, rows)):
        yield table.slice(low, max(1, rows)).combine_chunks()


def text_bytes(table: pa.Table) -> int:
    """The bytes of all texts: what rows may need beyond a few words. It depends on the values only, which the size of the
    buffers does not."""
    return sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks)


def _text_bytes(column: pa.Array, in_attribute: bool = False) -> int:
    """`in_attribute`: elements of an ARRAY count, too, whatever they are."""
    if is_struct(column.type):
        return sum(_text_bytes(each, True) for each in column.flatten())
    if not len(column) or not any(is_kind(column.type) for is_kind in (is_list, is_string, is_binary)):
        return 0
    ends = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset :]
    low, high = int(ends[0]), int(ends[len(column)])
    if not is_list(column.type):
        return high - low
    inside = column.values.slice(low, high - low)
    return _text_bytes(inside, in_attribute) + (WORD_BYTES * len(inside) if in_attribute else 0)


def _options(layout: ResultLayout) -> dict[str, Any]:
    """Dictionaries only for values that repeat: names and texts. Ids are random digits: no compression, no statistics. Integers
    and times are delta-encoded: a tenth less time and bytes."""
    attributes = [found for each in layout.members for found in column_paths(f"members.list.element.{each.name}", each.type)]
    attributes += [found for each in layout.emitted for found in column_paths(f"emitted.{each.name}", each.type)]
    fixed = ["members.list.element.type", "members.list.element.place", "emitted.type", "subscription", "branch", "place"]
    numbers = ["completed_at", "positions.list.element", "members.list.element.position"]
    counted = [*numbers, *(name for name, kind in attributes if kind in WHOLE)]
    texts = any(kind in (Kind.STRING, Kind.BINARY) for _, kind in attributes)
    names = [*fixed, *numbers, *(name for name, _ in attributes)]
    return {
        "use_dictionary": [*fixed, *(name for name, kind in attributes if kind is Kind.STRING)],
        "compression": {"id": "none"} | dict.fromkeys(names, "snappy"),
        "column_encoding": dict.fromkeys(counted, "DELTA_BINARY_PACKED"),
        "write_statistics": names,
        "write_batch_size": TEXTS_AT_ONCE if texts else NUMBERS_AT_ONCE,
    }


class RejectWriter(_Writer):
    """A JSON Lines file of rejected records. It serves as the `rejects` of a reader, and counts."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.count = 0

    def __call__(self, rejected: Rejected) -> None:
        self.count += 1
        self._line(rejected.to_json())


class LateWriter(_Writer):
    """A JSON Lines file of events that take no part, and why: late, ahead of their time, or repeated."""

    def __init__(self, path: str | os.PathLike[str], catalogue: Catalogue) -> None:
        super().__init__(path)
        self.catalogue = catalogue

    def __call__(self, told: JudgedColumns) -> None:
        stored = told.columns.stored
        for at, (event, verdict) in enumerate(zip(told.columns.events(self.catalogue), told.verdicts, strict=True)):
            given = {"_source": event.source, "_sequence": event.sequence}
            if stored is not None and stored[at] <= TIMESTAMP_RANGE[1]:  # otherwise the record does not tell it
                given["_stored"] = jsonable(int(stored[at]), Kind.TIMESTAMP)
            origin = {name: value for name, value in given.items() if value is not None}
            told_to = {"_subscriptions": list(told.subscriptions)} if told.subscriptions else {}
            self._line(event.to_json() | origin | {"_verdict": verdict.value} | told_to)
