"""Three ways to the same subscribers, each with a `publish` of many events and a `follow` that says when something came.

    fairlead     one topic with all types, of which each subscriber reads some; blocks of events
    one-stream   one stream for all types, blocks of events: what a sequencer does; everyone reads everything
    messages     as one-stream, one message per event

The last two are by hand on the same client library and server, with the same matcher and no guarantees beyond the order of
the stream. Like Fairlead they match what has come together.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

import fairlead
from benchmarks.live.scenarios import ROW, Scenario, batch_of, rows_of
from fairlead.engine import Engine
from fairlead.model.events.columns import Columns
from fairlead.transport.log.blocks.block import INDEX_BITS, pieces

STREAM = "ALL"
WINDOW = 256
"""Messages on their way to the server."""
TOGETHER = 4096
"""Messages that are matched at a time."""

Progress = tuple[int, list[float], list[float]]
"""Events read so far, and when the newest members of some relations were published, and of some that are delivered early."""


class FairleadSide:
    def __init__(self, url: str) -> None:
        self.fl = fairlead.connect(url)

    async def __aenter__(self) -> FairleadSide:
        await self.fl.__aenter__()
        return self

    async def __aexit__(self, *how: Any) -> None:
        await self.fl.__aexit__(*how)

    async def prepare(self, scenario: Scenario) -> None:
        await self.fl.declare(scenario.declarations)

    async def publish(self, name: str, rows: pa.Table) -> None:
        await self.fl.publish_many(name, rows)

    async def flush(self) -> None:
        await self.fl.flush()

    async def follow(self, scenario: Scenario, subscriber: int, ready: asyncio.Event) -> AsyncIterator[Progress]:
        early = scenario.times is not None and scenario.times.early
        async with self.fl.subscribe(scenario.of(subscriber), start="earliest", early=early) as subscription:
            ready.set()
            while True:
                published, sooner = list[float](), list[float]()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        published, sooner = _published(await subscription.next_batch())
                yield subscription.events_read, published, sooner


class OneStreamSide:
    """`single`: one message per event."""

    def __init__(self, url: str, single: bool = False) -> None:
        self.url, self.single = url, single

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
        if self.single:
            payloads = [row.tobytes() for row in rows_of(rows)]
        else:
            payloads = [payload for batch in rows.combine_chunks().to_batches() for _, payload in pieces(batch)]
        for payload in payloads:
            self.sent.append(await self.stream.publish_async(f"all.{name}", payload))

    async def flush(self) -> None:
        await asyncio.gather(*self.sent)
        self.sent.clear()

    async def follow(self, scenario: Scenario, subscriber: int, ready: asyncio.Event) -> AsyncIterator[Progress]:
        plan = fairlead.compile(f"{scenario.declarations}\n{scenario.of(subscriber)}")
        wanted = scenario.reads(subscriber)
        engine, read = Engine(plan), 0
        reading = await self.stream.subscribe("all.>", ordered_consumer=True, pending_msgs_limit=-1, pending_bytes_limit=-1)
        ready.set()
        while True:
            messages, published = [], list[float]()
            with suppress(TimeoutError):
                messages.append(await reading.next_msg(timeout=0.1))
                while reading.pending_msgs and len(messages) < TOGETHER:
                    messages.append(await reading.next_msg(timeout=0.1))
            columns = self._columns(wanted, messages)
            if columns is not None:
                read += len(columns)
                found = engine.feed(columns)
                published, _ = _published(found)
            yield read, published, []

    def _columns(self, wanted: Sequence[str], messages: Sequence[Any]) -> Columns | None:
        mine = [(wanted.index(name), each) for each in messages if (name := each.subject.rsplit(".", 1)[-1]) in wanted]
        if not mine:
            return None
        tables: dict[str, pa.RecordBatch] = {}
        counts = np.ones(len(mine), dtype=np.int64)
        for code, name in enumerate(wanted):
            of_type = [at for at, (its, _) in enumerate(mine) if its == code]
            if self.single and of_type:
                rows = np.frombuffer(b"".join(mine[at][1].data for at in of_type), dtype=ROW)
                tables[name] = batch_of(rows)
            elif of_type:
                batches = [pa.ipc.open_stream(mine[at][1].data).read_next_batch() for at in of_type]
                counts[of_type] = [each.num_rows for each in batches]
                tables[name] = pa.concat_batches(batches)
        codes = np.repeat(np.array([code for code, _ in mine], dtype=np.int8), counts)
        places = [
            (each.metadata.sequence.stream << INDEX_BITS) + np.arange(count)
            for (_, each), count in zip(mine, counts.tolist(), strict=True)
        ]
        return Columns(tuple(wanted), codes, np.concatenate(places), tables)  # type: ignore[arg-type]


def _published(found: Sequence[Any]) -> tuple[list[float], list[float]]:
    """Of some relations, from the first to about the last: those that are matched together have not waited equally long. Apart
    from them, of some that are delivered early."""
    some = [each for each in found[:: max(1, (len(found) - 1) // 2)] if each.sign > 0]
    times = [(each.early, max(event["t"] for event in each.members) / 1e6) for each in some]
    return [at for early, at in times if not early], [at for early, at in times if early]


SIDES: dict[str, Any] = {
    "fairlead": FairleadSide,
    "one-stream": OneStreamSide,
    "messages": lambda url: OneStreamSide(url, single=True),
}
