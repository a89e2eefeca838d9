"""States are written and loaded beside the event loop: other tasks of the process go on."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fairlead
from fairlead.runtime.live.core.lineage import Lineage
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.runtime.live.subscriber.snapshots import LARGE, STORE, TABLE, Snapshots, snapshot_list, state_name
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import TableEntry
from tests.marks import sample_size
from tests.runtime.live.reading import TYPES, more
from tests.transport.log.logs import run

RULES = "SUBSCRIPTION S MATCH A a AND B b PER k"


@pytest.mark.parametrize("count", [1, 20_000])
def test_a_large_state_is_written_and_loaded_in_a_thread(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    main, used = threading.current_thread(), list[tuple[str, int, bool]]()

    def noting(name: str, done: Callable[..., Any], size: Callable[..., int]) -> Callable[..., Any]:
        def noted(*given: Any, **more: Any) -> Any:
            found = done(*given, **more)
            used.append((name, size(found, *given), threading.current_thread() is main))
            return found

        return noted

    monkeypatch.setattr(Lineage, "dump", noting("dump", Lineage.dump, lambda found, *_: len(found)))
    load = classmethod(noting("load", Lineage.load.__func__, lambda found, *given: len(given[-1])))  # type: ignore[attr-defined]
    monkeypatch.setattr(Lineage, "load", load)

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            keys = np.arange(count, dtype=np.int32)
            await fl.publish_many("A", {"k": keys, "x": keys}, wait=True)
            for turn in range(2):
                async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                    await more(sub)
                    await fl.publish("B", k=turn, x=0, wait=True)
                    assert len(await more(sub)) == (turn < count)
                    await sub.ack()

    run(work)
    assert {name for name, _, _ in used} == {"dump", "load"}
    assert any(size >= LARGE for _, size, _ in used) is (count > 1)
    assert all(name == "load" and size < LARGE for name, size, on_main in used if on_main)


class Waiting(MemoryLog):
    """Every request and every answer takes its time. Now and then a list is read as it was before."""

    def __init__(self, rolls: random.Random) -> None:
        super().__init__()
        self._rolls, self._before, self.behind = rolls, dict[str, TableEntry | None](), 0.2

    async def _turns(self) -> None:
        for _ in range(self._rolls.randrange(6)):
            await asyncio.sleep(0)

    async def get(self, table: str, key: str) -> TableEntry | None:
        await self._turns()
        found = await super().get(table, key)
        if table == TABLE and key in self._before and self._rolls.random() < self.behind:
            found = self._before[key]
        await self._turns()
        return found

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        await self._turns()
        before = await super().get(table, key)
        made = await super().put(table, key, value, revision)
        self._before[key] = before
        await self._turns()
        return made

    async def put_object(self, store: str, name: str, value: bytes) -> None:
        await self._turns()
        await super().put_object(store, name, value)
        await self._turns()

    async def remove_object(self, store: str, name: str) -> None:
        await self._turns()
        await super().remove_object(store, name)


@pytest.mark.parametrize("seed", range(sample_size(100)))
def test_what_is_listed_is_there_whoever_saves_the_same_states(seed: int) -> None:
    """Equal subscribers save states of the same steps, side by side. Seed 9024422 of the simulator."""

    async def work() -> None:
        rolls = random.Random(seed)
        log, (group,) = Waiting(rolls), groups_of(fairlead.compile(TYPES + RULES))
        key = Snapshots(log, group, "k", (0,), emits=True).key

        async def saves() -> None:
            for steps in range(1, 12):
                if rolls.random() < 0.7:
                    await Snapshots(log, group, "k", (0,), emits=True).keep(steps, steps, b"state")

        async with asyncio.TaskGroup() as several:
            for _ in range(3):
                several.create_task(saves())
        log.behind = 0
        listed = (await snapshot_list(log, key)).snapshots
        there = {*await log.objects(STORE)}
        assert listed
        assert {state_name(key, steps) for steps, _ in listed} <= there

    run(work)
