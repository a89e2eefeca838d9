"""A topic into the log and relations out to a topic, each once, through restarts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fairlead
from fairlead.errors import DataError, LogError, UsageError
from fairlead.runtime.kafka.inward import Topic, bring_in
from fairlead.runtime.kafka.outward import Outlet, send_out
from fairlead.runtime.live.client import Client
from fairlead.transport.log.tasks import ended
from tests.runtime.kafka.mock import Kafka
from tests.web.served import run

RULES = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k"
TYPES = "TYPE A (k INT, x INT); TYPE B (k INT, x INT)"


def topic(kafka: Kafka, **more: Any) -> Topic:
    return Topic(kafka.brokers, "orders", "A", {}, **{"until_end": True} | more)


async def keys(fl: Client, count: int) -> list[int]:
    """The `k` of events of A, in the order of the log."""
    found = []
    async with fl.subscribe("SUBSCRIPTION All MATCH A a", start="earliest") as sub:
        async for relation in sub:
            found.append(relation.members[0].row[0])
            if len(found) == count:
                extra = await sub.next_within(0.2)
                assert extra is None
                return found
    raise AssertionError


def test_a_topic_is_taken_once_through_restarts_and_kills() -> None:
    async def work() -> None:
        kafka = Kafka()
        kafka.topic("orders")
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            kafka.send("orders", [{"k": n, "x": 0} for n in range(100)], 0)
            assert await bring_in(fl, topic(kafka), asyncio.Event()) == 100
            assert await bring_in(fl, topic(kafka), asyncio.Event()) == 0
            kafka.send("orders", [{"k": n, "x": 0} for n in range(100, 120)], 0)
            kafka.send("orders", [{"k": n, "x": 0} for n in range(1000, 1050)], 1)
            for _ in range(5):  # cut off wherever it is
                task = asyncio.create_task(bring_in(fl, topic(kafka, until_end=False), asyncio.Event()))
                await asyncio.sleep(0.15)  # a moment that no event marks
                await ended(task)
            await bring_in(fl, topic(kafka), asyncio.Event())
            found = await keys(fl, 170)
            assert [k for k in found if k < 1000] == list(range(120))
            assert [k for k in found if k >= 1000] == list(range(1000, 1050))

    run(work)


def test_cloudevents_and_messages_that_are_bad() -> None:
    async def work() -> None:
        kafka = Kafka()
        kafka.topic("orders")
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "com.example.A", "data": {"k": 1, "x": 1}}
            kafka.send("orders", [event], headers=[("content-type", b"application/cloudevents+json")])
            binary = [(f"ce_{name}", value.encode()) for name, value in event.items() if isinstance(value, str)]
            kafka.send("orders", [{"k": 2, "x": 2}], headers=binary)
            kafka.send("orders", [{"k": 3, "x": 3}, {"k": "four"}, b"{", None, {"type": "B", "k": 1, "x": 1}, {"k": 5, "x": 5}])
            with pytest.raises(DataError, match="D004 topic 'orders', partition 0, offset 3"):
                await bring_in(fl, topic(kafka), asyncio.Event())
            assert await keys(fl, 3) == [1, 2, 3]
            left_out: list[DataError] = []
            assert await bring_in(fl, topic(kafka, skip=left_out.append), asyncio.Event()) == 1
            assert [str(each.place)[-8:] for each in left_out] == [f"offset {n}" for n in (3, 4, 5, 6)]
            assert [each.code for each in left_out] == ["D004", "D011", "D009", "D026"]
            assert await keys(fl, 4) == [1, 2, 3, 5]
            with pytest.raises(DataError, match="D001"):
                await bring_in(fl, Topic(kafka.brokers, "orders", "Z", {}), asyncio.Event())

    run(work)


def test_what_kafka_does_not_have_any_more_is_said() -> None:
    async def work() -> None:
        one, other = Kafka(), Kafka()
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            one.topic("orders")
            other.topic("orders")
            one.send("orders", [{"k": n, "x": 0} for n in range(5)])
            assert await bring_in(fl, topic(one), asyncio.Event()) == 5
            with pytest.raises(LogError, match="N031"):
                await bring_in(fl, topic(other), asyncio.Event())
            assert await bring_in(fl, topic(other, source="other"), asyncio.Event()) == 0
            with pytest.raises(UsageError, match="A280"):
                await bring_in(fl, Topic(one.brokers, "orders", "A", {"enable.auto.commit": "true"}), asyncio.Event())

    run(work)


def test_relations_are_sent_once_though_the_acknowledgement_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        kafka = Kafka()
        kafka.topic("alarms")
        outlet = Outlet(kafka.brokers, "alarms", {})
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            for low in range(0, 30, 10):
                for name in "AB":
                    await fl.publish_many(name, {"k": list(range(low, low + 10)), "x": [0] * 10}, wait=True)
                async with fl.subscribe(RULES, name="out", start="earliest") as sub:
                    if low == 10:  # all is sent, and then the process dies

                        async def lost(done: object = None) -> None:
                            raise asyncio.CancelledError

                        monkeypatch.setattr(sub, "ack", lost)
                    stop = asyncio.Event()
                    task = asyncio.create_task(send_out(sub, outlet, stop))
                    if low != 10:
                        await asyncio.to_thread(kafka.received, "alarms", low + 10)
                        stop.set()
                    await asyncio.wait({task}, timeout=15)
                    assert task.done()
            found = await asyncio.to_thread(kafka.received, "alarms", 30)
            async with fl.subscribe(RULES, start="earliest") as sub:
                wanted = [await sub.next_within(5) for _ in range(30)]
            assert [each.key().decode() for each in found] == [each.id for each in wanted if each]
            assert json.loads(found[7].value()) == wanted[7].to_json() if wanted[7] else False
            kafka.topic("foreign")
            kafka.send("foreign", [{"k": 1}])
            async with fl.subscribe(RULES, name="other") as sub:
                with pytest.raises(UsageError, match="A282"):
                    await send_out(sub, Outlet(kafka.brokers, "foreign", {}), asyncio.Event())

    run(work)


REVISING = """
TYPE A (k INT, x INT, at TIMESTAMP) TIME at TYPE B (k INT, x INT, at TIMESTAMP) TIME at
"""
SILENT = """
ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 1 HOUR
SUBSCRIPTION Silent MATCH A a WITHOUT B b WITHIN 5 SECONDS OF a PER k EMIT Silence (k = a.k)
"""


@pytest.mark.parametrize("what", ["relations", "cloudevents", "emitted"])
def test_relations_that_are_taken_back_are_distinguished(what: str) -> None:
    async def work() -> None:
        kafka, stop = Kafka(), asyncio.Event()
        kafka.topic("silence")
        async with fairlead.connect("memory:") as fl:
            await fl.declare(REVISING)
            at = "2026-01-01T00:00:{:02}Z".format
            for name, second in (("A", 1), ("A", 20), ("A", 30), ("B", 3), ("A", 50)):  # B is late: it takes the first one back
                await fl.publish(name, k=1, x=0, at=at(second), wait=True)
            async with fl.subscribe(SILENT, name="out", start="earliest", emit=False) as sub:
                task = asyncio.create_task(send_out(sub, Outlet(kafka.brokers, "silence", {}, what=what), stop))
                found = await asyncio.to_thread(kafka.received, "silence", 3)
                stop.set()
                await task
        assert [dict(each.headers())["fairlead_sign"] for each in found] == [b"1", b"-1", b"1"]
        keys = [each.key() for each in found]
        assert keys[0] == keys[1] != keys[2]
        told = [json.loads(each.value()) for each in found]
        if what == "cloudevents":
            assert [each["type"] for each in told] == ["fairlead.relation", "fairlead.retraction", "fairlead.relation"]
            assert len({each["id"] for each in told}) == 3
            told = [each["data"] for each in told]
        if what == "emitted":
            assert told == [{"k": 1}] * 3
        else:
            assert [each.get("sign", 1) for each in told] == [1, -1, 1]

    run(work)


def test_the_commands(tmp_path: Path) -> None:
    async def work() -> None:
        kafka = Kafka()
        kafka.topic("orders")
        kafka.topic("alarms")
        kafka.send("orders", [{"k": n, "x": 0} for n in range(3)])
        (tmp_path / "rules.fl").write_text("SUBSCRIPTION S MATCH A a")

        def command(*arguments: str, stop: bool = False) -> tuple[int, str]:
            main = [sys.executable, "-c", "from fairlead.cli.main import main; main()", "kafka", *arguments]
            with subprocess.Popen(main, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
                if stop:
                    assert len(kafka.received("alarms", 3)) == 3
                    process.send_signal(signal.SIGTERM)
                output, _ = process.communicate(timeout=40)
            return process.returncode, output

        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            common = ("--brokers", kafka.brokers, "--url", fl.url)
            into = ("in", *common, "--topic", "orders", "--type", "A", "--until-end")
            assert await asyncio.to_thread(command, *into) == (0, "3 events stored\n")
            assert await asyncio.to_thread(command, *into) == (0, "0 events stored\n")
            out = ("out", str(tmp_path / "rules.fl"), *common, "--topic", "alarms", "--name", "out", "--start", "earliest")
            assert await asyncio.to_thread(command, *out, stop=True) == (0, "3 messages sent\n")
            status, output = await asyncio.to_thread(command, "in", "--brokers", "x:1", "--topic", "t", "--type", "A")
            if "FAIRLEAD_URL" not in os.environ:
                assert (status, output[:4]) == (2, "A290")

    run(work)
