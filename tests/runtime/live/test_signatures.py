"""Tables and states that clients rely on, forged: what the log can rebuild is passed over, everything else is refused."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import fairlead
from fairlead.errors import StateError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.merged_streams import TABLE as LEASES
from fairlead.runtime.live.merged_streams import needed
from fairlead.runtime.rights.signatures import sign_all
from fairlead.runtime.rights.subjects import TABLES
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.log_place import place_of
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.signed_log import SignedLog, SigningKeys, parts_of
from tests.runtime.live.reading import more
from tests.runtime.live.whole_log import KEYS, RULES, STATES, TYPES, begun, built, client, copied, publish, resumed
from tests.transport.log.logs import run

OTHERS = SigningKeys((b"x" * 32,))


@pytest.fixture(scope="module")
def whole() -> MemoryLog:
    return run(built)  # type: ignore[no-any-return]


async def refused(work: Awaitable[object]) -> None:
    with pytest.raises(StateError, match="S146"):
        await work


async def same_deliveries(fl: Client) -> None:
    assert len(await resumed(fl)) == 3


async def not_leased(fl: Client) -> None:
    assert fairlead.transport.log.names.merged_stream("abc") not in await needed(fl.log)  # type: ignore[attr-defined]


async def counted(fl: Client) -> None:
    assert [each.rejections.count for each in (await fl.overview()).topics] == [0, 0, 0]


async def sink(fl: Client) -> None:
    await refused(fl.log.get("FL_SINKS", "sink"))


READERS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "FL_TYPES": lambda fl: refused(fl.types()),
    "FL_TOPICS": lambda fl: refused(fl.retain()),
    "FL_ROUTES": same_deliveries,
    "FL_ORIGINS": lambda fl: refused(resumed(fl)),
    "FL_LINEAGES": same_deliveries,
    STATES: same_deliveries,
    "FL_SUBS": lambda fl: refused(resumed(fl)),
    "FL_ACKS": lambda fl: refused(resumed(fl)),
    "FL_RECEIPTS": lambda fl: refused(fl.compare("desk", "other")),
    "FL_TRIMS": lambda fl: refused(begun(fl)),
    LEASES: not_leased,
    "FL_REJECTED": counted,
    "FL_SINKS": sink,
}
"""By table, what a client with the keys does that relies on it."""


async def forged(log: MemoryLog, table: str, key: str, how: str) -> None:
    held = log._objects[table] if table == STATES else log._tables[table]
    value = held[key] if table == STATES else log._tables[table][key].value
    told, place = parts_of(value), ("object" if table == STATES else "table", table, key)  # type: ignore[arg-type]
    match how:
        case "altered":
            changed = value[:-2] + bytes([value[-2] ^ 1]) + value[-1:]  # type: ignore[index,operator]
        case "of another name":
            changed = KEYS.signed((*place[:2], "another"), told.after, told.content)
        case "of another table":
            changed = KEYS.signed((place[0], "FL_ANOTHER", key), told.after, told.content)
        case "unsigned":
            changed = told.content
        case "of another key":
            changed = OTHERS.signed(place, told.after, told.content)
        case "truncated":
            changed = value[: len(value) // 2]  # type: ignore[arg-type,index]
        case _:  # an old version, which the log has compared with the present one
            if table == STATES:  # has no versions
                changed = b""
            else:
                await SignedLog(log, KEYS).put(table, key, told.content)
                await log.put(table, key, value, await log.revision_of(table, key))  # type: ignore[arg-type]
                return
    if table == STATES:
        log._objects[table][key] = changed
    else:
        log._tables[table][key] = log._tables[table][key]._replace(value=changed)


FORGERIES = ("altered", "of another name", "of another table", "unsigned", "of another key", "truncated", "old")


@pytest.mark.parametrize("how", FORGERIES)
@pytest.mark.parametrize("table", READERS)
def test_a_forged_entry_misleads_nobody(whole: MemoryLog, table: str, how: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        log = copied(whole)
        keys = log._objects[table] if table == STATES else log._tables[table]
        for key in sorted(keys):
            await forged(log, table, key, how)
        async with client(log) as fl:
            await READERS[table](fl)

    with caplog.at_level(logging.WARNING, "fairlead"):
        run(work)
    passed_over = READERS[table] in (same_deliveries, not_leased, counted)
    assert ("S146" in caplog.text) is passed_over


def test_every_table_is_forged(whole: MemoryLog) -> None:
    assert {*READERS} == {*TABLES, STATES} == {*whole._tables, *whole._objects}


@pytest.mark.parametrize("table", READERS)
def test_nothing_is_refused_that_is_signed(whole: MemoryLog, table: str, caplog: pytest.LogCaptureFixture) -> None:
    """What the matrix does, on the log as it is: so it is the forgery that is refused."""

    async def work() -> None:
        async with client(copied(whole)) as fl:
            await fl.types()
            await fl.retain(apply=True)
            await fl.compare("desk", "other")
            await fl.overview()
            assert await fl.log.get("FL_SINKS", "sink") is not None
            assert len(await resumed(fl)) == 3

    run(work)
    assert "S146" not in caplog.text


def test_clients_without_keys_read_a_signed_log_and_their_entries_are_refused(whole: MemoryLog) -> None:
    async def work() -> None:
        log = copied(whole)
        async with client(log, SigningKeys(), "q") as fl:
            assert len(await resumed(fl)) == 3
            await fl.declare("TYPE C (k INT)")
        async with client(log) as fl:
            await refused(fl.types())

    run(work)


@pytest.mark.server
def test_on_a_server(tmp_path: Path) -> None:
    """States and declarations, written past the keys by a client of the same server."""
    keys, data = tmp_path / "keys", tmp_path / "log"
    keys.write_text("k" * 64)

    async def work() -> None:
        async with fairlead.connect(data=data, signing_keys=keys, source="p") as fl:
            await fl.declare(TYPES)
            await publish(fl, 1, 6)
            async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                await more(sub)
                await sub.ack()
            await publish(fl, 6, 9)
            async with fairlead.connect(fl.url, signing_keys=keys) as second:
                expected = await resumed(second)
                assert len(expected) == 3
            async with fairlead.connect(fl.url) as stranger:
                for name in await stranger.log.objects(STATES):
                    await stranger.log.put_object(
                        STATES, name, (await stranger.log.get_object(STATES, name) or b"")[:-1] + b"x"
                    )
                for key in await stranger.log.keys("FL_LINEAGES"):
                    await stranger.log.put("FL_LINEAGES", key, b"[[1, 0], [5, 1000000]]")
            async with fairlead.connect(fl.url, signing_keys=keys) as second:
                assert await resumed(second) == expected
            async with fairlead.connect(fl.url) as stranger:
                entry = await stranger.log.get("FL_TYPES", "A")
                assert entry is not None
                await stranger.log.put("FL_TYPES", "A", entry.value.replace(b"x INT", b"x DOUBLE"))
            async with fairlead.connect(fl.url, signing_keys=keys) as second:
                await refused(second.types())
            await signed_anew(fl.url, keys)

    run(work)


async def signed_anew(url: str, keys: Path) -> None:
    """A second key signs what the first one has signed, then the first is removed; what a stranger wrote is listed."""
    stranger = {"FL_TYPES A"}
    for text, adopt, refused in (
        ("n" * 32 + "\n" + "k" * 64, False, stranger),
        ("n" * 32, False, stranger),
        ("n" * 32, True, set()),
    ):
        keys.write_text(text)
        found = await sign_all(place_of(url, None, None, Credentials(signing_keys=str(keys))), adopt=adopt)
        assert {each for each in found.refused if "FL_TYPES" in each} == refused
    async with fairlead.connect(url, signing_keys=keys) as fl:
        assert "A" in await fl.types()
