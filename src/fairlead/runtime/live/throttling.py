"""Backpressure: publishers wait for merged streams that are in use and lag behind, because they are slow or full.

    1. every few blocks, look up how many blocks the merged streams of this topic lack
    2. while one that is in use lacks too many, wait and look again

Between two lookups a publisher stores at most `LOOK_BLOCKS`, however fast it is; the server's answer is at most a second old.

Takes: a log and a topic. Gives: a return when a block may be stored. Never: drops a block; waits for a stream that is not in
use; fails because it lacks permission to look.
"""

from __future__ import annotations

import asyncio

from fairlead.errors import LogError
from fairlead.runtime.live.leases import needed
from fairlead.transport.log.protocol import Log, MergeLag

BEHIND_MAX = 2_000
"""Blocks, 1 GB at most, which a merged stream copies in some seconds when it can."""
LOOK_BLOCKS = 250
LOOK_SECONDS = 0.5


class Throttle:
    """For one publisher and one topic. `patience`: seconds after which waiting fails."""

    def __init__(self, log: Log, topic: str, patience: float) -> None:
        self._log, self._topic, self._patience = log, topic, patience
        self._free = 0
        self._looks = True

    async def take(self) -> None:
        """Returns when one more block may be stored. Raises LogError."""
        if self._looks:
            if not self._free:
                await self._wait()
                self._free = LOOK_BLOCKS
            self._free -= 1

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience
        while (late := await self._late()) is not None:
            if loop.time() > end:
                problem = f"the merged stream {late.stream} of {', '.join(late.topics)} is {late.blocks:,} blocks behind"
                raise LogError(
                    "N011",
                    problem,
                    "make room for it, or remove it with its subscribers if it is not needed: fairlead streams --forget",
                )
            await asyncio.sleep(LOOK_SECONDS)

    async def _late(self) -> MergeLag | None:
        try:
            late = [each for each in await self._log.behind() if self._topic in each.topics and each.blocks > BEHIND_MAX]  # 1
            wanted = await needed(self._log) if late else set[str]()  # 2
        except LogError as error:
            if error.code != "N003":
                raise
            self._looks = False
            return None
        return next((each for each in late if each.stream in wanted), None)
