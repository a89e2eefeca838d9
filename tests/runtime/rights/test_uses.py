"""What users with exactly the rights of a policy do: rules in event time, routes, a gateway, logins by key and by hash."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import nkeys  # type: ignore[import-untyped]
import pytest

import fairlead
from fairlead.errors import FairleadError, LogError
from fairlead.runtime.live.client import Client
from fairlead.runtime.rights.apply import apply
from fairlead.runtime.rights.policy import policy_of
from fairlead.runtime.rights.server_config import server_config
from fairlead.transport.log.jetstream.server import Server
from fairlead.web.gateway import Settings
from fairlead.web.serving import gateway
from tests.runtime.live.reading import ids, more, rows_of
from tests.transport.log.logs import run
from tests.web.served import Asker, sse

pytestmark = pytest.mark.server

START = datetime(2026, 1, 1, tzinfo=UTC)
HASH = "$2b$04$ObMYaApRtRqwQipejNwFi.FEK3KX9GUWvPlUgXCOD83e47QwhC6AG"
TYPES = (
    "TOPIC a (A, Seen) TOPIC c (C) TYPE A (k INT, at TIMESTAMP) TIME at TYPE C (k INT, at TIMESTAMP) TIME at TYPE Seen (k INT)"
)
POLICY = """
users:
  boss: {{password: $PASSWORD, manage: true}}
  shop: {{password: '{hash}', publish: [a, c], sources: [shop]}}
  desk: {{nkey: {key}, subscribe: [a, c], names: [desk], heartbeat: true}}
  emitter: {{password: $PASSWORD, subscribe: [c], emit: [a.Seen]}}
  web: {{password: $PASSWORD, gateway: true}}
"""


@asynccontextmanager
async def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Client, Client, Client, str]]:
    """The boss, the shop and the desk; the url."""
    monkeypatch.setenv("PASSWORD", "pass")
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    (folder / "desk.nk").write_bytes(seed)
    policy = policy_of(POLICY.format(hash=HASH, key=nkeys.from_seed(bytearray(seed)).public_key.decode()))
    with Server(folder / "log", durable=False, more=server_config(policy)) as server:
        async with (
            fairlead.connect(server.url, user="boss", password="pass", source="boss") as boss,
        ):
            await boss.declare(TYPES)
            await apply(boss.log, policy)
            async with (
                fairlead.connect(server.url, user="shop", password="pass", source="shop") as shop,
                fairlead.connect(server.url, nkey=str(folder / "desk.nk"), source="desk") as desk,
            ):
                yield boss, shop, desk, server.url


async def publish(shop: Client, numbers: range) -> None:
    """Times run back by two seconds and a half, from one topic to the other."""
    for number in numbers:
        for name, back in (("C", 0.0), ("A", 2.5)):
            at = START + timedelta(seconds=10 + number - back)
            await shop.publish(name, k=number % 2, at=at, wait=True)


@pytest.mark.parametrize(
    "rules",
    [
        "ORDER BY at DELAY 3 SECONDS SUBSCRIPTION S MATCH A a THEN C c PER k",
        "ORDER BY at DELAY 1 SECONDS LATE REVISE WITHIN 1 MINUTES SUBSCRIPTION S MATCH A a THEN C c PER k",
        "SUBSCRIPTION S MATCH A a THEN A b WHERE a.k = 1 AND b.k = 1",
        "SUBSCRIPTION S MATCH A a AND C c PER k",
    ],
    ids=["event time", "revisions", "a route", "a merged stream"],
)
def test_a_subscriber_gets_what_the_manager_gets(rules: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (boss, shop, desk, _):
            await publish(shop, range(6))
            found = []
            for numbers in (range(6, 12), range(12, 14)):
                async with desk.subscribe(rules, name="desk", start="earliest") as sub:
                    await publish(shop, numbers)
                    found += ids(await more(sub))
                    await sub.ack()
            async with boss.subscribe(rules, start="earliest") as sub:
                assert ids(await more(sub)) == found
            assert len(found) > 2

    run(work)


def test_events_are_derived_into_a_topic_that_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subscriber that returns continues after what it has stored, and reads from where it began: it has no states."""
    rules = "SUBSCRIPTION S MATCH C c EMIT Seen (k = c.k)"

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (boss, shop, _, url):
            for number in range(3):
                await shop.publish("C", k=number, at=START, wait=True)
                async with fairlead.connect(url, user="emitter", password="pass", source="emitter") as emitter:
                    async with emitter.subscribe(rules, name="emitter", start="earliest") as sub:
                        found = await more(sub)
                        assert [each.events[0]["k"] for each in found] == [number]
                        await sub.ack()
                    with pytest.raises(LogError, match="N003"):
                        await rows_of(emitter, "Seen")
                with pytest.raises(LogError, match="N003"):
                    async with fairlead.connect(url, user="emitter", password="pass", source="emitter") as emitter:
                        await emitter.publish("Seen", k=7, wait=True)
                assert [each["k"] for each in await rows_of(boss, "Seen")] == list(range(number + 1))

    run(work)


