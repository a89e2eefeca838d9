"""The servers of a simulated log: one log in memory, whose merged streams copy blocks later.

Takes: operations of a log, one at a time. Gives: their results. Never: fails itself (network.py does that for it); changes the
order of a topic within a merged stream.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from fairlead.testing.simulator.live.event_loop import EPOCH_SECONDS, SimulatedLoop
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.names import topic_stream
from fairlead.transport.log.protocol import Stored

COPY_SECONDS_MAX = 0.05
"""A merged stream lags by this much, while nothing fails."""


class SimulatedServers(MemoryLog):
    """`later(seconds, work, …)`: does the work of the servers at a later time."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        super().__init__(clock=lambda: int((EPOCH_SECONDS + loop.time()) * 1_000_000))
        self._rolls = random.Random(f"servers {seed}")
        self._copying: dict[tuple[str, str], deque[Block]] = {}
        self.later: Callable[..., None] = lambda seconds, work, *given: None
        self._ever: dict[str, list[Stored]] = {}

    def stored(self, stream: str) -> list[Stored]:
        """All blocks that a stream has ever had, also those that were trimmed."""
        return list(self._ever.get(stream, ()))

    def end(self, stream: str) -> int:
        """The sequence of its last block."""
        return self._end(stream) if stream in self._streams else 0

    def is_emptied(self, block: Block, after: int) -> bool:
        """Whether a first block of a source comes when all blocks of the source are trimmed: a log does not refuse it, so it
        could be stored twice (docs/live.md, "What it does not do")."""
        ever = self._ever.get(topic_stream(block.topic), ())
        return (
            after == 0
            and any(each.block.source == block.source for each in ever)
            and (block.topic, block.source, None) not in self._tails
        )

    def past(self) -> SimulatedServers:
        """The log as it is now; what happens later does not change it."""
        made: Any = object.__new__(SimulatedServers)
        made.__dict__.update(self.__dict__)
        for name in ("_streams", "_readers", "_tables", "_objects"):
            held = getattr(self, name)
            setattr(made, name, {key: each.copy() for key, each in held.items()})
        made._tails, made._unset, made._trimmed = dict(self._tails), dict(self._unset), dict(self._trimmed)
        made._copying = {}
        return made  # type: ignore[no-any-return]

    def _take(self, name: str, at: int, block: Block) -> Stored:
        """A merged stream is filled later: the blocks of each topic in their order, at its own pace."""
        if not any(name in readers for readers in self._readers.values()):
            return self._kept(name, super()._take(name, at, block))
        waiting = self._copying.setdefault((name, block.topic), deque())
        waiting.append(block)
        self.later(self._rolls.random() * COPY_SECONDS_MAX, self._copy, name, block.topic)
        return Stored(0, at, block)

    def _kept(self, name: str, stored: Stored) -> Stored:
        self._ever.setdefault(name, []).append(stored)
        return stored

    def _copy(self, name: str, topic: str) -> None:
        waiting = self._copying[name, topic]
        if waiting and name in self._streams:
            self._kept(name, super()._take(name, self._clock(), waiting.popleft()))
            self._more.set()
            self._more = asyncio.Event()
