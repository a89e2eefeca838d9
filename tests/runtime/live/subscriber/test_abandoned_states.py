"""Lists and states of lineages that nobody follows any more are removed; what a durable subscriber resumes from is not."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

import fairlead
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.lineage import Lineage
from fairlead.runtime.live.subscriber.abandoned_states import LEADING_KEPT_US, remove_abandoned
from fairlead.runtime.live.subscriber.snapshots import KEPT_US, STORE, TABLE, Snapshots, state_name
from fairlead.transport.log.names import LEASES
from fairlead.transport.log.protocol import Conflict
from tests.runtime.live.reading import TYPES, more
from tests.transport.log.logs import URLS, run

RULES = (
    "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k",
    "SUBSCRIPTION T MATCH A a AND B b WHERE a.k = b.k EMIT P (k = a.k)",
)


async def events(fl: Client, count: int) -> None:
    for k in range(count):
        await fl.publish("A", k=k, x=0, wait=True)
        await fl.publish("B", k=k, x=0, wait=True)


async def visited(fl: Client, rules: str, start: object, name: str | None = None) -> list[str]:
    """The ids that a subscriber receives, and acknowledges; it saves a state when it leaves."""
    async with fl.subscribe(rules, name=name, start=start) as sub:  # type: ignore[arg-type]
        found = [each.id for each in await more(sub)]
        await sub.ack()
        return found


async def held(fl: Client) -> tuple[int, int]:
    lists = [key for key in await fl.log.keys(TABLE) if await fl.log.get(TABLE, key) is not None]
    return len(lists), len(await fl.log.objects(STORE))


@pytest.mark.parametrize("url", URLS)
def test_lineages_without_subscribers_leave_nothing(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            await events(fl, 6)
            for rules in RULES:
                for start in ("earliest", 2 << 12, 3 << 12, 4 << 12, datetime(2020, 1, 1, tzinfo=UTC)):
                    await visited(fl, rules, start)
            before = await held(fl)
            assert min(before) > 4
            await fl.sweep()
            await fl.retain(apply=True)
            assert await held(fl) == before  # others may join, today
            assert await remove_abandoned(fl.log, 0)
            lists, _ = await held(fl)
            assert 0 < lists < before[0]  # those that others join
            await remove_abandoned(fl.log, 0, 0)
            lists, states = await held(fl)
            assert lists == 1 <= states  # the one that stores derived events: its state knows their numbers

    run(work)


@pytest.mark.parametrize("url", URLS)
def test_a_lineage_of_a_removed_stream_leaves_nothing_though_it_stored_events(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare("TYPE L (k INT, x INT)\nTYPE R (k INT, x INT)\nTOPIC left (L)\nTOPIC right (R)")
            for k in range(3):
                await fl.publish("L", k=k, x=0, wait=True)
                await fl.publish("R", k=k, x=0, wait=True)
            await visited(fl, "SUBSCRIPTION T MATCH L a AND R b WHERE a.k = b.k EMIT P (k = a.k)", "earliest")
            await remove_abandoned(fl.log, 0, 0)
            assert min(await held(fl)) > 0
            for key in await fl.log.keys(LEASES):
                await fl.log.remove(LEASES, key)
            assert await fl.sweep()
            await remove_abandoned(fl.log, 0, 0)
            assert await held(fl) == (0, 0)

    run(work)


@pytest.mark.parametrize("url", URLS)
def test_who_begins_with_a_state_renews_its_list(url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever removes it has read its revision before: the log accepts one of the two."""
    monkeypatch.setattr(Snapshots, "kept_us", 0)

    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            await events(fl, 3)
            await visited(fl, RULES[0], "earliest")
            (key,) = await fl.log.keys(TABLE)
            before = await fl.log.revision_of(TABLE, key)
            async with fl.subscribe(RULES[0], name="desk", start="snapshot"):
                renewed = await fl.log.revision_of(TABLE, key)
                with pytest.raises(Conflict):
                    await fl.log.remove(TABLE, key, before)
            assert renewed > before
            async with fl.subscribe(RULES[0], name="desk"):  # recorded: it is kept anyway
                assert await fl.log.revision_of(TABLE, key) == renewed

    run(work)


@pytest.mark.parametrize("url", URLS)
def test_a_list_that_is_removed_in_between_is_not_begun_with(url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = Snapshots._loaded

    async def slowly(self: Snapshots, dumped: bytes) -> Lineage:
        await remove_abandoned(self._log, 0, 0)
        return await loaded(self, dumped)

    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            await events(fl, 3)
            await visited(fl, RULES[0], "earliest")
            monkeypatch.setattr(Snapshots, "_loaded", slowly)
            async with fl.subscribe(RULES[0], name="desk", start="snapshot") as sub:
                found = await more(sub)  # all of them: it begins with the origin
            assert len(found) == 3
            assert await held(fl) == (0, 0)

    run(work)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("seed", range(4))
def test_durable_subscribers_resume_whatever_was_removed(url: str | None, seed: int) -> None:
    """One log from which everything that may go goes after every visit, and one from which nothing does."""
    rolls = random.Random(seed)
    names = {f"n{at}": (rolls.choice(RULES), rolls.choice(["earliest", 2 << 12, 5 << 12, "new"])) for at in range(4)}
    steps = [rolls.choice([*names, "forget", "events", "visitor"]) for _ in range(14)]

    async def work(removes: bool) -> list[object]:
        told: list[object] = []
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            await events(fl, 3)
            for step in steps:
                if step == "events":
                    await events(fl, 2)
                elif step == "visitor":
                    await visited(fl, RULES[0], 3 << 12)
                elif step == "forget":
                    await fl.forget("n0")
                else:
                    rules, start = names[step]
                    told.append(await visited(fl, rules, start, step))
                if removes:
                    await remove_abandoned(fl.log, 0, 0)
        return told

    assert run(lambda: work(True)) == run(lambda: work(False))


@pytest.mark.parametrize("url", URLS)
def test_states_that_no_list_names_are_removed(url: str | None) -> None:
    """A process ended between two steps; one that is between them now is not disturbed."""

    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            await events(fl, 3)
            await visited(fl, RULES[0], "earliest", "desk")
            (key,) = await fl.log.keys(TABLE)
            good = await fl.log.objects(STORE)
            older, later, lone = state_name(key, 0), state_name(key, 1 << 40), state_name("gone", 5)
            for name in (older, later, lone):
                await fl.log.put_object(STORE, name, b"state")
            await remove_abandoned(fl.log)
            assert await fl.log.objects(STORE) == sorted([*good, later])

    run(work)


@pytest.mark.server
def test_removed_states_leave_no_trace() -> None:
    """Each left a message in the store, so that one grew for ever."""

    async def work() -> None:
        async with fairlead.connect() as fl:
            for number in range(5):
                await fl.log.put_object(STORE, f"state-{number}", b"x" * 1000)
                await fl.log.remove_object(STORE, f"state-{number}")
            await fl.log.remove_object(STORE, "never there")
            raw = fl.log._log._log  # type: ignore[attr-defined]
            assert (await raw._js.stream_info(f"OBJ_{STORE}")).state.messages == 0

    run(work)


def test_lineages_are_kept_for_days() -> None:
    assert KEPT_US >= 3_600_000_000
    assert LEADING_KEPT_US > KEPT_US
