"""Merged streams: their lag, and the restart of one that has stopped.

The leader of a merged stream requests blocks from the leaders of its sources. If a request is lost with a leader that died, it
waits for half a minute before it asks again, and longer each time. Sources send a heartbeat every second, so a source that is
silent for some seconds is not being asked; a new leader asks at once. The same helps if a source has more blocks but none
arrive, with heartbeats or without. The server does not report how much a merged stream has of each source, but how much it has
of each topic: the last of its topics is one source, and the others come from the other source. This needs a list of subjects,
so it is queried only if blocks are missing.

    1. check the sources of the stream, and those of sources that are merged themselves
    2. silent or stuck at two checks, some seconds apart, under one leader: the leader steps down
    3. wait longer before the next time: the machine may be slow

Takes: a connection and the name of a stream; the server's reports on merged streams, one per check. Gives: for each, the blocks
that it lacks, and whether a source is stuck. Never: changes the content of a stream, or raises because it could not help.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping
from contextlib import suppress

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamInfo

from fairlead.errors import LogError
from fairlead.transport.log.jetstream.failures import Refusals
from fairlead.transport.log.jetstream.reports import with_subjects
from fairlead.transport.log.names import MERGED, topic_stream, topic_subjects
from fairlead.transport.log.protocol import MergeLag

LOOK_SECONDS, PROGRESS_LOOKS = 3.0, 3
"""Every third check also queries the progress, which takes three requests for each stream instead of one."""
SILENT_SECONDS = 4.0
PATIENCE_SECONDS, PATIENCE_SECONDS_MAX = 4.0, 60.0


class Watching:
    """Watches one merged stream and its sources."""

    def __init__(
        self,
        client: Client,
        js: JetStreamContext,
        refusals: Refusals,
        name: str,
        patience: float = PATIENCE_SECONDS,
        progress_looks: int = PROGRESS_LOOKS,
    ) -> None:
        self._client, self._js, self._refusals, self._name = client, js, refusals, name
        self._silent: dict[str, tuple[str, float]] = {}
        self._progress, self._looks = MergeProgress(client, js), 0
        self._still: set[str] = set()
        self._patience, self._progress_looks = patience, progress_looks
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
        if self._looks % self._progress_looks == 0:
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


def behind_of(merged: Iterable[StreamInfo]) -> list[MergeLag]:
    told = {each.config.name or "": each for each in merged}
    return [MergeLag(name, topics_of(each), _blocks(name, told)) for name, each in sorted(told.items())]


def topics_of(told: StreamInfo) -> tuple[str, ...]:
    return tuple((told.config.metadata or {}).get("topics", "").split())


def _blocks(name: str, told: Mapping[str, StreamInfo]) -> int:
    sources = (told[name].sources or ()) if name in told else ()
    return sum((each.lag or 0) + _blocks(each.name, told) for each in sources)


class MergeProgress:
    """The progress of merged streams between checks."""

    def __init__(self, client: Client, js: JetStreamContext) -> None:
        self._client, self._js = client, js
        self._lacking: dict[str, dict[str, int]] = {}
        """By stream, the sources that had more blocks than it at the last check, and how many blocks it had of each."""

    async def stands_still(self, told: StreamInfo) -> bool:
        """Whether the stream has copied nothing from a source since the last check, when that source already had more."""
        name, topics = told.config.name or "", topics_of(told)
        sources = [each.name for each in told.sources or () if topics]
        held = {each: (await self._js.stream_info(each)).state.last_seq for each in sources}
        if not sources or told.state.last_seq >= sum(held.values()):
            self._lacking.pop(name, None)
            return False
        found = await with_subjects(self._client, self._js, name, topic_subjects(topics[-1]))
        of_last = sum((found.state.subjects or {}).values())
        has = {each: of_last if each == topic_stream(topics[-1]) else found.state.last_seq - of_last for each in sources}
        lacking, before = {each: has[each] for each in sources if has[each] < held[each]}, self._lacking.get(name, {})
        self._lacking[name] = lacking
        return any(before.get(each) == count for each, count in lacking.items())
