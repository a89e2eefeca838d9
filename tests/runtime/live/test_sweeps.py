"""A sweep removes merged streams that nobody uses, also while somebody begins to use one, and never one that is in use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from fairlead.errors import LogError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.merged_streams import TABLE as LEASES
from fairlead.runtime.live.merged_streams import Lease, lease_value, provide, sweep
from fairlead.runtime.live.stream_removal import KEY, StreamRemoval, begin_removal, current_removal, end_removal, plan_removal
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.log_place import LogPlace
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.names import merged_stream, merged_streams_of
from fairlead.transport.log.protocol import Log, Stream
from tests.runtime.live.reading import APART, RULES, more
from tests.transport.log.logs import KINDS, a_log, run

AB, ABC = merged_stream("ab"), merged_stream("abc")
STEPS = 30
"""More than a sweep, or a subscriber that begins, has requests."""
REQUESTS = ("put", "get", "keys", "remove", "revision_of", "merged", "remove_stream", "open_topics")


class SteppedLog(MemoryLog):
    """Before its request number `turn`, what `meanwhile` says happens, to its end or as far as it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.turn, self.meanwhile = -1, None

    meanwhile: Callable[[], Awaitable[None]] | None
    requests: Collection[str] = REQUESTS

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._stepped(found) if name in type(self).requests else found

    def _stepped(self, request: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def ask(*given: Any, **more_given: Any) -> Any:
            if self.meanwhile is not None:
                self.turn -= 1
                if self.turn < 0:
                    meanwhile, self.meanwhile = self.meanwhile, None
                    await meanwhile()
            return await request(*given, **more_given)

        return ask


class SteppedPlace(LogPlace):
    def __init__(self, log: MemoryLog) -> None:
        super().__init__(None, None, 1, Credentials())
        object.__setattr__(self, "log", log)

    async def open(self, held: ExitStack) -> tuple[Log, str]:
        return self.log, "memory:"  # type: ignore[attr-defined]


class ReaderLog:
    """A log as a user has it that may subscribe: leases have keys of one word, and others are refused."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def put(self, table: str, key: str, *more: Any) -> int:
        self._require(table, key)
        return await self._log.put(table, key, *more)

    async def remove(self, table: str, key: str, *more: Any) -> None:
        self._require(table, key)
        await self._log.remove(table, key, *more)

    def _require(self, table: str, key: str) -> None:
        if table != LEASES or "." in key:
            raise LogError("N003", f"{table}.{key} is not permitted", "")


async def names(log: Log) -> list[str]:
    return [each.name for each in await log.merged()]


async def began(log: Log) -> tuple[Lease, Stream]:
    lease = Lease(log, [("a", "b", "c")])
    await lease.take(patience=30.0)
    return lease, await log.open_topics(["a", "b", "c"])


@pytest.mark.parametrize("user", [lambda log: log, ReaderLog], ids=["any right", "the right to subscribe"])
@pytest.mark.parametrize("turn", range(STEPS))
def test_who_begins_between_any_two_steps_of_a_sweep_keeps_its_streams(turn: int, user: Callable[[Log], Log]) -> None:
    async def work() -> None:
        log = SteppedLog()
        await log.open_topics(["a", "b", "c"])
        tasks = list[asyncio.Task[tuple[Lease, Stream]]]()

        async def meanwhile() -> None:
            tasks.append(asyncio.create_task(began(user(log))))
            for _ in range(100):  # as far as it gets: if the removal has begun, it waits
                await asyncio.sleep(0)

        log.turn, log.meanwhile = turn, meanwhile
        await sweep(log)
        log.meanwhile = None
        lease, opened = await (tasks[0] if tasks else began(log))
        assert opened in await log.merged()
        assert await sweep(log) == []
        assert sorted(await names(log)) == sorted([AB, ABC])
        assert opened in await log.merged()
        await lease.give_back()
        assert await sweep(log) == sorted([AB, ABC])
        assert await log.keys(LEASES) == []

    run(work)


@pytest.mark.parametrize("turn", range(STEPS))
def test_a_sweep_between_any_two_steps_of_a_subscriber_takes_nothing_from_it(turn: int) -> None:
    async def work() -> None:
        log = SteppedLog()
        async with (
            Client(SteppedPlace(log), "p", 0.0, 5.0, None) as fl,
            Client(SteppedPlace(log), "q", 0.0, 5.0, None) as other,
        ):
            await fl.declare(APART)
            await log.open_topics(["a", "b"])

            async def meanwhile() -> None:
                await other.sweep()

            log.turn, log.meanwhile = turn, meanwhile
            async with fl.subscribe(RULES, name="s", start="earliest") as sub:
                for name in "AB":
                    await fl.publish(name, k=1, x=1, wait=True)
                assert len(await more(sub)) == 1

    run(work)


@pytest.mark.parametrize("turn", range(STEPS))
def test_a_sweep_that_ends_between_any_two_steps_is_completed_by_the_next(turn: int) -> None:
    """Who begins in the meantime waits for it, if it has begun to remove."""

    class Gone(Exception): ...

    async def work() -> None:
        log = SteppedLog()
        await log.open_topics(["a", "b", "c"])

        async def meanwhile() -> None:
            raise Gone

        log.turn, log.meanwhile = turn, meanwhile
        with suppress(Gone):
            await sweep(log)
        log.meanwhile = None
        removal, lease = await current_removal(log), Lease(log, [("a", "b", "c")])
        if removal is not None and removal.begun:
            with pytest.raises(LogError, match="N027"):
                await lease.take(patience=0.0)
            await sweep(log)
            assert await names(log) == []
        await lease.take(patience=0.0)
        await log.open_topics(["a", "b", "c"])
        assert await sweep(log) == []
        assert sorted(await names(log)) == sorted([AB, ABC])
        await lease.give_back()

    run(work)


class CutOff(MemoryLog):
    """Reads show the past from some moment on, up to the next request that changes something: a leader that is cut off answers
    them, and cannot confirm the change."""

    past: dict[str, Any] | None = None
    READS = ("keys", "get", "merged", "revision_of", "now")

    def __getattribute__(self, name: str) -> Any:
        if name in ("put", "remove", "remove_stream"):
            self.past = None
        past = super().__getattribute__("past")
        if past is None or name not in CutOff.READS:
            return super().__getattribute__(name)
        old = MemoryLog()
        old.__dict__.update(past)
        return getattr(old, name)

    def cut_off(self) -> None:
        self.past = {
            name: {key: each.copy() if hasattr(each, "copy") else each for key, each in held.items()}
            for name, held in self.__dict__.items()
            if isinstance(held, dict)
        }


def test_a_sweep_that_reads_from_a_leader_that_is_cut_off_removes_nothing_in_use() -> None:
    """Seed 6000966 of the simulator."""

    async def work() -> None:
        log = CutOff()
        await log.open_topics(["a", "b", "c"])
        log.cut_off()
        past = log.past
        lease, _ = await began(log)
        log.past = past
        assert AB in await names(log)
        assert await log.keys(LEASES) == []  # that is the past
        assert await sweep(log) == []
        assert sorted(await names(log)) == sorted([AB, ABC])
        await lease.give_back()
        assert await sweep(log) == sorted([AB, ABC])

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_is_withdrawn_and_a_removal_has_one_owner(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            await log.open_topics(["a", "b"])
            first = await plan_removal(log, [AB])
            assert first is not None
            second = await plan_removal(log, [AB])
            assert second is not None
            assert await begin_removal(log, first) is None  # another client has planned it since
            lease = Lease(log, [("b", "a")])
            await lease.take()
            assert await begin_removal(log, second) is None  # it was withdrawn
            assert await sweep(log) == []
            await lease.give_back()
            third = await plan_removal(log, [AB])
            assert third is not None
            begun = await begin_removal(log, third)
            assert begun is not None
            assert await plan_removal(log, [AB]) is None
            assert await sweep(log) == [AB]  # it completes what was begun
            assert await current_removal(log) is None
            assert await names(log) == []

    run(work)


def test_a_user_that_may_not_withdraw_a_plan_waits_for_its_end() -> None:
    async def work() -> None:
        log = MemoryLog()
        planned = await plan_removal(log, [AB])
        assert planned is not None
        lease = Lease(ReaderLog(log), [("a", "b")])  # type: ignore[arg-type]
        with pytest.raises(LogError, match="N027"):
            await lease.take(patience=0.0)
        taking = asyncio.create_task(lease.take(patience=30.0))
        await asyncio.sleep(0)
        await end_removal(log, planned)
        await taking
        await lease.give_back()

    run(work)


@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize("count", [0, 20_000])
def test_a_removal_that_names_streams_in_use_takes_nothing_from_anybody(count: int, renewed: bool) -> None:
    """However long it is. Streams that nobody uses go, as in every sweep."""

    async def work() -> None:
        log = MemoryLog()
        async with Client(SteppedPlace(log), "p", 0.0, 5.0, None) as fl:
            await fl.declare(APART)
            async with fl.subscribe(RULES, name="s", start="earliest"):
                durable = await names(log)
            lease, opened = await began(log)
            await provide(log, [("x", "y")])
            kept = [*durable, opened.name, AB, (await log.open_topics(["x", "y"])).name]
            unused = (await log.open_topics(["u", "v"])).name
            named = [*kept, unused, *(merged_stream([str(each), "z"]) for each in range(count))]
            await log.put(LEASES, KEY, json.dumps({"streams": named, "begun": True}).encode())
            if renewed:
                await lease._renew()
            assert await sweep(log) == [unused]
            assert {*await names(log)} == {*kept}
            assert await current_removal(log) is None
            await lease.take(patience=0.0)
            await lease.give_back()

    run(work)


def test_a_lease_of_many_topics_costs_no_more_than_reading_it_and_creates_nothing() -> None:
    """Of a user that may subscribe, and names what it likes. The names of all parts of n topics would be n² long."""

    async def work() -> None:
        log = MemoryLog()
        async with Client(SteppedPlace(log), "p", 0.0, 5.0, None) as fl:
            await fl.declare(APART)
            lease, opened = await began(log)
            topics = [f"{each:x}" for each in range(60_000)]
            await log.put(LEASES, "many", lease_value([topics, ["a", "b", "d"]], 3600.0))
            before = {*log._streams}
            assert await fl.sweep() == []
            await fl.retain(apply=True, read=True)
            assert {*log._streams} == before
            assert opened.name in await names(log)
            await lease.give_back()

    run(work)


def test_a_record_of_streams_that_do_not_exist_creates_none() -> None:
    """Users write their own records."""

    async def work() -> None:
        log = MemoryLog()
        async with Client(SteppedPlace(log), "p", 0.0, 5.0, None) as fl:
            await fl.declare(APART)
            async with fl.subscribe("SUBSCRIPTION S MATCH A a", name="s", start="earliest"):
                pass
            await fl.publish("A", k=1, x=1, wait=True)
            entry = await log.get("FL_SUBS", "s")
            assert entry is not None
            told = json.loads(entry.value)
            (group,) = told["groups"].values()
            before = {*log._streams}
            for topics in (["nowhere"], ["a", "nowhere"], ["a", "b", "c"]):
                group["parts"][0]["topics"] = topics
                await log.put("FL_SUBS", "s", json.dumps(told).encode())
                assert await fl.sweep() == []
                (line,) = (await fl.overview()).subscribers
                assert line.topics == (tuple(topics),)
                assert [each.trimmed for each in await fl.retain(apply=True, read=True) if each.topic == "a"] == [0]
                assert {*log._streams} == before

    run(work)


@pytest.mark.parametrize("topics", ["ab", "ba", "abc", "a", "", ["x", "é", "x y", "\n"]])
def test_the_names_of_the_merged_streams_that_one_copies(topics: Sequence[str]) -> None:
    parts = [sorted(topics)[:count] for count in range(2, len(topics) + 1)]
    assert merged_streams_of(topics) == [*map(merged_stream, parts)]


@pytest.mark.parametrize("value", [b"", b"[]", b'{"streams": 7, "begun": true}', b'{"streams": [], "begun": 1}'])
def test_a_strange_removal_breaks_nobody(value: bytes) -> None:
    async def work() -> None:
        log = MemoryLog()
        await log.put(LEASES, KEY, value)
        lease, _ = await began(log)
        assert await sweep(log) == []
        await lease.give_back()
        assert await sweep(log) == sorted([AB, ABC])

    run(work)


def test_the_removal_of_other_streams_does_not_hold_anybody_up() -> None:
    async def work() -> None:
        log = MemoryLog()
        planned = await plan_removal(log, [merged_stream("xy")])
        assert planned is not None
        begun = await begin_removal(log, planned)
        lease = Lease(log, [("a", "b")])
        await lease.take(patience=0.0)
        assert await current_removal(log) == begun
        assert isinstance(begun, StreamRemoval)
        await lease.give_back()

    run(work)
