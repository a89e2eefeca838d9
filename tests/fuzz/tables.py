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
from fairlead.runtime.embedded import match
from fairlead.transport.log.block import Block, decode

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


def case(seed: int) -> None:
    draw = random.Random(seed)
    sink = pa.BufferOutputStream()
    whole = (
        table(draw)
        if seed % 2
        else pa.table({"x": pa.array(range(ROWS), pa.int32()), "s": TEXTS, "b": pa.array(TEXTS, pa.binary())})
    )
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    content = damaged(sink.getvalue().to_pybytes(), draw)
    try:
        if seed % 2:
            match(PLAN, pa.ipc.open_stream(content).read_all())
        else:
            decode(Block("A", "source", 0, 0, ROWS, "", content), PLAN.catalogue["A"]).to_pylist()
    except (FairleadError, pa.ArrowException, OSError):
        return  # a message that Arrow refuses itself is no table
    except UnicodeDecodeError:
        return  # a name of a column, when Arrow opens it


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        print(number, flush=True)
        case(number)
