"""A plan that has everything a state can hold, a stream that fills it, and the fixture made of both.

`python -m tests.engine.everything` writes tests/fixtures/state-v5.bin. That is done once for each version: the point of a
fixture is that yesterday's bytes load today. A new version gets a file of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fairlead
from fairlead.engine import Engine
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.transport.events import read_events

FIXTURE = Path(__file__).parent.parent / "fixtures" / "state-v5.bin"
RULES = """
TYPE Order (id INT, buyer STRING, price DECIMAL(10,2), rate DOUBLE, urgent BOOLEAN, note BINARY, at TIMESTAMP) TIME at
TYPE Rush EXTENDS Order (fee DECIMAL(12,4))
TYPE Payment (id BIGINT, payer STRING, amount DECIMAL(14,3), rate DOUBLE, urgent BOOLEAN, due TIMESTAMP, at TIMESTAMP) TIME at
TYPE Refund (id INT, payer STRING, amount DECIMAL(14,3), rate DOUBLE, urgent BOOLEAN, at TIMESTAMP) TIME at
TYPE Tick ()
EVENT UNION Money = Payment + Refund
SUBSCRIPTION Keys MATCH Order o AND Payment p PER o.buyer = p.payer, o.price = p.amount, rate, urgent WITHIN 1 DAY
SUBSCRIPTION Moments MATCH Payment p[3] PER due, rate MATCHING RECENT CONTIGUOUS DISPOSAL INFIX
SUBSCRIPTION Unpaid MATCH Order o WITHOUT Payment p WITHIN 2 HOURS OF o PER id EMIT Reminder (id = o.id, rate = o.rate)
SUBSCRIPTION Pairs MATCH Order o THEN Payment p WITHOUT Refund r BETWEEN o AND p WHERE r.id = o.id AND o.price < p.amount
SUBSCRIPTION Twice MATCH Reminder r[5] WHERE r[1].id < r[5].id
SUBSCRIPTION Either MATCH (Order o AND Refund r) OR (Money m[3]) WHERE o.buyer = r.payer AND m[1].rate < m[2].rate
    DISPOSAL FIRST PREFIX
SUBSCRIPTION Low MATCH Order o AND Tick t[4] WHERE o.price < 5
SUBSCRIPTION High MATCH Order o AND Tick t[4] WHERE o.price >= 5
"""
DAY = "2026-01-01T"


def _order(
    id: int | None, buyer: str | None, price: str | None, rate: float | None, urgent: bool | None, at: str, **more: Any
) -> Any:
    made = {
        "type": "Order",
        "id": id,
        "buyer": buyer,
        "price": price,
        "rate": rate,
        "urgent": urgent,
        "note": None,
        "at": DAY + at,
    }
    return made | more


def _payment(
    id: int | None, payer: str | None, amount: str | None, rate: float | None, urgent: bool | None, at: str, **more: Any
) -> Any:
    made = {"type": "Payment", "id": id, "payer": payer, "amount": amount, "rate": rate, "urgent": urgent, "at": DAY + at}
    return made | {"due": "2026-02-01T00:00:00Z"} | more


NAN = float("nan")
BEFORE: list[dict[str, Any]] = [
    _order(1, "ä", "10.00", 0.5, True, "00:00:00Z", note=b"\x00\xff", _source="web", _sequence=1),
    _order(2, "b", "3.50", -0.0, False, "00:10:00Z", _source="web", _sequence=2),
    {"type": "Tick"},
    _payment(9, "b", "3.250", 0.0, False, "00:20:00Z", _source="bank"),
    _order(3, None, None, NAN, None, "00:30:00Z", note=b""),
    _order(4, "日本", "99999999.99", 1e300, True, "00:40:00Z", type="Rush", fee="0.1250"),
    _payment(1, "ä", "8.000", 0.5, True, "01:00:00Z"),
    {"type": "Refund", "id": 4, "payer": "b", "amount": "1.000", "rate": NAN, "urgent": None, "at": DAY + "01:10:00Z"},
    {"type": "Heartbeat", "at": DAY + "02:35:00Z"},
    _order(5, "", "0.00", -1.5, False, "02:20:00Z", _source="web", _sequence=7),
    _payment(5, "c", None, -1.5, False, "02:30:00Z", due=None),
    _payment(7, "c", "4.000", -0.0, False, "02:40:00Z", due="2026-03-01T00:00:00Z"),
    {"type": "Tick", "_sequence": 12},
    _order(6, "c", "7.00", 2.0, True, "03:00:00Z"),
    {"type": "Refund", "id": 6, "payer": "c", "amount": "7.000", "rate": None, "urgent": True, "at": DAY + "03:05:00Z"},
]
AFTER: list[dict[str, Any]] = [
    _payment(11, "b", "3.500", 0.0, False, "03:10:00Z"),
    {"type": "Refund", "id": 6, "payer": "", "amount": "1.000", "rate": 3.0, "urgent": True, "at": DAY + "03:20:00Z"},
    {"type": "Tick"},
    _payment(12, "日本", "99999999.990", 1e300, True, "03:30:00Z", due="2026-03-01T00:00:00Z"),
    {"type": "Tick"},
    _payment(13, "d", "120000000.000", 9.0, True, "03:40:00Z", due="2026-03-01T00:00:00Z"),
    _order(8, "d", "1.00", 0.5, True, "06:00:00Z"),
    {"type": "Tick"},
    {"type": "Tick"},
    {"type": "Heartbeat", "at": DAY + "09:00:00Z"},
]


def plan() -> Plan:
    return fairlead.compile(RULES)


def fed(engine: Engine, events: list[dict[str, Any]], start: int) -> list[Relation]:
    return [each for columns in read_events(events, engine.plan.catalogue, start=start) for each in engine.feed(columns)]


def engine_before(kernels_from: int | None = None) -> Engine:
    engine = Engine(plan(), kernels_from=kernels_from)
    fed(engine, BEFORE, 0)
    return engine


if __name__ == "__main__":
    FIXTURE.write_bytes(engine_before().dump())
