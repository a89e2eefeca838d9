"""Three ways to the same subscribers, each with a `publish` of many events and a `follow` that says when something came.

    fairlead     a stream for each type, merged for each set of types, blocks of events
    one-stream   one stream for all types, blocks of events: what a sequencer does; everyone reads everything
    messages     as one-stream, one message an event

The last two are by hand on the same client library and server, with the same matcher and no guarantees beyond the order of
the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pyarrow as pa

import fairlead
from benchmarks.live.scenarios import TYPES, Scenario
from fairlead.engine import Engine
from fairlead.model.blobs import packed
from fairlead.model.columns import Columns
from fairlead.transport.log.block import pieces, positions

STREAM = "ALL"
WINDOW = 256
"""Messages on their way to the server."""

Progress = tuple[int, float | None]
"""Events read so far, and when the newest member of the last relation was published."""


class FairleadSide:
    def __init__(self, url: str) -> None:
        self.fl = fairlead.connect(url)

    async def __aenter__(self) -> FairleadSide:
        await self.fl.__aenter__()
        return self

    async def __aexit__(self, *how: Any) -> None:
        await self.fl.__aexit__(*how)

    async def prepare(self, scenario: Scenario) -> None:
        await self.fl.declare(TYPES)

    async def publish(self, name: str, rows: pa.Table) -> None:
        await self.fl.publish_many(name, rows)

    async def flush(self) -> None:
        await self.fl.flush()

    async def follow(self, scenario: Scenario, subscriber: int, ready: asyncio.Event) -> AsyncIterator[Progress]:
        async with self.fl.subscribe(scenario.of(subscriber), start="earliest") as subscription:
            ready.set()
            while True:
                newest = None
                try:
                    async with asyncio.timeout(0.1):
                        batch = await subscription.next_batch()
                    newest = max(event["t"] for event in batch[len(batch) - 1].members) / 1e6
                except TimeoutError:
                    pass
                yield subscription.events_read, newest


class OneStreamSide:
    def __init__(self, url: str, block: int | None = None) -> None:
        self.url, self.block = url, block

    async def __aenter__(self) -> OneStreamSide:
        import nats

        self.nats = await nats.connect(self.url)
        self.stream = self.nats.jetstream(publish_async_max_pending=WINDOW)
        self.sent: list[Any] = []
        return self

    async def __aexit__(self, *how: Any) -> None:
        await self.nats.close()

    async def prepare(self, scenario: Scenario) -> None:
        await self.stream.add_stream(name=STREAM, subjects=["all.>"], allow_direct=True)

    async def publish(self, name: str, rows: pa.Table) -> None:
        for batch in rows.combine_chunks().to_batches():
            if self.block is None:
                payloads = [payload for _, payload in pieces(batch)]
            else:
                payloads = [packed(batch.slice(at, self.block)) for at in range(0, batch.num_rows, self.block)]
            for payload in payloads:
                self.sent.append(await self.stream.publish_async(f"all.{name}", payload))

    async def flush(self) -> None:
        await asyncio.gather(*self.sent)
        self.sent.clear()

    async def follow(self, scenario: Scenario, subscriber: int, ready: asyncio.Event) -> AsyncIterator[Progress]:
        plan = fairlead.compile(f"{TYPES}\n{scenario.of(subscriber)}")
        wanted = set(scenario.reads(subscriber))
        engine, read = Engine(plan), 0
        reading = await self.stream.subscribe("all.>", ordered_consumer=True)
        ready.set()
        while True:
            messages = []
            try:
                messages.append(await reading.next_msg(timeout=0.1))
                while reading.pending_msgs and len(messages) < WINDOW:
                    messages.append(await reading.next_msg(timeout=0.1))
            except TimeoutError:
                pass
            newest = None
            for message in messages:
                name = message.subject.rsplit(".", 1)[-1]
                if name in wanted:
                    batch = pa.ipc.open_stream(message.data).read_next_batch()
                    columns = _columns(name, batch, message.metadata.sequence.stream)
                    read += len(columns)
                    found = engine.feed(columns)
                    if len(found):
                        newest = max(event["t"] for event in found[len(found) - 1].members) / 1e6
            yield read, newest


def _columns(name: str, batch: pa.RecordBatch, sequence: int) -> Columns:
    rows = batch.num_rows
    return Columns((name,), np.zeros(rows, dtype=np.int8), positions(sequence, rows), {name: batch})


SIDES: dict[str, Any] = {
    "fairlead": FairleadSide,
    "one-stream": OneStreamSide,
    "messages": lambda url: OneStreamSide(url, block=1),
}
