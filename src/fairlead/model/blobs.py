"""Tables as single binary values, in Arrow's stream format: the content of states, and what Spark shuffles instead of rows.

On Spark 4.3 a shuffle and a sort cost 0.7 CPU microseconds per row, and passing rows to Python the same again; bytes cost only
their copying.
"""

from __future__ import annotations

import pyarrow as pa

from fairlead.model.events.list_ends import sound_batch


def buffer_of(table: pa.Table | pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return sink.getvalue()


def packed(table: pa.Table | pa.RecordBatch) -> bytes:
    return buffer_of(table).to_pybytes()  # type: ignore[no-any-return]


def validated(blob: bytes | memoryview) -> pa.Table:
    """Of bytes that may be damaged. Raises ArrowInvalid or OSError; others would crash the process later."""
    table = unpacked(blob)
    table.validate(full=True)
    return pa.Table.from_batches([sound_batch(each) for each in table.to_batches()], table.schema)


def unpacked(blob: pa.Scalar | bytes | memoryview) -> pa.Table:
    """Without a copy: the table keeps the bytes alive."""
    return pa.ipc.open_stream(blob.as_buffer() if isinstance(blob, pa.Scalar) else pa.py_buffer(blob)).read_all()
