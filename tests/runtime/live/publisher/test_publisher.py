"""Publishing: checked as a whole, stored once, in order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fairlead
from fairlead.errors import DataError, LanguageError, LogError, StateError, UsageError
from fairlead.runtime.live.client import Client
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream import connection
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.protocol import Conflict, Unavailable
from tests.runtime.live.reading import rows_of
from tests.transport.log.logs import URLS, run
from tests.transport.log.test_logs import taken
from tests.waiting import until

QUOTES = "TYPE Quote (symbol STRING, value DOUBLE, at TIMESTAMP) TIME at"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("url", URLS)
def test_events_are_stored_in_the_order_of_the_calls(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url, source="desk") as fl:
            await fl.declare(QUOTES)
            await fl.publish("Quote", symbol="A", value=1.0, at=NOW)
            await fl.publish_many("Quote", {"symbol": ["B", "C"], "value": [2, 3], "at": [NOW, NOW]})
            await fl.publish("Quote", {"symbol": "D", "value": 4.0}, at="2026-01-31T12:00:00Z", wait=True)
            assert [row["symbol"] for row in await rows_of(fl, "Quote")] == ["A", "B", "C", "D"]
            last = await fl.log.last_of("main", "desk")
            assert last is not None
            assert (last.block.number, last.block.sequence, last.block.count) == (0, 0, 4)
            await fl.publish_many("Quote", {"symbol": ["E"] * 5000, "value": [2] * 5000, "at": [NOW] * 5000}, wait=True)
            last = await fl.log.last_of("main", "desk")
            assert last is not None
            assert (last.block.number, last.block.sequence, last.block.count) == (2, 4100, 904)

    run(work)


def test_a_million_events_go_by_columns_and_a_slow_log_holds_the_publisher_back() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare("TYPE N (x INT)")
            assert await fl.publish_many("N", pa.table({"x": pa.array(range(300_000), pa.int32())}), wait=True) == 300_000
            rows = await rows_of(fl, "N")
            assert [row["x"] for row in rows] == list(range(300_000))

    run(work)


class Losing:
    """A log whose answers get lost: each append is done, or not, and then nothing is heard of it."""

    def __init__(self, log: Any, pattern: str) -> None:
        self._log, self._pattern, self.asked = log, list(pattern), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, block: Block, after: int) -> int:
        self.asked += 1
        what = self._pattern.pop(0) if self._pattern else "-"
        if what == "d":
            await self._log.append(block, after)
        if what in "dn":
            raise Unavailable("no answer")
        return int(await self._log.append(block, after))


@pytest.mark.parametrize("pattern", ["d", "n", "ndd-dn-d", "dddd"])
@pytest.mark.server
def test_what_is_sent_again_after_a_lost_answer_is_stored_once(pattern: str) -> None:
    async def work() -> None:
        async with fairlead.connect(source="s") as fl:
            await fl.declare("TYPE N (x INT)")
            losing = Losing(fl.log, pattern)
            fl._publisher._log = losing  # type: ignore[assignment]
            for x in range(5):
                await fl.publish("N", x=x, wait=True)
            assert [row["x"] for row in await rows_of(fl, "N")] == [0, 1, 2, 3, 4]
            assert await fl.log.last(await fl.log.open_topics(["main"])) == 5
            assert not losing._pattern  # a block that is there after a lost answer is found by looking, or refused
            assert losing.asked >= 5 + pattern.count("n")

    run(work)


@pytest.mark.server
def test_a_publisher_that_comes_back_goes_on_with_its_numbers() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare("TYPE N (x INT)")
            for x in range(3):
                async with fairlead.connect(fl.url, source="s") as one:
                    await one.publish("N", x=x)
            last = await fl.log.last_of("main", "s")
            assert last is not None
            assert (last.block.number, last.block.sequence) == (2, 2)

    run(work)


@pytest.mark.parametrize("late", ["A", "B"])
@pytest.mark.parametrize("url", URLS)
def test_a_block_of_a_former_process_that_is_stored_late_is_found_out_whatever_its_type(url: str | None, late: str) -> None:
    """Otherwise two events of the source would have one sequence."""

    async def work() -> None:
        async with fairlead.connect(url, source="s") as fl:
            await fl.declare("TYPE A (x INT); TYPE B (x INT)")
            await fl.publish("A", x=0, wait=True)
            last = await fl.log.last_of("main", "s")
            assert last is not None
            number = last.block.number + 1 if late == "A" else 0
            former = replace(last.block, type=late, number=number, sequence=1, writer="former")
            await fl.log.append(former, last.sequence)
            with pytest.raises(StateError, match="S131"):
                await fl.publish("A", x=1, wait=True)
            await fl.flush()  # after what the log has
            stream = await fl.log.open_topics(["main"])
            blocks = await taken(fl.log, stream, 3)
            assert [each.block.sequence for each in blocks] == [0, 1, 2]

    run(work)


@pytest.mark.server
def test_two_publishers_under_one_name_are_found_out() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl, fairlead.connect(fl.url, source="s") as one:
            await fl.declare("TYPE N (x INT)")
            await one.publish("N", x=0, wait=True)
            async with fairlead.connect(fl.url, source="s") as other:
                await other.publish("N", x=1, wait=True)
            with pytest.raises(StateError, match="S131"):
                await one.publish("N", x=2, wait=True)
            await one.flush()  # it is said once, and then sent after what the other has stored
            assert [each["x"] for each in await rows_of(fl, "N")] == [0, 1, 2]

    run(work)


def test_bad_input_is_refused_and_nothing_of_it_is_stored() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(f"{QUOTES}; TYPE N (x INT); EVENT UNION Any = Quote + N")
            for code, call in {
                "D001": fl.publish("Qoute", value=1.0),
                "D002": fl.publish("N", x=1, y=2),
                "D003": fl.publish("N"),
                "D004": fl.publish("N", x="one"),
                "D006": fl.publish("Quote", symbol="A", value=1.0, at=None),
                "D007": fl.publish("Quote", symbol="A" * 1_100_000, value=1.0, at=NOW),
                "D008": fl.publish("Any", x=1),
                "D004 ": fl.publish_many("N", [{"x": 1}, {"x": 2}, {"x": "three"}]),
                "D002 ": fl.publish_many("N", pa.table({"x": [1], "z": [2]})),
                "D003 ": fl.publish_many("N", pa.table({"q": [1]}).drop_columns("q")),
            }.items():
                if code == "D003 ":
                    await asyncio.gather(call, return_exceptions=True)
                    continue
                with pytest.raises(DataError, match=code.strip()):
                    await call
            with pytest.raises(UsageError, match="A102"):
                await fl.publish_many("N", "x")
            await fl.flush()
            assert await fl.log.last(await fl.log.open_topics(["main"])) == 0

    run(work)


@pytest.mark.server
def test_types_evolve_by_attributes_at_the_end_and_in_no_other_way() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            assert await fl.declare("TYPE A (x INT)") == ["A"]
            await fl.publish("A", x=1, wait=True)
            await fl.declare("TYPE A (x INT)")
            await fl.declare("TYPE A (x INT, y STRING)")
            await fl.publish("A", x=2, y="two", wait=True)
            await fl.publish("A", x=3, wait=True)
            await fl.publish_many("A", pa.table({"x": [4]}), wait=True)
            await fl.publish_many("A", [{"x": 5}, {"x": 6, "y": "six"}], wait=True)
            await fl.declare("TYPE A (x INT)")  # an older program
            rows = await rows_of(fl, "A")
            assert [(row["x"], row["y"]) for row in rows] == [
                (1, None), (2, "two"), (3, None), (4, None), (5, None), (6, "six"),
            ]  # fmt: skip
            for text in ("TYPE A (x BIGINT)", "TYPE A (y STRING, x INT)", "TYPE A (x INT, z INT)"):
                with pytest.raises(UsageError, match="A243"):
                    await fl.declare(text)
            await fl.declare("TYPE B EXTENDS A (z INT)")
            await fl.publish("B", x=1, z=1, wait=True)
            with pytest.raises(UsageError, match="A243"):
                await fl.declare("TYPE B (z INT)")
            with pytest.raises(LanguageError):
                await fl.declare("TYPE C (x NUMBER)")
            with pytest.raises(UsageError, match="A242"):
                await fl.declare("SUBSCRIPTION S MATCH A a")

    run(work)


@pytest.mark.server
def test_declaring_at_the_same_time_comes_to_one_declaration() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            clients = [fairlead.connect(fl.url) for _ in range(4)]
            for each in clients:
                await each.__aenter__()
            await asyncio.gather(*(each.declare("TYPE A (x INT); TYPE B (y INT)") for each in clients))
            results = await asyncio.gather(
                clients[0].declare("TYPE C (x INT)"), clients[1].declare("TYPE C (x STRING)"), return_exceptions=True
            )
            assert sum(isinstance(each, UsageError) for each in results) == 1
            for each in clients:
                await each.__aexit__(None, None, None)

    run(work)


def test_a_full_store_is_an_error_with_a_code_and_nothing_is_lost() -> None:
    class Full(Losing):
        full = True

        async def append(self, block: Block, after: int) -> int:
            if self.full:
                raise LogError("N004", "the log is full", "make room")
            return int(await self._log.append(block, after))

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare("TYPE N (x INT)")
            full = Full(fl.log, "")
            fl._publisher._log = full  # type: ignore[assignment]
            with pytest.raises(LogError, match="N004"):
                await fl.publish("N", x=1, wait=True)
            told = await asyncio.gather(*(fl.publish("N", x=x, wait=True) for x in (2, 3, 4)), return_exceptions=True)
            assert [getattr(each, "code", None) for each in told] == ["N004"] * 3  # everyone who waits is told
            full.full = False
            await fl.publish("N", x=5, wait=True)
            found = [row["x"] for row in await rows_of(fl, "N")]  # of the others those that were accepted, once
            assert found == sorted(set(found))
            assert found[0] == 1

    run(work)


class Refusing(Losing):
    """A log that is full while `full`, and counts what it is asked to store."""

    full = True

    async def append(self, block: Block, after: int) -> int:
        self.asked += 1
        if self.full:
            raise LogError("N004", "the log is full", "make room")
        return int(await self._log.append(block, after))


@pytest.mark.parametrize("many", [False, True])
def test_an_error_says_whether_what_was_published_is_kept(many: bool) -> None:
    async def publish(fl: Client, x: int) -> bool | None:
        two = pa.table({"x": pa.chunked_array([[x], [x]], pa.int32())})
        call = fl.publish_many("N", two, wait=True) if many else fl.publish("N", x=x, wait=True)
        [told] = await asyncio.gather(call, return_exceptions=True)
        if not isinstance(told, LogError):
            return None
        assert ("is kept, and sent with the next publish or flush" in told.problem) is told.accepted
        assert ("was not accepted" in told.problem) is not told.accepted
        return told.accepted

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare("TYPE N (x INT)")
            full = Refusing(fl.log, "")
            fl._publisher._log = full  # type: ignore[assignment]
            told = [await publish(fl, x) for x in range(5)]
            await fl.publish("N", x=5)  # nobody waits for it
            await until(lambda: full.asked >= 6)
            told += [None, *[await publish(fl, x) for x in range(6, 8)]]
            full.full = False
            told.append(await publish(fl, 8))
            await fl.flush()
            last = await fl.log.last_of("main", fl.source)
            assert last is not None
            assert True in told
            assert False in told
            kept = [x for x, accepted in enumerate(told) if accepted is not False]
            found = await rows_of(fl, "N")
            assert [row["x"] for row in found] == [x for x in kept for _ in range(2 if many and x != 5 else 1)]

    run(work)


def test_a_call_of_many_blocks_is_accepted_as_a_whole() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare("TYPE N (x INT)")
            full = Refusing(fl.log, "")
            fl._publisher._log = full  # type: ignore[assignment]
            for first in (0, 200_000):
                table = pa.table({"x": pa.array(range(first, first + 200_000), pa.int32())})
                with pytest.raises(LogError, match="N004") as told:
                    await fl.publish_many("N", table, wait=True)
                assert told.value.accepted is (first == 0)
            full.full = False
            await fl.flush()
            rows = await rows_of(fl, "N")
            assert [row["x"] for row in rows] == list(range(200_000))

    run(work)


def test_nobody_there() -> None:
    async def work() -> None:
        with pytest.raises(LogError, match="N001"):
            async with fairlead.connect("nats://127.0.0.1:1"):
                pass

    run(work)


@pytest.mark.server
def test_a_server_that_cannot_compare_appends_is_refused(tmp_path: Path) -> None:
    async def ignore(*_: Exception) -> None:
        pass

    async def work() -> None:
        with Server(tmp_path, durable=False) as server:
            async with fairlead.connect(server.url):
                pass
            with pytest.raises(LogError, match=r"N012 the server has version 2.*, and 99.0 is the oldest supported"):
                await connection.connected(server.url, Credentials(), ignore, ignore, version_min=(99, 0))

    run(work)


def test_a_client_is_used_while_it_is_open() -> None:
    async def work() -> None:
        fl = fairlead.connect("memory:")
        with pytest.raises(UsageError, match="A248"):
            await fl.publish("N", x=1)

    run(work)


def test_conflicts_are_not_mistaken_for_success() -> None:
    assert not issubclass(Conflict, Unavailable)


@pytest.mark.server
def test_what_is_more_than_a_full_block_waits_for_others_and_comes_in_order() -> None:
    async def work() -> None:
        async with fairlead.connect(linger=0.2) as fl:
            await fl.declare("TYPE A (x INT); TYPE Tick ()")
            for low in range(0, 12_000, 3_000):
                await fl.publish_many("A", {"x": list(range(low, low + 3_000))})
                await fl.publish_many("Tick", pa.RecordBatch.from_struct_array(pa.array([{}] * 3_000, type=pa.struct([]))))
            await fl.publish("A", x=12_000)
            await fl.flush()
            stream = await fl.log.open_topics(["main"])
            blocks = await taken(fl.log, stream, await fl.log.last(stream))
            assert [each.block.count for each in blocks] == [4096] * 5 + [24_001 - 5 * 4096]
            assert [row["x"] for row in await rows_of(fl, "A")] == list(range(12_001))
            assert len(await rows_of(fl, "Tick")) == 12_000

    run(work)
