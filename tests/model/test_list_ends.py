"""Lists that Arrow's validation accepts, and that crash the process when they are read; and slices of lists."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from fairlead.model.blobs import packed, validated
from fairlead.model.events.columns import canonical_values
from fairlead.model.events.list_ends import sound_lists
from fairlead.model.events.types import Kind
from fairlead.transport.log.blocks.payload import read_batches
from tests.root import ROOT

INNER = pa.list_(pa.field("element", pa.int32()))
OUTER = pa.list_(pa.field("element", pa.struct([("a", INNER)])))
BEYOND = pa.py_buffer(np.array([3], np.int32))


def forged(ends: pa.Buffer | None) -> pa.Array:
    """Two empty arrays: of structs, of which there is none, with lists, of which there is none."""
    lists = pa.Array.from_buffers(INNER, 0, [None, ends], children=[pa.array([], pa.int32())])
    structs = pa.StructArray.from_arrays([lists], fields=list(OUTER.value_type))
    made = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), structs, type=OUTER)
    made.validate(full=True)
    return made


@pytest.mark.parametrize("ends", [None, BEYOND], ids=["missing", "beyond"])
def test_lists_that_arrow_cannot_read_become_equal_ones_that_it_can(ends: pa.Buffer | None) -> None:
    made = sound_lists(forged(ends))
    assert sound_lists(made) is made
    assert made.values.field(0).offsets.to_pylist() == [0]
    assert made.equals(pa.array([[], []], OUTER))
    assert pa.concat_arrays([made, made]).nbytes > 0
    alone = sound_lists(forged(ends).values.field(0))
    assert (alone.type, len(alone.flatten())) == (INNER, 0)


def test_other_parts_and_nulls_stay() -> None:
    lists = forged(None)
    kind = pa.struct([("n", pa.int32()), ("l", OUTER)])
    column = pa.StructArray.from_arrays([pa.array([1, 2], pa.int32()), lists], fields=list(kind), mask=pa.array([True, False]))
    assert sound_lists(column).to_pylist() == [None, {"n": 2, "l": []}]
    assert sound_lists(column.slice(1)).to_pylist() == [{"n": 2, "l": []}]


def test_no_block_or_state_has_them() -> None:
    sound = packed(pa.record_batch({"l": forged(pa.py_buffer(np.array([0], np.int32)))}))
    damaged = sound[:-16] + b"\x03" + sound[-15:]  # the end of the inner lists is the last of the body
    assert pa.ipc.open_stream(damaged).read_all().column(0).chunk(0).values.field(0).offsets.to_pylist() == [3]
    [block] = read_batches(pa.py_buffer(damaged), [2])
    for column in (block.column(0), validated(damaged).column(0).chunk(0)):
        assert sound_lists(column) is column


CHILD = """
import fairlead, pyarrow as pa
from tests.model.test_list_ends import BEYOND, forged
plan = fairlead.compile("TYPE A (l ARRAY<STRUCT<a: ARRAY<INT>>>) SUBSCRIPTION S MATCH A a EMIT D (l = a.l)")
for ends in (None, BEYOND):
    print([each.emitted for each in fairlead.match(plan, pa.table({"type": ["A", "A"], "l": forged(ends)}))])
"""


def test_a_table_with_them_is_read() -> None:
    """In a process of its own, which a crash would end."""
    found = subprocess.run([sys.executable, "-c", CHILD], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert (found.returncode, found.stdout) == (0, "[{'l': []}, {'l': []}]\n" * 2), found.stderr[-1000:]


def test_one_row_is_read_without_the_others() -> None:
    column = pa.array([["a", "b"]] * 20_000)
    tracemalloc.start()
    assert canonical_values(column.slice(7, 1), Kind.ARRAY) == [("a", "b")]
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 20_000
