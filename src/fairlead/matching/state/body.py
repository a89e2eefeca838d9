"""The body of a state, read as untrusted Arrow data: a valid digest means that nothing was damaged by accident, not that
Fairlead wrote it.

Takes: bytes. Gives: the one record batch of one row in them, whose buffers are in bounds and no larger than the bytes, and
whose columns have the forms that a state can have; and columns of the types that are asked for. Any error is a StateError
(S005). Never: knows what columns mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.errors import FairleadError, StateError
from fairlead.model.events.columns import ARROW
from fairlead.model.events.list_ends import sound_batch
from fairlead.model.limits import LIMITS

LEAVES = frozenset({*ARROW.values(), pa.null(), pa.int8(), pa.int16(), pa.int32(), pa.int64()})
"""Values of Arrow's null type (zeros, canonical_columns.py) take no room: `_require_whole` bounds their number."""


def unsound(problem: str) -> StateError:
    return StateError(
        "S005", f"the state contradicts itself: {problem}", fix="use an earlier dump, or start again from the events"
    )


@contextmanager
def distrusted() -> Iterator[None]:
    """Converts exceptions of reading and checking invalid bytes to a StateError."""
    try:
        yield
    except FairleadError:
        raise
    except (
        pa.ArrowException,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        StopIteration,
        OSError,
    ) as e:
        raise unsound(f"it is not readable ({type(e).__name__})") from e


def read_batch(body: bytes) -> pa.RecordBatch:
    with distrusted():
        _require_plain(body)
        reader = pa.ipc.open_stream(pa.py_buffer(body))
        for field in reader.schema:
            _require_form(field)
        batch = reader.read_next_batch()
        batch.validate(full=True)
        batch = sound_batch(batch)
        if batch.num_rows != 1 or len(set(batch.schema.names)) < len(batch.schema.names):
            raise unsound("it is one row, and each column is there once")
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            _require_whole(name, column, len(body))
        return batch


def typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column, which is of this type: any other could be read too, as something else."""
    if not column.type.equals(kind):
        raise unsound(f"a column is of type {str(column.type)[:80]}, not {str(kind)[:80]}")
    return column


def or_nothing(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Likewise, of a column that is written without values if it has none."""
    return pa.nulls(len(column), kind) if pa.types.is_null(column.type) else typed(column, kind)


def plain(column: pa.Array) -> npt.NDArray[np.int64]:
    made: npt.NDArray[np.int64] = typed(column, pa.int64()).to_numpy()
    return made


def flags(column: pa.Array) -> npt.NDArray[np.bool_]:
    made: npt.NDArray[np.bool_] = or_nothing(column, pa.bool_()).fill_null(False).to_numpy(zero_copy_only=False)
    return made


def fields(table: pa.Array) -> dict[str, pa.Array]:
    """The columns of a table."""
    rows = table.values
    return {rows.type.field(at).name: rows.field(at) for at in range(rows.type.num_fields)}


def _require_form(field: pa.Field) -> None:
    """A number, a text, a list of values, or a table."""
    inner = field.type.value_type if pa.types.is_list(field.type) else field.type
    leaves = [each.type for each in inner] if pa.types.is_struct(inner) and inner is not field.type else [inner]
    if not all(each in LEAVES or _is_value(each, LIMITS.data_type_depth_max) for each in leaves):
        raise unsound(f"the column '{field.name[:40]}' is of type {str(field.type)[:80]}")


def _is_value(kind: pa.DataType, levels: int) -> bool:
    """Whether an attribute can have the type. Each value in an ARRAY or STRUCT takes room, so a short body holds few: there are
    no structs without fields, and nothing of Arrow's null type."""
    if pa.types.is_list(kind) or pa.types.is_struct(kind):
        inner = [kind.value_type] if pa.types.is_list(kind) else [each.type for each in kind]
        return levels > 1 and bool(inner) and all(_is_value(each, levels - 1) for each in inner)
    return bool(pa.types.is_decimal(kind) or (kind in LEAVES and not pa.types.is_null(kind)))


def _require_whole(name: str, column: pa.Array, size: int) -> None:
    """Lists hold all of their values, in which there is no table without a row; and there are no more rows than bytes."""
    if column.null_count:
        raise unsound(f"the column '{name[:40]}' is NULL")
    if not pa.types.is_list(column.type):
        return
    values = column.values
    if column.offsets.to_pylist() != [0, len(values)] or len(values) > size:
        raise unsound(f"the column '{name[:40]}' does not hold all of its values")
    if pa.types.is_struct(values.type) and values.null_count:
        raise unsound(f"a row of '{name[:40]}' is NULL")


def _require_plain(body: bytes) -> None:
    """Without compression, which could unpack to any size: checked in the metadata (Arrow's Message.fbs, RecordBatch)."""
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
        if message.type == "record batch":
            found = memoryview(message.metadata)
            header = _table(found, _number(found, 0, 4), 2)
            if header is None or _field(found, header, 3) is not None:
                raise unsound("it is compressed")


def _table(found: Any, table: int, number: int) -> int | None:
    """The start of the table that a field refers to."""
    at = _field(found, table, number)
    return None if at is None else at + _number(found, at, 4)


def _field(found: Any, table: int, number: int) -> int | None:
    """The place of a field in a FlatBuffers table; None if it is absent."""
    fields = table - _number(found, table, 4, signed=True)
    if fields < 0 or 4 + 2 * number >= _number(found, fields, 2):
        return None
    offset = _number(found, fields + 4 + 2 * number, 2)
    return table + offset if offset else None


def _number(found: Any, at: int, size: int, signed: bool = False) -> int:
    return int.from_bytes(found[at : at + size], "little", signed=signed)
