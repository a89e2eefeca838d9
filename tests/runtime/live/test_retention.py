"""A trimmed log: who starts, resumes, exports or derives finds what is left, and whoever lost something is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.errors import LogError, StateError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.block_columns import columns_of
from fairlead.runtime.live.publisher.publisher import Publisher
from fairlead.runtime.live.resume_points import resume_points
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.subscriber.stream_reader import blocks_between
from fairlead.transport.log.blocks.block_filter import ROUTES, Only
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.log_place import LogPlace
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Log, Stored, Stream
from fairlead.transport.log.trims import TABLE as TRIMS
from fairlead.transport.log.trims import trim_record
from tests.runtime.live.reading import APART, EMITTING, RULES, TYPES, ids, more, rows_of
from tests.transport.log.logs import URLS, run
from tests.transport.log.test_logs import taken

PLACES = pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
LOGS = pytest.mark.parametrize("url", URLS)


async def pairs(fl: Client, low: int, high: int, names: str = "AB") -> None:
    """One block for each event."""
    for k in range(low, high):
        for name in names:
            await fl.publish(name, k=k, x=k, wait=True)


async def trimmed(fl: Client, blocks: int) -> None:
    """Trims all topics but for about so many of the newest blocks of each."""
    for topic in await fl._registry.all_topics():
        state = await fl.log.state(await fl.log.open_topics([topic]))
        size = max(1, state.bytes * blocks // max(1, state.last - state.first + 1))
        await fl.declare(f"TOPIC {topic} KEEP {size} B")
    found = await fl.retain(apply=True)
    assert any(each.trimmed for each in found), found
    for each in found:
        await fl.declare(f"TOPIC {each.topic} KEEP ALL")


async def keys_of(fl: Client, rules: str, name: str | None, start: object, **more_told: bool) -> list[int]:
    async with fl.subscribe(rules, name=name, start=start, **more_told) as sub:  # type: ignore[arg-type]
        found = [each.members[0]["k"] for each in await more(sub)]
        await sub.ack()
        return found


@LOGS
@PLACES
def test_every_start_finds_what_is_left(url: str | None, types: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with fairlead.connect(url, source="p") as fl:
            await fl.declare(types)
            await pairs(fl, 0, 20, "ABC")
            assert await keys_of(fl, RULES, "old", "earliest") == list(range(20))
            await trimmed(fl, 12)
            kept = await keys_of(fl, RULES, "late", "earliest")
            assert kept == list(range(kept[0], 20))
            assert 0 < kept[0] < 19
            assert await keys_of(fl, RULES, None, datetime(2020, 1, 1, tzinfo=UTC)) == kept
            assert await keys_of(fl, RULES, "joins", "snapshot") == []
            async with fl.subscribe(RULES, name="new") as sub:
                await pairs(fl, 20, 22, "ABC")
                assert [each.members[0]["k"] for each in await more(sub)] == [20, 21]
            for name in ("old", "late", "joins"):
                assert await keys_of(fl, RULES, name, "new") == [20, 21]
            across = RULES.replace("B b", "C c").replace("b.k", "c.k")  # a merged stream that did not exist
            assert await keys_of(fl, across, "x", "earliest") == list(range(kept[0], 22))
            stream = await fl.log.open_topics(["main"] if types == TYPES else ["a"])
            with pytest.raises(LogError, match="N024"):
                _ = [each async for each in blocks_between(fl.log, stream, 0, 1)]
            exported = await fl.export(RULES, tmp_path / "e.parquet")
            table = pq.read_table(tmp_path / "e.parquet")
            found = fairlead.match(fairlead.compile(f"{TYPES} {RULES}"), table, position="position")
            async with fl.subscribe(RULES, start="earliest") as sub:
                assert ids(found.relations) == ids(await more(sub))
            assert exported.events == table.num_rows > 0

    run(work)


async def published(fl: Client, source: str, low: int, high: int) -> None:
    """By another publisher, in blocks of one event."""
    publisher = Publisher(fl.log, fl._registry, source, 0.001, 60.0)
    for k in range(low, high):
        for name in "AB":
            await publisher.publish(name, {"k": k, "x": k}, wait=True)
    await publisher.close(flush=True)


@LOGS
@PLACES
def test_a_publisher_that_returns_continues_its_numbers(url: str | None, types: str) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(types)
            await published(fl, "p", 0, 5)
            await published(fl, "q", 100, 110)
            assert len(await keys_of(fl, RULES, "old", "earliest")) == 15
            await trimmed(fl, 4)  # all of p, not all of q
            await published(fl, "p", 5, 7)
            await published(fl, "q", 110, 111)
            assert await keys_of(fl, RULES, "old", "new") == [5, 6, 110]
            last = await fl.log.last_block_of((await fl.types())["A"].topic, "p", "A")
            assert last is not None
            assert last.block.number == 6
            assert (await keys_of(fl, RULES, None, "earliest"))[-3:] == [5, 6, 110]

    run(work)


@LOGS
@PLACES
def test_who_has_not_read_what_is_trimmed_is_told_and_can_start_again(url: str | None, types: str) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(types)
            await published(fl, "p", 0, 3)
            assert await keys_of(fl, RULES, "slow", "earliest") == [0, 1, 2]
            await published(fl, "p", 3, 20)
            (first, *_) = await fl.retain()
            assert first.trimmed == 0
            await trimmed(fl, 6)
            with pytest.raises(StateError, match=r"S144 events of A, B that were not read .* positions \d+ to \d+ of FL_"):
                await keys_of(fl, RULES, "slow", "new")
            await fl.forget("slow")
            kept = await keys_of(fl, RULES, "slow", "earliest")
            assert kept == list(range(kept[0], 20))
            assert kept[0] > 3
            await published(fl, "p", 20, 22)
            assert await keys_of(fl, RULES, "slow", "new") == [20, 21]

    run(work)


@LOGS
def test_a_subscriber_of_a_rare_type_has_lost_nothing(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url, source="p") as fl:
            await fl.declare(TYPES)
            await pairs(fl, 0, 2, "C")
            assert await keys_of(fl, "SUBSCRIPTION R MATCH C c", "rare", "earliest") == [0, 1]
            await pairs(fl, 2, 30)
            await trimmed(fl, 6)
            assert await keys_of(fl, "SUBSCRIPTION R MATCH C c", "rare", "new") == []
            await pairs(fl, 30, 32, "C")
            assert await keys_of(fl, "SUBSCRIPTION R MATCH C c", "rare", "new") == [30, 31]
            assert await keys_of(fl, "SUBSCRIPTION R MATCH C c", None, "earliest") == [30, 31]

    run(work)


@LOGS
@PLACES
def test_what_all_durable_subscribers_have_read_is_trimmed(url: str | None, types: str) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(types)
            await published(fl, "p", 0, 10)
            assert len(await keys_of(fl, RULES, "one", "earliest")) == 10
            async with fl.subscribe(RULES, name="two", start="earliest") as two:
                async for relation in two:
                    if relation.members[0]["k"] == 4:
                        await two.ack(relation)
                        break
            assert all(each.trimmed == 0 for each in await fl.retain(apply=True))  # no policy, and not asked for
            plan = await fl.retain(read=True)
            assert [each.trimmed for each in await fl.retain(apply=True, read=True)] == [each.trimmed for each in plan]
            assert all(not each.behind for each in plan)
            assert await keys_of(fl, RULES, "two", "new") == [5, 6, 7, 8, 9]
            found = await fl.retain(apply=True, read=True)
            assert {each.why for each in found} <= {"read", ""}
            assert any(each.trimmed for each in found)
            await published(fl, "p", 10, 12)
            for name in ("one", "two"):
                assert await keys_of(fl, RULES, name, "new") == [10, 11]

    run(work)


class Interrupted(MemoryLog):
    """`meanwhile` happens once, when retention has found what to trim and is about to say so. `later` begins when retention has
    looked for subscribers a second time, which goes on when it has stored a record. `slow`: `later` looks at what is planned
    when that is trimmed."""

    meanwhile: Callable[[], Awaitable[None]] | None = None
    later: Callable[[], Coroutine[Any, Any, list[int]]] | None = None
    plans = slow = False
    task: asyncio.Task[list[int]] | None = None
    gate: asyncio.Event | None = None
    """Readers that begin now wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded, self.waits, self.trimmed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        if table == TRIMS and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        self.plans = self.plans or table == TRIMS
        at = await super().put(table, key, value, revision)
        if table == SUBSCRIBERS and key == "late":
            self.recorded.set()
        return at

    async def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        if (gate := self.gate) is not None:
            self.waits.set()
            await gate.wait()
        async for some in super().read(stream, after, only):
            yield some

    async def heads(self, stream: Stream, after: int, last: int) -> AsyncIterator[Sequence[Stored]]:
        if self.slow and asyncio.current_task() is self.task:
            await self.trimmed.wait()
        async for some in super().heads(stream, after, last):
            yield some

    async def trim(self, stream: Stream, first: int) -> None:
        await super().trim(stream, first)
        self.trimmed.set()

    async def keys(self, table: str) -> list[str]:
        found = await super().keys(table)
        if table == SUBSCRIBERS and self.plans and self.later is not None:
            later, self.later = self.later, None
            self.task = asyncio.create_task(later())
            await self.recorded.wait()
        return found


