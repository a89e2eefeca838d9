"""W1, the one stream that every benchmark reads, and the rule texts Q1 to Q11 and Q3r.

W1: one event a millisecond, types A, B and C uniform, key uniform in 1..1000, price uniform in 0..100 with four decimals,
volume uniform in 1..1000. Drawn as whole arrays from NumPy's default_rng(42) in the order type, key, price, volume.

Q5 needs queues that stay long, which W1 does not have: in `W1 with a backlog of n` the first n events are all A and cost 100
more, so that no B ever exceeds one of them. They stand at the head of the queue of A permanently, and FIRST has to get past
them at every match. Everything after them is W1.

Takes: a number of events. Gives: NumPy columns, an Arrow table, a Parquet file in a cache folder outside the repository.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 42
EVENTS = 1_000_000
KEYS = 1_000
BACKLOG = 100_000
SUBSCRIPTIONS = 1_000
TYPE_NAMES = ("A", "B", "C")
START_US = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""
STEP_US = 1_000


@dataclass(frozen=True)
class Stream:
    """W1 as NumPy columns: what a hand-written kernel wants to be given. Position is the index."""

    type: npt.NDArray[np.int8]
    key: npt.NDArray[np.int32]
    price: npt.NDArray[np.float64]
    volume: npt.NDArray[np.int32]
    at_us: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.type)

    def prefix(self, events: int) -> Stream:
        return Stream(self.type[:events], self.key[:events], self.price[:events], self.volume[:events], self.at_us[:events])


def stream(events: int = EVENTS, backlog: int = 0) -> Stream:
    """W1; with a backlog, its first events made into A that no B exceeds. A shorter stream is not a prefix of a longer one."""
    rng = np.random.default_rng(SEED)
    kind = rng.integers(0, 3, events)
    key = rng.integers(1, KEYS + 1, events)
    price = rng.uniform(0.0, 100.0, events).round(4)
    volume = rng.integers(1, 1_001, events)
    if backlog:
        kind[:backlog] = 0
        price[:backlog] = (price[:backlog] + 100.0).round(4)
    at_us = START_US + STEP_US * np.arange(events, dtype=np.int64)
    return Stream(kind.astype(np.int8), key.astype(np.int32), price, volume.astype(np.int32), at_us)


def table(data: Stream) -> pa.Table:
    """The stream as a user has it: the type's name as plain text in the column `type`."""
    names = pa.DictionaryArray.from_arrays(pa.array(data.type), pa.array(TYPE_NAMES)).cast(pa.string())
    at = pa.array(data.at_us).view(pa.timestamp("us", tz="UTC"))
    return pa.table({"type": names, "key": data.key, "price": data.price, "volume": data.volume, "at": at})


