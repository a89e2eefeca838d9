"""Random events for random rules, and random cuts of them into batches.

Mostly times that rise and values from small pools, so that there is something to match; NULL, NaN, negative zeros, extreme
numbers, ties and steps back in time among them. A stream has one manner for its keys: few, many, or far apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)
Record = dict[str, Any]
EXTREME: Mapping[str, Sequence[Any]] = {
    "INT": (2**31 - 1, -(2**31), -1),
    "BIGINT": (2**63 - 1, -(2**63), 10**12, -1),
    "DOUBLE": (float("inf"), float("-inf"), 1e308, 5e-324, -0.0, -1.5),
    "STRING": ("\0", "a" * 300, "\U0001f600", "a ", "%", "ß", "İ"),
    "TIMESTAMP": (START - timedelta(days=20_000), START + timedelta(microseconds=1)),
    "DATE": (date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)),
    "BOOLEAN": (True, False),
    "ARRAY<INT>": ([2**31 - 1] * 40, [None], []),
    "STRUCT<x: INT, a: ARRAY<STRING>>": ({"x": -(2**31), "a": ["a" * 300]}, {"x": None, "a": None}),
    "BINARY": (b"\0", b"", b"a" * 40),
}


@dataclass
class Manner:
    """How values of a stream are drawn."""

    keys: str
    """few, many or far"""
    missing: float
    extreme: float
    backwards: float
    heartbeats: float


def manner(rng: Random) -> Manner:
    return Manner(
        rng.choice(("few", "few", "few", "many", "far")),
        rng.choice((0.0, 0.05, 0.2)),
        rng.choice((0.0, 0.0, 0.1)),
        rng.choice((0.0, 0.1, 0.3)),
        rng.choice((0.0, 0.05, 0.25)),
    )


def events(rng: Random, attributes: Mapping[str, Mapping[str, str]], count: int) -> list[Record]:
    how, made, now = manner(rng), [], START
    weights = [rng.choice((1, 1, 3)) for _ in attributes]
    step = rng.choice(((0, 1, 1, 2), (0, 0, 0.5, 1), (1,), (0, 3, 9)))
    for _ in range(count):
        now += timedelta(seconds=rng.choice(step) if rng.random() >= how.backwards else -rng.choice((0.5, 1, 4)))
        if rng.random() < how.heartbeats:
            made.append({"type": "Heartbeat", "at": now})
            continue
        (name,) = rng.choices(list(attributes), weights)
        record = {each: value(rng, each, kind, how) for each, kind in attributes[name].items()}
        made.append({"type": name} | record | ({"at": now} if "at" in attributes[name] else {}))
    return made


def value(rng: Random, name: str, kind: str, how: Manner) -> Any:
    if rng.random() < how.missing:
        return float("nan") if kind == "DOUBLE" and rng.random() < 0.5 else None
    family = kind.split("(")[0]
    if rng.random() < how.extreme:
        return _decimal(rng, kind) if family == "DECIMAL" else rng.choice(EXTREME[family])
    number = _number(rng, how.keys) if name in "kj" else rng.choice((0, 1, 1, 2, 2, 3))
    return PLAIN[family](number)


def _number(rng: Random, keys: str) -> int:
    if keys == "few":
        return rng.choice((0, 0, 0, 1))
    if keys == "many":
        return rng.randrange(60)
    return rng.choice((rng.randrange(3), 100_000 + rng.randrange(50) * 1_000, 2_000_000_000 + rng.randrange(4)))


PLAIN: Mapping[str, Callable[[int], Any]] = {
    "INT": lambda n: n,
    "BIGINT": lambda n: n,
    "DOUBLE": float,
    "DECIMAL": lambda n: Decimal(n) / 2 if n < 60 else Decimal(n),
    "STRING": lambda n: ("a", "b", "A", "")[n] if n < 4 else f"t{n}",
    "TIMESTAMP": lambda n: START + timedelta(seconds=n % 100_000),
    "DATE": lambda n: START.date() + timedelta(days=n % 100_000),
    "BOOLEAN": lambda n: n % 2 == 0,
    "BINARY": lambda n: bytes([n % 256]),
    "ARRAY<INT>": lambda n: ([], [n], [1, None], [0, 1, n])[n % 4],
    "STRUCT<x: INT, a: ARRAY<STRING>>": lambda n: {"x": n, "a": (["a"], ["b", None], [], None)[n % 4]},
}


def _decimal(rng: Random, kind: str) -> Decimal:
    precision, scale = map(int, kind[8:-1].split(","))
    digits = rng.choice(("0", "9" * precision, "1", "5" * (precision // 2)))
    return Decimal((rng.randrange(2), tuple(map(int, digits)), -scale))


def cuts(rng: Random, count: int) -> list[int]:
    """Sizes of batches that come to `count`: of no rows, of one, of two, of many."""
    sizes, left = [], count
    most = rng.choice((1, 2, 5, max(1, count)))
    while left:
        size = min(left, rng.choice((0, 1, 1, 2, rng.randint(1, most))))
        sizes.append(size)
        left -= size
    return sizes