def test_many_events_without_waiting_and_mixed_blocks_arrive_and_receipts_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = "SUBSCRIPTION S MATCH A a AND C c PER k"

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (boss, shop, desk, _):
            for number in range(500):
                await shop.publish("AC"[number % 2], k=number // 2, at=START + timedelta(seconds=number))
            await shop.flush()
            await shop.publish_all([{"type": "A", "k": 900, "at": START}, {"type": "Seen", "k": 900}], wait=True)
            found = []
            for fl, name in ((boss, "boss"), (desk, "desk")):
                async with fl.subscribe(rules, name=name, start="earliest") as sub:
                    found.append(ids(await more(sub)))
                    await sub.ack()
            assert found[0] == found[1]
            assert len(found[0]) == 250
            assert (await boss.compare("boss", "desk")).equal

    run(work)


def test_logins_by_key_and_by_hash_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (_, _, _, url):
            with pytest.raises(LogError, match="N003"):
                async with fairlead.connect(url, nkey=str(tmp_path / "desk.nk"), source="desk") as again:
                    await again.publish("A", k=1, at=START, wait=True)
            other = tmp_path / "other.nk"
            other.write_bytes(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER))
            for given in ({"nkey": str(other)}, {"user": "shop", "password": "Pass"}, {"user": "shop", "password": HASH}):
                with pytest.raises(LogError, match=r"N00[23]"):
                    async with fairlead.connect(url, patience=3, **given):  # type: ignore[arg-type]
                        pass

    run(work)


def test_a_gateway_publishes_and_delivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With states, which a gateway may save; a second one continues."""

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (_, _, _, url):
            monkeypatch.setenv("FAIRLEAD_USER", "web")
            monkeypatch.setenv("FAIRLEAD_PASSWORD", "pass")
            seen: list[str] = []
            for number in range(2):
                async with (
                    gateway(url, Settings()) as address,
                    aiohttp.ClientSession(address) as session,
                ):
                    asker = Asker(session, url)
                    rules = "SUBSCRIPTION S MATCH A a AND C c PER k"
                    status, _ = await asker.post("/subscriptions", {"name": "page", "rules": rules, "start": "earliest"})
                    assert status in (200, 201)
                    for name in "AC":
                        event = {"type": name, "k": number, "at": START.isoformat()}
                        assert (await asker.post("/events", [event]))[0] == 202
                    async with session.get("/subscriptions/page/events") as response:
                        async for found in sse(response):
                            if "data" in found:
                                seen.append(found.relation["id"])
                                await asker.post("/subscriptions/page/acknowledgements", {"id": found["id"]})
                                break
            assert len({*seen}) == 2

    run(work)


@pytest.mark.parametrize("count", [2, 4, 5, 7])
def test_a_subscriber_of_many_topics_reads_each_and_all_together(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream of all topics is made of that of all but the last, and so on: readers look up there what was copied."""
    monkeypatch.setenv("PASSWORD", "pass")
    names = "abcdefg"[:count]
    policy = policy_of(
        f"""
        users:
          boss: {{password: $PASSWORD, manage: true}}
          desk: {{password: $PASSWORD, subscribe: [{", ".join(names)}]}}
        """
    )
    types = " ".join(f"TOPIC {each} ({each.upper()}) TYPE {each.upper()} (k INT)" for each in names)
    whole = " AND ".join(f"{each.upper()} {each}" for each in names)

    async def work() -> None:
        with Server(tmp_path, durable=False, more=server_config(policy)) as server:
            async with (
                fairlead.connect(server.url, user="boss", password="pass", source="boss") as boss,
                fairlead.connect(server.url, user="desk", password="pass", source="desk") as desk,
            ):
                await boss.declare(types)
                await apply(boss.log, policy)
                for number in range(3):
                    for each in names:
                        await boss.publish(each.upper(), k=number, wait=True)
                for pattern in (whole, *(each.upper() for each in names)):
                    found = []
                    for fl in (boss, desk):
                        async with fl.subscribe(f"SUBSCRIPTION S MATCH {pattern}", start="earliest") as sub:
                            found.append(ids(await more(sub)))
                    assert found[0] == found[1]
                    assert len(found[0]) == 3

    run(work)


def test_a_subscriber_that_returns_after_a_removal_is_told_what_the_manager_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many blocks of a topic follow a place in a merged stream is counted without a consumer."""
    rules = "SUBSCRIPTION S MATCH A a AND C c PER k"

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (boss, shop, desk, _):
            await publish(shop, range(6))
            for fl in (boss, desk):
                stream = await fl.log.open_topics(["a", "c"])
                last = await fl.log.last(stream)
                while last < 12:  # the server merges without telling
                    last = await fl.log.last(stream)
                for topic in "ac":
                    assert [await fl.log.count(stream, after, topic) for after in (0, 12)] == [6, 0]
            middle = await boss.log.count(await boss.log.open_topics(["a", "c"]), 5, "a")
            assert await desk.log.count(await desk.log.open_topics(["a", "c"]), 5, "a") == middle
            for name, fl in (("desk", desk), ("boss", boss)):
                async with fl.subscribe(rules, name=name, start="earliest") as sub:
                    first = (await more(sub))[0]
                    await sub.ack(first)
            await boss.log.trim(await boss.log.open_topics(["a"]), 5)
            problems = []
            for name, fl in (("desk", desk), ("boss", boss)):
                with pytest.raises(FairleadError) as told:
                    async with fl.subscribe(rules, name=name, start="earliest") as sub:
                        await more(sub)
                problems.append(told.value.code)
            assert problems[0] == problems[1]

    run(work)


def test_streams_that_users_may_not_create_are_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while nobody uses them; those of users that the policy has no more are."""

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (boss, shop, desk, _):
            await publish(shop, range(3))
            await boss.sweep()
            async with desk.subscribe("SUBSCRIPTION S MATCH A a AND C c PER k", start="earliest") as sub:
                assert len(await more(sub)) == 3
            await apply(boss.log, policy_of("users: {desk: {subscribe: [a], password: $PASSWORD}}"))
            await boss.sweep()
            assert await boss.log.merged() == []

    run(work)