class InterruptedPlace(LogPlace):
    def __init__(self, log: Interrupted | None = None) -> None:
        super().__init__(None, None, 1, Credentials())
        object.__setattr__(self, "log", log or Interrupted())

    async def open(self, held: ExitStack) -> tuple[Log, str]:
        return self.log, "memory:"  # type: ignore[attr-defined]


@pytest.mark.parametrize("start", ["earliest", "snapshot"])
def test_a_reader_that_stood_still_while_its_events_were_trimmed_resumes(start: str) -> None:
    """It would resume from a state of another subscriber with the same rules, so retention does not count it as behind."""

    async def work() -> None:
        log = Interrupted()
        async with (
            Client(InterruptedPlace(log), "p", 0.0, 5.0, None) as fl,
            Client(InterruptedPlace(log), "q", 0.0, 5.0, None) as q,
        ):
            await fl.declare(TYPES)
            q._shared.times.every_events = 1
            gate = log.gate = asyncio.Event()
            async with fl.subscribe(RULES, name="slow", start=start) as slow:
                await log.waits.wait()
                log.gate = None
                async with q.subscribe(RULES, name="other", start="earliest") as other:
                    await pairs(fl, 0, 5)
                    assert len(await more(other)) == 5
                    await other.ack()
                (found,) = await q.retain(apply=True, read=True)
                assert (found.trimmed, found.behind) == (1, ())
                gate.set()
                with pytest.raises(LogError, match=r"N024.*\n.*under the same name"):
                    await more(slow)
            assert await keys_of(fl, RULES, "slow", start) == list(range(5))

    run(work)


