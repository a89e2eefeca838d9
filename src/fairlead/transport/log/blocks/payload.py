"""The payload of a block: Arrow IPC streams of one record batch each, one after the other. A stranger may have written them.

A payload is read completely or not at all, and what is accepted does not depend on what a reader wants of it. Arrow trusts the
offsets of a message, so each batch is validated in full: reading a forged one would crash the process. Fairlead never
compresses, so a compressed batch is refused before it is unpacked: a few kilobytes could become gigabytes.

Takes: bytes, and the number of rows of each batch. Gives: the record batches, without a copy. Never: allocates more than a
small multiple of the payload.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from fairlead.model.events.list_ends import sound_batch
from fairlead.model.limits import LIMITS

COMPRESSION, HEADER = 3, 2
"""The fields of the flat buffers of Arrow's format (Message.fbs): of a record batch, and of a message."""
END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Of an Arrow stream."""


class Damaged(Exception):
    """The payload is not what its block says."""


def read_batches(payload: pa.Buffer, rows: Sequence[int]) -> list[pa.RecordBatch]:
    """One batch for each number of rows, and nothing after them. Raises Damaged."""
    source = pa.BufferReader(payload)
    try:
        found = [_read(source, each) for each in rows]
        if source.tell() != payload.size:
            raise Damaged
    except (pa.ArrowException, OSError, EOFError, ValueError, struct.error):
        raise Damaged from None
    return found


def _read(source: pa.BufferReader, rows: int) -> pa.RecordBatch:
    message = pa.ipc.read_message(source)
    if message.type != "schema":
        raise Damaged
    schema = pa.ipc.read_schema(message)
    if len({*schema.names}) < len(schema) or not all(_is_allowed(each.type) for each in schema):
        raise Damaged
    message = pa.ipc.read_message(source)
    if message.type != "record batch" or _is_compressed(message.metadata):
        raise Damaged
    found = pa.ipc.read_record_batch(message, schema)
    if found.num_rows != rows:
        raise Damaged
    found.validate(full=True)
    if source.read(8) != END:
        raise Damaged
    return sound_batch(found)


def _is_allowed(data_type: pa.DataType, levels: int = LIMITS.data_type_depth_max) -> bool:
    """Whether an attribute can have the type: a plain one, or a list or struct of these. All others are refused: dictionaries,
    extension types, maps, unions, and lists whose parts may overlap or repeat (views, fixed sizes, run ends), so that a column
    cannot have more values than bytes. Therefore nothing in a list or struct is of Arrow's null type either."""
    if pa.types.is_list(data_type) or pa.types.is_struct(data_type):
        parts = [data_type.field(at) for at in range(data_type.num_fields)]
        names = {each.name for each in parts}
        plain = all(_is_allowed(each.type, levels - 1) and not pa.types.is_null(each.type) for each in parts)
        return levels > 1 and len(names) == len(parts) > 0 and plain
    return data_type.num_fields == 0 and not isinstance(data_type, pa.DictionaryType | pa.BaseExtensionType)


def _is_compressed(metadata: pa.Buffer) -> bool:
    """Arrow has verified the flat buffer when it read the message."""
    content = metadata.to_pybytes()
    message = _word(content, 0)
    header = _field(content, message, HEADER)
    if header is None:
        raise Damaged
    return _field(content, header + _word(content, header), COMPRESSION) is not None


def _field(content: bytes, table: int, number: int) -> int | None:
    """Where a field of a table is; None if it is absent."""
    (back,) = struct.unpack_from("<i", content, table)
    fields = table - back
    (size,) = struct.unpack_from("<H", content, fields)
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", content, fields + at)[0] if at < size else 0
    return table + offset if offset else None


def _word(content: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", content, at)[0])
