"""The published setting: events of three integers in 0..1000, two to four types, and who subscribes to what.

    A2, A3, A4   conjunctions of two, three or four types, filtered by the subscribers (a comparison across events)
    B            two types, filtered by conditions on single events
    C            four types; subscribers share out the six pairs

`t` is when an event was published, in microseconds: it is not part of the published setting, latency is measured by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

NAMES = "ABCD"
TYPES = "\n".join(f"TYPE {name} (x INT, y INT, z INT, t BIGINT)" for name in NAMES)


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


def _joined(names: str) -> str:
    slots = " AND ".join(f"{name} {name.lower()}" for name in names)
    first, *rest = names.lower()
    tests = [f"{first}.x = {each}.x" for each in rest] + [f"{first}.y < {each}.y" for each in rest]
    return f"SUBSCRIPTION S MATCH {slots} WHERE {' AND '.join(tests)}"


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
        Scenario("C", "4 types, all 6 pairs", NAMES, tuple(_joined("".join(pair)) for pair in combinations(NAMES, 2))),
    )
}


def events(random: np.random.Generator, count: int, now_us: int) -> pa.Table:
    made: dict[str, Any] = {name: pa.array(random.integers(0, 1001, count, dtype=np.int32)) for name in "xyz"}
    return pa.table(made | {"t": pa.array(np.full(count, now_us, dtype=np.int64))})