def test_a_reader_of_a_route_that_stood_still_while_its_events_were_trimmed_resumes() -> None:
    """The other one has saved its state before a block that is not on the route: neither of them needs that block."""
    rules = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = 1 AND b.k = 1"

    async def work() -> None:
        log = Interrupted()
        async with (
            Client(InterruptedPlace(log), "p", 0.0, 5.0, None) as fl,
            Client(InterruptedPlace(log), "q", 0.0, 5.0, None) as q,
        ):
            await fl.declare(TYPES)
            q._shared.times.every_events = 1
            gate = log.gate = asyncio.Event()
            async with fl.subscribe(rules, name="slow", start="earliest") as slow:
                await log.waits.wait()
                log.gate = None
                async with q.subscribe(rules, name="other", start="earliest") as other:
                    await fl.publish("A", k=1, x=1, wait=True)
                    while not await other.has_passed(await other.ends()):
                        await asyncio.sleep(0)
                await fl.publish("A", k=0, x=0, wait=True)
                (found,) = await q.retain(apply=True, read=True)
                assert (found.trimmed, found.behind) == (2, ())
                gate.set()
                with pytest.raises(LogError, match="N024"):
                    await more(slow)
            await fl.publish("B", k=1, x=1, wait=True)
            assert await keys_of(fl, rules, "slow", "earliest") == [1]

    run(work)


