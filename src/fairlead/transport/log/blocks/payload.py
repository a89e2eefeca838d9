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
    if len({*schema.names}) < len(schema) or any(_is_nested(each.type) for each in schema):
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
    return found


def _is_nested(data_type: pa.DataType) -> bool:
    return data_type.num_fields > 0 or isinstance(data_type, pa.DictionaryType | pa.BaseExtensionType)


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
