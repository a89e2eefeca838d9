"""A publisher as a separate process, to be killed: python -m fairlead.testing.live.actors.publisher RECORD URL SOURCE TYPES
PAUSE

The events of a type count up (`x`), and the key is a function of source, type and x; the time is that of the clock with a lag
(jitter.py), and in the record. After a restart, or an error with an unknown outcome, it asks the log for the last event of its
source, and continues from there.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import fairlead
from fairlead.errors import LogError, StateError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.block_columns import columns_of
from fairlead.testing.live.actors.end_of_input import asked_to_stop
from fairlead.testing.live.actors.jitter import time_of
from fairlead.testing.live.actors.records import Writer
from fairlead.testing.live.actors.skewed_clock import skew_clock
from fairlead.transport.log.blocks.block_filter import Only

KEYS = 5
AGAIN_SECONDS = 0.2
FLUSH_EVERY = 4


def key_of(source: str, type: str, x: int) -> int:
    return random.Random(f"{source} {type} {x}").randrange(KEYS)


def event_of(source: str, type: str, x: int, record: Writer) -> dict[str, Any]:
    """The next event, recorded before it is published."""
    at = time_of(source, type, x, datetime.now(UTC))
    record.note(sent=x, type=type, time=at.isoformat())
    return {"k": key_of(source, type, x), "x": x, "at": at}


async def stored_count(fl: Client, type: str, source: str) -> int:
    """How many events of a type the log has from a source."""
    event_type, only = (await fl.types())[type], Only((type,))
    stream = await fl.log.open_topics([event_type.topic])
    last, count = await fl.log.last(stream, only), 0
    if last:
        async for blocks in fl.log.read(stream, 0, only):
            mine = [each for each in blocks if each.block.source == source]
            count += len(columns_of(mine, {type: event_type}, 0))
            if blocks[-1].sequence >= last:
                break
    return count


class Working:
    def __init__(self, source: str, pause: float, record: Writer, stop: asyncio.Event) -> None:
        self._source, self._pause, self._record, self._stop = source, pause, record, stop

    async def publish(self, fl: Client, type: str) -> None:
        x = await stored_count(fl, type, self._source)
        rolls = random.Random(f"{self._source} {x}")
        while not self._stop.is_set():
            for _ in range(rolls.randrange(1, FLUSH_EVERY)):
                await self._until_done(fl.publish, type, event_of(self._source, type, x, self._record))
                self._record.note(published=x, type=type)
                x += 1
            await asyncio.sleep(self._pause * 2 * rolls.random())
            if rolls.random() < 0.5:
                await self._flush(fl, type, x)
        await self._flush(fl, type, x)

    async def _flush(self, fl: Client, type: str, x: int) -> None:
        await self._until_done(fl.flush)
        self._record.note(stored=x, type=type)

    async def _until_done(self, work: Callable[..., Awaitable[Any]], *given: object, **more: object) -> None:
        """A publish that raises has accepted nothing, and a flush may be repeated."""
        while True:
            try:
                await work(*given, **more)
                return
            except LogError as error:
                self._record.note(trouble=str(error))
            await asyncio.sleep(AGAIN_SECONDS)


async def main(path: str, url: str, source: str, types: str, pause: str) -> None:
    skew_clock(source)
    record, stop = Writer(path), asked_to_stop()
    working = Working(source, float(pause), record, stop)
    while True:
        record.note(begun=source)  # events that were accepted and not stored are forgotten with their connection
        try:
            async with fairlead.connect(url, source=source, replicas=3, patience=10) as fl, asyncio.TaskGroup() as group:
                for each in types.split(","):
                    group.create_task(working.publish(fl, each))
            return
        except* (LogError, StateError) as errors:
            record.note(trouble=str(errors.exceptions[0]))
        await asyncio.sleep(AGAIN_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
