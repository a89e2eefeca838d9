"""Derived events are stored once, whoever derives them; absences are decided by heartbeats in the log."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import fairlead
from tests.runtime.live.reading import APART, EMITTING, TYPES, ids, merged, more, publish_some, rows_of, some
from tests.transport.log.logs import run


@pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
@pytest.mark.server
def test_several_equal_subscribers_and_a_restarted_one_store_each_derived_event_once(types: str) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl, fairlead.connect(fl.url) as other:
            await fl.declare(types)
            async with fl.subscribe(EMITTING, name="a", start="earliest") as one:
                async with other.subscribe(EMITTING, name="b", start="earliest") as two:
                    await publish_some(fl, seed=9, rounds=10)
                    found, again = await asyncio.gather(more(one), more(two))
                    assert ids(found) == ids(again)
                    await two.ack(again[3])
                async with other.subscribe(EMITTING, name="b") as two:
                    await publish_some(fl, seed=10, rounds=10)
                    rest, again = await asyncio.gather(more(one), more(two))
            whole = [*found, *rest]
            assert ids(again) == ids(whole[4:])
            rows = await rows_of(fl, "Pair")
            assert rows == [each.emitted for each in whole]
            assert sum(each.startswith("e-") for each in await fl.log.sources("main")) == 1
            async with fl.subscribe("SUBSCRIPTION Next MATCH Pair p WHERE p.total >= 0", start="earliest") as sub:
                assert [each.members[0].values for each in await more(sub)] == rows
            with pytest.raises(fairlead.DataError, match="D008"):
                await fl.publish("Pair", k=1, total=1)

    run(work)


@pytest.mark.parametrize("topics", ["", "TOPIC o (Order); TOPIC p (Payment);"])
@pytest.mark.server
def test_absences_are_decided_by_heartbeats_in_the_log(topics: str) -> None:
    types = "TYPE Order (id INT, at TIMESTAMP) TIME at; TYPE Payment (id INT, at TIMESTAMP) TIME at"
    rules = "SUBSCRIPTION Unpaid MATCH Order o WITHOUT Payment p WITHIN 1 MINUTE OF o WHERE p.id = o.id"

    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(topics + types)
            noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
            async with fl.subscribe(rules, start="earliest") as one, fl.subscribe(rules, start="earliest") as two:
                for number in range(3):
                    await fl.publish("Order", id=number, at=noon + timedelta(seconds=number), wait=True)
                await merged(fl, ["Order", "Payment"], 3)
                await fl.publish("Payment", id=1, at=noon + timedelta(seconds=30), wait=True)
                await merged(fl, ["Order", "Payment"], 4)
                assert await more(one) == []
                await fl.publish("Heartbeat", at=noon + timedelta(minutes=5), wait=True)
                found = await more(one)
                assert [each.members[0]["id"] for each in found] == [0, 2]
                assert ids(await more(two)) == ids(found)

    run(work)


@pytest.mark.server
def test_a_client_that_beats_decides_absences_by_its_clock() -> None:
    types = "TYPE Ping (id INT, at TIMESTAMP) TIME at; TYPE Pong (id INT, at TIMESTAMP) TIME at"
    rules = "SUBSCRIPTION Lost MATCH Ping i WITHOUT Pong o WITHIN 300 MILLISECONDS OF i WHERE o.id = i.id"

    async def work() -> None:
        async with fairlead.connect(heartbeat=0.1) as fl:
            await fl.declare(types)
            async with fl.subscribe(rules, start="earliest") as sub:
                await fl.publish("Ping", id=7, at=datetime.now(UTC))
                (lost,) = await some(sub, 1)
                assert lost.members[0]["id"] == 7

    run(work)
