"""A rule means live what it means on a file: fifty users each fail to log in three times and then succeed, whichever way their
events are published, and whoever reads them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import fairlead
from fairlead.runtime.live.client import Client
from fairlead.transport.log.jetstream.server import Server
from tests.cli.shop import fairlead as command
from tests.cli.shop import write_lines
from tests.runtime.live.reading import ids, more
from tests.transport.log.logs import URLS, run
from tests.web.served import asking

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = "TYPE LoginFailed (u INT, at TIMESTAMP) TIME at TYPE LoginOk (u INT, at TIMESTAMP) TIME at\n"
RULE = "SUBSCRIPTION S MATCH LoginFailed f[3] THEN LoginOk o PER u"
USERS = 50
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def records() -> list[dict[str, Any]]:
    names = ("LoginFailed", "LoginFailed", "LoginFailed", "LoginOk")
    return [
        {"type": name, "u": user, "at": (BEGIN + timedelta(seconds=4 * user + at)).isoformat()}
        for user in range(USERS)
        for at, name in enumerate(names)
    ]


def chunks(size: int) -> Iterator[list[dict[str, Any]]]:
    left = iter(records())
    return iter(lambda: list(islice(left, size)), [])


async def publish(fl: Client, way: str) -> None:
    for each in chunks(200 if way in ("all", "table") else 7 if way == "some" else 1):
        if way == "table":
            rows = [row | {"at": datetime.fromisoformat(row["at"])} for row in each]
            await fl.publish_all(pa.Table.from_pylist(rows))
        elif way in ("all", "some"):
            await fl.publish_all(each)
        elif way == "many":
            await fl.publish_many(each[0]["type"], {"u": [each[0]["u"]], "at": [each[0]["at"]]})
        else:
            await fl.publish(each[0]["type"], u=each[0]["u"], at=each[0]["at"], wait=way == "wait")
    await fl.flush()


@pytest.mark.parametrize("way", ["one", "wait", "many", "some", "all", "table"])
@pytest.mark.parametrize("url", URLS)
def test_in_python_however_they_are_published(url: str | None, way: str) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(RULE, start="earliest") as early:
                await publish(fl, way)
                async with fl.subscribe(RULE, start="earliest") as late:
                    found = ids(await more(early))
                    assert len(found) == USERS
                    assert ids(await more(late)) == found

    run(work)


@pytest.mark.parametrize("rows", [None, 1, 3, 200])
@pytest.mark.server
def test_by_the_commands_at_every_batch_size(rows: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.fl").write_text(TYPES + RULE)
    write_lines(Path("logins.jsonl"), records())
    with Server(tmp_path / "server", durable=False) as server:
        monkeypatch.setenv("FAIRLEAD_URL", server.url)
        size = () if rows is None else ("--batch-rows", str(rows))
        for arguments in (("declare", "rules.fl"), ("publish", "--from", "logins.jsonl", "-q", *size)):
            done = command(*arguments)
            assert done.exit_code == 0, done.output
        live = command("tail", "rules.fl", "--start", "earliest", "--until-end", "-q").stdout
    file = command("run", "rules.fl", "--events", "logins.jsonl", "--out", "-", "-q").stdout

    def shown(text: str) -> list[Any]:
        return [json.loads(line)["events"] for line in text.splitlines()]

    assert len(shown(file)) == USERS
    assert shown(live) == shown(file)


@pytest.mark.server
def test_through_the_gateway() -> None:
    async def work() -> None:
        async with asking() as asker:
            assert (await asker.post("/types", {"text": TYPES}))[0] == 200
            for each in chunks(37):
                assert (await asker.post("/events", each))[0] == 202
            numbered = [each | {"u": each["u"] + USERS, "_source": "x", "_sequence": n} for n, each in enumerate(records())]
            assert await asker.post("/events", numbered) == (202, {"stored": len(numbered), "repeated": 0})
            assert (await asker.post("/events", numbered))[1] == {"stored": 0, "repeated": len(numbered)}
            async with fairlead.connect(asker.url) as fl, fl.subscribe(RULE, start="earliest") as sub:
                assert len(await more(sub)) == 2 * USERS

    run(work)


@pytest.mark.spark
@pytest.mark.server
def test_on_spark_over_the_log(spark: SparkSession) -> None:
    from fairlead import spark as on_spark

    with fairlead.connect().sync as fl:
        fl.declare(TYPES)
        for each in records():
            fl.publish(each["type"], u=each["u"], at=each["at"])
        fl.flush()
        with fl.subscribe(RULE, start="earliest") as sub:
            live = [relation.id for _ in range(USERS) if (relation := sub.next(timeout=10)) is not None]
        plan = fairlead.compile(TYPES + RULE)
        found = on_spark.match(plan, on_spark.log(spark, fl.url, plan=plan), position="position").toArrow()
    assert found.sort_by("completed_at").column("relation_id").to_pylist() == live
    assert len(live) == USERS


@pytest.mark.parametrize("topics", [1, 2])
@pytest.mark.server
def test_one_publisher_of_each_type_at_a_high_rate_misses_nothing_that_was_stored_in_its_order(topics: int) -> None:
    """Two clients: B's event is published when A's is stored. In one topic no pair is missed. In two, the log decides: then
    the pairs that THEN finds are those of the merged stream, for everyone."""
    pairs = 200

    async def work() -> None:
        async with fairlead.connect(source="a") as a, fairlead.connect(a.url, source="b") as b:
            await a.declare(("TOPIC other (B) " if topics > 1 else "") + "TYPE A (n INT) TYPE B (n INT)")
            rule = "SUBSCRIPTION P MATCH A a THEN B b PER n"
            async with a.subscribe(rule, start="earliest") as early:
                stored = asyncio.Queue[int]()

                async def first() -> None:
                    for n in range(pairs):
                        await a.publish("A", n=n, wait=True)
                        stored.put_nowait(n)

                async def second() -> None:
                    for _ in range(pairs):
                        await b.publish("B", n=await stored.get())
                    await b.flush()

                await asyncio.gather(first(), second())
                found = ids(await more(early))
                async with b.subscribe(rule, start="earliest") as late:
                    assert ids(await more(late)) == found
            assert len(found) == pairs if topics == 1 else len(found) <= pairs

    run(work)


def test_events_before_and_after_a_large_call_keep_their_order() -> None:
    """A call with so many events has blocks of its own."""

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare("TYPE A (n INT) TYPE B (n INT)")
            count = 10_000
            await fl.publish("B", n=0)
            table = {"type": np.where(np.arange(count) % 3, "A", "B"), "n": pa.array(range(1, count + 1), pa.int32())}
            await fl.publish_all(pa.table(table))
            await fl.publish("A", n=count + 1)
            await fl.flush()
            async with fl.subscribe("SUBSCRIPTION S MATCH A a OR B b", start="earliest") as sub:
                found: list[int] = []
                while len(found) < count + 2:
                    found += [each.events[0]["n"] for each in await sub.next_batch()]
                assert found == list(range(count + 2))

    run(work)
