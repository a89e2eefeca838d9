"""Random sequences of events for orders by event time, and what becomes of them by definition: event by event, with all that
came before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

import fairlead
from fairlead.dataclass import dataclass
from fairlead.engine import Engine
from fairlead.model.events.columns import Columns
from fairlead.model.events.values import microseconds
from fairlead.model.events.verdict import EventVerdict
from fairlead.runtime.sorting import AllFresh, in_total_order
from fairlead.transport.admission.records import RecordReader

START = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = (
    "TYPE A (k INT, x INT, at TIMESTAMP) TIME at TYPE B (k INT, x INT, at TIMESTAMP) TIME at "
    "TYPE C (k INT, x INT, at TIMESTAMP) TIME at "
)
PLANS = {
    "pairs": "SUBSCRIPTION S MATCH A a THEN B b",
    "keys": "SUBSCRIPTION S MATCH A a THEN B b PER k WITHIN 4 SECONDS",
    "recent": "SUBSCRIPTION S MATCH A a AND B b MATCHING RECENT PER k SUBSCRIPTION T MATCH C c[2] DISPOSAL PREFIX INFIX",
    "between": "SUBSCRIPTION S MATCH A a THEN B b WITHOUT C c BETWEEN a AND b PER k",
    "absence": "SUBSCRIPTION S MATCH A a WITHOUT B b WITHIN 2 SECONDS OF a PER k",
    "chain": (
        "SUBSCRIPTION S MATCH A a THEN B b EMIT D (k = a.k, x = b.x) "
        "SUBSCRIPTION T MATCH D d AND C c WITHOUT B b WITHIN 2 SECONDS OF d EMIT E (k = d.k) SUBSCRIPTION U MATCH E e[2]"
    ),
    "runs": (
        "SUBSCRIPTION S MATCH A a+ THEN B b WHERE a.x <= b.x HAVING count(DISTINCT a.x) >= 2 PER k WITHIN 6 SECONDS "
        "EMIT D (k = b.k, n = count(a)) SUBSCRIPTION T MATCH D d AND C c* SUBSCRIPTION U MATCH A a{3,} PER k"
    ),
    "rows": (
        "SUBSCRIPTION S MATCH A a+ NEXT (B b ELSE C c) WHERE a.x >= prev(a.x) PER k WITHIN 6 SECONDS "
        "EMIT D (k = first(a.k), n = count(a)) SUBSCRIPTION T MATCH D d THEN C c+ SHORTEST "
        "SUBSCRIPTION U MATCH A a+ LONGEST WITHIN 2 SECONDS OF PREVIOUS PER k"
    ),
    "steps": (
        "SUBSCRIPTION S MATCH A a{2,} NEXT B b+ THEN C c WHERE a.x >= prev(a.x) AND b.x != last(a.x) PER k "
        "DISPOSAL FIRST PREFIX LIMIT 9 "
        "SUBSCRIPTION T MATCH (A a NEXT (B b ELSE C c)?)+ LONGEST WITHIN 4 SECONDS MATCHING STEPWISE DISPOSAL UPTO LAST a "
        "EMIT D (k = last(a.k), n = count(a)) SUBSCRIPTION U MATCH D d* UNTIL d.n > 2 THEN B b WITHIN 3 SECONDS"
    ),
    "buckets": (
        "SUBSCRIPTION S MATCH A a+ HAVING count(a) >= 2 PER k, bucket(at, 4 SECONDS) "
        "EMIT D (k = first(a.k), n = count(a)) "
        "SUBSCRIPTION T MATCH A a AND B b PER bucket(at, 3 SECONDS), k DISPOSAL INFIX LIMIT 1 PER KEY "
        "SUBSCRIPTION U MATCH D d AND C c PER k "
        "SUBSCRIPTION V MATCH C c[2] MATCHING ALL DISPOSAL NONE PER bucket(at, 5 SECONDS)"
    ),
    "bounds": (
        "SUBSCRIPTION S MATCH A a+ THEN B b HAVING count(DISTINCT a.x) >= 2 PER k RETAIN a 4 EVENTS DISPOSAL FIRST PREFIX "
        "SUBSCRIPTION T MATCH A a AND B b MATCHING ALL DISPOSAL NONE RETAIN a 2 EVENTS BATCH, b 2 SECONDS PER k "
        "SUBSCRIPTION U MATCH A a AND C c MATCHING RECENT KEEP a RETAIN a 3 SECONDS BATCH, c 2 EVENTS LIMIT 9"
    ),
    "tables": (
        "TABLE Last KEY (k) FROM A TABLE Rows KEY (x, k) FROM B "
        "SUBSCRIPTION S MATCH C c AND Last a WHERE a.k = c.k EMIT D (k = c.k, x = a.x) "
        "SUBSCRIPTION T MATCH A a AND Last p AND Rows r WHERE p.x = r.x AND a.x > p.x MATCHING ALL PER k "
        "SUBSCRIPTION U MATCH B b+ THEN C c AND Rows r WHERE r.x >= b.x HAVING sum(b.x) > 2 SUBSCRIPTION V MATCH D d AND Rows r"
    ),
    "timers": (
        "TABLE Last KEY (k) FROM B "
        "SUBSCRIPTION S MATCH A a AND Last l AFTER 1 SECOND OF a PER k MATCHING RECENT "
        "EMIT D (k = a.k, x = l.x, day = cast(a.at - 8640 SECONDS * a.x AS DATE)) "
        "SUBSCRIPTION T MATCH D d AFTER 2 SECONDS OF d CLOCK BY C PER day EMIT E (k = d.k, day = d.day) "
        "SUBSCRIPTION U MATCH E e THEN B b WHERE cast(b.at AS DATE) >= e.day AFTER 1 SECOND OF b AFTER 3 SECONDS OF e LIMIT 9 "
        "SUBSCRIPTION V MATCH (A a[2]) OR (C c) WITHOUT B n WITHIN 2 SECONDS OF a[1] AFTER 3 SECONDS OF a[2] "
        "MATCHING ALL DISPOSAL NONE WITHIN 4 SECONDS"
    ),
    "either": "SUBSCRIPTION S MATCH A a THEN B b OR C c THEN A a WHERE a.x < 3",
}
Record = dict[str, Any]


@cache
def compiled(text: str) -> fairlead.Plan:
    return fairlead.compile(text)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def sequence(random: Random, count: int, late: float = 0.3, sourced: float = 0.7) -> list[Record]:
    """Times that rise with steps back, ties, heartbeats, events with and without a source, equal ones, repeats."""
    made: list[Record] = []
    now = 10.0
    for number in range(count):
        now += random.choice((0, 0, 0.5, 1, 1, 2))
        if random.random() < 0.08:
            made.append({"type": "Heartbeat", "at": at(now - random.choice((0, 0, 2, 5)))})
            continue
        behind = random.choice((0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 12)) if random.random() < late else 0
        event: Record = {"type": random.choice("AABBC"), "k": random.randrange(2), "x": random.randrange(4)}
        event["at"] = at(now - behind)
        if random.random() < sourced:
            event |= {"_source": random.choice("pq"), "_sequence": number}
        made.append(event)
        if random.random() < 0.1 and len(made) > 3:
            made.append(dict(random.choice(made[-8:])))  # a repeat, or an equal event
    return made


@dataclass(frozen=True)
class Judged:
    """By definition: the verdict on each event (None: a heartbeat without effect), and whether it is late and takes part."""

    verdicts: list[EventVerdict | None]
    late: list[bool]

    def accepted(self, records: Sequence[Record]) -> list[Record]:
        return [each for each, verdict in zip(records, self.verdicts, strict=True) if verdict is EventVerdict.IN_ORDER]


def judged(plan: fairlead.Plan, records: Sequence[Record], stored: Sequence[datetime] | None = None) -> Judged:
    """One event after the other, with all that came before it."""
    order = plan.order
    assert order is not None
    microsecond = timedelta(microseconds=1)
    frontier, revised = datetime.min.replace(tzinfo=UTC), (order.revise_us or 0) * microsecond
    verdicts: list[EventVerdict | None] = []
    late: list[bool] = []
    ends: dict[Any, datetime] = {}
    known: set[tuple[Any, ...]] = set()
    for number, each in enumerate(records):
        beat, verdict = each["type"] == "Heartbeat", EventVerdict.IN_ORDER
        late.append(False)
        if stored is not None and order.ahead_us is not None and each["at"] > stored[number] + order.ahead_us * microsecond:
            verdicts.append(None if beat else EventVerdict.AHEAD)
            continue
        identity = (each["type"], each.get("_source"), each.get("_sequence"), *(str(each.get(k)) for k in order.names))
        if each["at"] < frontier:
            if beat:
                verdict = None  # type: ignore[assignment]
            elif order.revise_us is None or each["at"] < frontier - revised:
                verdict = EventVerdict.LATE
            elif identity in known and each.get("_sequence") is not None:
                verdict = EventVerdict.REPEATED
            else:
                late[-1] = True
        if verdict is EventVerdict.IN_ORDER:
            known.add(identity)
        verdicts.append(verdict)
        bound = each["at"] - (order.delay_us or 0) * microsecond + (microsecond if beat else timedelta(0))
        source = each.get("_source") if order.idle_us is not None else "all"
        ends[source] = max(ends.get(source, bound), bound)
        least, most = min(ends.values()), max(ends.values())
        idle = None if order.idle_us is None else most - order.idle_us * microsecond
        frontier = max(frontier, least if idle is None else max(least, idle))
    return Judged(verdicts, late)


def sorted_columns(plan: fairlead.Plan, records: Sequence[Record]) -> Columns:
    assert plan.order is not None
    return in_total_order(read(plan, records), plan.order, plan.catalogue)


def read(plan: fairlead.Plan, records: Sequence[Record]) -> Iterator[Columns]:
    return iter(RecordReader(plan.catalogue, last_sequences=AllFresh()).read(records))


def batch_ids(plan: fairlead.Plan, records: Sequence[Record], **arguments: Any) -> list[str]:
    """The relations of these events, sorted, in one batch."""
    return [each.id for each in Engine(plan, **arguments).feed(sorted_columns(plan, records))]


def cuts(plan: fairlead.Plan, records: Sequence[Record], random: Random | None) -> Iterator[Columns]:
    """The sequence in batches of random sizes; in one batch if None."""
    reader, low = RecordReader(plan.catalogue, last_sequences=AllFresh()), 0
    while low < len(records):
        size = len(records) if random is None else random.choice((1, 1, 3, 10, 40))
        yield from reader.read(records[low : low + size])
        low += size


def stored_times(records: Sequence[Record], random: Random) -> list[datetime]:
    """When a log would have stored them: a clock that rises, about which the times of events are ahead or behind."""
    return [at(10 + number * 0.75 + random.random()) for number in range(len(records))]


def as_microseconds(stored: Sequence[datetime]) -> list[int]:
    return [microseconds(each) for each in stored]
