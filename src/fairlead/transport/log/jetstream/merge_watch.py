"""Restarts a merged stream that has stopped copying blocks.

The leader of a merged stream requests blocks from the leaders of its sources. If a request is lost with a leader that died, it
waits for half a minute before it asks again, and longer each time. Sources send a heartbeat every second, so a source that is
silent for some seconds is not being asked; a new leader asks at once. The same helps if a source has more blocks but none
arrive, with heartbeats or without (merge_progress.py).

    1. check the sources of the stream, and those of sources that are merged themselves
    2. silent or stuck at two checks, some seconds apart, under one leader: the leader steps down
    3. wait longer before the next time: the machine may be slow

Takes: a connection and the name of a stream. Gives: nothing. Never: changes the content of a stream, or raises because it could
not help.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamInfo

from fairlead.errors import LogError
from fairlead.transport.log.jetstream.failures import Refusals
from fairlead.transport.log.jetstream.merge_progress import MergeProgress
from fairlead.transport.log.names import MERGED

LOOK_SECONDS, PROGRESS_LOOKS = 3.0, 3
"""Every third check also queries the progress, which takes three requests for each stream instead of one."""
SILENT_SECONDS = 4.0
PATIENCE_SECONDS, PATIENCE_SECONDS_MAX = 4.0, 60.0


class Watching:
    """Watches one merged stream and its sources."""

    def __init__(self, client: Client, js: JetStreamContext, refusals: Refusals, name: str) -> None:
        self._client, self._js, self._refusals, self._name = client, js, refusals, name
        self._silent: dict[str, tuple[str, float]] = {}
        self._progress, self._looks = MergeProgress(js), 0
        self._still: set[str] = set()
        self._patience = PATIENCE_SECONDS
        self._allowed = True

    async def run(self) -> None:
        while self._allowed:
            await asyncio.sleep(LOOK_SECONDS * random.uniform(0.7, 1.3))  # not all readers at the same time
            with suppress(nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError):
                await self._look(self._name)
            self._looks += 1

    async def _look(self, name: str) -> None:
        told = await self._js.stream_info(name)  # 1
        leader = (told.cluster.leader if told.cluster else None) or ""
        if self._looks % PROGRESS_LOOKS == 0:
            (self._still.add if await self._progress.stands_still(told) else self._still.discard)(name)
        if not leader or not (name in self._still or is_silent(told)):
            self._silent.pop(name, None)
        else:
            now = asyncio.get_running_loop().time()
            known, since = self._silent.setdefault(name, (leader, now))
            if known != leader:
                self._silent[name] = leader, now
                self._still.discard(name)
            elif now - since > self._patience:
                await self._step_down(name)  # 2
        for each in told.sources or ():
            if each.name.startswith(MERGED):
                await self._look(each.name)

    async def _step_down(self, name: str) -> None:
        self._silent.pop(name, None)
        self._still.discard(name)
        self._patience = min(2 * self._patience, PATIENCE_SECONDS_MAX)  # 3
        subject = f"$JS.API.STREAM.LEADER.STEPDOWN.{name}"
        try:
            await self._refusals.heeded(self._client.request(subject, b"", timeout=LOOK_SECONDS), subject)
        except LogError:
            self._allowed = False  # another client has to


def is_silent(told: StreamInfo) -> bool:
    """A source has not been heard for some seconds, or (-1) not since the leader was elected."""
    return any(each.active is None or not 0 <= each.active < SILENT_SECONDS * 1e9 for each in told.sources or ())
