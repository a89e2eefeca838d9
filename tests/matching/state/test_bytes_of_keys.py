"""How many bytes a dumped key takes (docs/complexity.md, Memory): with one event left, and with its clock only."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.transport.events import read_events
from tests.root import ROOT

FEW, MANY = 40_000, 80_000
MIXED = np.random.default_rng(5).permutation(MANY)


def rules(attributes: str, key: str) -> str:
    types = "".join(f"TYPE {name} ({attributes}, at TIMESTAMP) TIME at\n" for name in "AB")
    return f"{types}SUBSCRIPTION S MATCH A a THEN B b PER {key} WITHIN 1 SECOND"


def text(numbers: Any) -> list[str]:
    return [f"user-{each:012d}" for each in numbers]


def drawn(most: int, n: int) -> Any:
    return np.random.default_rng(7).integers(-most, most, n)


KEYS: dict[str, tuple[str, str, Any]] = {
    "BIGINT": ("id BIGINT", "id", lambda n: {"id": np.arange(n)}),
    "BIGINT, any order": ("id BIGINT", "id", lambda n: {"id": MIXED[:n]}),
    "BIGINT, far apart": ("id BIGINT", "id", lambda n: {"id": drawn(2**62, n)}),
    "text of 17 letters": ("id STRING", "id", lambda n: {"id": text(range(n))}),
    "two BIGINTs": ("id BIGINT, k BIGINT", "id, k", lambda n: {"id": drawn(2**30, n), "k": MIXED[:n]}),
    "text and BIGINT": ("id STRING, k BIGINT", "id, k", lambda n: {"id": text(range(n)), "k": np.arange(n) % 100}),
}
BYTES = {
    "BIGINT": (12, 8),
    "BIGINT, any order": (16, 8),
    "BIGINT, far apart": (20, 12),
    "text of 17 letters": (29, 25),
    "two BIGINTs": (20, 12),
    "text and BIGINT": (30, 26),
}
"""With an event, and with a clock only. An event has its position and its attributes, numbers and times in 4 bytes here: they
are within 2^31 units of the smallest. In no order, it also has its place. Without an event, there are the key and the clock."""


def dumped(name: str, n: int, answered: bool, kernels_from: int | None) -> bytes:
    attributes, key, made = KEYS[name]
    plan = fairlead.compile(rules(attributes, key))
    engine, values = Engine(plan, kernels_from=kernels_from), made(n)
    for number, kind in enumerate("AB" if answered else "A"):
        at = pa.array(np.arange(n) * 1000 + number * 500).cast(pa.timestamp("us", "UTC"))
        table = pa.table(
            {"type": pa.array([kind] * n), **{each: pa.array(column) for each, column in values.items()}, "at": at}
        )
        for columns in read_events(table, plan.catalogue, start=number * n):
            engine.feed(columns)
    made_bytes = engine.dump()
    assert Engine.load(plan, made_bytes, kernels_from=0).dump() == made_bytes
    return made_bytes


@pytest.mark.sampled
@pytest.mark.parametrize("answered", [False, True], ids=["an event left", "a clock only"])
@pytest.mark.parametrize("name", KEYS)
def test_a_key_takes_what_it_needs(name: str, answered: bool) -> None:
    few, many = (len(dumped(name, n, answered, 0)) for n in (FEW, MANY))
    assert round((many - few) / (MANY - FEW), 1) == BYTES[name][answered]


@pytest.mark.sampled
@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("name", KEYS)
def test_both_matchers_write_the_same_bytes_of_keys(name: str, answered: bool) -> None:
    assert dumped(name, 500, answered, None) == dumped(name, 500, answered, 0)


def test_the_documentation_says_so() -> None:
    page = (ROOT / "docs" / "complexity.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `PER`")]
    told = {name: tuple(map(int, re.findall(r"\d+", rest))) for name, rest in (row[2:].split("|", 1) for row in rows)}
    assert told == {f"`PER` {name} ": numbers for name, numbers in BYTES.items()}
