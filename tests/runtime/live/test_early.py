"""Early deliveries: at any time they fold to what sorting the events so far gives, and in the end to what is confirmed.

Events, publishers and topics are those of test_revisions.py, and so is the definition of what is accepted.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import fairlead
from fairlead.errors import UsageError
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.early import certain_at_once
from tests.runtime.live.reading import more
from tests.runtime.live.test_revisions import (
    CASES,
    NAMES,
    RULES,
    SECOND,
    TOPICS,
    TYPES,
    Heard,
    Order,
    drawn,
    publish,
    sorted_relations,
)
from tests.runtime.live.test_topics import client
from tests.transport.log.logs import a_log, run

ALARM = "SUBSCRIPTION Alarm MATCH C c WHERE c.k = 1"
ORDERS = (
    Order(3 * SECOND, None, None),
    Order(SECOND, 2 * SECOND, None),
    Order(0 * SECOND, 2 * SECOND, 60 * SECOND),
    Order(3 * SECOND, None, 60 * SECOND),
)


async def release(log: object, start: datetime, rolls: random.Random) -> None:
    async with client(log, "p0", rolls, lost=False) as one:  # type: ignore[arg-type]
        for minutes in (20, 21):  # the second releases the first
            await one.publish("Heartbeat", {"at": start + timedelta(minutes=minutes)}, wait=True)


@pytest.mark.sampled
@pytest.mark.parametrize("layout", TOPICS)
@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_early_deliveries_are_the_sorted_events_so_far(kind: str, seed: int, layout: str, tmp_path: Path) -> None:
    rolls, order = random.Random(f"early {kind} {seed} {layout}"), ORDERS[seed % len(ORDERS)]
    text = f"{TOPICS[layout]} {TYPES} {order} {RULES}"
    plan = fairlead.compile(text)
    start = datetime.now(UTC) - timedelta(hours=1)

    async def agrees(fl: Client, found: list[Relation]) -> None:
        heard = Heard(relations=[each for each in found if each.early])
        for name in NAMES:
            _, expected = await sorted_relations(fl, text, plan, order, name, tmp_path)
            assert sorted(each.id for each in heard.of(name)) == sorted(each.id for each in expected)

    async def work() -> None:
        async with a_log(kind) as log, client(log, "main", rolls, lost=False) as fl:
            await fl.declare(f"{TOPICS[layout]} {TYPES}")
            fl._shared.times.every_events = 30
            events = drawn(rolls, order, start)
            cuts = sorted(rolls.sample(range(10, len(events)), 2))
            async with fl.subscribe(text, start="earliest", early=True) as sub:
                found: list[Relation] = []
                for low, high in zip([0, *cuts], [*cuts, len(events)], strict=True):
                    await publish(log, events[low:high], rolls)
                    found += await more(sub)
                    await agrees(fl, found)
                await release(log, start, rolls)
                found += await more(sub)
                receipts = sub.receipts
            await agrees(fl, found)
            confirmed, early = (
                Heard(relations=[each for each in found if each.early is is_early]) for is_early in (False, True)
            )
            for name in NAMES:
                assert sorted(each.id for each in confirmed.of(name)) == sorted(each.id for each in early.of(name))
            async with fl.subscribe(text, start="earliest") as other:
                assert [each.id for each in await more(other)] == [each.id for each in confirmed.relations]
                assert other.receipts == receipts

    run(work)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
def test_who_resumes_is_given_what_is_open_and_its_corrections(seed: int) -> None:
    """Of the present early relations, then of all that follows: nothing is missing in the end, and nothing remains that is not
    confirmed."""
    rolls, order = random.Random(seed), ORDERS[seed % len(ORDERS)]
    text = f"{TOPICS['two topics']} {TYPES} {order} {RULES}"
    start = datetime.now(UTC) - timedelta(hours=1)

    async def work() -> None:
        async with a_log("memory") as log, client(log, "main", rolls, lost=False) as fl:
            await fl.declare(f"{TOPICS['two topics']} {TYPES}")
            fl._shared.times.every_events = 30
            events = drawn(rolls, order, start)
            cut = rolls.randrange(20, len(events) - 10)
            await publish(log, events[:cut], rolls)
            async with fl.subscribe(text, name="durable", start="earliest", early=True) as sub:
                before = await more(sub)
                await sub.ack()
                early = next(each for each in before if each.early)
                await sub.ack(early)  # changes nothing
            await publish(log, events[cut:], rolls)
            await release(log, start, rolls)
            async with fl.subscribe(text, name="durable", early=True) as sub:
                after = await more(sub)
            confirmed = Heard(relations=[each for each in (*before, *after) if not each.early])
            known = {each.id for each in before if not each.early}
            given = Heard(relations=[each for each in after if each.early])
            for name in NAMES:
                final = {each.id for each in confirmed.of(name)}
                left = {each.id for each in given.of(name) if each.sign == 1}
                assert final <= known | left
                assert left <= final

    run(work)


def test_final_ones_are_only_what_no_other_event_can_change() -> None:
    rolls, order = random.Random(7), Order(3 * SECOND, 2 * SECOND, None)
    text = f"{TYPES} {order} {RULES} {ALARM}"
    start = datetime.now(UTC) - timedelta(hours=1)
    plan = fairlead.compile(text)
    assert [each.name for each in plan.subscriptions if certain_at_once(plan, each)] == ["Alarm"]

    async def work() -> None:
        async with a_log("memory") as log, client(log, "main", rolls, lost=False) as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(text, start="earliest", early="final") as sub:
                await publish(log, drawn(rolls, order, start), rolls)
                found = await more(sub)
                early = [each for each in found if each.early]
                assert {(each.subscription, each.sign) for each in early} == {("Alarm", 1)}
                await release(log, start, rolls)
                found += await more(sub)
            confirmed = [each.id for each in found if not each.early and each.subscription == "Alarm"]
            assert sorted(each.id for each in early) == sorted(confirmed)
            places = [(each.early, each.id) for each in found]
            assert all(places.index((True, each)) < places.index((False, each)) for each in confirmed)

    run(work)


@pytest.mark.parametrize(
    ("rules", "certain"),
    [
        ("MATCH C c WHERE c.k = 1", True),
        ("MATCH C c OR A a", True),
        ("MATCH A a AND B b", False),
        ("MATCH A a[2]", False),
        ("MATCH A a WITHOUT B b WITHIN 1 SECOND OF a", False),
        ("MATCH A a WITHOUT B b BEFORE a", False),
        ("MATCH A a+", False),
        ("MATCH A a LIMIT 2", False),
        ("MATCH A a PER k LIMIT 1 PER KEY", False),
        ("MATCH A a MATCHING ALL LIMIT 1 PER EVENT", True),
        ("MATCH A a WITHIN 1 SECOND", True),
        ("MATCH A a EMIT D (k = a.k)", True),
        ("MATCH A a EMIT D (p = position(a))", False),
    ],
)
def test_what_is_certain_at_once(rules: str, certain: bool) -> None:
    plan = fairlead.compile(f"{TYPES} ORDER BY at DELAY 1 SECOND SUBSCRIPTION S {rules}")
    assert certain_at_once(plan, plan["S"]) is certain


@pytest.mark.parametrize(
    ("order", "certain"), [("at", True), ("TIME", True), ("at, k", True), ("seen", False), ("seen, at", False)]
)
def test_a_window_is_certain_if_the_order_is_that_of_the_times(order: str, certain: bool) -> None:
    text = f"TYPE A (k INT, at TIMESTAMP, seen TIMESTAMP) TIME at ORDER BY {order} DELAY 1 SECOND "
    plan = fairlead.compile(f"{text} SUBSCRIPTION S MATCH A a WITHIN 1 SECOND SUBSCRIPTION T MATCH A a")
    assert certain_at_once(plan, plan["S"]) is certain
    assert certain_at_once(plan, plan["T"])


def test_early_is_one_of_three() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            for wrong in ("yes", 1, None):
                with pytest.raises(UsageError) as caught:
                    fl.subscribe("SUBSCRIPTION S MATCH A a", early=wrong)  # type: ignore[arg-type]
                assert caught.value.code == "A265"

    run(work)
