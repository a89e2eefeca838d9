"""Relations by server-sent events and by WebSocket: exactly once after every interruption, never faster than the listener."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import aiohttp
import pytest

import fairlead
from fairlead.web.gateway import Settings
from fairlead.web.serving import gateway
from tests.web.served import RULES, Asker, asking, run, some, sse


def stream(name: str = "desk", kind: str = "events") -> str:
    return f"/subscriptions/{name}/{kind}"


NEW = {"rules": RULES}


async def expected(asker: Asker, count: int) -> list[str]:
    """The ids of relations, as a client of the log itself is given them."""
    found: list[str] = []
    async with fairlead.connect(asker.url) as fl, fl.subscribe(RULES, start="earliest") as sub:
        async for relation in sub:
            found.append(relation.id)
            if len(found) == count:
                break
    return found


def test_a_stream_resumes_exactly_behind_the_last_id() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            await asker.pairs(range(20))
            wanted = await expected(asker, 20)
            found: list[Any] = []
            for count in (3, 1, 7, 9):
                headers = {"Last-Event-ID": found[-1]["id"]} if found else {}
                async with asker.session.get(stream(), params=NEW, headers=headers) as response:
                    assert response.status == 200
                    assert response.content_type == "text/event-stream"
                    found += await some(response, count)
            assert [each.relation["id"] for each in found] == wanted
            assert {each["event"] for each in found} == {"relation"}
            # without an id: behind what was acknowledged, which is what the last id said
            async with asker.session.get(stream()) as response:
                again = await some(response, 9)
            assert [each.relation["id"] for each in again] == wanted[11:]
            # and relations of later events come as they are completed
            async with asker.session.get(stream(), headers={"Last-Event-ID": found[-1]["id"]}) as response:
                await asker.pairs(range(100, 102))
                assert [each.relation["events"][0]["k"] for each in await some(response, 2)] == [100, 101]

    run(work)


def test_the_last_id_means_the_same_in_another_gateway() -> None:
    async def work() -> None:
        async with asking() as one, asking(url=one.url) as two:
            await one.declare()
            await one.subscribe()
            await one.pairs(range(6))
            async with one.session.get(stream(), params=NEW) as response:
                first = await some(response, 4)
            async with two.session.get(stream(), headers={"Last-Event-ID": first[2]["id"]}) as response:
                rest = await some(response, 3)
            assert [each.relation["id"] for each in first[:3] + rest] == await expected(one, 6)

    run(work)


def test_a_stream_that_began_with_what_is_new_resumes_too() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.pairs(range(5))
            await asker.subscribe(start="new")
            async with asker.session.get(stream(), params={"rules": RULES}) as response:
                await asker.pairs(range(5, 10))
                first = await some(response, 3)
            async with asker.session.get(stream(), headers={"Last-Event-ID": first[1]["id"]}) as response:
                rest = await some(response, 3)
            assert [each.relation["events"][0]["k"] for each in first[:2] + rest] == [5, 6, 7, 8, 9]
            # nothing was delivered yet, and the listener says so
            await asker.subscribe("other", start="new")
            async with asker.session.get(stream("other"), params={"rules": RULES, "after": "0"}) as response:
                await asker.pairs(range(10, 12))
                assert [each.relation["events"][0]["k"] for each in await some(response, 2)] == [10, 11]

    run(work)


def test_a_killed_gateway_leaves_nothing_undelivered_or_doubled() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            await asker.pairs(range(40))
            found: list[Any] = []
            for count in (7, 13, 20):
                command = [sys.executable, "-c", "from fairlead.cli.main import main; main()", "gateway", "--url", asker.url]
                process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
                assert process.stdout is not None
                address = (await process.stdout.readline()).decode().removeprefix("gateway at ").strip()
                headers = {"Last-Event-ID": found[-1]["id"]} if found else {}
                async with aiohttp.ClientSession() as session:
                    response = await session.get(address + stream(), params=NEW, headers=headers)
                    found += await some(response, count)
                    process.kill()
                    await process.wait()
            assert [each.relation["id"] for each in found] == await expected(asker, 40)

    run(work)


def test_rules_of_several_groups_resume_in_each_of_them() -> None:
    rules = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k SUBSCRIPTION T MATCH A a WHERE a.k < 100"

    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe(rules=rules)
            await asker.pairs(range(10))
            found: list[Any] = []
            for count in (4, 5, 1, 10):
                headers = {"Last-Event-ID": found[-1]["id"]} if found else {}
                async with asker.session.get(stream(), params={"rules": rules}, headers=headers) as response:
                    found += await some(response, count)
            assert len({each.relation["id"] for each in found}) == 20
            for name in "ST":
                keys = [each.relation["events"][0]["k"] for each in found if each.relation["subscription"] == name]
                assert keys == list(range(10))

    run(work)


def test_ids_of_something_else_are_refused() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            await asker.pairs(range(5))
            async with asker.session.get(stream(), params=NEW) as response:
                found = await some(response, 5)
            async with asker.session.get(stream(), headers={"Last-Event-ID": "nonsense"}) as response:
                assert response.status == 409
                assert (await response.json())["code"] == "A275"
            other = found[1]["id"].replace("2-", "3-", 1)
            async with asker.session.get(stream(), headers={"Last-Event-ID": other}) as response:
                (error,) = await some(response, 9)
                assert (error["event"], error.relation["code"]) == ("error", "A275")
            for at in (3, 1):
                async with asker.session.get(stream(), headers={"Last-Event-ID": found[at]["id"]}) as response:
                    (last,) = await some(response, 1)
            assert (last["event"], last.relation["code"]) == ("error", "A276")

    run(work)


def test_a_stream_that_nobody_acknowledges_ends_and_goes_on() -> None:
    async def work() -> None:
        async with asking(Settings(sent_max=8)) as asker:
            await asker.declare()
            await asker.subscribe()
            await asker.pairs(range(20))
            found: list[Any] = []
            for count in (8, 8, 4):
                headers = {"Last-Event-ID": found[-1]["id"]} if found else {}
                async with asker.session.get(stream(), params=NEW, headers=headers) as response:
                    new = await some(response, 4) if count == 4 else [each async for each in sse(response)]
                assert len(new) == count
                found += new
            assert [each.relation["id"] for each in found] == await expected(asker, 20)

    run(work)


def test_acknowledging_while_a_stream_is_open() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            await asker.pairs(range(6))
            path = stream(kind="acknowledgements")
            assert (await asker.post(path, {"id": "0"}))[1]["code"] == "A277"
            async with asker.session.get(stream(), params=NEW) as response:
                found = await some(response, 6)
                for at in (1, 0, 3):  # what is acknowledged stays so
                    assert await asker.post(path, {"id": found[at]["id"]}) == (200, {"acknowledged": found[at]["id"]})
                status, error = await asker.post(path, {"id": found[5]["id"].replace("6-", "5-", 1)})
                assert (status, error["code"]) == (409, "A275")
                assert (await asker.post(path, {"id": found[5]["id"].replace("6-", "7-", 1)}))[0] == 409
            async with asker.session.get(stream()) as response:
                assert [each["id"] for each in await some(response, 2)] == [each["id"] for each in found[4:]]
            status, told = await asker.ask("GET", stream(kind="receipts"))
            assert status == 200
            assert [each["count"] for each in told["receipts"].values()] == [4]

    run(work)


def test_receipts_and_the_comparison_say_what_a_late_listener_was_sent() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.post("/subscriptions", {"name": "one", "rules": RULES, "start": "earliest"})
            await asker.pairs(range(6))
            async with asker.session.ws_connect(stream("one", "socket")) as ws:
                early = [json.loads((await ws.receive(timeout=10)).data) for _ in range(6)]
                await asker.post("/subscriptions", {"name": "two", "rules": RULES})
                await asker.pairs(range(6, 10))
                early += [json.loads((await ws.receive(timeout=10)).data) for _ in range(4)]
                await ws.send_json({"acknowledge": early[-1]["id"]})
                await ws.receive_json(timeout=10)
            async with asker.session.ws_connect(stream("two", "socket")) as ws:
                late = [json.loads((await ws.receive(timeout=10)).data) for _ in range(4)]
                await ws.send_json({"acknowledge": late[2]["id"]})
                await ws.receive_json(timeout=10)
            assert [each["id"] for each in late] == [each["id"] for each in early[6:]]
            for name, numbers in (("one", (10, 0, 10)), ("two", (9, 6, 3))):
                ((told,),) = [each["receipts"].values() for _, each in [await asker.ask("GET", stream(name, "receipts"))]]
                assert (told["count"], told["joined"], told["delivered"]) == numbers
            found = await compared(asker)
            assert (found["outcome"], found["equal"], found["agreed"], found["start"]) == ("agree", False, 3, 7)
            assert "numbers 7 to 9; the first has 6 from before the second joined; the first has 1 more" in found["problem"]

    run(work)


def test_relations_as_cloudevents() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            await asker.pairs(range(1))
            (wanted,) = await expected(asker, 1)
            headers = {"Accept": "text/event-stream, application/cloudevents+json"}
            for more in ({"params": NEW | {"format": "cloudevents"}}, {"params": NEW, "headers": headers}):
                async with asker.session.get(stream(), **more) as response:
                    (event,) = await some(response, 1)
                assert (event.relation["specversion"], event.relation["id"]) == ("1.0", wanted)
                assert (event.relation["type"], event.relation["subject"]) == ("fairlead.relation", "S")
                assert event.relation["data"]["id"] == wanted

    run(work)


def test_a_socket_sends_no_more_than_its_window_and_resumes_behind_what_was_acknowledged() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            await asker.pairs(range(30))
            wanted = await expected(asker, 30)
            params = NEW | {"window": "4"}
            found = []
            async with asker.session.ws_connect(stream(kind="socket"), params=params) as ws:
                for _ in range(3):
                    part = [await ws.receive_json(timeout=10) for _ in range(4)]
                    with pytest.raises(asyncio.TimeoutError):
                        await ws.receive_json(timeout=0.1)
                    await ws.send_json({"acknowledge": part[-1]["id"]})
                    assert await ws.receive_json(timeout=10) == {"acknowledged": part[-1]["id"]}
                    found += part
                more = [await ws.receive_json(timeout=10) for _ in range(4)]  # and not acknowledged
            async with asker.session.ws_connect(stream(kind="socket"), params={"window": "100"}) as ws:
                rest = [await ws.receive_json(timeout=10) for _ in range(18)]
                await ws.send_json({"acknowledge": rest[-1]["id"]})
                await ws.receive_json(timeout=10)
            assert rest[:4] == more
            assert [each["relation"]["id"] for each in found + rest] == wanted

    run(work)


def test_messages_that_a_socket_does_not_understand() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            for message, code in [("hello", "A274"), ('{"acknowledge": 1}', "A274"), ('{"acknowledge": "9-x"}', "A275")]:
                async with asker.session.ws_connect(stream(kind="socket"), params=NEW) as ws:
                    await ws.send_str(message)
                    assert (await ws.receive_json(timeout=10))["error"]["code"] == code
                    assert (await ws.receive(timeout=10)).type is aiohttp.WSMsgType.CLOSE
                    assert ws.close_code == 1008
            status, error = await asker.ask("GET", stream(kind="socket"), params=NEW)
            assert (status, error["code"]) == (400, "A274")
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await asker.session.ws_connect(stream("other", "socket"))

    run(work)


def test_a_second_listener_of_a_name_takes_over() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            await asker.pairs(range(3))
            async with asker.session.get(stream(), params=NEW) as first:
                assert len(await some(first, 3)) == 3
                async with asker.session.get(stream()) as second:
                    assert len(await some(second, 3)) == 3
                    assert [each async for each in sse(first)] == []

    run(work)


def test_a_listener_that_does_not_read_fills_no_memory() -> None:
    """It is sent what its socket takes, then waited for; nothing is lost."""

    async def work() -> None:
        async with asking(read_bufsize=16_384) as asker:
            await asker.post("/types", {"text": "TYPE A (k INT, text STRING)"})
            text = "x" * 10_000
            rules = "SUBSCRIPTION S MATCH A a"
            for low in range(0, 4000, 80):
                status, _ = await asker.post("/events", [{"type": "A", "k": k, "text": text} for k in range(low, low + 80)])
                assert status == 202
            await asker.subscribe(rules=rules)
            async with asker.session.get(stream(), params={"rules": rules}) as response:
                sent, before = await sent_so_far(asker), -1
                while sent != before or not sent:
                    await asyncio.sleep(0.3)  # in which it would send hundreds more, if it did not wait
                    sent, before = await sent_so_far(asker), sent
                assert sent < 3000
                keys = [each.relation["events"][0]["k"] for each in await some(response, 4000)]
                assert keys == list(range(4000))

    run(work)


async def sent_so_far(asker: Asker) -> int:
    _, text = await asker.ask("GET", "/metrics")
    return next(
        int(float(line.split()[1])) for line in text.splitlines() if line.startswith("fairlead_gateway_relations_sent_total ")
    )


async def compared(asker: Asker) -> Any:
    status, found = await asker.ask("GET", "/comparison?a=one&b=two")
    assert status == 200
    return found


def test_two_listeners_agree_and_a_socket_agrees_with_them() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            body = {"rules": RULES, "start": "earliest"}
            for name in ("one", "two"):
                status, told = await asker.post("/subscriptions", body | {"name": name})
                assert (status, told["subscriptions"]) == (201, ["S"])
            await asker.pairs(range(10))
            for name in ("one", "two"):
                async with asker.session.ws_connect(stream(name, "socket")) as ws:
                    got = [json.loads((await ws.receive(timeout=10)).data) for _ in range(10)]
                    await ws.send_json({"acknowledge": got[-1 if name == "one" else 4]["id"]})
                    await ws.receive_json(timeout=10)
            assert (await compared(asker))["agreed"] == 5
            async with asker.session.get(stream("two")) as response:
                last = (await some(response, 5))[-1]
                await asker.post(stream("two", "acknowledgements"), {"id": last["id"]})
            assert await compared(asker) == {"outcome": "equal", "equal": True, "agreed": 10, "start": 1, "problem": None}
            assert (await asker.ask("GET", "/comparison?a=one&b=nobody"))[0] == 404
            assert (await asker.ask("DELETE", "/subscriptions/two"))[0] == 204
            assert (await asker.ask("DELETE", "/subscriptions/two"))[0] == 404
            status, error = await asker.post("/subscriptions", {"name": "one", "rules": "SUBSCRIPTION S MATCH A a"})
            assert (status, error["code"]) == (409, "A245")
            status, error = await asker.post("/subscriptions", {"name": "three", "rules": "SUBSCRIPTION S MATCH Z z"})
            assert (status, error["code"][0]) == (422, "L")

    run(work)


def test_stopping_the_gateway_ends_its_streams() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            async with aiohttp.ClientSession() as session:
                async with gateway(asker.url, Settings()) as address:
                    response = await session.get(address + stream(), params=NEW)
                    waiting = asyncio.create_task(some(response, 1))
                    await asyncio.sleep(0)  # it begins to wait
                    began = asyncio.get_running_loop().time()
                assert asyncio.get_running_loop().time() - began < 8
                assert await waiting == []

    run(work)
