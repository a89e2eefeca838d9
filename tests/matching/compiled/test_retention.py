"""Kernels forget keys, equal values and texts that nothing queued refers to, and deliver what a matcher does that has none."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.matching.compiled.running import pool
from fairlead.matching.compiled.running import retention as forgetting
from fairlead.transport.events import read_events

TYPES = "TYPE A (k BIGINT, s STRING, x INT) TYPE B (k BIGINT, s STRING, x INT)\n"
PLANS = {
    "whole keys": "SUBSCRIPTION S MATCH A a AND B b WHERE a.x <= b.x PER k",
    "keys of two attributes": "SUBSCRIPTION S MATCH A a AND B b PER k, s DISPOSAL INFIX",
    "keys of three attributes": "SUBSCRIPTION S MATCH A a AND B b PER s, x, k DISPOSAL INFIX",
    "texts as keys": "SUBSCRIPTION S MATCH A a AND B b PER s",
    "keys of several subscriptions": "SUBSCRIPTION S MATCH A a AND B b PER k "
    "SUBSCRIPTION T MATCH A a AND B b[2] PER k DISPOSAL INFIX",
    "alike subscriptions": "SUBSCRIPTION S MATCH A a AND B b WHERE a.x > 2 PER k "
    "SUBSCRIPTION T MATCH A a AND B b WHERE a.x > 5 PER k",
    "equal values": "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k DISPOSAL INFIX",
    "equal values of a key": "SUBSCRIPTION S MATCH A a AND B b WHERE a.s = b.s PER k DISPOSAL INFIX",
    "equal values of alike subscriptions": "SUBSCRIPTION S MATCH A a AND B b WHERE a.s = b.s AND a.x > 2 DISPOSAL INFIX "
    "SUBSCRIPTION T MATCH A a AND B b WHERE a.s = b.s AND a.x > 5 DISPOSAL INFIX",
    "equal values whose numbers are compared": "SUBSCRIPTION S MATCH A a AND B b WHERE a.s = b.s AND a.x < b.x",
    "ordered texts": "SUBSCRIPTION S MATCH A a AND B b WHERE a.s <= b.s",
}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    monkeypatch.setattr(forgetting, "FEW", 8)


def stream(length: int, far: bool) -> list[dict[str, Any]]:
    """Keys and texts that come, meet a partner or not, and never come again."""
    draw = random.Random(3)
    made: list[dict[str, Any]] = []
    for n in range(length):
        near = n // 4 + draw.randint(0, 2)
        key = near * 10**12 if far else near
        made.append({"type": draw.choice("AB"), "k": key, "s": f"t{near:05d}", "x": draw.randint(0, 9)})
    return made


@pytest.mark.sampled
@pytest.mark.parametrize("far", [False, True], ids=["close together", "far apart"])
@pytest.mark.parametrize("name", PLANS)
def test_a_kernel_that_forgets_delivers_the_same_and_dumps_the_same(name: str, far: bool) -> None:
    plan = compile_text(TYPES + PLANS[name])
    plain, fast = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    expected: list[Any] = []
    found: list[Any] = []
    for columns in read_events(stream(900, far), plan.catalogue, batch_rows=40):
        expected += [(each.subscription, each.positions) for each in plain.feed(columns)]
        found += [(each.subscription, each.positions) for each in fast.feed(columns)]
        assert fast.dump() == plain.dump()
    assert found == expected
    assert fast.lane is not None
    for family in fast.lane.families:
        kernel = family.kernel
        bound = 3 * kernel.held() + 140  # what is queued, twice over, and a batch
        assert max(kernel.keys.known(), len(kernel.member_keys), kernel.buckets(), len(kernel.texts)) <= bound, name
        assert len(kernel.equal_values) <= bound, name


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("rules", "nothing"),
    [
        ("SUBSCRIPTION S MATCH A a AND B b PER k, s", "s"),
        ("SUBSCRIPTION S MATCH A a AND B b PER k, s", "k"),
        ("SUBSCRIPTION S MATCH A a AND B b WHERE a.s = b.s PER k", "s"),
        ("SUBSCRIPTION S MATCH A a AND B b WHERE a.s = b.s PER k", "k"),
        ("SUBSCRIPTION S MATCH A a[2] AND B b WHERE a[1].s = b.s AND a[2].s = b.s PER k", "s"),
    ],
)
def test_what_rows_with_a_null_are_numbered_by_is_forgotten_too(rules: str, nothing: str) -> None:
    """A key of which one attribute is NULL is no key, but the other attributes had numbers for good."""
    plan, events = compile_text(TYPES + rules), [each | {nothing: None} for each in stream(900, True)]
    plain, fast = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    for columns in read_events(events, plan.catalogue, batch_rows=40):
        assert [r.positions for r in fast.feed(columns)] == [r.positions for r in plain.feed(columns)]
        assert fast.dump() == plain.dump()
    assert fast.lane is not None
    kernel = fast.lane.families[0].kernel
    assert max(kernel.keys.known(), kernel.buckets(), len(kernel.equal_values)) <= 3 * kernel.held() + 140


def test_copies_of_what_waits_are_in_no_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room that was never written can hold anything: it was once taken for the numbers of chains."""
    monkeypatch.setattr(pool, "longer", filled_with_rubbish)
    timed = "TYPE A (x INT, at TIMESTAMP) TIME at TYPE B (x INT, at TIMESTAMP) TIME at TYPE C (x INT, at TIMESTAMP) TIME at\n"
    plan = compile_text(timed + "SUBSCRIPTION S MATCH A a AND B b WHERE a.x = b.x WITHOUT C c WITHIN 9 SECONDS OF a")
    events = [{"type": "AB"[n % 2], "x": n // 2, "at": n} for n in range(200)]
    plain, fast = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    for columns in read_events(events, plan.catalogue, batch_rows=10):
        assert [r.positions for r in fast.feed(columns)] == [r.positions for r in plain.feed(columns)]
        assert fast.dump() == plain.dump()
    assert fast.lane is not None
    assert fast.lane.families[0].kernel.buckets() < 60


def filled_with_rubbish(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    made = np.full((rows, *array.shape[1:]), 2**31 - 1, dtype=array.dtype)
    made[: len(array)] = array
    return made
