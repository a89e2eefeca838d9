"""The published setting: events of three integers in 0..1000, two to four types, and the subscribers of each.

    A2, A3, A4   conjunctions of two, three or four types, filtered by the subscribers (a comparison across events)
    B            two types, filtered by conditions on single events
    C            four types; subscribers share out the six pairs
    D2, D3, D4   disjunctions of two, three or four conjunctions, each of two types of its own

`t` is when an event was published, in microseconds: it is not part of the published setting, latency is measured by it.

With an order by event time (`EventTimes`) events have a time `at` too, and arrive out of its order: the event that is published
at t has a time of up to `disorder_ms` before that. Then the rules begin with ORDER BY at DELAY.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

NAMES = "ABCDEFGH"
GAP_US = 2.5
"""Between two event times if events are published as fast as they are taken: as if there were 400,000 a second."""
ROW = np.dtype([("x", "<i4"), ("y", "<i4"), ("z", "<i4"), ("t", "<i8")])
"""An event as a message of its own."""


@dataclass(frozen=True)
class EventTimes:
    """How events are late, and how long one waits for them. `early`: and does not, for early deliveries."""

    delay_ms: float
    disorder_ms: float
    early: bool = False

    def drawn(self, random: np.random.Generator, first: int, gap_us: float, places: npt.NDArray[np.int64]) -> pa.Array:
        """The times of the events at these places of the publication, which begins at `first`."""
        lags = random.integers(0, int(1e3 * self.disorder_ms) + 1, len(places))
        return pa.array(first + (places * gap_us).astype(np.int64) - lags).cast(pa.timestamp("us", tz="UTC"))


@dataclass(frozen=True)
class Scenario:
    name: str
    says: str
    types: str
    rules: tuple[str, ...]
    """Subscriber i has the rules i modulo their number."""
    times: EventTimes | None = None

    def of(self, subscriber: int) -> str:
        rules = self.rules[subscriber % len(self.rules)]
        return rules if self.times is None else f"ORDER BY at DELAY {self.times.delay_ms:g} MILLISECONDS {rules}"

    @property
    def declarations(self) -> str:
        at = "" if self.times is None else ", at TIMESTAMP"
        return "\n".join(f"TYPE {name} (x INT, y INT, z INT, t BIGINT{at})" for name in NAMES)

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


def events(random: np.random.Generator, count: int, now_us: int, at: pa.Array | None = None) -> pa.Table:
    made: dict[str, Any] = {name: pa.array(random.integers(0, 1001, count, dtype=np.int32)) for name in "xyz"}
    made["t"] = pa.array(np.full(count, now_us, dtype=np.int64))
    return pa.table(made if at is None else made | {"at": at})


def rows_of(table: pa.Table) -> np.ndarray[Any, Any]:
    made = np.empty(table.num_rows, dtype=ROW)
    for name in ROW.names or ():
        made[name] = table.column(name).to_numpy()
    return made


def batch_of(rows: np.ndarray[Any, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(np.ascontiguousarray(rows[name])) for name in ROW.names or ()})
