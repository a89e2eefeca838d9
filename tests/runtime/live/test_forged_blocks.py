"""Blocks that a stranger wrote: skipped by every reader alike, and the end of none. A right to publish one type is
no right to another.

Forgeries are generated: of ordinary and of mixed blocks, of what is in them and of what is said about them.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.errors import LogError
from fairlead.model.blobs import packed
from fairlead.model.events.types import Attribute, DataType, EventType, Kind
from fairlead.runtime.live.client import Client
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.blocks.mixed_block import wanted_events
from fairlead.transport.log.jetstream.server import Server
from tests.fuzz.tables import damaged
from tests.runtime.live.reading import ids, more
from tests.transport.log.logs import run

ATTRIBUTES = (
    Attribute("k", DataType(Kind.INT)),
    Attribute("s", DataType(Kind.STRING)),
    Attribute("at", DataType(Kind.TIMESTAMP)),
)
KNOWN = {name: EventType(name, ATTRIBUTES, time_attribute="at") for name in "AB"}
TYPES = "; ".join(f"TYPE {name} (k INT, s STRING, at TIMESTAMP) TIME at" for name in "AB")
TIME = pa.timestamp("us", tz="UTC")
ROWS = 6


def batch(rows: int, **columns: Any) -> pa.RecordBatch:
    made = {"k": pa.array(range(rows), pa.int32()), "s": pa.array([f"text {at}" for at in range(rows)])}
    return pa.record_batch(made | {"at": pa.array(range(rows), TIME)} | columns)


def compressed(found: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, found.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(found)
    return bytes(sink.getvalue().to_pybytes())


def mixed(first: bytes, second: bytes, codes: bytes, types: tuple[str, ...] = ("A", "B"), count: int | None = None) -> Block:
    whole = first + second + codes
    return Block(MIXED, "s", 0, 0, len(codes) if count is None else count, "", whole, "w", types=types)


DEEP = pa.int32()
for _ in range(8):
    DEEP = pa.list_(DEEP)
A, B, CODES = packed(batch(4)), packed(batch(2)), bytes([0, 1, 0, 0, 1, 0])
WHOLE: dict[str, Block] = {
    "nonsense": mixed(b"", b"", b"nonsense"),
    "too short": mixed(A, B, CODES, count=4096),
    "a code of no type": mixed(A, B, bytes([0, 1, 0, 0, 1, 7])),
    "other counts": mixed(A, B, bytes([0, 1, 0, 1, 1, 0])),
    "one type": mixed(A, b"", bytes(4), ("A",)),
    "a type twice": mixed(A, B, CODES, ("A", "A")),
    "a third type": mixed(A, B, CODES, ("A", "B", "C")),
    "something between": mixed(A, b"\0" * 8 + B, CODES),
    "something after": mixed(A, B + A, CODES),
    "a compressed batch": mixed(A, compressed(batch(2)), CODES),
    "a bomb": mixed(A, compressed(batch(2, s=pa.array(["a" * 50_000_000] * 2))), CODES),
    "two batches": mixed(A, B[:-8] + B[B.index(b"\xff\xff\xff\xff", 8) : -8] + B[-8:], CODES),
    "no end": mixed(A, B[:-8], CODES),
    **{
        f"a column of {kind}": mixed(A, packed(batch(2, s=pa.nulls(2, kind))), CODES)
        for kind in (
            pa.map_(pa.string(), pa.int32()),
            pa.large_list(pa.string()),
            pa.list_(pa.string(), 2),
            pa.list_view(pa.string()),
            pa.list_(pa.null()),
            pa.list_(pa.dictionary(pa.int8(), pa.string())),
            pa.list_(pa.struct([])),
            pa.struct([("a", pa.int32()), ("a", pa.int32())]),
            pa.struct([("a", pa.sparse_union([pa.field("b", pa.int32())]))]),
            DEEP,
        )
    },
    "a dictionary": mixed(A, packed(batch(2, s=pa.array(["a", "b"]).dictionary_encode())), CODES),
    "a column twice": mixed(A, packed(pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int32())] * 2, names=["k", "k"])), CODES),
    "text that is none": mixed(A, packed(batch(2)).replace(b"text 1", b"\xff\xff\xff\xff\xff\xff"), CODES),
}
"""Mixed blocks that have no events."""
OF_ONE_TYPE: dict[str, Block] = {
    "a nested column": mixed(A, packed(batch(2, s=pa.array([["a"], ["b"]]))), CODES),
    "a column of another type": mixed(A, packed(batch(2, k=pa.array([1, 2], pa.int64()))), CODES),
    "no time": mixed(A, packed(batch(2, at=pa.array([1, None], TIME))), CODES),
    "a time of no year": mixed(A, packed(batch(2, at=pa.array([1, 2**62], TIME))), CODES),
    "another topic": replace(mixed(A, B, CODES), topic="other"),
}
"""Mixed blocks in which the events of B are none; of the last, nor are those of A."""


@pytest.mark.parametrize("name", WHOLE)
def test_a_damaged_mixed_block_has_no_events_whatever_is_wanted_of_it(name: str) -> None:
    for wanted in ("A", "B", "AB"):
        found = wanted_events(WHOLE[name], {each: KNOWN[each] for each in wanted})
        assert len(found.indices) == len(found.events) == 0
        assert [each.code for each in found.rejected] == ["D031"] * (not {*wanted}.isdisjoint(WHOLE[name].types))
    assert wanted_events(WHOLE[name], {"Z": EventType("Z", ())}).rejected == ()


@pytest.mark.parametrize("name", OF_ONE_TYPE)
def test_events_that_do_not_fit_their_type_are_rejected_and_those_of_other_types_are_not(name: str) -> None:
    rest = [] if name == "another topic" else [0, 2, 3, 5]
    for wanted, left in (("A", rest), ("B", []), ("AB", rest)):
        assert wanted_events(OF_ONE_TYPE[name], {each: KNOWN[each] for each in wanted}).indices.tolist() == left


def test_what_is_right_is_not_rejected() -> None:
    empty = mixed(A, packed(batch(0)), bytes(4))
    assert (
        wanted_events(empty, KNOWN).indices.tolist() == wanted_events(empty, {"A": KNOWN["A"]}).indices.tolist() == [0, 1, 2, 3]
    )
    found = wanted_events(mixed(A, B, CODES), KNOWN)
    assert (found.indices.tolist(), found.rejected) == ([0, 1, 2, 3, 4, 5], ())
    assert wanted_events(mixed(A, B, CODES), {"B": KNOWN["B"]}).indices.tolist() == [1, 4]


@pytest.mark.parametrize("seed", range(20))
def test_readers_of_different_types_agree_on_damaged_blocks(seed: int) -> None:
    """Blocks with some other bytes: each reader gets the events of its types that the reader of both gets."""
    draw = random.Random(seed)
    for _ in range(50):
        block = mixed(A, B, CODES)
        block = replace(block, payload=damaged(block.payload, draw))
        both, alone = wanted_events(block, KNOWN), {name: wanted_events(block, {name: KNOWN[name]}) for name in KNOWN}
        assert sorted(at for each in alone.values() for at in each.indices.tolist()) == both.indices.tolist()


FORGED = [each for each in (*WHOLE.values(), *OF_ONE_TYPE.values()) if each.topic == "main"]
RULES = {
    "A": "SUBSCRIPTION S MATCH A a",
    "B": "SUBSCRIPTION S MATCH B b",
    "pairs": "SUBSCRIPTION S MATCH A a THEN B b",
    "absent": "SUBSCRIPTION S MATCH A a WITHOUT B b WITHIN 1 SECOND OF a",
}


def test_no_forgery_ends_a_subscriber_and_equal_ones_agree(tmp_path: Path) -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            opened = {name: await fl.subscribe(text, start="earliest").__aenter__() for name, text in RULES.items()}
            after = 0
            for number, each in enumerate(FORGED):
                after = await fl.log.append(replace(each, number=number), after)
                for second, name in enumerate("AB"):
                    await fl.publish(name, k=number, s="honest", at=f"2026-01-01T00:{number + 1:02}:{30 * second:02}Z")
                await fl.flush()
            for name, text in RULES.items():
                found = await more(opened[name])
                await opened[name].__aexit__(None, None, None)
                async with fl.subscribe(text, start="earliest") as late:
                    assert ids(await more(late)) == ids(found)
                await fl.export(text, tmp_path / "e.parquet")
                plan = fairlead.compile(f"{TYPES} {text}")
                assert ids(fairlead.match(plan, pq.read_table(tmp_path / "e.parquet"), position="position")) == ids(found)
                assert len(found) >= len(FORGED) - 1

    run(work)


RIGHTS = """
authorization { users = [
  { user: admin, password: secret }
  { user: both, password: p, permissions: {
      publish: { allow: ["fl.e.main.A.both.>", "fl.e.main.B.both.>", "$JS.API.>", "$KV.>"] }, subscribe: ["_INBOX.>"] } }
  { user: one, password: p, permissions: {
      publish: { allow: ["fl.e.main.A.one.>", "$JS.API.>", "$KV.>"] }, subscribe: ["_INBOX.>"] } } ] }
