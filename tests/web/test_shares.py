"""Users of one gateway do not keep one another out, and get nothing by asking at the right moment."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

import fairlead
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.registry import LONG as LONG_RULES
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.live.subscriber.match_threads import MatchThreads
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.runtime.numbered import source_name
from fairlead.runtime.rights.policy import PolicyUser, policy_of
from fairlead.web.access.admission import OPERATOR
from fairlead.web.access.rates import SharedRoom
from fairlead.web.gateway import Gateway, Settings
from fairlead.web.handlers import LONG as LONG_BODY
from fairlead.web.metrics import GatewayMetrics
from fairlead.web.streams import sessions as streams
from fairlead.web.streams.sessions import Sessions
from tests.waiting import until
from tests.web.served import Asker, asking, run

pytestmark = pytest.mark.server

POLICY = "users:\n" + "\n".join(
    f"""  {name}:
    token: sha256:{hashlib.sha256(f"t-{name}".encode()).hexdigest()}
    publish: [main.A]
    subscribe: [main]
    sources: {sources}
    names: ["{name}*"]"""
    for name, sources in (("one", '["/shop/7"]'), ("two", '["x-*"]'))
)


def settings(**more: Any) -> Settings:
    return Settings(token="t-operator", policy=policy_of(POLICY), **more)


def as_user(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer t-{name}"}


async def declared(asker: Asker) -> None:
    text = "TYPE A (k INT, x INT); TYPE B (k INT, x INT)"
    assert (await asker.post("/types", {"text": text}, headers=as_user("operator")))[0] == 200


def test_a_type_that_is_declared_meanwhile_needs_its_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at the declarations, of one request."""
    looked, is_behind = list[int](), Registry.is_behind

    async def behind_later(self: Registry, names: Sequence[str]) -> bool:
        looked.append(0)
        return len(looked) > 1 and await is_behind(self, names)

    async def work() -> None:
        async with asking(settings()) as asker, fairlead.connect(asker.url) as other:
            await declared(asker)
            assert (await asker.post("/events", {"type": "A", "k": 1, "x": 1}, headers=as_user("one")))[0] == 202
            await other.declare("TYPE Late (k INT)")
            monkeypatch.setattr(Registry, "is_behind", behind_later)
            for event in ({"type": "Late", "k": 1}, {"type": "Late", "k": 1, "_source": "/shop/7", "_sequence": 1}):
                status, error = await asker.post("/events", event, headers=as_user("one"))
                assert (status, error["code"]) == (403, "A284")
            assert (await other.log.last_of("main", None, "Late")) is None

    run(work)


def test_the_name_under_which_a_source_is_stored_is_another_source() -> None:
    async def work() -> None:
        async with asking(settings()) as asker:
            await declared(asker)
            stored = source_name("/shop/7")
            for user, source in (("two", stored), ("one", "/shop/7"), ("two", source_name(stored))):
                event = {"type": "A", "k": 1, "x": 1, "_source": source, "_sequence": 1}
                assert await asker.post("/events", event, headers=as_user(user)) == (202, {"stored": 1, "repeated": 0})
            event = {"type": "A", "k": 1, "x": 1, "_source": stored, "_sequence": 1}
            assert (await asker.post("/events", event, headers=as_user("one")))[0] == 403

    run(work)


def test_a_user_has_a_quarter_of_the_room_and_whoever_manages_all_of_it() -> None:
    room = SharedRoom(100)
    assert room.take(90, "one")  # the first has room, however much it wants
    assert not room.take(1, "one")
    assert not room.take(20, "two")
    assert room.take(10, "two")
    room.give_back(90, "one")
    assert [room.take(15, "two") for _ in range(2)] == [True, False]
    assert [room.take(25, "one") for _ in range(2)] == [True, False]
    assert room.take(50, None)
    assert not room.take(1, None)


