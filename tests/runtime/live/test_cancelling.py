"""Whoever leaves while a kernel searches has left soon, keeps nothing half done, and never holds others up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.matching.compiled.planning.costs.cost import may_take_long
from fairlead.runtime.live.core.lineage import Lineage
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from tests.transport.log.logs import URLS, run

TYPES = "\n".join(f"TYPE T{n} (x INT)" for n in range(5))
ENDLESS = """SUBSCRIPTION S MATCH T0 a AND T1 b AND T2 c AND T3 d AND T4 e
WHERE a.x + b.x + c.x + d.x + e.x > 1000000"""
"""Nothing but trying finds out that there is none: with 1,000 events of each type that takes an hour."""
EACH = "SUBSCRIPTION E MATCH T4 e"


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set by a kernel that has searched for a while."""
    searching, check = threading.Event(), Lineage._check

    def noted(lineage: Lineage) -> None:
        searching.set()
        check(lineage)

    monkeypatch.setattr(Lineage, "_check", noted)
    return searching


async def published(fl: Any) -> None:
    """All that a search needs; the event that begins it comes last."""
    await fl.declare(TYPES)
    for n in range(4):
        await fl.publish_many(f"T{n}", {"x": [*range(1_000)]}, wait=True)
    await fl.publish("T4", x=1, wait=True)


async def searching(busy: threading.Event) -> None:
    assert await asyncio.to_thread(busy.wait, 60)


def test_which_plans_may_take_long() -> None:
    assert may_take_long(fairlead.compile(f"{TYPES}\n{ENDLESS}"))
    assert not may_take_long(fairlead.compile(f"{TYPES}\n{EACH}"))
    assert not may_take_long(fairlead.compile("TYPE Q (x INT) SUBSCRIPTION S MATCH Q q+ HAVING count(q) > 9 FOLD q"))
    assert may_take_long(fairlead.compile("TYPE Q (s STRING) SUBSCRIPTION S MATCH Q q+ HAVING lower(first(q.s)) = 'a'"))
    assert not may_take_long(fairlead.compile(f"{TYPES}\nSUBSCRIPTION S MATCH T0 a AND T1 b WHERE a.x < b.x"))


async def leave_by_block(fl: Any, busy: threading.Event) -> LiveSubscription:
    async with fl.subscribe(ENDLESS, name="one", start="earliest") as sub:
        await searching(busy)
    return sub  # type: ignore[no-any-return]


async def leave_by_cancel(fl: Any, busy: threading.Event) -> LiveSubscription:
    made: list[LiveSubscription] = []

    async def work() -> None:
        async with fl.subscribe(ENDLESS, name="one", start="earliest") as sub:
            made.append(sub)
            async for _ in sub:
                pass

    task = asyncio.create_task(work())
    await searching(busy)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return made[0]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("leave", [leave_by_block, leave_by_cancel])
def test_a_subscriber_leaves_while_a_kernel_searches(
    busy: threading.Event, url: str | None, leave: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    dumped: list[bool] = []
    dump = Engine.dump
    monkeypatch.setattr(Engine, "dump", lambda engine: dumped.append(engine.torn) or dump(engine))

    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await published(fl)
            sub = await leave(fl, busy)
            (followed,) = sub._groups.values()
            assert all(each.engine.torn for each in followed.follower.lineage.strands)
            assert not any(dumped)
            assert await fl.receipts("one")  # it is there still, and can come back
            busy.clear()
            async with fl.subscribe(ENDLESS, name="one"):
                await searching(busy)

    run(work)


@pytest.mark.server
def test_others_of_the_client_go_on_meanwhile(busy: threading.Event) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await published(fl)
            async with fl.subscribe(ENDLESS, start="earliest"), fl.subscribe(EACH, start="earliest") as other:
                await searching(busy)
                await fl.publish("T4", x=2, wait=True)
                assert [(await anext(aiter(other))).positions for _ in range(2)]

    run(work)


@pytest.mark.server
def test_a_client_that_closes_ends_what_its_subscribers_search(busy: threading.Event) -> None:
    with fairlead.connect().sync as fl:
        fl._call(published(fl._client))
        left = fl.subscribe(ENDLESS, start="earliest").__enter__()
        assert busy.wait(60)
    (followed,) = left._live._groups.values()
    assert all(each.engine.torn for each in followed.follower.lineage.strands)


@pytest.mark.parametrize("url", URLS)
def test_so_it_is_without_asyncio(busy: threading.Event, url: str | None) -> None:
    with fairlead.connect(url).sync as fl:
        fl._call(published(fl._client))
        with fl.subscribe(ENDLESS, start="earliest") as sub:
            assert sub.next(timeout=0.01) is None
            assert busy.wait(60)
            assert sub.next(timeout=0.01) is None
