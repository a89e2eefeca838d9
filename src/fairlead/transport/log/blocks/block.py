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
from dataclasses import field
from functools import cached_property

import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import DataError
from fairlead.model.blobs import packed
from fairlead.model.events.columns import arrow_schema, bits_of, columns_inside, record_batch
from fairlead.model.events.types import HEARTBEAT, MAIN, EventType
from fairlead.model.events.values import DATE_RANGE, TIMESTAMP_RANGE
from fairlead.transport.log.blocks.block_filter import MIXED, before_of, is_marks, letters_of
from fairlead.transport.log.blocks.payload import Damaged, read_batches
from fairlead.transport.log.names import is_derived, source_of
from fairlead.transport.log.names import subject as subject_of

INDEX_BITS = 12
EVENTS_MAX = 1 << INDEX_BITS
"""Events of a block; room.py has how many blocks a stream may have."""
NUMBER_MAX = 1 << 62
SEQUENCE_MAX = NUMBER_MAX - (1 << 40)
"""Sequences and numbers above it leave no room for those that follow. No publisher gets there by counting."""
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
    hops: int = 0
    """Of derived events: how often in a row events were derived of derived ones, these included."""
    numbers: str = ""
    """Of a source that numbers its events itself: which are stored with this block (order/stored_numbers.py)."""
    begins: bool = field(default=False, compare=False)
    """Of a stored block: its append named no block before it (repeats.py)."""

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
            return read_batches(pa.py_buffer(self.payload), [self.count])[0]
        except Damaged:
            raise damaged(self) from None

    @property
    def rejected(self) -> str:
        """Why nobody reads it: the code of an error; empty for a block."""
        return self.schema if self.type == REJECTED else ""

    def headers(self) -> dict[str, str]:
        marks = {"Fl-Marks": self.marks} if self.marks else {}
        types = {"Fl-Types": " ".join(self.types)} if self.types else {}
        hops = {"Fl-Hops": str(self.hops)} if self.hops else {}
        numbers = {"Fl-Numbers": self.numbers} if self.numbers else {}
        return (
            marks
            | types
            | hops
            | numbers
            | {
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


def block_of(headers: Mapping[str, str] | None, payload: bytes, subject: str, place: str) -> Block:
    """The block of a stored message. The subject decides what it is, since the server lets a client publish under some subjects
    only. Raises DataError if it is not a block, or one of another subject."""
    try:
        given = headers or {}
        number, sequence, count = (int(given[name]) for name in ("Fl-Number", "Fl-Sequence", "Fl-Count"))
        writer, marks, hops = given.get("Fl-Writer", ""), given.get("Fl-Marks", ""), int(given.get("Fl-Hops", "0"))
        if (
            min(number, sequence, hops) >= 0
            and max(number, sequence, hops) < NUMBER_MAX
            and 0 < count <= EVENTS_MAX
            and is_marks(marks)
        ):
            names, types = (given["Fl-Type"], given["Fl-Source"]), tuple(given.get("Fl-Types", "").split())
            topic = given["Fl-Topic"]
            if bool(types) == (names[0] == MIXED) and _is_of(subject, topic, names, letters_of(marks)):
                numbers = given.get("Fl-Numbers", "")
                return Block(
                    *names, number, sequence, count, given["Fl-Schema"], payload, writer, marks, topic, types, hops, numbers
                )
    except (KeyError, ValueError):
        pass
    raise not_a_block(place)


def _is_of(subject: str, topic: str, names: tuple[str, str], letters: str) -> bool:
    """Whether a subject is that of such blocks, in a topic of this release or of an earlier one."""
    if subject == subject_of(topic, *names, letters):
        return True
    return is_derived(names[1]) and subject == subject_of(topic, *names, letters, apart=False)


def not_a_block(place: str) -> DataError:
    return DataError("D030", "a message of the log is not a block of events", "publish with Fairlead only", place)


REJECTED = "=rejected"
"""Instead of a type, in the place of a message that is not a block: no type has this name, so nobody reads events of it."""


def rejected_block(code: str, subject: str) -> Block:
    """In the place of a message that is not a block. `writer`: the subject, which says whose it is."""
    return Block(REJECTED, source_of(subject), 0, 0, 0, code, b"", subject)


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
    """The events of a block of one type, as `fitted` returns them. Raises DataError if the block is damaged."""
    return fitted(block.batch, event_type, block)


def fitted(batch: pa.RecordBatch, event_type: EventType, block: Block) -> pa.RecordBatch:
    """Events in the columns of the reader's definition of the type: attributes that were added later are null in old events,
    and attributes that the reader does not know yet are omitted. Raises DataError if they are no events of the type, or if the
    type is not one of the block's topic."""
    if block.topic != event_type.topic and event_type.name != HEARTBEAT.name:
        raise damaged(block)
    wanted = arrow_schema(event_type)
    if not batch.schema.equals(wanted):
        columns = []
        for field in wanted:
            at = batch.schema.get_field_index(field.name)
            if at < 0:
                columns.append(pa.nulls(batch.num_rows, field.type))
            elif batch.schema.field(at).type.equals(field.type):
                columns.append(batch.column(at))
            else:
                raise damaged(block)
        batch = record_batch(columns, wanted, batch.num_rows)
    for column, each in zip(batch.columns, event_type.attributes, strict=True):
        for inside in columns_inside(column):
            if pa.types.is_timestamp(inside.type) and not _is_time(inside, each.name == event_type.time_attribute):
                raise damaged(block)
            if pa.types.is_date32(inside.type) and not _are_dates(inside):
                raise damaged(block)
    return batch


def _are_dates(column: pa.Array) -> bool:
    """Whether its values are in the range of DATE."""
    found = bits_of(column.drop_null())
    return not len(found) or bool(DATE_RANGE[0] <= found.min() and found.max() <= DATE_RANGE[1])


def _is_time(column: pa.Array, required: bool) -> bool:
    """Whether its values are in the range of TIMESTAMP, and present if they are required."""
    if column.null_count:
        return not required and _is_time(column.drop_null(), required=False)
    if not len(column):
        return True
    found = bits_of(column)
    return bool(TIMESTAMP_RANGE[0] <= found.min() and found.max() <= TIMESTAMP_RANGE[1])


def damaged(block: Block) -> DataError:
    problem = f"block {block.number} of '{block.type}' from source '{block.source}' does not hold events of that type"
    return DataError("D031", problem, "publish with Fairlead only, with the types that are declared")
