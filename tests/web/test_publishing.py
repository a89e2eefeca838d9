"""Events over HTTP: stored before they are answered, all of a request or none of it, and once however often they are sent."""

from __future__ import annotations

import asyncio
import gzip
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

import fairlead
from fairlead.transport.output.cloud_events import BATCHED, STRUCTURED
from fairlead.web.gateway import Settings
from tests.runtime.live.reading import rows_of
from tests.web.served import Asker, asking, run


async def stored(asker: Asker, name: str = "A") -> list[tuple[int, int]]:
    """(k, x) of all events of a type, as the log has them."""
    async with fairlead.connect(asker.url) as fl:
        return [(each["k"], each["x"]) for each in await rows_of(fl, name)]


def test_one_record_many_records_and_lines() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            assert await asker.post("/events", {"type": "A", "k": 1, "x": 1}) == (202, {"stored": 1, "repeated": 0})
            many = [{"type": "A", "k": 2, "x": 2}, {"type": "B", "k": 2, "x": 2}, {"type": "A", "k": 3, "x": 3}]
            assert await asker.post("/events", many) == (202, {"stored": 3, "repeated": 0})
            lines = '{"k": 4, "x": 4}\n\n{"k": 5, "x": 5}\n'
            headers = {"Content-Type": "application/x-ndjson"}
            assert (await asker.ask("POST", "/events?type=A", data=lines, headers=headers))[0] == 202
            assert await asker.post("/events", []) == (200, {"stored": 0, "repeated": 0})
            assert await stored(asker) == [(k, k) for k in range(1, 6)]
            assert await stored(asker, "B") == [(2, 2)]

    run(work)


def test_cloudevents_in_all_modes() -> None:
    def event(k: int) -> dict[str, Any]:
        named = {"specversion": "1.0", "id": f"e{k}", "source": "/shop/7", "type": "com.example.A", "sequence": str(k)}
        return named | {"data": {"k": k, "x": 0}}

    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            one = await asker.post("/events", event(1), headers={"Content-Type": STRUCTURED})
            assert one == (202, {"stored": 1, "repeated": 0})
            batch = await asker.post("/events", [event(1), event(2), event(3)], headers={"Content-Type": BATCHED})
            assert batch == (202, {"stored": 2, "repeated": 1})
            headers = {f"ce-{name}": value for name, value in event(4).items() if name != "data"}
            assert await asker.post("/events", event(4)["data"], headers=headers) == (202, {"stored": 1, "repeated": 0})
            assert await asker.post("/events", event(4)["data"], headers=headers) == (200, {"stored": 0, "repeated": 1})
            assert await stored(asker) == [(k, 0) for k in range(1, 5)]
            status, error = await asker.post("/events", event(9) | {"specversion": "0.3"}, headers={"Content-Type": STRUCTURED})
            assert (status, error["code"], error["place"]) == (422, "D040", "CloudEvent 'e9'")

    run(work)


@pytest.mark.parametrize(
    ("records", "status", "code", "place"),
    [
        ([{"type": "A", "k": 1, "x": 1}, {"type": "A", "k": "one", "x": 1}], 422, "D004", "record 1"),
        ([{"type": "A", "k": 1, "x": 1}, {"type": "B", "k": 1}], 422, "D003", "record 1"),
        ([{"type": "A", "k": 1, "x": 1}, {"type": "Z", "k": 1}], 422, "D001", "record 1"),
        ([{"type": "A", "k": 1, "x": 1}, {"type": "B", "k": 1, "x": 1, "y": 1}], 422, "D002", "record 1"),
        ([{"type": "A", "k": 1, "x": 1}, 7], 422, "D009", "record 1"),
        ([{"k": 1, "x": 1}], 422, "D027", "record 0"),
        ([{"type": "A", "k": 1, "x": 1, "_sequence": 1}], 422, "D010", "record 0"),
        ([{"type": "A", "k": 1, "x": 1, "_source": "s", "_sequence": n} for n in (2, 2)], 422, "D028", "record 1"),
    ],
)
def test_nothing_of_a_request_with_a_bad_record_is_stored(records: Any, status: int, code: str, place: str) -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            found, error = await asker.post("/events", records)
            assert (found, error["code"], error["place"]) == (status, code, place)
            assert error["problem"]
            assert error["fix"]
            assert await stored(asker) == []

    run(work)


