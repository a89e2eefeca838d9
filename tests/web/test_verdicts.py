"""The gateway on rules with ORDER BY: what is late, ahead or taken back reaches listeners, in the order of the log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import aiohttp
import pytest

from tests.waiting import until
from tests.web.served import Asker, asking, run, some

TYPES = "TYPE Alarm (k INT, at TIMESTAMP) TIME at; TYPE Reading (k INT, at TIMESTAMP) TIME at"
RULES = (
    "ORDER BY at DELAY 2 SECONDS AHEAD 1 MINUTE LATE REVISE WITHIN 10 SECONDS "
    "SUBSCRIPTION Unanswered MATCH Alarm a WITHOUT Reading r WITHIN 3 SECONDS OF a PER k"
)
STREAM = "/subscriptions/desk/events"
NEW = {"rules": RULES}
EXPECTED = [
    ("relation", 1, 1),  # nobody answered alarm 1 by 10:00:04
    ("retraction", -1, 1),  # the answer of 10:00:02 arrives, late
    ("verdict", "ahead", 7),
    ("verdict", "late", 8),
]


def event(name: str, k: int, at: str) -> dict[str, Any]:
    return {"type": name, "k": k, "at": at if "T" in at else f"2026-01-31T10:00:{at}Z"}


async def published(asker: Asker) -> None:
    assert (await asker.post("/types", {"text": TYPES}))[0] == 200
    blocks: Sequence[list[dict[str, Any]]] = (
        [event("Alarm", 1, "01"), event("Reading", 9, "06"), event("Reading", 9, "11")],
        [event("Reading", 1, "02")],
        [event("Reading", 7, "2099-01-01T00:00:00Z"), event("Reading", 9, "30")],
        [event("Reading", 8, "03")],
    )
    for each in blocks:
        assert (await asker.post("/events", each))[0] == 202


def shown(kind: str, value: Any) -> tuple[str, Any, int]:
    """The kind of a message, its sign or verdict, and the key of its event."""
    events = [value["event"]] if kind == "verdict" else value["events"]
    return kind, value["verdict"] if kind == "verdict" else value.get("sign", 1), events[0]["k"]


@pytest.mark.server
def test_server_sent_events_have_verdicts_and_retractions_and_metrics_count_them() -> None:
    async def work() -> None:
        async with asking() as asker:
            await published(asker)
            await asker.subscribe(rules=RULES)
            async with asker.session.get(STREAM, params=NEW) as response:
                found = await some(response, 4)
            assert [shown(each["event"], json.loads(each["data"])) for each in found] == EXPECTED
            assert [("id" in each) for each in found] == [True, True, False, False]
            _, text = await asker.ask("GET", "/metrics")
            for line in (
                "relations_sent_total 1.0",
                "retractions_sent_total 1.0",
                'verdicts_sent_total{verdict="ahead"} 1.0',
                'verdicts_sent_total{verdict="late"} 1.0',
            ):
                assert f"fairlead_gateway_{line}" in text.splitlines()
            # a listener that returns with the id of the retraction does not get it again
            headers = {"Last-Event-ID": found[1]["id"]}
            async with asker.session.get(STREAM, headers=headers) as response:
                await asker.post("/events", [event("Alarm", 2, "31"), event("Reading", 9, "36"), event("Reading", 9, "41")])
                again = await some(response, 1)
                while again[-1]["event"] == "verdict":
                    again += await some(response, 1)
            assert shown(again[-1]["event"], json.loads(again[-1]["data"])) == ("relation", 1, 2)

    run(work)


@pytest.mark.server
def test_a_listener_may_ask_for_early_deliveries() -> None:
    async def work() -> None:
        async with asking() as asker:
            await published(asker)
            await asker.subscribe(rules=RULES)
            async with asker.session.get(STREAM, params=NEW | {"early": "true"}) as response:
                found = [shown(each["event"], json.loads(each["data"])) for each in await some(response, 6)]
            assert [each for each in found if not each[0].startswith("early")] == EXPECTED
            assert [each for each in found if each[0].startswith("early")] == [("early", 1, 1), ("early-retraction", -1, 1)]
            assert found.index(("early", 1, 1)) < found.index(EXPECTED[0])
            _, text = await asker.ask("GET", "/metrics")
            assert "fairlead_gateway_early_sent_total 2.0" in text.splitlines()
            status, error = await asker.ask("GET", STREAM, params=NEW | {"early": "soon"})
            assert (status, error["code"]) == (400, "A274")

    run(work)


@pytest.mark.server
@pytest.mark.parametrize("acknowledged", [0, 1])
@pytest.mark.parametrize("early", ["true", "final"])
@pytest.mark.parametrize("way", ["events", "socket"])
def test_who_returns_with_an_id_is_given_nothing_early_that_it_has(way: str, early: str, acknowledged: int) -> None:
    """Also if it has not acknowledged it: it would wait for a confirmation that it has had."""
    rules = "ORDER BY at DELAY 2 SECONDS LATE REVISE WITHIN 1 MINUTE SUBSCRIPTION S MATCH Alarm a"

    async def heard(asker: Asker, count: int, **more: Any) -> list[tuple[str, str | None, int]]:
        query, found = {"early": early, **more}, list[tuple[str, str | None, int]]()
        if way == "events":
            async with asker.session.get(STREAM, params=query) as response:
                for each in await some(response, count):
                    found.append((each["event"], each.get("id"), each.relation["events"][0]["k"]))
        else:
            async with asker.session.ws_connect("/subscriptions/desk/socket", params=query) as ws:
                for _ in range(count):
                    message = await ws.receive_json(timeout=10)
                    id = message.pop("id", None)
                    ((kind, value),) = message.items()
                    found.append((kind, id, value["events"][0]["k"]))
        return found

    async def work() -> None:
        async with asking() as asker:
            assert (await asker.post("/types", {"text": TYPES}))[0] == 200
            alarms = [event("Alarm", k, f"0{k}") for k in range(1, 6)]
            assert (await asker.post("/events", [*alarms, event("Alarm", 6, "20")]))[0] == 202
            await asker.subscribe(rules=rules)
            first = await heard(asker, 11)
            told = {k: id for kind, id, k in first if kind == "relation"}
            assert sorted(k for kind, _, k in first if kind == "early") == [1, 2, 3, 4, 5, 6]
            assert sorted(told) == [1, 2, 3, 4, 5]
            if acknowledged:
                body = {"id": told[acknowledged]}
                async with asker.session.get(STREAM, params={"early": early}):
                    await until(lambda: is_acknowledged(asker, body))  # as soon as it is delivered
            again = await heard(asker, 5, after=told[3])
            assert [(kind, k) for kind, _, k in again] == [
                ("early", 4),
                ("early", 5),
                ("relation", 4),
                ("relation", 5),
                ("early", 6),
            ]

    async def is_acknowledged(asker: Asker, body: Any) -> bool:
        return (await asker.post("/subscriptions/desk/acknowledgements", body))[0] < 400

    run(work)


@pytest.mark.server
@pytest.mark.parametrize("form", ["json", "cloudevents"])
def test_a_socket_has_them_too(form: str) -> None:
    async def work() -> None:
        async with asking() as asker:
            await published(asker)
            await asker.subscribe(rules=RULES)
            async with asker.session.ws_connect("/subscriptions/desk/socket", params=NEW | {"format": form}) as ws:
                found = [await told(ws) for _ in EXPECTED]
                values = [(kind, value["data"] if form == "cloudevents" else value) for kind, value, _ in found]
                assert [shown(kind, value) for kind, value in values] == EXPECTED
                if form == "cloudevents":
                    assert [value["type"] for _, value, _ in found] == [f"fairlead.{kind}" for kind, *_ in EXPECTED]
                await ws.send_json({"acknowledge": found[1][2]})
                assert await ws.receive_json(timeout=10) == {"acknowledged": found[1][2]}
            _, receipts = await asker.ask("GET", "/subscriptions/desk/receipts")
            assert [each["count"] for each in receipts["receipts"].values()] == [2]

    async def told(ws: aiohttp.ClientWebSocketResponse) -> tuple[str, Any, str | None]:
        message = await ws.receive_json(timeout=10)
        id = message.pop("id", None)
        ((kind, value),) = message.items()
        return kind, value, id

    run(work)
