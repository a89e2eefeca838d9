"""The checked build: an index out of range and memory that nobody wrote end in an error that names them, never in a crash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairlead.engine import Engine
from fairlead.errors import InvariantError
from fairlead.language import compile_text
from fairlead.matching.compiled.codegen.indexes.hash_index import HashIndex
from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.machine_code.compiler import kernel_of
from fairlead.matching.compiled.running import lane
from fairlead.transport.events import read_events
from tests.matching.compiled.kernel_text import parsed

pytestmark = pytest.mark.xdist_group("compiled kernels")
SOURCE = """def kernel(rows, out, n, m):
    total = 0
    for i in range(2):
        total += deep(i, n, m, rows, out)
    return total, 0

def deep(i, n, m, rows, out):
    x = rows[n, m]
    if i == 1 and x > 0:
        put(n, out)
    return x

def put(n, out):
    out[n] = 7"""
BOTH = pytest.mark.parametrize("jit", [True, False], ids=["machine code", "plain Python"])


def run(n: int, m: int, jit: bool, out: int = 3) -> tuple[int, ...]:
    rows = np.arange(12, dtype=np.int32).reshape(3, 4)
    return kernel_of(parsed(SOURCE), jit, checked=True)(rows, np.zeros(out, dtype=np.int64), n, m)


@BOTH
def test_what_is_in_range_gives_what_it_gives_without_checks(jit: bool) -> None:
    assert tuple(int(each) for each in run(2, 3, jit)) == (22, 0)


@BOTH
@pytest.mark.parametrize(("n", "m", "shown"), [(3, 0, "index 3 of 3"), (-1, 0, "index -1 of 3"), (0, 4, "index 4 of 4")])
def test_an_index_out_of_range_is_named(jit: bool, n: int, m: int, shown: str) -> None:
    with pytest.raises(InvariantError, match=shown) as raised:
        run(n, m, jit)
    assert "rows[" in str(raised.value)


@BOTH
def test_a_write_out_of_range_is_named_and_ends_all_that_called_it(jit: bool) -> None:
    with pytest.raises(InvariantError, match=r"X003.*index 2 of 2: out\["):
        run(2, 1, jit, out=2)


def test_an_error_of_machine_code_has_its_place_in_the_source() -> None:
    with pytest.raises(InvariantError, match=r"line 8 of the kernel's source.*rows\[n, m\] in deep"):
        run(9, 0, True)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_memory_that_nobody_wrote_is_not_used_but_may_be_copied(dtype: Any) -> None:
    uses = kernel_of(parsed("def kernel(a, b):\n    x = a[1] + 1\n    return 0, 0"), True, checked=True)
    copies = kernel_of(parsed("def kernel(a, b):\n    b[0] = a[1]\n    return 0, 0"), True, checked=True)
    fresh, target = unwritten(3, dtype, checked=True), np.zeros(1, dtype=dtype)
    copies(fresh, target)
    with pytest.raises(InvariantError, match=r"memory that nobody wrote: a\[1\] in kernel"):
        uses(fresh, target)
    fresh[1] = 4
    uses(fresh, target)


@BOTH
def test_a_kernel_that_follows_a_link_that_nobody_wrote_is_found_out(jit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it took a number that happened to stand there for a node: events without a value are in no chain of equal ones."""
    monkeypatch.setattr(HashIndex, "unlink", lambda *_: None)
    monkeypatch.setattr(lane, "_FORMS", {})
    monkeypatch.setenv("FAIRLEAD_KERNELS", "checked")
    monkeypatch.setenv("FAIRLEAD_JIT", str(int(jit)))
    plan = compile_text("TYPE A (d DOUBLE) TYPE B () SUBSCRIPTION S MATCH A a[2] AND B b WHERE a[1].d = a[2].d")
    events = [{"type": "A", "d": None}, {"type": "A", "d": float("nan")}, {"type": "B"}]
    engine, batches = Engine(plan, kernels_from=0), list(read_events(events, plan.catalogue))
    with pytest.raises(InvariantError, match="X003"):
        engine.feed(batches[0])