def folder() -> Path:
    """Where generated files and the peers' environments live. FAIRLEAD_BENCHMARKS moves it."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    found = Path(os.environ.get("FAIRLEAD_BENCHMARKS") or Path(cache) / "fairlead-benchmarks")
    found.mkdir(parents=True, exist_ok=True)
    return found


def parquet(events: int = EVENTS, backlog: int = 0) -> Path:
    """The stream as a Parquet file, written once. The name holds all that the content depends on."""
    path = folder() / f"w1-seed{SEED}-{events}-{backlog}.parquet"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.part")
        pq.write_table(table(stream(events, backlog)), part)
        part.replace(path)
    return path


TYPES = "\n".join(f"TYPE {name} (key INT, price DOUBLE, volume INT, at TIMESTAMP) TIME at" for name in TYPE_NAMES)

Q1 = """SUBSCRIPTION Q1
MATCH A a AND B b
WHERE a.price < b.price
PER key
MATCHING FIRST DISPOSAL INFIX"""

Q2 = """SUBSCRIPTION Q2
MATCH A a THEN B b THEN C c
PER key
WITHIN 10 SECONDS
MATCHING FIRST DISPOSAL PREFIX INFIX"""

Q3 = """SUBSCRIPTION Q3
MATCH A a THEN B b[3]
WHERE b[1].price < b[2].price AND b[2].price < b[3].price
PER key
WITHIN 10 SECONDS
MATCHING FIRST DISPOSAL PREFIX INFIX"""

Q4 = """SUBSCRIPTION Q4
MATCH A a AND B b
WHERE a.key = b.key AND a.price < b.price
MATCHING FIRST DISPOSAL INFIX"""

Q5 = """SUBSCRIPTION Q5
MATCH A a AND B b
WHERE a.price < b.price
MATCHING FIRST DISPOSAL INFIX"""

Q11 = """SUBSCRIPTION Q11
MATCH A a THEN B b THEN C c
PER key
WITHIN 10 SECONDS
MATCHING ALL LIMIT 10 PER EVENT DISPOSAL PREFIX INFIX"""


FALLS_LEAST = 3
DISTINCT_LEAST, DISTINCT_WINDOW_US = 20, 60_000_000
COUNT_MOST, COUNT_WINDOW_US = 100, 100_000_000
"""A key has one event per second on average, so a window of a hundred seconds has a hundred of them, and sometimes more."""
GAP_US = 2_000_000
ANY = "EVENT UNION E = A + B + C\n"

Q3R = """SUBSCRIPTION Q3r
MATCH A a THEN B b+
WHERE b.price > prev(b.price)
PER key
MATCHING FIRST DISPOSAL PREFIX INFIX"""

Q7 = f"""SUBSCRIPTION Q7
MATCH A d{{{FALLS_LEAST},}} NEXT A u{{{FALLS_LEAST},}}
WHERE d.price < prev(d.price) AND u.price > prev(u.price)
PER key
MATCHING FIRST DISPOSAL PREFIX INFIX"""

Q8 = f"""{ANY}SUBSCRIPTION Q8
MATCH E q+
HAVING count(DISTINCT q.volume) >= {DISTINCT_LEAST}
PER key
WITHIN {DISTINCT_WINDOW_US // 1_000_000} SECONDS
MATCHING FIRST DISPOSAL PREFIX INFIX"""

Q9 = f"""{ANY}SUBSCRIPTION Q9
MATCH E q+
HAVING count(q) > {COUNT_MOST}
PER key
WITHIN {COUNT_WINDOW_US // 1_000_000} SECONDS
MATCHING FIRST DISPOSAL PREFIX INFIX"""

Q10 = f"""{ANY}SUBSCRIPTION Q10
MATCH E q+ WITHIN {GAP_US // 1_000_000} SECONDS OF PREVIOUS
PER key
MATCHING FIRST DISPOSAL PREFIX INFIX"""


def bands(subscriptions: int) -> list[float]:
    """The thresholds of Q6: band i is bands[i] <= price < bands[i + 1]."""
    return [round(100 * at / subscriptions, 6) for at in range(subscriptions + 1)]


def q6(subscriptions: int = SUBSCRIPTIONS) -> str:
    """Bands of prices side by side: every A and B is accepted by exactly one subscription, however many there are, so the
    relations stay about as many and any cost that grows is the price of asking."""
    edges = bands(subscriptions)
    return "\n".join(
        f"SUBSCRIPTION S{at:05d} MATCH A a AND B b"
        f" WHERE a.price >= {low} AND a.price < {high} AND b.price >= {low} AND b.price < {high}"
        " MATCHING FIRST DISPOSAL INFIX"
        for at, (low, high) in enumerate(itertools.pairwise(edges))
    )


@dataclass(frozen=True)
class Query:
    """`rules` makes the whole rule text; `backlog` the part of the stream that is turned into a standing queue."""

    name: str
    says: str
    rules: Callable[[], str]
    backlog: int = 0

    def backlog_of(self, events: int) -> int:
        """On fewer events than a million the backlog shrinks with them: a tenth of the stream at most."""
        return min(self.backlog, events // 10)


def _text(subscription: str) -> Callable[[], str]:
    return lambda: f"{TYPES}\n{subscription}\n"


QUERIES = {
    each.name: each
    for each in (
        Query("Q1", "A AND B, A.price < B.price, PER key, FIRST, INFIX", _text(Q1)),
        Query("Q2", "A THEN B THEN C within 10 s, PER key, FIRST, PREFIX INFIX", _text(Q2)),
        Query("Q3", "A THEN three B of rising price within 10 s, PER key, FIRST, PREFIX INFIX", _text(Q3)),
        Query("Q4", "Q1 with the key as a predicate instead of PER", _text(Q4)),
        Query("Q5", "A AND B, A.price < B.price, no key, a standing queue of 100,000 A", _text(Q5), BACKLOG),
        Query("Q6", "1,000 subscriptions A AND B on bands of price", lambda: f"{TYPES}\n{q6()}\n"),
        Query("Q3r", "A THEN a run of B with rising prices, next to each other, PER key, FIRST, PREFIX INFIX", _text(Q3R)),
        Query("Q7", "V shape: at least three A with falling prices, then at least three with rising ones, PER key", _text(Q7)),
        Query("Q8", "at least 20 different volumes within a minute, PER key", _text(Q8)),
        Query("Q9", "more than 100 events within 100 seconds, PER key", _text(Q9)),
        Query("Q10", "sessions with a gap of two seconds, PER key", _text(Q10)),
        Query("Q11", "Q2 with every relation of an event, at most 10: MATCHING ALL LIMIT 10 PER EVENT", _text(Q11)),
    )
}