def test_no_user_takes_all_room_for_bodies() -> None:
    async def work() -> None:
        async with asking(settings(bodies_bytes_max=40_000, body_bytes_max=5_000)) as asker, AsyncExitStack() as held:
            await declared(asker)
            writers = []
            for _ in range(12):
                host, port = asker.session._base_url.host, asker.session._base_url.port  # type: ignore[union-attr]
                reader, writer = await asyncio.open_connection(host, port)
                held.callback(writer.close)
                head = "POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                writer.write(f"{head}Authorization: Bearer t-one\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n".encode())
                writers.append(reader)
            refused = [asyncio.create_task(each.readline()) for each in writers]
            while sum(each.done() for each in refused) < 10:
                await asyncio.wait([each for each in refused if not each.done()], return_when=asyncio.FIRST_COMPLETED)
            assert all(b" 503 " in each.result() for each in refused if each.done())
            body = [{"type": "A", "k": 1, "x": 1}] * 100
            assert (await asker.post("/events", body, headers=as_user("two")))[0] == 202
            for each in refused:
                each.cancel()

    run(work)


async def opened(asker: Asker, held: AsyncExitStack, user: str, count: int, kind: str = "events") -> list[int]:
    """The statuses of so many streams that are opened at once."""
    made = [f"{user}-{kind}-{number}" for number in range(count)]
    for name in made:
        body = {"name": name, "rules": "SUBSCRIPTION S MATCH A a"}
        assert (await asker.post("/subscriptions", body, headers=as_user(user)))[0] == 201

    async def status(name: str) -> int:
        path = f"/subscriptions/{name}/{kind}"
        if kind == "events":
            return (await held.enter_async_context(asker.session.get(path, headers=as_user(user)))).status
        try:
            await held.enter_async_context(asker.session.ws_connect(path, headers=as_user(user)))
        except aiohttp.WSServerHandshakeError as error:
            return error.status
        return 200

    return sorted(await asyncio.gather(*map(status, made)))


def test_streams_that_are_opened_at_once_are_limited_too() -> None:
    async def work() -> None:
        async with asking(settings(streams_max=4)) as asker, AsyncExitStack() as held:
            await declared(asker)
            assert await opened(asker, held, "operator", 9) == [200] * 4 + [503] * 5

    run(work)


@pytest.mark.parametrize("kind", ["events", "socket"])
def test_no_user_takes_all_streams(kind: str) -> None:
    async def work() -> None:
        async with asking(settings(streams_max=8)) as asker, AsyncExitStack() as held:
            await declared(asker)
            assert await opened(asker, held, "one", 9, kind) == [200] * 2 + [503] * 7
            assert await opened(asker, held, "two", 2, kind) == [200, 200]
        async with asking(settings(streams_max=8)) as asker, AsyncExitStack() as held:
            await declared(asker)
            for _ in range(3):  # what is closed has room again
                async with AsyncExitStack() as some:
                    assert await opened(asker, some, "one", 2, kind) == [200, 200]

    run(work)


def test_what_a_user_opens_matches_in_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, subscription = list[str | None](), Sessions.subscription

    def noted(self: Sessions, user: str | None, *given: Any, **more: Any) -> LiveSubscription:
        asked.append(user)
        return subscription(self, user, *given, **more)

    monkeypatch.setattr(Sessions, "subscription", noted)

    async def work() -> None:
        async with asking(settings()) as asker, AsyncExitStack() as held:
            await declared(asker)
            for user, known in (("one", "one"), ("two", "two"), ("operator", None)):
                for kind in ("events", "socket"):
                    asked.clear()
                    assert await opened(asker, held, user, 1, kind) == [200]
                    assert asked == [known, known]  # by POST, and by the stream

    run(work)


