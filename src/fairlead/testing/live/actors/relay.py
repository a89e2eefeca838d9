"""Events in answer to relations: one event for every few deliveries, stored before they are acknowledged.

Which relation is answered, and with what, is a function of its number. So a restarted process that receives relations again
knows which of them its predecessor has answered, by the number of events that the log has of this source.

Takes: batches in the order of delivery. Gives: events, each once. Never: lets a batch be acknowledged before its events are
stored.
"""

from __future__ import annotations

from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.deliveries import Batch
from fairlead.testing.live.actors.publisher import event_of, stored_count
from fairlead.testing.live.actors.records import Writer

EVERY = 4
"""An event takes part in a few relations at most, so the answers to answers end."""


class Relay:
    def __init__(self, fl: Client, type: str, record: Writer) -> None:
        self._fl, self._type, self._record = fl, type, record
        self._next: int | None = None

    async def pass_on(self, batch: Batch) -> None:
        if self._next is None:
            self._next = await stored_count(self._fl, self._type, self._fl.source)
        for _, number, _ in batch.numbered():
            x = number // EVERY - 1
            if number % EVERY == 0 and x >= self._next:
                await self._fl.publish(self._type, event_of(self._fl.source, self._type, x, self._record))
                self._next = x + 1
        await self._fl.flush()
        self._record.note(stored=self._next, type=self._type)
