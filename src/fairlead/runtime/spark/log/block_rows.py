"""Blocks for the log as rows of a frame: tasks make them, the driver stores them (sink.py).

Takes: blocks, with the lineage that made them. Gives: Arrow tables and rows, and the blocks again. Never: decodes events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.runtime.live.core.stream_groups import Origin
from fairlead.transport.log.blocks.block import Block

COLUMNS = (
    ("lineage", pa.string()),
    ("origin", pa.list_(pa.int64())),
    ("type", pa.string()),
    ("source", pa.string()),
    ("number", pa.int64()),
    ("sequence", pa.int64()),
    ("count", pa.int32()),
    ("schema", pa.string()),
    ("payload", pa.binary()),
    ("topic", pa.string()),
    ("hops", pa.int32()),
)
SCHEMA = pa.schema(COLUMNS)
SPARK_SCHEMA = (
    "lineage string, origin array<bigint>, type string, source string, number bigint, sequence bigint, count int, "
    "schema string, payload binary, topic string, hops int"
)


@dataclass(frozen=True)
class MadeBlock:
    """`lineage`: the key of its group on its streams; `origin`: where that begins."""

    lineage: str
    origin: Origin
    block: Block

    @property
    def row(self) -> dict[str, Any]:
        made = {name: getattr(self.block, name) for name, _ in COLUMNS[2:]}
        return {"lineage": self.lineage, "origin": list(self.origin)} | made


def table_of(made: Sequence[MadeBlock]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([each.row for each in made], schema=SCHEMA)


def blocks_in(table: pa.Table) -> Iterator[MadeBlock]:
    for row in table.select(SCHEMA.names).to_pylist():
        lineage, origin = row.pop("lineage"), tuple(row.pop("origin"))
        yield MadeBlock(lineage, origin, Block(**row))
