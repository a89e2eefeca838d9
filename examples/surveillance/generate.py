"""Makes the trading day that the surveillance example runs on: market.parquet and planted.json, the same on every run.

    python examples/surveillance/generate.py

Six hours, 40 symbols, 400 accounts. Most of the day is honest. Into it are planted abusive episodes of four kinds, and near
misses: episodes that break exactly one condition of a rule, so that a rule that is too wide shows itself. planted.json
lists both, with the positions of the events that a rule has to name.

Only `Random.random` and `math.log` are used: Python promises the sequence of the first for a seed, and results are rounded
to cents and microseconds. Episodes are made from the day's plan alone; nothing here knows the rules or runs them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
SEED = 20260302
OPEN_US = int(datetime(2026, 3, 2, 9, 30, tzinfo=UTC).timestamp()) * 1_000_000
SECOND = 1_000_000
DAY = 6 * 3600 * SECOND
ORDERS = 51_000
LARGE = 5_000
"""Shares. Honest orders below it may be cancelled at any time; honest large orders rest for at least eight seconds."""

SYMBOLS = tuple(
    first + vowel + ("QZ", "XK", "ZV", "JX")[(at + turn) % 4]
    for at, first in enumerate("BDKLMRTV")
    for turn, vowel in enumerate("AEIOU")
)
ACCOUNTS = tuple(f"A{number:03}" for number in range(1, 401))
REPEATERS, FAR_APART, SINGLE = ACCOUNTS[20:26], ACCOUNTS[60:62], ACCOUNTS[100:106]
WALK_STEP = 10 * SECOND

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("order_id", pa.int64()),
        ("trade_id", pa.int64()),
        ("account", pa.string()),
        ("symbol", pa.string()),
        ("side", pa.string()),
        ("price", pa.float64()),
        ("quantity", pa.int32()),
        ("buyer", pa.string()),
        ("seller", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass(frozen=True)
class Episode:
    """Something planted. `serials` are the events of its relation in signature order (types by name)."""

    kind: str
    account: str
    symbol: str
    serials: tuple[int, ...]
    note: str
    near_miss: bool = False


@dataclass
class Day:
    """The events in the making, each with the time at which the venue's feed hands it on."""

    random: Random
    events: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    orders: int = 0
    trades: int = 0

    def __post_init__(self) -> None:
        self.walks = [self._walk(20 + 4 * at) for at in range(len(SYMBOLS))]

    # --- chance

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.random.random()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, choices: Sequence[str], skew: float = 1.0) -> str:
        """With a skew above 1, the early ones more often."""
        return choices[int(len(choices) * self.random.random() ** skew)]

    def _walk(self, start: float) -> list[float]:
        prices, price = [], float(start)
        for _ in range(DAY // WALK_STEP + 100):
            price *= 1 + 0.0012 * (self.random.random() + self.random.random() - 1)
            prices.append(price)
        return prices

    def mid(self, symbol: str, at: int) -> float:
        return self.walks[SYMBOLS.index(symbol)][max(0, at) // WALK_STEP]

    # --- events; `at` is in microseconds since the opening

    def add(self, type_: str, at: int, after: int | None = None, **values: Any) -> int:
        """Feeds are a little late, some more than others: that is the day's small disorder. But what answers an order
        comes `after` it. One event in twenty has its time in whole milliseconds, as some venues stamp them."""
        stamped = at // 1000 * 1000 if self.chance(0.05) else at
        serial = len(self.events)
        arrival = at + int(-800 * math.log(1 - self.random.random()))
        if after is not None:
            arrival = max(arrival, self.events[after][0] + 1)
        self.events.append((arrival, serial, {"type": type_, **values, "at": OPEN_US + stamped}))
        return serial

    def order(
        self,
        at: int,
        account: str,
        symbol: str,
        side: str,
        quantity: int,
        ack_ms: float | None = None,
        ticks: int | None = None,
    ) -> tuple[int, int, float]:
        """An order and its acknowledgement (none where ack_ms is negative): the serial, the id and the price."""
        self.orders += 1
        away = int(4 * self.random.random()) if ticks is None else ticks
        price = round(self.mid(symbol, at) + (-0.01 if side == "BUY" else 0.01) * away, 2)
        number = self.orders
        serial = self.add(
            "Order", at, order_id=number, account=account, symbol=symbol, side=side, price=price, quantity=quantity
        )
        delay = 1 - 12 * math.log(1 - self.random.random()) if ack_ms is None else ack_ms
        if delay >= 0:
            self.add("Acknowledge", at + int(delay * 1000), serial, order_id=number, symbol=symbol)
        return serial, number, price

    def cancel(self, at: int, number: int, account: str, symbol: str) -> int:
        return self.add("Cancel", at, order_id=number, account=account, symbol=symbol)

    def trade(self, at: int, symbol: str, buyer: str, seller: str, price: float, quantity: int) -> int:
        self.trades += 1
        return self.add(
            "Trade",
            at,
            trade_id=self.trades,
            symbol=symbol,
            buyer=buyer,
            seller=seller,
            price=round(price, 2),
            quantity=quantity,
        )

    def counterparty(self, account: str) -> str:
        other = self.pick(ACCOUNTS, 1.6)
        return other if other != account else ACCOUNTS[(ACCOUNTS.index(other) + 1) % len(ACCOUNTS)]


def honest(day: Day) -> None:
    """Orders that are acknowledged and then trade, are cancelled, or rest until the end."""
    for at in sorted(int(DAY * busy(day.random.random())) for _ in range(ORDERS)):
        account, symbol = day.pick(ACCOUNTS, 1.6), day.pick(SYMBOLS, 1.4)
        side = "BUY" if day.chance(0.5) else "SELL"
        large = day.chance(0.015)
        quantity = 100 * int(day.between(50, 150) if large else 1 + 19 * day.random.random() ** 3)
        _, number, price = day.order(at, account, symbol, side, quantity)
        fate = day.random.random()
        if fate < 0.42:
            later = at + int(day.between(0.2, 25) * SECOND)
            other = day.counterparty(account)
            buyer, seller = (account, other) if side == "BUY" else (other, account)
            day.trade(later, symbol, buyer, seller, price, max(100, quantity // 200 * 100))
            if day.chance(0.1):  # the rest is filled by somebody else in the same instant: times tie
                rest = day.counterparty(account)
                buyer, seller = (account, rest) if side == "BUY" else (rest, account)
                day.trade(later, symbol, buyer, seller, price, max(100, quantity // 400 * 100))
        elif fate < 0.62:
            day.cancel(at + int(day.between(8 if large else 0.2, 90) * SECOND), number, account, symbol)


def busy(u: float) -> float:
    """A uniform number to a share of the day: half evenly, half towards the opening and the close."""
    x = 2 * u - 1
    return 0.5 * u + 0.5 * (0.5 + 0.5 * math.copysign(abs(x) ** 0.6, x))


def spoof(day: Day, at: int, account: str, near_miss: str = "") -> None:
    """Large orders on one side, a small trade on the other, and the large orders are gone within seconds."""
    symbol, side = day.pick(SYMBOLS), "BUY" if day.chance(0.5) else "SELL"
    layers = 1 + int(4 * day.random.random())
    placed = [
        day.order(at + 40_000 * layer, account, symbol, side, 100 * int(day.between(60, 180)), ticks=3 + layer)
        for layer in range(layers)
    ]
    traded_at = at + int(day.between(0.6, 1.8) * SECOND)
    own_is_seller = (side == "BUY") != (near_miss == "same side")
    parties = (day.counterparty(account), account) if own_is_seller else (account, day.counterparty(account))
    _, _, price = placed[0]
    trade = day.trade(traded_at, symbol, *parties, price, 100 * int(day.between(1, 9)))
    wait = day.between(9, 20) if near_miss == "cancelled late" else day.between(0.4, 1.6)
    gone_at = traded_at + int(wait * SECOND)
    cancels = [day.cancel(gone_at + 30_000 * layer, number, account, symbol) for layer, (_, number, _) in enumerate(placed)]
    note = near_miss or (f"{layers} layers" if layers > 1 else "one order")
    day.episodes.append(Episode("Spoofing", account, symbol, (cancels[0], placed[0][0], trade), note, bool(near_miss)))


def wash(day: Day, at: int, near_miss: str = "") -> None:
    """Two accounts sell each other the same shares at the same price: volume without a change of owner."""
    symbol, one = day.pick(SYMBOLS), day.pick(ACCOUNTS)
    other = day.counterparty(one)
    price, quantity = day.mid(symbol, at), 100 * int(day.between(10, 60))
    back = day.between(150, 400) if near_miss == "minutes later" else day.between(4, 50)
    first = day.trade(at, symbol, one, other, price, quantity)
    parties = (one, other) if near_miss == "same direction" else (other, one)
    second_price = price * 1.02 if near_miss == "another price" else price + (0.01 if day.chance(0.3) else 0)
    second = day.trade(at + int(back * SECOND), symbol, *parties, second_price, quantity)
    day.episodes.append(Episode("WashTrade", one, symbol, (first, second), near_miss or f"with {other}", bool(near_miss)))


def unacknowledged(day: Day, at: int, near_miss: str = "") -> None:
    """An order that the venue never answers; the near miss is answered late, but in time."""
    account, symbol = day.pick(ACCOUNTS), day.pick(SYMBOLS)
    quantity = 100 * int(day.between(1, 20))
    serial, _, _ = day.order(at, account, symbol, "BUY", quantity, ack_ms=day.between(1500, 1950) if near_miss else -1)
    day.episodes.append(Episode("Unacknowledged", account, symbol, (serial,), near_miss or "no answer", bool(near_miss)))


def plant(day: Day) -> None:
    minute = 60 * SECOND
    for at, account in enumerate(REPEATERS):  # twice within the hour; the first of them once more in the afternoon
        for start in (20, 250) if at == 0 else (35 + 45 * at,):
            begin = int((start + day.between(0, 8)) * minute)
            spoof(day, begin, account)
            spoof(day, begin + int(day.between(6, 40) * minute), account)
    for account in FAR_APART:
        for start in (40, 190):
            spoof(day, int((start + day.between(0, 20)) * minute), account)
    for at, account in enumerate(SINGLE):
        spoof(day, int((25 + 52 * at + day.between(0, 20)) * minute), account)
    for near_miss in ("same side", "cancelled late"):
        for at in range(8):
            spoof(day, int((10 + 42 * at + day.between(0, 30)) * minute), ACCOUNTS[200 + at], near_miss)
    for at in range(20):
        wash(day, int((6 + 17 * at + day.between(0, 12)) * minute))
    for near_miss in ("minutes later", "another price", "same direction"):
        for at in range(6):
            wash(day, int((10 + 55 * at + day.between(0, 40)) * minute), near_miss)
    for at in range(14):
        unacknowledged(day, int((4 + 24 * at + day.between(0, 20)) * minute))
        unacknowledged(day, int((4 + 24 * at + day.between(0, 20)) * minute), "slow answer")


def market() -> tuple[pa.Table, list[dict[str, Any]]]:
    """The events in the order of the feed, and what was planted among them."""
    day = Day(Random(SEED))
    honest(day)
    plant(day)
    ordered = sorted(day.events)
    records = _numbered([record for _, _, record in ordered])
    position = {serial: at for at, (_, serial, _) in enumerate(ordered)}
    table = pa.table({name: _column(records, name) for name in SCHEMA.names}, schema=SCHEMA)
    return table, _planted(day.episodes, position, records)


def _numbered(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ids in the order of the feed, so that an id says nothing about how its order was made."""
    for name, start in (("order_id", 7_000_000), ("trade_id", 9_000_000)):
        numbers: dict[int, int] = {}
        for record in records:
            if name in record:
                record[name] = start + numbers.setdefault(record[name], len(numbers))
    return records


def _column(records: list[dict[str, Any]], name: str) -> pa.Array:
    values = [record.get(name) for record in records]
    field_type = SCHEMA.field(name).type
    return pa.array(values, pa.int64()).cast(field_type) if name == "at" else pa.array(values, field_type)


def _planted(episodes: list[Episode], position: dict[int, int], records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The episodes by time. `decided_at` is the position by which a subscriber can know."""
    listed = []
    for each in episodes:
        positions = [position[serial] for serial in each.serials]
        decided = max(positions)
        if each.kind == "Unacknowledged":
            deadline = records[decided]["at"] + 2 * SECOND
            decided = next(at for at in range(decided, len(records)) if records[at]["at"] > deadline)
        listed.append(_described(each.kind, each.account, each.symbol, positions, decided, each.note, each.near_miss))
    spoofed = sorted((each for each in listed if each["kind"] == "Spoofing" and not each["near_miss"]), key=_decided_at)
    for account in REPEATERS:
        alerts = [each["decided_at"] for each in spoofed if each["account"] == account]
        for first, second in zip(alerts[::2], alerts[1::2], strict=True):
            derived = [f"{first}+1", f"{second}+1"]
            listed.append(_described("RepeatOffender", account, None, derived, second, "twice within the hour", False))
    return sorted(listed, key=_decided_at)


def _described(*values: Any) -> dict[str, Any]:
    return dict(zip(("kind", "account", "symbol", "positions", "decided_at", "note", "near_miss"), values, strict=True))


def _decided_at(described: dict[str, Any]) -> tuple[int, str]:
    return described["decided_at"], described["kind"]


def write(table: pa.Table, planted: list[dict[str, Any]], folder: Path) -> None:
    delta = dict.fromkeys(("order_id", "trade_id", "at"), "DELTA_BINARY_PACKED")
    named = ["type", "account", "symbol", "side", "price", "quantity", "buyer", "seller"]
    path = folder / "market.parquet"
    pq.write_table(table, path, compression="zstd", compression_level=15, use_dictionary=named, column_encoding=delta)
    lines = ",\n  ".join(json.dumps(each) for each in planted)
    (folder / "planted.json").write_text(f'{{"seed": {SEED}, "events": {table.num_rows}, "episodes": [\n  {lines}\n]}}\n')


if __name__ == "__main__":
    made, episodes = market()
    write(made, episodes, HERE)
    print(f"{made.num_rows:,} events, {sum(not each['near_miss'] for each in episodes)} episodes planted")
