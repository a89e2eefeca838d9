"""The three forms of a log keep the same promises."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from fairlead.errors import DataError, LogError
from fairlead.model.blobs import packed
from fairlead.model.events.types import Attribute, DataType, EventType, Kind
from fairlead.testing.live.cluster.servers import Cluster
from fairlead.transport.log.blocks.block import BYTES_MAX, EVENTS_MAX, Block, block_of, decode, pieces
from fairlead.transport.log.blocks.block_filter import MIXED, Only
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.file_log import FileLog
from fairlead.transport.log.jetstream.log import connect
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Conflict, Log, Stored, Stream, Unavailable
from tests.transport.log.logs import KINDS, a_log, run
from tests.waiting import wait_until

A = EventType("A", (Attribute("x", DataType(Kind.INT)),), topic="A")


def block(type: str, source: str, number: int, values: list[int] | None = None, topic: str | None = None) -> Block:
    """`topic`: that of the same name, unless told."""
    rows = [number] if values is None else values
    payload = packed(pa.record_batch({"x": pa.array(rows, pa.int32())}))
    return Block(type, source, number, number, len(rows), "s", payload, topic=topic or type)


async def taken(log: Log, stream: Stream, count: int, after: int = 0, only: Only | None = None) -> list[Stored]:
    found: list[Stored] = []
    if not count:
        return found
    async for some in log.read(stream, after, only):
        found += some
        if len(found) >= count:
            break
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_is_sent_the_blocks_of_its_route_and_a_source_has_one_order_under_all_letters(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            stream, merged = await log.open_topics(["A"]), await log.open_topics(["A", "B"])
            told, after = ["", "n0 y0 u0 u0", "n0 y1 u1 u1", "y0 n2 u2 u2", "n3 n2 u3 u3"], [0]
            for number, marks in enumerate(told):
                after.append(await log.append(replace(block("A", "s", number), marks=marks), after[-1]))
                for other in ("", "y0 y0 y0 y0", marks):
                    for wrong in after[:-1]:
                        with pytest.raises(Conflict):
                            await log.append(replace(block("A", "s", number), marks=other), wrong)
            await log.append(block("B", "s", 0), 0)
            await taken(log, merged, 6)
            last = await log.last_of("A", "s")
            assert last is not None
            assert (last.sequence, last.block) == (after[-1], replace(block("A", "s", 4), marks=told[-1]))
            assert await log.sources("A") == ["s"]
            for route, expected in ((0, [0, 3]), (1, [0, 1, 2]), (2, [0, 1, 2, 3, 4])):
                only = Only(("A",), {"A": route})
                found = await taken(log, stream, len(expected), only=only)
                assert [each.block.number for each in found] == expected
                assert found[-1].sequence == await log.last(stream, only)
                both = Only(("A", "B", "Heartbeat"), {"A": route})
                found = await taken(log, merged, len(expected) + 1, only=both)
                assert [each.block.number for each in found if each.block.type == "A"] == expected
                assert found[-1].sequence == await log.last(merged, both)
                behind = (await taken(log, stream, 1, 2, only))[0].block.number if expected[-1] >= 2 else None
                assert behind == next((number for number in expected if number >= 2), None)
            assert await log.last(merged, Only(("B", "Heartbeat"), {"B": 1})) == await log.last(merged, Only(("B",), {}))
            assert await log.last(stream, Only(("B",), {"B": 0})) == 0

    run(work)


@pytest.mark.server
def test_in_a_cluster_one_of_several_attempts_is_stored_whatever_their_letters(tmp_path: Path) -> None:
    async def attempt(log: Log, number: int, letter: str, after: int) -> int | None:
        try:
            return await log.append(replace(block("A", "s", number), marks=f"{letter}-1 u-1 u-1 u-1"), after)
        except (Conflict, Unavailable):
            return None

    async def work() -> None:
        with Cluster(tmp_path) as cluster:
            logs = [await connect(cluster.url, Credentials(), 3) for _ in range(3)]
            patient = PatientLog(logs[0], 60)
            await patient.open_topics(["A"])
            after = number = 0
            while number < 30:
                found = await asyncio.gather(*(attempt(each, number, "ynu"[at], after) for at, each in enumerate(logs)))
                last = await patient.last_of("A", "s")
                stored = [each for each in found if each is not None]
                assert stored in ([], [0 if last is None else last.sequence])  # an answer may be lost
                if last is not None and last.block.number == number:
                    after, number = last.sequence, number + 1
            assert [each.block.number for each in await taken(logs[0], await patient.open_topics(["A"]), 30)] == list(range(30))
            assert await patient.last(await patient.open_topics(["A"])) == 30
            for each in logs:
                await each.close()

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_has_one_order_over_all_types_of_a_topic(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            stream, last, sent = await log.open_topics(["t"]), 0, []
            for number in range(4):
                for name in ("A", "B", MIXED):
                    types = ("A", "B") if name == MIXED else ()
                    one = replace(block(name, "s", number, topic="t"), types=types)
                    for wrong in {0, last - 1, last + 1} - {last, -1}:
                        with pytest.raises(Conflict):
                            await log.append(one, wrong)
                    last = await log.append(one, last)
                    sent.append(one)
                    await log.append(replace(one, source="other"), last - 1 if last > 1 else 0)
                    last_of_it = await log.last_of("t", "s")
                    assert last_of_it is not None
                    assert (last_of_it.sequence, last_of_it.block) == (last, one)
            found = await taken(log, stream, 24)
            assert [each.block for each in found if each.block.source == "s"] == sent
            for name in ("A", "B", MIXED):
                newest = await log.last_of("t", "s", name)
                assert newest is not None
                assert (newest.block.type, newest.block.number) == (name, 3)
            assert await log.last_of("t", "s", "C") is None
            assert await log.sources("t") == ["other", "s"]
            only = Only(("B",))
            chosen = await taken(log, stream, 16, only=only)
            assert [each for each in found if each.block.type != "A"] == chosen
            assert await log.last(stream, only) == 24

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_appended_is_read_in_order_with_its_numbers(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            stream = await log.open_topics(["A"])
            first = await log.append(block("A", "s", 0), 0)
            second = await log.append(block("A", "s", 1), first)
            assert (first, second, await log.last(stream)) == (1, 2, 2)
            found = await taken(log, stream, 2)
            assert [(each.sequence, each.block.number) for each in found] == [(1, 0), (2, 1)]
            assert found[0].time <= found[1].time
            assert [each.sequence for each in await taken(log, stream, 1, after=1)] == [2]
            last = await log.last_of("A", "s")
            assert last is not None
            assert (last.sequence, last.block) == (2, block("A", "s", 1))
            assert await log.last_of("A", "nobody") is None

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_an_append_after_another_one_than_expected_is_refused(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            await log.open_topics(["A"])
            await log.append(block("A", "s", 0), 0)
            with pytest.raises(Conflict):
                await log.append(block("A", "s", 1), 0)
            await log.append(block("A", "other", 0), 0)

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_merged_streams_share_the_order_of_their_first_topics(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            for name in "ABC":
                await log.open_topics([name])
            before = {(name, number): 0 for name in "ABC" for number in range(3)}
            after = dict.fromkeys("ABC", 0)
            for name, number in before:
                after[name] = await log.append(block(name, "s", number), after[name])
            two, three = await log.open_topics(["B", "A"]), await log.open_topics(["C", "A", "B"])
            assert two == await log.open_topics(["A", "B"])
            for number in range(3, 6):
                for name in "ABC":
                    after[name] = await log.append(block(name, "s", number), after[name])
            all_of_two = [(each.block.type, each.block.number) for each in await taken(log, two, 12)]
            all_of_three = [(each.block.type, each.block.number) for each in await taken(log, three, 18)]
            assert [each for each in all_of_three if each[0] != "C"] == all_of_two
            for name in "ABC":
                assert [number for each, number in all_of_three if each == name] == list(range(6))

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_waits_for_what_comes(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            stream = await log.open_topics(["A"])
            last = 0
            async with aclosing(log.read(stream, 0)) as reading:  # type: ignore[type-var]
                for number in range(3):
                    waiting = asyncio.create_task(anext(reading))
                    await asyncio.sleep(0)  # it begins to wait
                    last = await log.append(block("A", "s", number), last)
                    assert [each.block.number for each in await waiting] == [number]

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_compare_revisions_and_objects_may_be_large(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            assert await log.get("T", "k") is None
            assert await log.keys("T") == []
            first = await log.put("T", "k", b"1", 0)
            with pytest.raises(Conflict):
                await log.put("T", "k", b"2", 0)
            second = await log.put("T", "k", b"2", first)
            with pytest.raises(Conflict):
                await log.put("T", "k", b"3", first)
            found = await log.get("T", "k")
            assert found is not None
            assert (found.value, found.revision, found.after) == (b"2", second, first)
            assert await log.revision_of("T", "k") == second
            await log.put("T", "a", b"")
            assert await log.keys("T") == ["a", "k"]
            await log.remove("T", "k")
            assert await log.get("T", "k") is None
            removal = await log.revision_of("T", "k")
            assert removal > second
            with pytest.raises(Conflict):
                await log.put("T", "k", b"4", second)
            await log.put("T", "k", b"4", removal)
            created = await log.get("T", "k")
            assert created is not None
            assert created.after == removal
            assert created.time >= found.time
            await log.remove("T", "k")
            await log.put("T", "k", b"4", 0)
            large = os.urandom(3_000_000)
            assert await log.get_object("O", "none") is None
            await log.put_object("O", "large", large)
            await log.put_object("O", "other", b"")
            assert await log.get_object("O", "large") == large
            assert await log.objects("O") == ["large", "other"]
            await log.remove_object("O", "large")
            assert await log.objects("O") == ["other"]

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_time_is_found_in_a_stream(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            stream, last = await log.open_topics(["A"]), 0
            for number in range(4):
                last = await log.append(block("A", "s", number), last)
                await asyncio.sleep(0.005)  # their times differ
            found = await taken(log, stream, 4)
            assert await log.before(stream, found[2].time) == 2
            assert await log.before(stream, found[0].time - 10_000_000) == 0
            assert await log.before(stream, found[3].time + 1) == 4

    run(work)


def test_a_log_in_a_file_is_there_again(tmp_path: Path) -> None:
    async def first() -> list[Stored]:
        log = FileLog(tmp_path)
        await log.open_topics(["A", "B"])
        await log.append(block("A", "s", 0), 0)
        await log.append(block("B", "s", 0), 0)
        await log.put("T", "k", b"v")
        await log.put_object("O", "o", b"x" * 100)
        found = await taken(log, await log.open_topics(["A", "B"]), 2)
        with pytest.raises(LogError, match="N006"):
            FileLog(tmp_path)
        await log.close()
        return found

    async def second(expected: list[Stored]) -> None:
        log = FileLog(tmp_path)
        assert await taken(log, await log.open_topics(["A", "B"]), 2) == expected
        assert (await log.get("T", "k") or (b"",))[0] == b"v"
        assert await log.get_object("O", "o") == b"x" * 100
        assert await log.append(block("A", "s", 1), 1) == 2
        await log.close()

    found = run(first)
    with open(tmp_path / "journal", "ab") as journal:
        journal.write(b'{"do": "append", "length": 100, "check": 0}\nhalf')
    run(lambda: second(found))


@pytest.mark.server
def test_a_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = (
        "import signal, sys; from fairlead.transport.log.jetstream.server import Server\n"
        "server = Server(sys.argv[1]).start(); print(server.pid, flush=True); signal.pause()"
    )
    starter = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, env=os.environ)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    with pytest.raises(LogError, match="N006"):
        Server(tmp_path).start()
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    wait_until(lambda: not _alive(pid))
    with Server(tmp_path) as again:
        assert again.url.startswith("nats://127.0.0.1:")


def _alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def test_blocks_have_at_most_so_many_events_and_bytes() -> None:
    wide = pa.record_batch({"x": pa.array(["a" * 100, "b" * 400_000, "c", "d" * 300_000, "e" * 900_000])})
    assert [count for count, _ in pieces(wide)] == [1, 1, 1, 1, 1] or sum(count for count, _ in pieces(wide)) == 5
    for count, payload in pieces(wide):
        assert count == 1 or len(payload) <= BYTES_MAX
    narrow = pa.record_batch({"x": pa.array(range(10_000), pa.int32())})
    assert [count for count, _ in pieces(narrow)] == [EVENTS_MAX, EVENTS_MAX, 10_000 - 2 * EVENTS_MAX]


def test_old_events_have_null_where_attributes_were_added_and_readers_leave_out_what_they_do_not_know() -> None:
    stored = block("A", "s", 0, [1, 2])
    newer = EventType("A", (*A.attributes, Attribute("y", DataType(Kind.STRING))), topic="A")
    assert decode(stored, newer).to_pydict() == {"x": [1, 2], "y": [None, None]}
    assert decode(stored, EventType("A", (), topic="A")).num_rows == 2


def test_what_is_not_a_block_is_refused() -> None:
    with pytest.raises(DataError, match="D030"):
        block_of({"Fl-Type": "A"}, b"", "fl.e.A.A.s.u.u.u.u", "stream 1")
    with pytest.raises(DataError, match="D031"):
        decode(Block("A", "s", 0, 0, 1, "", b"nonsense"), A)
    with pytest.raises(DataError, match="D031"):
        decode(block("A", "s", 0, [1]), EventType("A", (Attribute("x", DataType(Kind.STRING)),)))


def test_types_without_attributes_have_blocks_too() -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, type=pa.struct([])))
    assert decode(Block("A", "s", 0, 0, 3, "", packed(batch)), EventType("A", ())).num_rows == 3


@pytest.mark.server
def test_an_object_that_has_lost_a_chunk_is_none_at_once() -> None:
    async def work() -> None:
        async with a_log("server") as log:
            value = random.Random(1).randbytes(1_000_000)  # eight chunks
            await log.put_object("STATES", "one", value)
            await log.put_object("STATES", "two", value[::-1])
            assert await log.get_object("STATES", "one") == value
            js = log._js  # type: ignore[attr-defined]
            info = await js.stream_info("OBJ_STATES", subjects_filter="$O.STATES.C.>")
            first = next(iter(info.state.subjects))
            await js.purge_stream("OBJ_STATES", subject=first, keep=5)
            found = [await log.get_object("STATES", name) for name in ("one", "two")]
            assert sorted(found, key=lambda each: each is None) in ([value, None], [value[::-1], None])
            await js.purge_stream("OBJ_STATES", subject=first)
            assert [await log.get_object("STATES", name) for name in ("one", "two")].count(None) == 1
            assert await log.get_object("STATES", "three") is None

    run(work)