def test_rules_of_one_user_do_not_keep_the_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty texts of one user wait when another user asks, whose text is compiled after the first of them."""
    check_rules, read_plan, asked, begun = Gateway.check_rules, Registry.read_plan, list[str](), list[str]()

    async def noted(self: Gateway, caller: PolicyUser, name: str, rules: str) -> None:
        asked.append(name)
        await check_rules(self, caller, name, rules)

    async def work() -> None:
        everybody_waits = asyncio.Event()

        async def waiting(self: Registry, text: str) -> Plan:
            begun.append(text.split()[1])
            await everybody_waits.wait()
            return await read_plan(self, text)

        async def subscribed(user: str, name: str) -> int:
            body = {"name": name, "rules": f"SUBSCRIPTION {user} MATCH A a"}
            return (await asker.post("/subscriptions", body, headers=as_user(user)))[0]

        async with asking(settings()) as asker:
            await declared(asker)
            monkeypatch.setattr(Gateway, "check_rules", noted)
            monkeypatch.setattr(Registry, "read_plan", waiting)
            many = [asyncio.create_task(subscribed("one", f"one-{at}")) for at in range(20)]
            await until(lambda: len(asked) == 20)
            two = asyncio.create_task(subscribed("two", "two"))
            await until(lambda: len(asked) == 21)
            everybody_waits.set()
            assert await two == 201
            assert begun[:2] == ["one", "two"]
            assert {*await asyncio.gather(*many)} == {201}

    run(work)


def test_one_text_of_rules_is_compiled_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling, most, read_plan = list[str](), list[int](), Registry.read_plan

    async def slow(self: Registry, text: str) -> Plan:
        compiling.append(text)
        most.append(len(compiling))
        for _ in range(20):
            await asyncio.sleep(0)
        compiling.remove(text)
        return await read_plan(self, text)

    async def work() -> None:
        async with fairlead.connect() as client:
            await client.declare("TYPE A (k INT, x INT)")
            gateway, users = Gateway(client, settings()), policy_of(POLICY).users.values()
            monkeypatch.setattr(Registry, "read_plan", slow)
            await asyncio.gather(
                *(gateway.check_rules(each, each.name, "SUBSCRIPTION S MATCH A a") for each in (*users, OPERATOR, *users))
            )
            assert most == [1] * 5
            await gateway.publishing.close()

    run(work)


def test_searches_of_one_user_that_do_not_end_do_not_stop_the_others() -> None:
    """As many streams as a process has threads for such works, and some more: bodies and rules are read in threads, too."""
    endless = " ".join(f"{'AND' if at else 'MATCH'} A a{at}" for at in range(6))
    conditions = " AND ".join([*(f"a{at}.k < a{at + 1}.k" for at in range(5)), " + ".join(f"a{at}.x" for at in range(6))])
    long = " ".join(f"SUBSCRIPTION L{n} MATCH A a WHERE a.k = {n}" for n in range(120))
    assert len(long) > LONG_RULES

    async def work() -> None:
        count = (os.cpu_count() or 1) + 5
        async with asking(settings()) as asker, AsyncExitStack() as held:
            await declared(asker)
            for number in range(count):
                rules = f"SUBSCRIPTION S {endless} WHERE {conditions} = {10**9 + number}"
                body = {"name": f"one-{number}", "rules": rules}
                assert (await asker.post("/subscriptions", body, headers=as_user("one")))[0] == 201
            streams = [
                asker.session.get(f"/subscriptions/one-{number}/events", headers=as_user("one")) for number in range(count)
            ]
            await asyncio.gather(*(held.enter_async_context(each) for each in streams))
            rolls = random.Random(1)
            some = [{"type": "A", "k": rolls.randrange(10**6), "x": 1} for _ in range(1500)]
            assert (await asker.post("/events", some, headers=as_user("one")))[0] == 202
            events = [{"type": "A", "k": 1, "x": 1}] * (LONG_BODY // 20)
            assert (await asker.post("/events", events, headers=as_user("two")))[0] == 202
            body = {"name": "two", "rules": long, "start": "earliest"}
            assert (await asker.post("/subscriptions", body, headers=as_user("two")))[0] == 201

    run(work)


def test_a_user_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = list[int]()

    def threads(most: int) -> MatchThreads:
        counts.append(most)
        return MatchThreads(most=most)

    monkeypatch.setattr(streams, "MatchThreads", threads)

    async def work() -> None:
        async with fairlead.connect() as client:
            sessions = Sessions(client, GatewayMetrics(), 9)
            made = [sessions.subscription(user, "s", "SUBSCRIPTION S MATCH A a") for user in ("one", "one", "two", None, None)]
            one, again, two, boss, other = [each.threads for each in made]
            assert one is again
            assert boss is other
            assert len({id(one), id(two), id(boss)}) == 3
            assert set(counts) == {2}

    run(work)
