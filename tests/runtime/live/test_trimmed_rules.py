"""Trimming takes nothing from those who have read: rules of every kind deliver what they deliver over a log that keeps all.

Two logs are given the same events in pieces. One of them is trimmed after each piece, behind what its subscribers have read or
by a size that leaves a few blocks. Two subscribers resume from their states after each piece, one of them only after every
second; one stays, and one joins late, by the others' state.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import fairlead
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from tests.runtime.live.reading import more
from tests.transport.log.logs import URLS, run

START = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = " ".join(f"TYPE {name} (k INT, n INT, at TIMESTAMP) TIME at" for name in "ABC")
TOPICS = {"one topic": "", "topics": "TOPIC a (A, C) TOPIC b (B)"}
RULES = {
    "pairs": "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k",
    "a disjunction": "SUBSCRIPTION S MATCH A a AND B b OR C c AND B b WHERE a.k = b.k",
    "absences": "SUBSCRIPTION S MATCH A a WITHOUT C c WITHIN 2 SECONDS OF a PER k",
    "routes": "SUBSCRIPTION S MATCH A a THEN C c WHERE a.k = 1 AND c.k = 1",
    "derived events": """
SUBSCRIPTION S MATCH A a THEN C c PER k EMIT D (k = a.k, n = c.n)
SUBSCRIPTION T MATCH D d WITHOUT C c WITHIN 1 SECONDS OF d""",
    "event time": "ORDER BY at DELAY 1 SECONDS SUBSCRIPTION S MATCH A a THEN B b PER k SUBSCRIPTION T MATCH C c[2]",
    "revisions": """
