"""What a sequence of events delivers by definition (docs/semantics.md, "Order by value" and "Revisions"), literally: after
every event, all events that the frontier has passed are sorted and matched again from the first on.

Nothing of the machines that follow a sequence is used (runtime/event_time, order): the rules are compiled without their ORDER
BY, and `fairlead.match` is given a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import fairlead
from fairlead.dataclass import dataclass

TYPES = "".join(f"TYPE {name} (k INT, x DOUBLE, n INT, at TIMESTAMP) TIME at\n" for name in "ABC")
Record = dict[str, Any]
Label = tuple[int, ...]
"""The attribute `n` of the members of a relation."""
Delivery = tuple[int, str, Label]
"""Sign, subscription, members."""
EARLIEST = datetime.min.replace(tzinfo=UTC)
ROUND, FILE, NEITHER = "round", "file", "neither"
NOTHING = timedelta(0)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class DefinedRule:
    """A subscription, the types that it reads with its upstream, and its text with that of its upstream."""

    name: str
    types: str
    text: str
    declared: str = TYPES


PAIRS = "SUBSCRIPTION Both MATCH A a THEN B b PER k EMIT Pair(k = a.k, n = 1000 * a.n + b.n)\n"
RULES = (
    DefinedRule("Ones", "A", "SUBSCRIPTION Ones MATCH A a WHERE a.k > 0\n"),
    DefinedRule("Both", "AB", PAIRS),
    DefinedRule("Above", "ABC", f"{PAIRS}SUBSCRIPTION Above MATCH Pair p AND C c PER k\n"),
    DefinedRule("Missing", "AC", "SUBSCRIPTION Missing MATCH C c WITHOUT A a WITHIN 2 SECONDS OF c PER k\n"),
    DefinedRule("Quiet", "ABC", "SUBSCRIPTION Quiet MATCH A a THEN B b WITHOUT C c BETWEEN a AND b PER k\n"),
    DefinedRule("Again", "B", "SUBSCRIPTION Again MATCH B b[2] MATCHING RECENT\n"),
    DefinedRule("Either", "ABC", "SUBSCRIPTION Either MATCH A a THEN B b OR C c THEN A a PER k\n"),
)


@dataclass(frozen=True)
class DefinedOrder:
    """`ORDER BY` a time (`clock`) and further keys, of which some descend, with the rest of the statement."""

    keys: tuple[tuple[str, bool], ...] = ()
    delay: timedelta = NOTHING
    idle: timedelta | None = None
    ahead: timedelta | None = None
    revise: timedelta | None = None
    clock: str = "at"

    @property
    def text(self) -> str:
        def millis(length: timedelta) -> str:
            return f"{length // (1000 * MICROSECOND)} MILLISECONDS"

        keys = "".join(f", {name}{' DESC' if descends else ''}" for name, descends in self.keys)
        made = f"ORDER BY {self.clock}{keys} DELAY {millis(self.delay)}"
        made += "" if self.idle is None else f" PER SOURCE IDLE {millis(self.idle)}"
        made += "" if self.ahead is None else f" AHEAD {millis(self.ahead)}"
        return made + ("" if self.revise is None else f" LATE REVISE WITHIN {millis(self.revise)}") + "\n"

    def place(self, record: Record) -> tuple[Any, ...]:
        """Of an event with a source and a sequence; heartbeats are at times of their own."""
        keys = [
            (0, -record[name] if down else record[name]) if record.get(name) is not None else (1,) for name, down in self.keys
        ]
        return self.time(record), *keys, record.get("_source") or "", record.get("_sequence") or 0, record["type"]

    def time(self, record: Record) -> Any:
        return record["at" if record["type"] == "Heartbeat" else self.clock]

    def has_place(self, record: Record) -> bool:
        values = (
            [record.get(name) for name in (self.clock, *(name for name, _ in self.keys))]
            if record["type"] != "Heartbeat"
            else []
        )
        return all(value is not None and value == value for value in values)  # NaN is not equal to itself


@dataclass
class DefinedSequence:
    """Deliveries in order, each with its place: (by, whether it revises, number of the rule); and (position, verdict, rule)."""

    deliveries: list[tuple[tuple[Any, ...], Delivery]]
    verdicts: list[tuple[int, str, str]]
    repeats: Counter[str]
    """By rule, how many events were dropped because one that is held is the same."""

    @property
    def told(self) -> list[Delivery]:
        return [each for _, each in sorted(self.deliveries, key=lambda each: each[0])]

    def of(self, name: str) -> list[Delivery]:
        return [each for each in self.told if each[1] == name]


def rules_text(order: DefinedOrder, rules: Sequence[DefinedRule]) -> str:
    """The rules together, each once."""
    lines = dict.fromkeys(line for each in rules for line in each.text.splitlines(keepends=True))
    return order.text + "".join(lines)


def defined(
    order: DefinedOrder,
    rules: Sequence[DefinedRule],
    records: Sequence[Record],
    rounds: Sequence[int],
    ends: str = ROUND,
    together: bool = False,
) -> DefinedSequence:
    """`records`: events with `_source` and `_sequence`, in the order of the sequence; `_stored`: the time, if AHEAD counts.
    `rounds`: the number of the round of each. `ends`: with the last event, its round has ended (a block, a micro-batch), the
    sequence has ended (a file), or neither has (a state). `together`: the frontier moves between
    rounds only."""
    made = DefinedSequence([], [], Counter())
    names = [line.split()[1] for line in rules_text(order, rules).splitlines()[1:]]
    for each in rules:
        _Follower(order, each, names.index(each.name), made).follow(records, rounds, ends, together)
    return made


def defined_so_far(order: DefinedOrder, rule: DefinedRule, records: Sequence[Record]) -> list[Label]:
    """The relations among all events that take part so far, in their order, whether or not the frontier has passed them: what
    is confirmed and what is early fold to these."""
    one = _Follower(order, rule, 0, DefinedSequence([], [], Counter()))
    for at, record in enumerate(records):
        if one._reads(record):
            one._arrives(at, record, moves=True)
    one.past = sorted([*one.held, *one.late], key=order.place)
    return one._matched()


class _Follower:
    """One rule alone with its upstream."""

    def __init__(self, order: DefinedOrder, rule: DefinedRule, number: int, made: DefinedSequence) -> None:
        self.order, self.rule, self.number, self.made = order, rule, number, made
        self.frontier, self.ends = EARLIEST, dict[Any, datetime]()
        self.held: list[Record] = []
        self.past: list[Record] = []
        self.found: list[Label] = []
        self.late: list[Record] = []
        self.known: set[tuple[Any, ...]] = set()

    def follow(self, records: Sequence[Record], rounds: Sequence[int], ends: str, together: bool) -> None:
        low = 0
        for at, record in enumerate(records):
            is_last = at + 1 == len(records) or rounds[at + 1] != rounds[at]
            if self._reads(record):
                self._arrives(at, record, moves=not together)
            if is_last and together:
                for each in filter(self._counts, records[low : at + 1]):
                    self._move(each)
            self._release((at, False))
            if is_last:
                low = at + 1
                if low < len(records) or ends == ROUND:
                    self._revise((at, True))
        if ends == FILE:
            self._revise((len(records), False))
            self.frontier = datetime.max.replace(tzinfo=UTC)
            self._release((len(records), True))

    def _reads(self, record: Record) -> bool:
        return record["type"] == "Heartbeat" or record["type"] in self.rule.types

    def _counts(self, record: Record) -> bool:
        """Whether it has a place, and is not ahead."""
        if not self._reads(record) or not self.order.has_place(record):
            return False
        at, ahead = self.order.time(record), self.order.ahead
        silent = at == EARLIEST  # a heartbeat of a reader that waits for a topic
        return not silent and not (ahead is not None and "_stored" in record and at > record["_stored"] + ahead)

    def _arrives(self, at: int, record: Record, moves: bool) -> None:
        beat = record["type"] == "Heartbeat"
        identity = (record["type"], *self.order.place(record)) if self.order.has_place(record) else ()
        if not self._counts(record):
            if not beat:
                self._tell(at, "ahead" if self.order.has_place(record) else "rejected")
            return
        if self.order.time(record) >= self.frontier:
            if identity in self.known and not beat:
                self.made.repeats[self.rule.name] += 1
            else:
                self.held.append(record)
            self.known.add(identity)
        elif beat:
            pass
        elif self.order.revise is None or self.order.time(record) < self.frontier - self.order.revise:
            self._tell(at, "late")
        elif identity in self.known:
            self._tell(at, "repeated")
        else:
            self.known.add(identity)
            self.late.append(record)
        if moves:
            self._move(record)

    def _move(self, record: Record) -> None:
        bound = self.order.time(record) - self.order.delay + (MICROSECOND if record["type"] == "Heartbeat" else NOTHING)
        source = record.get("_source") if self.order.idle is not None else None
        self.ends[source] = max(self.ends.get(source, bound), bound)
        least, most = min(self.ends.values()), max(self.ends.values())
        self.frontier = max(self.frontier, least if self.order.idle is None else max(least, most - self.order.idle))

    def _release(self, by: tuple[Any, ...]) -> None:
        passed = [each for each in self.held if self.order.time(each) < self.frontier]
        if not passed:
            return
        self.held = [each for each in self.held if self.order.time(each) >= self.frontier]
        self.past = sorted([*self.past, *passed], key=self.order.place)
        now = self._matched()
        assert now[: len(self.found)] == self.found  # more events at the end only add
        self._deliver(by, 1, now[len(self.found) :])
        self.found = now

    def _revise(self, by: tuple[Any, ...]) -> None:
        if not self.late:
            return
        self.past, self.late = sorted([*self.past, *self.late], key=self.order.place), []
        now = self._matched()
        self._deliver(by, -1, list(_only(self.found, now)))
        self._deliver(by, 1, list(_only(now, self.found)))
        self.found = now

    def _matched(self) -> list[Label]:
        hidden = ("_source", "_sequence", "_stored")
        events = [{name: value for name, value in each.items() if name not in hidden} for each in self.past]
        found = fairlead.match(_plain(self.rule.declared + self.rule.text), events)
        return [tuple(event["n"] for event in each.members) for each in found if each.subscription == self.rule.name]

    def _deliver(self, by: tuple[Any, ...], sign: int, labels: Sequence[Label]) -> None:
        for label in labels:
            self.made.deliveries.append(((*by, self.number, len(self.made.deliveries)), (sign, self.rule.name, label)))

    def _tell(self, at: int, verdict: str) -> None:
        self.made.verdicts.append((at, verdict, self.rule.name))


def _only(mine: Sequence[Label], others: Sequence[Label]) -> Iterator[Label]:
    """Those that the others do not have, in their order."""
    left = Counter(others)
    for each in mine:
        if left[each]:
            left[each] -= 1
        else:
            yield each


@cache
def _plain(text: str) -> fairlead.Plan:
    return fairlead.compile(text)
