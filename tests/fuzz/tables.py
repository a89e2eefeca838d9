"""Arrow tables and blocks of a log with damaged memory: a coded error or events, the process alive.

Arrow trusts the offsets, views, indices and run ends of a message, so the process crashes: run many seeds in a process of their
own (`python -m tests.fuzz.tables FIRST LAST`), the last one printed is to blame.
"""

from __future__ import annotations

import random
import sys

import pyarrow as pa

from fairlead.errors import FairleadError
from fairlead.language import compile_text
from fairlead.model.events.types import EventType
from fairlead.runtime.embedded import match
from fairlead.transport.log.blocks.block import Block, decode
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.blocks.mixed_block import wanted_events

PLAN = compile_text("TYPE A (x INT, s STRING, b BINARY) SUBSCRIPTION S MATCH A a[2] PER s EMIT X (s = a[1].s, b = a[2].b)")
ROWS = 24
TEXTS = [None if at % 5 == 0 else "longer than twelve bytes"[: at * 2] for at in range(ROWS)]


def _layouts(values: list[str | None], bytes_too: bool) -> list[pa.Array]:
    """The values in every layout that is read."""
    kinds = [pa.string(), pa.large_string(), pa.string_view()]
    kinds += [pa.binary(), pa.large_binary(), pa.binary_view()] if bytes_too else []
    plain = [pa.array(values, each) for each in kinds]
    wrapped = [each.dictionary_encode() for each in plain[:2]]
    ends = pa.array(range(1, ROWS + 1), pa.int32())
    return [*plain, *wrapped, pa.RunEndEncodedArray.from_arrays(ends, plain[0]), pa.array([[each] for each in values])]


def table(draw: random.Random) -> pa.Table:
    columns = {
        "type": draw.choice(_layouts(["A"] * ROWS, False)),
        "x": pa.array(range(ROWS), pa.int32()),
        "s": draw.choice(_layouts(TEXTS, False)),
        "b": draw.choice(_layouts(TEXTS, True)),
    }
    return pa.table(columns)


def damaged(content: bytes, draw: random.Random) -> bytes:
    """The message with other numbers in some of its words; they are aligned, as offsets and views are."""
    made = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        size = draw.choice((1, 4, 8))
        at = draw.randrange(len(made)) // size * size
        limit = 1 << (8 * size)
        number = draw.choice((0, 1, limit - 1, limit // 2, limit // 2 - 1, draw.randrange(limit), 10**8 % limit))
        made[at : at + size] = number.to_bytes(size, "little")
    return bytes(made[: len(content)])


def stream_of(whole: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    return bytes(sink.getvalue().to_pybytes())


def mixed(draw: random.Random) -> Block:
    """A block of two types, one of them with a column in any layout; its head may be wrong, too."""
    codes = bytes(draw.choices((0, 1), k=ROWS))
    counts = codes.count(0), codes.count(1)
    columns = pa.table({"x": pa.array(range(ROWS), pa.int32()), "s": TEXTS, "b": pa.array(TEXTS, pa.binary())})
    other = columns if draw.random() < 0.5 else columns.set_column(1, "s", draw.choice(_layouts(TEXTS, False)))
    content = b"".join((stream_of(columns.slice(0, counts[0])), stream_of(other.slice(0, counts[1])), codes))
    count = draw.choice((ROWS, ROWS, ROWS, ROWS, ROWS - 1, 1, 4096))
    types = draw.choice((("A", "B"), ("A", "B"), ("A", "B"), ("B", "A"), ("A", "A"), ("A",), ("A", "B", "C")))
    return Block(MIXED, "source", 0, 0, count, "", damaged(content, draw), types=types)


def case(seed: int) -> None:
    draw = random.Random(seed)
    try:
        if seed % 2:
            match(PLAN, pa.ipc.open_stream(damaged(stream_of(table(draw)), draw)).read_all())
        elif seed % 4:
            plain = {"x": pa.array(range(ROWS), pa.int32()), "s": TEXTS, "b": pa.array(TEXTS, pa.binary())}
            block = Block("A", "source", 0, 0, ROWS, "", damaged(stream_of(pa.table(plain)), draw))
            decode(block, PLAN.catalogue["A"]).to_pylist()
        else:
            agreed(mixed(draw))
    except (FairleadError, pa.ArrowException, OSError):
        return  # a message that Arrow refuses itself is no table
    except UnicodeDecodeError:
        if not seed % 2:
            raise
        return  # a name of a column, when Arrow opens it


def agreed(block: Block) -> None:
    """Readers of one type get what readers of both get of it."""
    wanted = {name: EventType(name, PLAN.catalogue["A"].attributes) for name in "AB"}
    both = wanted_events(block, wanted)
    for name, each in wanted.items():
        alone = wanted_events(block, {name: each})
        code = both.events.types.index(name) if name in both.events.types else -1
        assert alone.indices.tolist() == both.indices[both.events.codes == code].tolist()
        shown = [batch.to_pylist() for batch in alone.events.batches]
        assert shown == [batch.to_pylist() for at, batch in enumerate(both.events.batches) if at == code]


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        print(number, flush=True)
        case(number)
