"""States are written and loaded beside the event loop: other tasks of the process go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fairlead
from fairlead.runtime.live.core.lineage import Lineage
from fairlead.runtime.live.subscriber.snapshots import LARGE
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
