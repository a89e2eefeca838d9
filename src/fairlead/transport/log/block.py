"""Blocks: events of one topic from one source, as they are sent and stored.

A block has events of one type, as an Arrow IPC stream of one record batch, or of several (mixed_block.py). Beside them are a
few numbers:

    number     of the block among those of its source and type (or its mixed ones), from 0, increasing by one: a repeat has the
               same number
    sequence   of its first event among those of its source in the topic, of any type
    schema     the digest of the declaration of its columns
    marks      what is known of its events beforehand (block_filter.py)

An event is identified by its block's sequence in a stream and its index in the block. Together they are its position, which
depends on the log alone, wherever a reader begins.

Takes: record batches. Gives: blocks, and record batches in the reader's definition of a type. Never: does I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import DataError
from fairlead.model.blobs import packed
from fairlead.model.columns import arrow_schema, record_batch
from fairlead.model.types import HEARTBEAT, MAIN, EventType
from fairlead.transport.log.block_filter import MIXED, before_of, is_marks, letters_of

INDEX_BITS = 12
EVENTS_MAX = 1 << INDEX_BITS
"""Events of a block. A position has 42 bits (model/identity.py), so a stream may have 2**30 blocks of up to 4096 events."""
BYTES_MAX = 512_000
"""Bytes of a block with more than one event: half of a server's default maximum, and a millisecond on a slow network."""


@dataclass(frozen=True)
class Block:
    type: str
    source: str
    number: int
    sequence: int
    count: int
    schema: str
    payload: bytes
    writer: str = ""
    """The sender: distinguishes a repeat of its own block from a block of another publisher with the same name."""
    marks: str = ""
    topic: str = MAIN
    types: tuple[str, ...] = ()
    """Of a mixed block: its types, in the order of their codes."""

    @property
    def is_mixed(self) -> bool:
        return self.type == MIXED

    @property
    def lane(self) -> str:
        """What its source numbers: the blocks of a type; mixed blocks and heartbeats, which several topics have, by topic."""
        return f"{self.type} of {self.topic}" if self.type in (MIXED, HEARTBEAT.name) else self.type

    @property
    def letters(self) -> str:
        """By route of its type: y, n or u."""
        return letters_of(self.marks)

    @property
    def before(self) -> tuple[int, ...]:
        """By route, the number of the previous block; empty if that is the previous block of the source on every route."""
        return before_of(self.marks)

    @cached_property
    def batch(self) -> pa.RecordBatch:
        """The stored events, decoded once for all callers. Raises DataError if the block is damaged."""
        try:
            found = pa.ipc.open_stream(self.payload).read_next_batch()
            found.validate(full=True)  # Arrow trusts the offsets of a message: reading a forged one would crash the process
        except (pa.ArrowException, StopIteration, OSError):
            raise damaged(self) from None
        if found.num_rows != self.count:
            raise damaged(self)
        return found

    @property
    def id(self) -> str:
        return f"{self.source}:{self.lane}:{self.number}"

    def headers(self) -> dict[str, str]:
        marks = {"Fl-Marks": self.marks} if self.marks else {}
        types = {"Fl-Types": " ".join(self.types)} if self.types else {}
        return (
            marks
            | types
            | {
                "Nats-Msg-Id": self.id,
                "Fl-Topic": self.topic,
                "Fl-Type": self.type,
                "Fl-Source": self.source,
                "Fl-Number": str(self.number),
                "Fl-Sequence": str(self.sequence),
                "Fl-Count": str(self.count),
                "Fl-Schema": self.schema,
                "Fl-Writer": self.writer,
            }
        )


def block_of(headers: Mapping[str, str] | None, payload: bytes, place: str) -> Block:
    """The block of a stored message. Raises DataError if it is not a block."""
    try:
        given = headers or {}
        number, sequence, count = (int(given[name]) for name in ("Fl-Number", "Fl-Sequence", "Fl-Count"))
        writer, marks = given.get("Fl-Writer", ""), given.get("Fl-Marks", "")
        if number >= 0 and sequence >= 0 and 0 < count <= EVENTS_MAX and is_marks(marks):
            names, types = (given["Fl-Type"], given["Fl-Source"]), tuple(given.get("Fl-Types", "").split())
            if bool(types) == (names[0] == MIXED):
                topic = given["Fl-Topic"]
                return Block(*names, number, sequence, count, given["Fl-Schema"], payload, writer, marks, topic, types)
    except (KeyError, ValueError):
        pass
    raise DataError("D030", "a message of the log is not a block of events", "publish with Fairlead only", place)


def schema_digest(event_type: EventType) -> str:
    """The digest of the attributes in their order, which are the columns of a block."""
    return hashlib.sha256(", ".join(map(str, event_type.attributes)).encode()).hexdigest()[:16]


def pieces(batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
    """A record batch as payloads of blocks, in order, each with its number of events."""
    rows = min(EVENTS_MAX, max(1, BYTES_MAX * batch.num_rows // max(1, batch.nbytes)))
    for low in range(0, batch.num_rows, rows):
        yield from _fitting(batch.slice(low, rows))


def _fitting(batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
    payload = packed(batch)
    if len(payload) <= BYTES_MAX or batch.num_rows == 1:
        yield batch.num_rows, payload
        return
    half = batch.num_rows // 2
    yield from _fitting(batch.slice(0, half))
    yield from _fitting(batch.slice(half))


def decode(block: Block, event_type: EventType) -> pa.RecordBatch:
    """The events of a block of one type, as `fitted` gives them. Raises DataError if the block is damaged."""
    return fitted(block.batch, event_type, block)


def fitted(batch: pa.RecordBatch, event_type: EventType, block: Block) -> pa.RecordBatch:
    """Events in the columns of the reader's definition of the type: attributes that were added later are null in old events,
    and attributes that the reader does not know yet are omitted. Raises DataError if the block is damaged."""
    wanted = arrow_schema(event_type)
    if batch.schema.equals(wanted):
        return batch
    columns = []
    for field in wanted:
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
        elif batch.schema.field(at).type.equals(field.type):
            columns.append(batch.column(at))
        else:
            raise damaged(block)
    return record_batch(columns, wanted, batch.num_rows)


def positions(sequence: int, count: int) -> npt.NDArray[np.int64]:
    """The positions of the events of the block that is stored as `sequence`."""
    first = sequence << INDEX_BITS
    return np.arange(first, first + count, dtype=np.int64)


def damaged(block: Block) -> DataError:
    problem = f"block {block.number} of '{block.type}' from source '{block.source}' does not hold events of that type"
    return DataError("D031", problem, "publish with Fairlead only, with the types that are declared")