ORDER BY at DELAY 1 SECONDS LATE REVISE WITHIN 3 SECONDS
SUBSCRIPTION S MATCH A a THEN B b WITHOUT C c BETWEEN a AND b PER k""",
}
PIECES, EVENTS = 5, 16
Seen = tuple[str, int, tuple[int, ...]]


def seen(relation: Relation) -> Seen:
    return relation.subscription, relation.sign, tuple(each["n"] for each in relation.members)


def piece_of(rolls: random.Random, number: int) -> list[tuple[str, dict[str, Any]]]:
    """Times run back by up to 3 seconds."""
    made = []
    for n in range(number * EVENTS, (number + 1) * EVENTS):
        at = START + timedelta(seconds=n / 5 + 10 - rolls.choice((0, 0, 0, 0.5, 3)))
        made.append((rolls.choice("ABC"), {"k": rolls.randrange(2), "n": n, "at": at}))
    return made


async def publish(fl: Client, piece: list[tuple[str, dict[str, Any]]], number: int) -> None:
    for name, event in piece:
        await fl.publish(name, event, wait=True)
    await fl.publish("Heartbeat", {"at": START + timedelta(seconds=(number + 1) * EVENTS / 5 + 8)}, wait=True)


async def resumed(fl: Client, rules: str, name: str, start: str = "earliest") -> list[Seen]:
    async with fl.subscribe(rules, name=name, start=start) as sub:
        found = [seen(each) for each in await more(sub)]
        await sub.ack()
        return found


async def trim(fl: Client, rolls: random.Random) -> int:
    """How many blocks are removed: all that was read, or all but a few."""
    if rolls.random() < 0.5:
        return sum(each.trimmed for each in await fl.retain(apply=True, read=True))
    for topic in await fl._registry.all_topics():
        await fl.declare(f"TOPIC {topic} KEEP {rolls.choice((1, 500, 3000))} B")
    count = sum(each.trimmed for each in await fl.retain(apply=True))
    for topic in await fl._registry.all_topics():
        await fl.declare(f"TOPIC {topic} KEEP ALL")
    return count


def by_subscription(found: list[Seen]) -> dict[str, list[Seen]]:
    return {name: [each for each in found if each[0] == name] for name in sorted({each[0] for each in found})}


@pytest.mark.sampled
@pytest.mark.parametrize("layout", TOPICS)
@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("url", URLS)
def test_trimming_takes_nothing_from_those_who_have_read(url: str | None, kind: str, layout: str) -> None:
    rolls = random.Random(f"{kind} {layout}")
    rules = RULES[kind]

    async def work() -> None:
        async with (
            fairlead.connect(url, source="p") as small,
            fairlead.connect("memory:", source="p") as whole,
        ):
            got: list[dict[str, list[Seen]]] = []
            for fl in (small, whole):
                await fl.declare(f"{TOPICS[layout]} {TYPES}")
                got.append({"close": [], "late": [], "joined": [], "stays": []})
            removed = 0
            async with small.subscribe(rules, start="earliest") as one, whole.subscribe(rules, start="earliest") as other:
                for number in range(PIECES):
                    piece = piece_of(rolls, number)
                    for fl, sub, mine in ((small, one, got[0]), (whole, other, got[1])):
                        await publish(fl, piece, number)
                        mine["stays"] += map(seen, await more(sub))
                        mine["close"] += await resumed(fl, rules, "close")
                        if number % 2 == 0:
                            mine["late"] += await resumed(fl, rules, "late")
                        if number >= 2:
                            mine["joined"] += await resumed(fl, rules, "joined", "snapshot")
                    if number % 2 == 0:  # all of them have read everything
                        removed += await trim(small, rolls)
            assert removed > 10
            assert len(got[1]["close"]) > 5
            for name in ("close", "late"):
                assert by_subscription(got[0][name]) == by_subscription(got[0]["stays"]), name
            if url == "memory:" or layout == "one topic" or "ORDER BY" in rules:  # else each server has its order of topics
                for name, found in got[0].items():
                    assert by_subscription(found) == by_subscription(got[1][name]), name

    run(work)


@pytest.mark.sampled
@pytest.mark.parametrize("layout", TOPICS)
@pytest.mark.parametrize("order", ["DELAY 1 SECONDS", "DELAY 1 SECONDS LATE REVISE WITHIN 1 SECONDS"])
@pytest.mark.parametrize("url", URLS)
def test_a_subscriber_that_repeats_reports_resumes_behind_what_is_trimmed(url: str | None, order: str, layout: str) -> None:
    """It resumes from an older state than one without reports: nothing after that is trimmed because it was read, and a policy
    that trims it names the subscriber."""
    rolls = random.Random(f"{order} {layout}")
    rules = f"ORDER BY at {order} SUBSCRIPTION S MATCH A a THEN B b PER k SUBSCRIPTION T MATCH C c[2] WHERE c[1].n < 20"

    async def work() -> None:
        async with fairlead.connect(url, source="p") as fl:
            await fl.declare(f"{TOPICS[layout]} {TYPES}")
            got, reports, removed = list[Seen](), set[tuple[Any, ...]](), 0
            for number in range(PIECES):
                await publish(fl, piece_of(rolls, number), number)
                async with fl.subscribe(rules, name="desk", start="earliest", verdicts=True) as sub:
                    told = await more(sub)
                    await sub.ack()
                got += [seen(each) for each in told if isinstance(each, Relation)]
                reports |= {report_of(each) for each in told if isinstance(each, fairlead.EventReport)}
                if number < PIECES - 1:
                    removed += sum(each.trimmed for each in await fl.retain(apply=True, read=True))
            assert removed > 5
            whole, late = list[Seen](), set[tuple[Any, ...]]()
            async with fairlead.connect("memory:", source="p") as other:
                await other.declare(f"{TOPICS[layout]} {TYPES}")
                again = random.Random(f"{order} {layout}")
                for number in range(PIECES):
                    await publish(other, piece_of(again, number), number)
                async with other.subscribe(rules, start="earliest", verdicts=True) as sub:
                    told = await more(sub)
                whole += [seen(each) for each in told if isinstance(each, Relation)]
                late |= {report_of(each) for each in told if isinstance(each, fairlead.EventReport)}
            assert (by_subscription(got), reports) == (by_subscription(whole), late)
            assert len(late) > 3
            for topic in await fl._registry.all_topics():
                await fl.declare(f"TOPIC {topic} KEEP 1 B")
            assert {each.behind for each in await fl.retain() if each.trimmed} == {("desk",)}

    run(work)


def report_of(report: fairlead.EventReport) -> tuple[Any, ...]:
    return report.verdict, report.subscriptions, report.event.type, report.event.sequence
