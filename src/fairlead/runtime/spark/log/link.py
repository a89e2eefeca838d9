"""A log for the processes of Spark: they do not use asyncio, so a thread runs the event loop.

Takes: options. Gives: `call`, which waits for an answer; `blocks`, a range of a stream. Never: is sent to another process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any, Self, TypeVar

from fairlead.dataclass import dataclass
from fairlead.errors import StateError, UsageError
from fairlead.runtime.live.core.event_table import Selection, only_stream
from fairlead.runtime.live.export import complete, select
from fairlead.runtime.live.merged_streams import LEASE_SECONDS_MAX, lease_value, open_streams, streams_with_sources
from fairlead.runtime.live.merged_streams import TABLE as LEASES
from fairlead.runtime.live.stream_removal import require_no_removal
from fairlead.runtime.live.subscriber.stream_reader import blocks_between
from fairlead.runtime.live.subscriber.trim_check import first_of, require_beginning
from fairlead.runtime.spark.log.options import LogOptions
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.log_place import place_of
from fairlead.transport.log.names import lease_key, merged_stream
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Log, Stored, Stream
from fairlead.transport.threads.loop_thread import LoopThread

Answer = TypeVar("Answer")
PATIENCE_SECONDS = 60.0
LEASE_SECONDS = LEASE_SECONDS_MAX
"""How long a merged stream stays for a job that does not renew its lease: a stopped job can resume from its checkpoint."""
RENEW_SECONDS = 600.0


@dataclass(frozen=True)
class Extent:
    """The range of a frame. By stream: `firsts`, the first position; `lasts`, the last sequence when it was created. Rules with
    ORDER BY read the stream of each of their topics, all others read one."""

    selection: Selection
    streams: tuple[Stream, ...]
    firsts: tuple[int, ...]
    lasts: tuple[int, ...]

    @property
    def merged(self) -> tuple[str, ...]:
        """The topics of the single stream."""
        return self.selection.topics[0] if len(self.streams) == 1 else ()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic of each stream, if there are several."""
        return tuple(each for (each,) in self.selection.topics)

    @property
    def after(self) -> tuple[int, ...]:
        return tuple(max(0, (each >> INDEX_BITS) - 1) for each in self.firsts)


class LogLink:
    def __init__(self, options: LogOptions) -> None:
        self._held = ExitStack()
        self._leased, self._since = 0.0, 0
        self._thread = LoopThread("fairlead-log").start()
        self._wait = self._thread.call
        try:
            log, _ = self._wait(place_of(options.url, None, None, options.access).open(self._held))
        except BaseException:
            self._stop()
            raise
        self.log: Log = PatientLog(log, PATIENCE_SECONDS)

    def call(self, work: Callable[[Log], Coroutine[Any, Any, Answer]]) -> Answer:
        return self._wait(work(self.log))

    def close(self) -> None:
        if self._thread.is_running:
            self.call(lambda log: log.close())
            self._stop()

    def _stop(self) -> None:
        self._thread.stop()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def lease(self, topics: Sequence[str]) -> None:
        """Keep the merged stream of these topics, if there are several."""
        if len(topics) > 1 and (time.monotonic() - self._leased > RENEW_SECONDS or not self._leased):
            self._since = self.call(lambda log: _leased(log, topics, self._since))
            self._leased = time.monotonic()

    def blocks(self, stream: Stream, after: int, last: int) -> Iterator[Sequence[Stored]]:
        """The blocks of a stream after `after`, up to `last`. The next ones are fetched while the caller processes these."""
        reading = blocks_between(self.log, stream, after, last)
        try:
            while (found := self._wait(_next(reading))) is not None:
                yield found
        finally:
            self._wait(reading.aclose())  # type: ignore[attr-defined]


async def _next(reading: Any) -> Sequence[Stored] | None:
    return await anext(reading, None)


async def _leased(log: Log, topics: Sequence[str], since: int = 0) -> int:
    """Returns the revision with which it was taken."""
    key = lease_key(log.owner, f"spark-{merged_stream(topics)}")
    stored = await log.put(LEASES, key, lease_value([topics], LEASE_SECONDS, since))
    return since or stored


async def extent_of(log: Log, options: LogOptions) -> Extent:
    """Raises what `select` raises, and LogError."""
    selection = await select(log, options.what, heartbeats=options.heartbeats)
    only_stream(selection)
    if selection.ordered:
        selection = selection.by_topic()
    for topics in (each for each in selection.topics if len(each) > 1):
        await _leased(log, topics)
        await require_no_removal(log, streams_with_sources([topics]), PATIENCE_SECONDS)
    streams = await open_streams(log, selection.topics)
    lasts = await complete(log, streams, selection)
    firsts = [await _first(log, options, stream, last) for stream, last in zip(streams, lasts, strict=True)]
    for stream, parts, first in zip(streams, selection.topics, firsts, strict=True):
        if first < 1 << INDEX_BITS:
            await require_beginning(log, stream, parts)
    if len(streams) > 1 and isinstance(options.start, int):
        problem = f"the rules read the streams of {len(streams)} topics, each with its own positions"
        raise UsageError("A264", problem, "start at a time, or with 'earliest' or 'new'")
    return Extent(selection, streams, tuple(firsts), tuple(lasts))


async def _first(log: Log, options: LogOptions, stream: Stream, last: int) -> int:
    match options.start:
        case "earliest":
            return await first_of(log, stream)
        case "new":
            return (last + 1) << INDEX_BITS
        case datetime():
            before = await log.before(stream, int(options.start.timestamp() * 1_000_000))
            return (before + 1) << INDEX_BITS if before else 0
        case _:
            return int(options.start)


async def same_stream(log: Log, extent: Extent) -> None:
    """Raises StateError if a stream was removed, and another one created under its name."""
    for before, now in zip(extent.streams, await open_streams(log, extent.selection.topics), strict=True):
        if before != now:
            raise gone(before.name)


def gone(name: str) -> StateError:
    problem = f"the stream {name} was removed and created again since it was read: its positions have changed"
    return StateError("S137", problem, "load the frame again, or start with a new checkpoint folder")
