"""The types and small things that the tests of this package share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fairlead.model.events.columns import Columns
from fairlead.model.events.event import Event
from fairlead.model.events.types import Attribute, Catalogue, DataType, EventType, Kind


def attributes(**kinds: Kind | DataType) -> tuple[Attribute, ...]:
    return tuple(Attribute(name, kind if isinstance(kind, DataType) else DataType(kind)) for name, kind in kinds.items())


QUOTE = EventType("StockQuote", attributes(symbol=Kind.STRING, value=Kind.DOUBLE, at=Kind.TIMESTAMP), time_attribute="at")
LOGIN = EventType("Login", attributes(user=Kind.STRING, attempts=Kind.INT))
TICK = EventType("Tick", ())
MARKET = EventType("Market", (), members=("StockQuote", "Login"))
RALLY = EventType("RallySeen", attributes(symbol=Kind.STRING), derived=True)
CATALOGUE = Catalogue((QUOTE, LOGIN, TICK, MARKET, RALLY))
ONE_TYPE = Catalogue((QUOTE, RALLY))

EVERY = EventType(
    "Every",
    attributes(
        flag=Kind.BOOLEAN,
        small=Kind.INT,
        large=Kind.BIGINT,
        ratio=Kind.DOUBLE,
        price=DataType(Kind.DECIMAL, 12, 3),
        text=Kind.STRING,
        seen=Kind.TIMESTAMP,
        raw=Kind.BINARY,
        day=Kind.DATE,
    ),
)
PAIR = EventType("Pair", attributes(text=Kind.STRING, other=Kind.BIGINT))
ALL_TYPES = Catalogue((EVERY, PAIR))


def quote(symbol: Any = "ACME", value: Any = 1.5, at: Any = "2024-01-02T03:04:05Z", **more: Any) -> dict[str, Any]:
    return {"type": "StockQuote", "symbol": symbol, "value": value, "at": at, **more}


def login(user: Any = "ann", attempts: Any = 1, **more: Any) -> dict[str, Any]:
    return {"type": "Login", "user": user, "attempts": attempts, **more}


def events(batches: Iterable[Columns], catalogue: Catalogue = CATALOGUE) -> list[Event]:
    return [event for columns in batches for event in columns.events(catalogue)]


def majors(found: list[Event]) -> list[int]:
    return [event.position.major for event in found]


def write(path: Path, *lines: str | bytes, end: bytes = b"\n") -> Path:
    content = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines)
    path.write_bytes(content + end)
    return path