@pytest.mark.parametrize("start", ["earliest", "position", "second"])
def test_what_was_to_be_trimmed_and_is_kept_after_a_second_look_does_not_count_as_trimmed(start: str) -> None:
    """Somebody subscribes while retention decides: it keeps what this one needs, and notices if that is removed otherwise."""
    where = {"earliest": "earliest", "position": 3 << 12, "second": 2 << 12}[start]

    async def work() -> None:
        async with Client(InterruptedPlace(), "p", 0.0, 5.0, None) as fl:
            await fl.declare(TYPES)
            await pairs(fl, 0, 5)
            assert await keys_of(fl, RULES, "old", "earliest") == list(range(5))
            log, needed = fl.log._log, {"earliest": 1, "position": 3, "second": 2}[start]  # type: ignore[attr-defined]

            async def subscribe() -> None:
                async with fl.subscribe(RULES, name="late", start=where):  # type: ignore[arg-type]
                    pass

            log.meanwhile = subscribe
            (found,) = await fl.retain(apply=True, read=True)
            assert found.trimmed == needed - 1
            stream = await fl.log.open_topics(["main"])
            assert (await trim_record(fl.log, stream.name)).first == needed
            await log.trim(stream, needed + 1)  # by somebody else
            with pytest.raises(LogError, match="N020"):
                await keys_of(fl, RULES, "late", "new")

    run(work)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("start", ["earliest", "new", "snapshot", 1 << 12, 7 << 12])
def test_who_subscribes_while_retention_trims_can_resume(start: str | int, slow: bool) -> None:
    """Retention has not seen it: it reads the plan, and begins where that is over."""

    async def work() -> None:
        async with Client(InterruptedPlace(), "p", 0.0, 5.0, None) as fl:
            await fl.declare(TYPES)
            fl._shared.times.every_events = 1
            await pairs(fl, 0, 5)
            assert await keys_of(fl, RULES, "old", "earliest") == list(range(5))
            log: Any = fl.log._log  # type: ignore[attr-defined]
            log.later, log.slow = (lambda: keys_of(fl, RULES, "late", start)), slow
            (found,) = await fl.retain(apply=True, read=True)
            assert found.trimmed > 6
            try:
                assert await log.task == []
            except StateError as error:  # nobody can start at a position that is trimmed
                assert (error.code, type(start)) == ("S144", int)  # noqa: PT017
                assert "positions" in error.problem  # noqa: PT017
                return
            await pairs(fl, 5, 6)
            for _ in range(2):
                async with fl.subscribe(RULES, name="late") as sub:
                    assert [each.members[0]["k"] for each in await more(sub)] == [5]

    run(work)


@pytest.mark.parametrize("start", ["earliest", "new", "snapshot", 1 << 12, 11 << 12])
def test_what_is_recorded_as_trimmed_and_still_there_counts_as_trimmed(start: str | int) -> None:
    """Retention has recorded what it removes, and is gone: its last request may be executed at any time. Seed 5200517 of the
    simulator."""

    class Gone(Exception): ...

    async def work() -> None:
        async with Client(InterruptedPlace(), "p", 0.0, 5.0, None) as fl:
            await fl.declare(TYPES)
            fl._shared.times.every_events = 1
            await pairs(fl, 0, 5)
            assert await keys_of(fl, RULES, "old", "earliest") == list(range(5))
            log: Any = fl.log._log  # type: ignore[attr-defined]
            with mock.patch.object(log, "trim", side_effect=Gone), pytest.raises(Gone):
                await fl.retain(apply=True, read=True)
            stream = await fl.log.open_topics(["main"])
            kept = (await trim_record(fl.log, stream.name)).first
            assert (await fl.log.state(stream)).first == 1 < kept
            try:
                async with fl.subscribe(RULES, name="late", start=start) as sub:  # type: ignore[arg-type]
                    await log.trim(stream, kept)
                    await pairs(fl, 5, 6)
                    assert [each.members[0]["k"] for each in await more(sub)] == [5]
            except StateError as error:
                assert (error.code, start) == ("S144", 1 << 12)  # noqa: PT017
                return
            assert await keys_of(fl, RULES, "late", start) == [5]

    run(work)


