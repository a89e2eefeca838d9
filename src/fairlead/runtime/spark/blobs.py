"""Tables as single binary values: what Spark shuffles is a few of these, not a row an event.

A shuffle of rows costs Spark about a microsecond a row, and the next Python worker half of that again; a shuffle of Arrow's own
bytes costs what copying them costs.
"""

from __future__ import annotations

import pyarrow as pa


def packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpacked(blob: pa.Scalar | bytes) -> pa.Table:
    return pa.ipc.open_stream(blob if isinstance(blob, bytes) else blob.as_buffer()).read_all()
