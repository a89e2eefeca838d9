"""Messages of a log, mutated: blocks as publishers send them, with other bytes, numbers, headers and subjects. A message is no
block (D030, D037), has no events (D031), or has events that are valid; readers of one type and of all agree. A hundred a case.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import numpy as np
import pyarrow as pa

from fairlead.errors import DataError
from fairlead.language import compile_text
from fairlead.matching.state.canonical_columns import canonical
from fairlead.model.blobs import packed
from fairlead.model.events.columns import arrow_schema, canonical_rows, columns_inside, record_batch
from fairlead.model.events.types import EventType
from fairlead.order.nested_bytes import nested_bytes
from fairlead.transport.log.blocks.block import Block, block_of, schema_digest
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.blocks.mixed_block import MixedEvents, payload_of, wanted_events
from fairlead.transport.log.jetstream.predecessor import PRESENT
from fairlead.transport.log.names import subject

seen: Counter[str] = Counter()
BLOCKS = 100
TYPES = compile_text(
    "TYPE A (i INT, s STRING, at TIMESTAMP) TIME at TYPE B (b BINARY, d DOUBLE, o BOOLEAN, m DECIMAL(38,10)) TYPE C ()"
    " TYPE D (l ARRAY<STRUCT<x: INT, t: STRING, at: TIMESTAMP>>, z STRUCT<day: DATE, in: STRUCT<o: ARRAY<ARRAY<BOOLEAN>>>>)"
    " SUBSCRIPTION S MATCH A a"
).catalogue
NUMBERS = (0, 1, 2, 4095, 4096, 4097, -1, 2**31, 2**62 - 1, 2**62, 2**63, 10**30)
WORDS = ("", "A", "B", "x", "main", MIXED, "\x00", "=", "..", "*", "é", "1_0", " 1", "y0 n-1 u7 u7", "y0", "u" * 200)


def _batch(each: EventType, rows: int) -> pa.RecordBatch:
    schema = arrow_schema(each)
    values = {"i": 7, "s": "text", "at": 1_000_000, "b": b"bytes", "d": 0.5, "o": True, "m": None}
    values |= {
        "l": [{"x": 1, "t": "text", "at": 1_000_000}, None, {"x": None}],
        "z": {"day": 1, "in": {"o": [[True], None, []]}},
    }
    columns = [
        pa.array([None if row % 5 == 4 and field.name != "at" else values[field.name] for row in range(rows)], field.type)
        for field in schema
    ]
    return record_batch(columns, schema, rows)


@cache
def whole() -> tuple[Block, ...]:
    """Blocks of each type, of several rows and sizes, and mixed ones."""
    made = []
    for name in "ABCD":
        for rows in (1, 9, 300):
            each = TYPES[name]
            made.append(Block(name, "p", 3, 20, rows, schema_digest(each), packed(_batch(each, rows)), "w", "y0 n-1 u2 u2"))
    for names, rows in (("AB", 8), ("ABC", 9), ("CA", 200), ("DA", 9)):
        codes = np.arange(rows, dtype=np.uint16) % len(names)
        counts = np.bincount(codes)
        batches = [_batch(TYPES[name], int(counts[at])) for at, name in enumerate(names)]
        events = MixedEvents(tuple(names), codes, batches)
        made.append(Block(MIXED, "p", 1, 5, rows, "", payload_of(events), "w", types=tuple(names)))
    return tuple(made)


def mutated(content: bytes, draw: random.Random) -> bytes:
    """Other words, bits and lengths; parts of it removed, doubled and exchanged with those of other blocks."""
    made = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at, size = draw.randrange(len(made) + 1), draw.choice((1, 2, 4, 8, 16, 64))
        match draw.randrange(9):
            case 0 | 1 | 2:
                at, limit = at // size * size, 1 << (8 * min(size, 8))
                number = draw.choice((0, 1, limit - 1, limit // 2, limit // 2 - 1, draw.randrange(limit), 10**9 % limit))
                made[at : at + min(size, 8)] = number.to_bytes(min(size, 8), "little")
            case 3 | 4:
                made[min(at, len(made) - 1)] ^= 1 << draw.randrange(8)
            case 5:
                del made[at : at + size]
            case 6:
                made[at:at] = made[at : at + size]
            case 7:
                other = draw.choice(whole()).payload
                begin = draw.randrange(len(other)) // 8 * 8
                made[at // 8 * 8 : at // 8 * 8 + size] = other[begin : begin + size]
            case _:
                del made[draw.randrange(len(made) + 1) :]
        if not made:
            break
    return bytes(made)


def one(draw: random.Random) -> str:
    """What became of one message."""
    block = draw.choice(whole())
    headers = block.headers() | PRESENT.condition(block, draw.choice((0, 5)))
    found, payload = subject(block.topic, block.type, block.source, block.letters), block.payload
    if draw.random() < 0.85:
        payload = mutated(payload, draw)
    for _ in range(draw.choice((0, 0, 0, 1, 2))):
        name = draw.choice(sorted(headers) or ["Fl-Type"])
        if draw.random() < 0.2:
            headers.pop(name, None)
        else:
            headers[name] = draw.choice((*map(str, NUMBERS), *WORDS))
    if draw.random() < 0.05:
        found = draw.choice((found[:-1], found.replace(".A.", ".B."), "", "fl.e", "$KV.x", f"{found}.y"))
    try:
        read = draw.choice((PRESENT.block, block_of))(headers, payload, found, "place")
    except DataError as error:
        return error.code
    every = {name: TYPES[name] for name in "ABCD"}
    both = wanted_events(read, every)
    for name, batch in zip(both.events.types, both.events.batches, strict=True):
        batch.validate(full=True)
        batch.to_pylist()
        canonical_rows(batch, TYPES[name])
        for column in batch.columns:  # each value takes a bit, so there are no more of them than that
            assert all(len(inside) <= 8 * len(payload) for inside in columns_inside(column))
            canonical(column)
            nested_bytes(column) if pa.types.is_nested(column.type) else None
    for name, each in every.items():
        alone = wanted_events(read, {name: each})
        code = both.events.types.index(name) if name in both.events.types else -1
        assert alone.indices.tolist() == both.indices[both.events.codes == code].tolist()
    return both.rejected[0].code if both.rejected else "events" if len(both.indices) else "others"


def case(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(BLOCKS):
        seen[one(draw)] += 1