@LOGS
def test_a_gap_that_trimming_does_not_explain_is_found(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            await published(fl, "p", 0, 10)
            await published(fl, "q", 10, 12)
            await trimmed(fl, 8)
            stream = await fl.log.open_topics(["main"])
            first = (await fl.log.state(stream)).first
            await fl.log.trim(stream, first + 1)  # removed otherwise: its head is not noted
            with pytest.raises(LogError, match="N020"):
                await keys_of(fl, RULES, None, "earliest")
            assert await keys_of(fl, RULES, None, (first + 1) << 12)  # as the error says

    run(work)


@LOGS
@PLACES
def test_what_is_derived_is_stored_once_before_and_after_trimming(url: str | None, types: str) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(types)
            await published(fl, "p", 0, 10)
            stored: list[int] = []
            assert len(await keys_of(fl, EMITTING, "one", "earliest")) == 10
            stored += [each["k"] for each in await rows_of(fl, "Pair")]
            await trimmed(fl, 6)
            before = {each["k"] for each in await left_of(fl, "Pair")}
            await published(fl, "p", 10, 12)
            for name, start in (("two", "earliest"), ("one", "new"), ("three", "snapshot"), ("four", "new")):
                await keys_of(fl, EMITTING, name, start)
            stored += [each["k"] for each in await left_of(fl, "Pair") if each["k"] not in before]
            assert stored == list(range(12))
            await published(fl, "p", 12, 14)
            await fl.forget("one")  # the others go on
            for name in ("two", "four"):
                assert await keys_of(fl, EMITTING, name, "new") == [12, 13]
            assert [each["k"] for each in await left_of(fl, "Pair")][-4:] == [10, 11, 12, 13]

    run(work)


@LOGS
def test_a_lineage_that_was_trimmed_away_derives_from_now_on(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            await published(fl, "p", 0, 3)
            await keys_of(fl, EMITTING, "one", "earliest")
            await published(fl, "p", 3, 20)
            await trimmed(fl, 10)
            with pytest.raises(StateError, match="S144"):
                await keys_of(fl, EMITTING, "one", "new")
            await fl.forget("one")
            kept = await keys_of(fl, EMITTING, "one", "earliest")
            assert kept[-1] == 19
            assert await left_of(fl, "Pair") == []
            await published(fl, "p", 20, 22)
            assert await keys_of(fl, EMITTING, "one", "new") == [20, 21]
            assert await keys_of(fl, EMITTING, "two", "earliest") == [*kept, 20, 21]
            assert [each["k"] for each in await left_of(fl, "Pair")] == [20, 21]

    run(work)


async def left_of(fl: Client, name: str) -> list[dict[str, Any]]:
    """The events of a type that its topic still has."""
    event_type = (await fl.types())[name]
    stream = await fl.log.open_topics([event_type.topic])
    state = await fl.log.state(stream)
    blocks = await taken(fl.log, stream, state.last - state.first + 1, after=state.first - 1)
    columns = columns_of(blocks, {name: event_type}, 0)
    return columns.tables[name].to_pylist() if name in columns.tables else []


class AskedLog(MemoryLog):
    """Remembers which types were looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Sequence[str]] = []

    async def last(self, stream: Stream, only: Only | None = None) -> int:
        self.asked += [] if only is None else [only.types]
        return await super().last(stream, only)


def test_a_record_decides_neither_how_long_retention_looks_nor_how_it_ends() -> None:
    """Users write their own records: one named a route of 10^9 letters, or more types than there are."""
    part = {"types": [*(f"T{n}" for n in range(1000)), *["A"] * 1000], "topics": ["main"], "stream": "x"}
    group: dict[str, Any] = {"names": ["S"], "parts": [part], "origin": 0, "silent_until": None, "count": None, "digest": None}
    told = {"rules": "", "text": "", "digest": "", "groups": {"k": group}}

    async def work() -> None:
        log = AskedLog()
        await stored(log, told)
        await resume_points(log, {("main",): await log.open_topics(["main"])})
        assert log.asked == [("A", "Heartbeat")]
        for route in (-1, ROUTES, 10**9, 10**18):
            group["routes"] = {"A": route}
            await stored(log, told)
            with pytest.raises(StateError, match="S147 the entry 'desk' of the table FL_SUBS is not readable"):
                await resume_points(log, {})

    async def stored(log: Log, told: dict[str, Any]) -> None:
        await log.put("FL_TYPES", "A", b"{}")
        await log.put(SUBSCRIBERS, "desk", json.dumps(told).encode())

    run(work)