"""


@pytest.mark.server
def test_where_rights_are_by_type_blocks_are_of_one_type_in_the_same_order(tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False, more=RIGHTS) as server:
            async with fairlead.connect(server.url, user="admin", password="secret", source="admin") as admin:
                await admin.declare("TYPE A (n INT) TYPE B (n INT)")
                sent = [{"type": random.Random(n).choice("AB"), "n": n} for n in range(60)]
                async with fairlead.connect(server.url, user="both", password="p", source="both") as fl:
                    await fl.publish_all(sent[:30])
                    for each in sent[30:]:
                        await fl.publish(each["type"], n=each["n"])
                one = await fairlead.connect(server.url, user="one", password="p", source="one").__aenter__()
                await one.publish("A", n=100)
                await one.publish("B", n=101)
                with pytest.raises(LogError, match="N003"):
                    await one.flush()
                await one.__aexit__(LogError)
                assert await seen(admin) == [*((each["type"], each["n"]) for each in sent), ("A", 100)]
                stream = await admin.log.open_topics(["main"])
                assert await admin.log.last_of("main", "both", MIXED) is None
                assert await admin.log.last(stream) > 20

    run(work)


async def seen(fl: Client) -> list[tuple[str, int]]:
    async with fl.subscribe("SUBSCRIPTION S MATCH A a OR B b", start="earliest") as sub:
        return [(each.events[0].type, each.events[0]["n"]) for each in await more(sub)]


def headers(**over: str) -> dict[str, str]:
    told = {"Fl-Topic": "main", "Fl-Type": "A", "Fl-Source": "one", "Fl-Number": "0", "Fl-Sequence": "0", "Fl-Count": "1"}
    return told | {"Fl-Schema": "x", "Fl-Writer": "m"} | over


ONE = packed(pa.record_batch({"n": pa.array([666], pa.int32())}))
PAIR = ONE + ONE + bytes([0, 1])
MESSAGES: dict[str, tuple[dict[str, str] | None, bytes]] = {
    "no headers": (None, b"hello"),
    "a block of B": (headers(**{"Fl-Type": "B"}), ONE),
    "a mixed block": (headers(**{"Fl-Type": MIXED, "Fl-Types": "A B", "Fl-Count": "2"}), PAIR),
    "types of a block of one": (headers(**{"Fl-Types": "A B", "Fl-Count": "2"}), PAIR),
    "another source": (headers(**{"Fl-Source": "honest", "Fl-Number": "0"}), ONE),
    "another topic": (headers(**{"Fl-Topic": "other"}), ONE),
    "other marks": (headers(**{"Fl-Marks": "n0 n0 n0 n0"}), ONE),
    "a count of no events": (headers(**{"Fl-Count": "0"}), ONE),
    "a huge number": (headers(**{"Fl-Sequence": str(10**30)}), ONE),
    "garbage": (headers(), b"\xff" * 100),
}


@pytest.mark.server
def test_the_right_to_publish_a_type_is_no_right_to_another_and_ends_nobody(tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False, more=RIGHTS) as server:
            async with fairlead.connect(server.url, user="admin", password="secret", source="honest") as fl:
                await fl.declare("TYPE A (n INT) TYPE B (n INT); TOPIC other (C) TYPE C (n INT)")
                early = await fl.subscribe("SUBSCRIPTION S MATCH A a OR B b", start="earliest").__aenter__()
                merged = await fl.subscribe("SUBSCRIPTION S MATCH B b AND C c", start="earliest").__aenter__()
                client = await nats.connect(server.url, user="one", password="p")
                for at, (told, payload) in enumerate(MESSAGES.values()):
                    await client.jetstream().publish("fl.e.main.A.one.u.u.u.u", payload, headers=told)
                    for name in "ABC":
                        await fl.publish(name, n=at, wait=True)
                await client.close()
                wanted = [(name, at) for at in range(len(MESSAGES)) for name in "AB"]
                got = [(each.events[0].type, each.events[0]["n"]) for each in await more(early)]
                assert got == await seen(fl) == wanted
                assert len(await more(merged)) == len(MESSAGES)
                for sub in (early, merged):
                    await sub.__aexit__(None, None, None)
                await fl.export("SUBSCRIPTION S MATCH A a OR B b", tmp_path / "e.parquet")

    run(work)


@pytest.mark.server
def test_a_source_whose_last_message_is_no_block_goes_on(tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False, more=RIGHTS) as server:
            async with fairlead.connect(server.url, user="admin", password="secret") as admin:
                await admin.declare("TYPE A (n INT) TYPE B (n INT)")
            client = await nats.connect(server.url, user="one", password="p")
            await client.jetstream().publish("fl.e.main.A.one.u.u.u.u", b"hello")
            await client.close()
            one = await fairlead.connect(server.url, user="one", password="p", source="one").__aenter__()
            await one.publish("A", n=1, wait=True)
            assert await seen(one) == [("A", 1)]
            await one.__aexit__(None)

    run(work)
