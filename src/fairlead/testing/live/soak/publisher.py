"""A publisher with a steady rate as a separate process: python -m fairlead.testing.live.soak.publisher RECORD URL SOURCE TYPE
RATE SINCE

Its events count up (`x`). How many there should be by now is a function of the clock, so that it catches up after a failure.
After a restart it continues after the last event that the log has of its source.
"""

from __future__ import annotations

import asyncio
import sys
import time

import numpy as np
import pyarrow as pa

import fairlead
from fairlead.errors import LogError, StateError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.block_columns import columns_of
from fairlead.testing.live.actors.end_of_input import asked_to_stop
from fairlead.testing.live.actors.records import Writer

TICK_SECONDS = 0.05
ROWS_MAX = 20_000
AGAIN_SECONDS = 0.2


async def next_number(fl: Client, type: str, source: str) -> int:
    """The number after that of the last event that is stored; also if that has been trimmed meanwhile."""
    event_type = (await fl.types())[type]
    last = await fl.log.last_block_of(event_type.topic, source, type)
    if last is None:
        return 0
    return int(columns_of([last], {type: event_type}, 0).tables[type].column("x")[-1].as_py()) + 1


async def publish(fl: Client, type: str, source: str, rate: float, since: float, record: Writer, stop: asyncio.Event) -> None:
    x = await next_number(fl, type, source)
    while not stop.is_set():
        due = min(int((time.time() - since) * rate), x + ROWS_MAX)
        if due > x:
            numbers = np.arange(x, due)
            await fl.publish_many(type, pa.table({"k": numbers % 1000, "x": numbers}))
            await fl.flush()
            x = due
            record.note(stored=x)
        await asyncio.sleep(TICK_SECONDS)


async def main(path: str, url: str, source: str, type: str, rate: str, since: str) -> None:
    record, stop = Writer(path), asked_to_stop()
    while not stop.is_set():
        record.note(begun=source)
        try:
            async with fairlead.connect(url, source=source, replicas=3) as fl:
                await publish(fl, type, source, float(rate), float(since), record, stop)
        except (LogError, StateError) as error:
            if isinstance(error, StateError) and error.code != "S131":
                raise
            record.note(trouble=str(error))
            await asyncio.sleep(AGAIN_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
