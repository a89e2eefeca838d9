"""The published setting: events of three integers in 0..1000, two to four types, and the subscribers of each.

    A2, A3, A4   conjunctions of two, three or four types, filtered by the subscribers (a comparison across events)
    B            two types, filtered by conditions on single events
    C            four types; subscribers share out the six pairs
    D2, D3, D4   disjunctions of two, three or four conjunctions, each of two types of its own

`t` is when an event was published, in microseconds: it is not part of the published setting, latency is measured by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

NAMES = "ABCDEFGH"
TYPES = "\n".join(f"TYPE {name} (x INT, y INT, z INT, t BIGINT)" for name in NAMES)
ROW = np.dtype([("x", "<i4"), ("y", "<i4"), ("z", "<i4"), ("t", "<i8")])
"""An event as a message of its own."""


@dataclass(frozen=True)
class Scenario:
    name: str
    says: str
    types: str
    rules: tuple[str, ...]
    """Subscriber i has the rules i modulo their number."""

    def of(self, subscriber: int) -> str:
        return self.rules[subscriber % len(self.rules)]

    def reads(self, subscriber: int) -> list[str]:
        rules = self.of(subscriber)
        return [name for name in self.types if f"{name} {name.lower()}" in rules]


def _joined(*conjunctions: str) -> str:
    """In each conjunction the events of the first type equal the others in x, and are below them in y."""
    slots = " OR ".join(" AND ".join(f"{name} {name.lower()}" for name in names) for names in conjunctions)
    tests = []
    for first, *rest in (names.lower() for names in conjunctions):
        tests += [f"{first}.x = {each}.x" for each in rest] + [f"{first}.y < {each}.y" for each in rest]
    return f"SUBSCRIPTION S MATCH {slots} WHERE {' AND '.join(tests)}"


def _either(levels: int) -> Scenario:
    pairs = [NAMES[at : at + 2] for at in range(0, 2 * levels, 2)]
    return Scenario(f"D{levels}", f"{levels} conjunctions of two types", "".join(pairs), (_joined(*pairs),))


SCENARIOS = {
    each.name: each
    for each in (
        *(Scenario(f"A{n}", f"{n} types, filtered by the subscriber", NAMES[:n], (_joined(NAMES[:n]),)) for n in (2, 3, 4)),
        Scenario(
            "B",
            "2 types, a tenth of each passes",
            "AB",
            ("SUBSCRIPTION S MATCH A a AND B b WHERE a.x < 100 AND b.x < 100",),
        ),
        Scenario("C", "4 types, all 6 pairs", NAMES[:4], tuple(_joined("".join(pair)) for pair in combinations(NAMES[:4], 2))),
        *(_either(levels) for levels in (2, 3, 4)),
    )
}


def events(random: np.random.Generator, count: int, now_us: int) -> pa.Table:
    made: dict[str, Any] = {name: pa.array(random.integers(0, 1001, count, dtype=np.int32)) for name in "xyz"}
    return pa.table(made | {"t": pa.array(np.full(count, now_us, dtype=np.int64))})


def rows_of(table: pa.Table) -> np.ndarray[Any, Any]:
    made = np.empty(table.num_rows, dtype=ROW)
    for name in ROW.names or ():
        made[name] = table.column(name).to_numpy()
    return made


def batch_of(rows: np.ndarray[Any, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(np.ascontiguousarray(rows[name])) for name in ROW.names or ()})
