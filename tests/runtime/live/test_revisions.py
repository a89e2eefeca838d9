"""LATE REVISE and AHEAD live: deliveries and revisions fold to what sorting the accepted events gives.

Publishers are generated whose times run back, within the delay, within the time for revisions, and further; some events are
ahead of the log's clock. They publish in one topic or in several, in blocks of any size. Subscribers are there before, come in
the middle and after; some are killed and resume from their state. All of them get the same deliveries with the same receipts,
and the same reports on events at the same places.

The definition of what is accepted is written out here, event by event, over the exported file.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.deliver.fold import remaining
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.model.events.verdict import EventReport, EventVerdict
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.transport.log.protocol import Log
from tests.runtime.live.reading import more
from tests.runtime.live.test_topics import client
from tests.transport.log.logs import KINDS, a_log, run

TYPES = " ".join(f"TYPE {name} (k INT, at TIMESTAMP) TIME at" for name in "ABC")
TOPICS = {
    "one topic": "",
    "two topics": "TOPIC a (A, C) TOPIC b (B)",
    "three topics": "TOPIC a (A) TOPIC b (B) TOPIC c (C)",
}
RULES = """
SUBSCRIPTION Pair MATCH A a THEN B b PER k
SUBSCRIPTION Chain MATCH A a THEN B b THEN C c PER k EMIT D (k = a.k)
SUBSCRIPTION Quiet MATCH A a WITHOUT B b WITHIN 2 SECONDS OF a WHERE b.k = a.k
SUBSCRIPTION Either MATCH A a[2] OR C c WHERE c.k = 1
"""
NAMES = ("Pair", "Chain", "Quiet", "Either")
SEEDS = {"memory": 4, "file": 1, "server": 1}
CASES = [
    pytest.param(kind, seed, marks=marks)
    for kind, marks, seed in (
        (each if isinstance(each, str) else each.values[0], () if isinstance(each, str) else each.marks, seed)
        for each in KINDS
        for seed in range(SEEDS[each if isinstance(each, str) else str(each.values[0])])
    )
]
SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Order:
    """An ORDER BY clause, as the test understands it."""

    delay: timedelta
    revise: timedelta | None
    ahead: timedelta | None

    def __str__(self) -> str:
        text = f"ORDER BY at DELAY {int(self.delay.total_seconds() * 1000)} MILLISECONDS"
        text += "" if self.ahead is None else f" AHEAD {int(self.ahead.total_seconds())} SECONDS"
        return text + (
            "" if self.revise is None else f" LATE REVISE WITHIN {int(self.revise.total_seconds() * 1000)} MILLISECONDS"
        )

    @classmethod
    def drawn(cls, seed: int) -> Order:
        delay = (SECOND, 0 * SECOND, SECOND / 2, 3 * SECOND)[seed % 4]
        return cls(delay, None if seed % 4 == 3 else 2 * SECOND, 60 * SECOND if seed % 2 else None)

    def verdicts(self, rows: list[dict[str, Any]]) -> list[EventVerdict]:
        """Of each row in the order of the log."""
        frontier, found = datetime.min.replace(tzinfo=UTC), []
        for row in rows:
            verdict, at = EventVerdict.IN_ORDER, row["at"]
            if self.ahead is not None and at > row["_stored"] + self.ahead:
                verdict = EventVerdict.AHEAD
            elif at.year > 1:  # readers that wait for a quiet topic store heartbeats of the year 1
                if row["type"] != "Heartbeat" and at < frontier and (self.revise is None or at < frontier - self.revise):
                    verdict = EventVerdict.LATE
                frontier = max(frontier, at - self.delay + (row["type"] == "Heartbeat") * timedelta(microseconds=1))
            found.append(verdict)
        return found


@dataclass
class Heard:
    """What a subscriber was given: deliveries and reports, and its receipts."""

    relations: list[Relation] = field(default_factory=list)
    sequence: list[tuple[str, ...]] = field(default_factory=list)
    receipts: dict[str, Any] = field(default_factory=dict)

    def take(self, given: list[Any]) -> None:
        for each in given:
            if isinstance(each, EventReport):
                origin = (str(each.event.source), str(each.event.sequence))
                self.sequence.append((each.verdict.value, *each.subscriptions, *origin))
            else:
                self.relations.append(each)
                self.sequence.append((str(each.sign), each.id))

    def of(self, name: str) -> list[Relation]:
        """The fold of the deliveries of one subscription."""
        mine = [each for each in self.relations if each.subscription == name]
        return [mine[at] for at in remaining(delivery_words(mine)).tolist()] if mine else []


def drawn(rolls: random.Random, order: Order, start: datetime) -> list[dict[str, Any]]:
    """Events in the order of their publishing."""
    made = []
    for number in range(rolls.randint(60, 130)):
        lag = rolls.choice((0, 0, 0, 0.3, 0.9, 1.5, 2.4, 6))
        at = start + (number / 10 + 10 - lag) * SECOND
        if order.ahead is not None and rolls.random() < 0.05:
            at += timedelta(days=1)
        made.append({"type": rolls.choice("ABC"), "k": rolls.randrange(3), "at": at})
    return made


async def publish(log: Log, events: list[dict[str, Any]], rolls: random.Random) -> None:
    """By two publishers in turns, each some at a time, in one block or in several."""
    clients = [await client(log, f"p{at}", rolls, lost=False).__aenter__() for at in range(2)]
    at = 0
    while at < len(events):
        count = rolls.choice((1, 1, 2, 5, 9))
        await rolls.choice(clients).publish_all(events[at : at + count], wait=True)
        at += count
    for each in clients:
        await each.__aexit__(None)


@pytest.mark.sampled
@pytest.mark.parametrize("layout", TOPICS)
@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_deliveries_and_revisions_fold_to_the_sorted_events(kind: str, seed: int, layout: str, tmp_path: Path) -> None:
    rolls, order = random.Random(f"{kind} {seed} {layout}"), Order.drawn(seed)
    text = f"{TOPICS[layout]} {TYPES} {order} {RULES}"
    start = datetime.now(UTC) - timedelta(hours=1)

    async def work() -> None:
        async with a_log(kind) as log, client(log, "main", rolls, lost=False) as fl:
            await fl.declare(f"{TOPICS[layout]} {TYPES}")
            fl._shared.times.every_events = 40
            heard: list[Heard] = []
            over = asyncio.Event()

            async def follow() -> None:
                mine = Heard()
                async with fl.subscribe(text, start="earliest", verdicts=True) as sub:
                    while not over.is_set():
                        mine.take(await more(sub))
                        await asyncio.sleep(0)
                    mine.take(await more(sub))
                    mine.receipts = dict(sub.receipts)
                    counts = sub.verdict_counts
                heard.append(mine)
                assert counts == Counter(EventVerdict(each[0]) for each in mine.sequence if len(each) > 2)

            events, resumed = drawn(rolls, order, start), Heard()
            followers = [asyncio.create_task(follow())] if rolls.random() < 0.7 else []
            cuts = sorted(rolls.sample(range(len(events)), 3))
            for low, high in zip([0, *cuts], [*cuts, len(events)], strict=True):
                await publish(log, events[low:high], rolls)
                await killed(fl, text, resumed, rolls)
                if rolls.random() < 0.4:
                    followers.append(asyncio.create_task(follow()))
            async with client(log, "p0", rolls, lost=False) as one:
                for minutes in (20, 21):  # the second releases the first
                    await one.publish("Heartbeat", {"at": start + timedelta(minutes=minutes)}, wait=True)
            over.set()
            await asyncio.gather(*followers, follow())
            await killed(fl, text, resumed, None)
            await compared(fl, text, order, heard, resumed, tmp_path)

    run(work)


async def killed(fl: Client, text: str, heard: Heard, rolls: random.Random | None) -> None:
    """A durable subscriber that acknowledges some of what it is given, and is gone."""
    async with fl.subscribe(text, name="durable", start="earliest") as sub:
        found = await more(sub)
        if rolls is not None and found:
            found = found[: rolls.randint(1, len(found))]
            await sub.ack(found[-1])
        else:
            await sub.ack()
        heard.take(found)
        heard.receipts = dict(sub.receipts)


async def compared(fl: Client, text: str, order: Order, heard: list[Heard], resumed: Heard, folder: Path) -> None:
    first, plan = heard[0], fairlead.compile(text)
    assert len(first.relations) > 20
    assert any(each.sign < 0 for each in first.relations) == (order.revise is not None)
    for each in heard:
        assert each.sequence == first.sequence
        assert each.receipts == first.receipts
    for name in NAMES:
        rows, expected = await sorted_relations(fl, text, plan, order, name, folder)
        assert len(expected) > 0
        assert [each.id for each in resumed.of(name)] == [each.id for each in first.of(name)]
        assert sorted(each.id for each in first.of(name)) == sorted(each.id for each in expected)
        told = [each for each in first.sequence if len(each) > 2 and each[1] == name]
        wanted = zip(rows, order.verdicts(rows), strict=True)
        assert told == [
            (verdict.value, name, row["_source"], str(row["_sequence"]))
            for row, verdict in wanted
            if verdict is not EventVerdict.IN_ORDER and row["type"] != "Heartbeat"
        ]
    assert await fl.compare("durable", "durable")
    assert {key: each.digest for key, each in (await fl.receipts("durable")).items()} == {
        key: each.digest for key, each in first.receipts.items()
    }
    stored = await rows_of_derived(fl, folder)
    assert Counter(stored) == Counter(each.emitted["k"] for each in first.of("Chain"))


async def sorted_relations(
    fl: Client, text: str, plan: Plan, order: Order, name: str, folder: Path
) -> tuple[list[dict[str, Any]], tuple[Relation, ...]]:
    """The exported events of a subscription, and the relations of those that are accepted."""
    path = folder / f"{name}.parquet"
    await fl.export(text, path, subscription=name)
    table = pq.read_table(path)
    rows = table.to_pylist()
    taken = [verdict is EventVerdict.IN_ORDER for verdict in order.verdicts(rows)]
    return rows, fairlead.match(plan, table.filter(pa.array(taken))).of(name)


async def rows_of_derived(fl: Client, folder: Path) -> list[int]:
    path = folder / "derived.parquet"
    await fl.export("SUBSCRIPTION S MATCH D d", path)
    return [row["k"] for row in pq.read_table(path).to_pylist() if row["type"] == "D"]


def told_of(found: list[Any]) -> list[tuple[str, ...]]:
    heard = Heard()
    heard.take(found)
    return heard.sequence


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(4))
def test_reports_come_at_least_once_and_only_those_after_the_last_acknowledged_delivery_again(seed: int) -> None:
    """A durable subscriber is killed again and again, in the middle of what it was given, with snapshots in between."""
    rolls, order = random.Random(seed), Order.drawn(seed)
    layout = TOPICS[rolls.choice(sorted(TOPICS))]
    text = f"{layout} {TYPES} {order} SUBSCRIPTION Chain MATCH A a THEN B b THEN C c PER k"
    start = datetime.now(UTC) - timedelta(hours=1)

    async def work() -> None:
        async with a_log("memory") as log, client(log, "main", rolls, lost=False) as fl:
            await fl.declare(f"{layout} {TYPES}")
            fl._shared.times.every_events = 10
            events, given, acknowledged = drawn(rolls, order, start), list[tuple[int, list[tuple[str, ...]]]](), 0
            for low in range(0, len(events), 15):
                await publish(log, events[low : low + 15], rolls)
                async with fl.subscribe(text, start="earliest") as ahead:  # its snapshots serve the other one
                    await more(ahead)
                async with fl.subscribe(text, name="durable", start="earliest", verdicts=True) as sub:
                    found = await more(sub)
                    given.append((acknowledged, told_of(found)))
                    relations = [each for each in found if isinstance(each, Relation)]
                    if relations and rolls.random() < 0.7:
                        taken = rolls.randint(1, len(relations))
                        await sub.ack(relations[taken - 1])
                        acknowledged += taken
            async with fl.subscribe(text, start="earliest", verdicts=True) as sub:
                whole = told_of(await more(sub))
            assert sum(len(each) > 2 for each in whole) > 2
            deliveries = [at for at, each in enumerate(whole) if len(each) == 2]
            for before, told in given:
                first = deliveries[before - 1] + 1 if before else 0
                assert told == whole[first : first + len(told)]
            assert first + len(told) == len(whole)

    run(work)