def test_arrays_and_structs_in_json_and_cloudevents() -> None:
    value = {"s": {"price": 1.25, "in": {"at": "2026-01-01T00:00:00Z"}}, "t": ["a", None]}
    wrong = {"type": "N", "s": None, "t": ["a", 1]}

    async def work() -> None:
        async with asking() as asker:
            text = "TYPE N (s STRUCT<price: DECIMAL(10,2), in: STRUCT<at: TIMESTAMP>>, t ARRAY<STRING>)"
            assert await asker.post("/types", {"text": text}) == (200, {"types": ["N"]})
            event = {"specversion": "1.0", "id": "e1", "source": "s", "type": "N", "data": value}
            for body, headers in (({"type": "N", **value}, {}), (event, {"Content-Type": STRUCTURED})):
                assert (await asker.post("/events", body, headers=headers))[0] == 202
            status, error = await asker.post("/events", wrong)
            assert (status, error["code"]) == (422, "D004")
            async with fairlead.connect(asker.url) as fl:
                found = await rows_of(fl, "N")
            moment = datetime(2026, 1, 1, tzinfo=UTC)
            assert found == [{"s": {"price": Decimal("1.25"), "in": {"at": moment}}, "t": ["a", None]}] * 2

    run(work)


def test_bodies_that_are_not_read() -> None:
    async def work() -> None:
        async with asking(Settings(body_bytes_max=1000)) as asker:
            await asker.declare()
            for body, media, status, code in [
                (b'{"type": "A", "k": 1', "application/json", 400, "D011"),
                (b'{"type": "A", "k": 1, "k": 2, "x": 1}', "application/json", 400, "D015"),
                (b"\xff", "application/json", 400, "D016"),
                (b"k,x\n1,2\n", "text/csv", 415, "A271"),
                (b"[" * 900, "application/json", 400, "D011"),
                (b" " * 1001, "application/json", 413, "A270"),
            ]:
                found, error = await asker.ask("POST", "/events", data=body, headers={"Content-Type": media})
                assert (found, error["code"]) == (status, code)
            packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
            for body, status in [(b"[]" + b" " * 100, 200), (b"[]" + b" " * 1_500, 413), (b" " * 5_000_000, 413)]:
                assert (await asker.ask("POST", "/events", data=gzip.compress(body), headers=packed))[0] == status
            assert await stored(asker) == []

    run(work)


def test_a_numbered_source_is_stored_once_by_two_gateways_and_after_restarts() -> None:
    def records(low: int, high: int) -> list[dict[str, Any]]:
        return [{"type": "A", "k": n, "x": 0, "_source": "till 7", "_sequence": n} for n in range(low, high)]

    async def work() -> None:
        async with asking() as one, asking(url=one.url) as two:
            await one.declare()
            assert await one.post("/events", records(0, 10)) == (202, {"stored": 10, "repeated": 0})
            assert await two.post("/events", records(5, 15)) == (202, {"stored": 5, "repeated": 5})
            assert await one.post("/events", records(10, 20)) == (202, {"stored": 5, "repeated": 5})
            assert await two.post("/events", records(30, 32)) == (202, {"stored": 2, "repeated": 0})
            assert await one.post("/events", records(0, 20)) == (200, {"stored": 0, "repeated": 20})
            assert await one.post("/events", records(0, 32)) == (202, {"stored": 10, "repeated": 22})
            assert await two.post("/events", records(0, 32)) == (200, {"stored": 0, "repeated": 32})
            assert await stored(one) == [(n, 0) for n in [*range(20), 30, 31, *range(20, 30)]]

    run(work)


def test_many_at_once_are_each_stored_once() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            asked = [asker.post("/events", [{"type": "A", "k": n, "x": at} for at in range(5)]) for n in range(60)]
            assert {status for status, _ in await asyncio.gather(*asked)} == {202}
            assert sorted(await stored(asker)) == [(n, at) for n in range(60) for at in range(5)]

    run(work)


def test_types_declared_elsewhere_are_known_and_decimals_are_exact() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            assert (await asker.post("/events", {"type": "A", "k": 1, "x": 1}))[0] == 202
            async with fairlead.connect(asker.url) as fl:
                await fl.declare("TYPE Price (value DECIMAL(20, 10))")
                await fl.declare("TYPE A (k INT, x INT, y INT)")
            exact = '{"type": "Price", "value": 1234567890.0123456789}'
            assert (await asker.ask("POST", "/events", data=exact, headers={"Content-Type": "application/json"}))[0] == 202
            assert (await asker.post("/events", {"type": "A", "k": 1, "x": 1, "y": 3}))[0] == 202
            status, found = await asker.ask("GET", "/types")
            assert status == 200
            assert [each["name"] for each in found["types"]] == ["A", "B", "Price"]
            assert found["types"][2]["attributes"] == [{"name": "value", "type": "DECIMAL(20,10)"}]
            status, error = await asker.post("/types", {"text": "TYPE A (k STRING)"})
            assert (status, error["code"]) == (409, "A243")
            status, error = await asker.ask("POST", "/types", data="TYPE A (k STRNG)")
            assert (status, error["code"][0]) == (422, "L")

    run(work)
