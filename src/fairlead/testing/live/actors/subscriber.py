"""A subscriber as a separate process, to be killed: python -m fairlead.testing.live.actors.subscriber RECORD URL NAME RULES
[TYPE]

Deliveries are in its record before they are acknowledged, and acknowledgements after. With a TYPE, it publishes an event for
every few relations (relay.py), under its own name.

Beside it, in the same process and on the same connection, a subscriber without a name has the same rules from the beginning.
Both read the same streams together, and must receive the same relations under the same numbers.
"""

from __future__ import annotations

import asyncio
import sys

import fairlead
from fairlead.errors import LogError, StateError, require
from fairlead.runtime.live.core.deliveries import Batch
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.testing.live.actors.end_of_input import asked_to_stop
from fairlead.testing.live.actors.records import Writer
from fairlead.testing.live.actors.relay import Relay
from fairlead.transport.log.tasks import ended

AGAIN_SECONDS = 0.2


class Same:
    """The relation of each number, as the first subscriber of this process received it."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, int], str] = {}

    def note(self, batch: Batch) -> None:
        for key, number, each in batch.numbered():
            first = self._ids.setdefault((key, number), each.id)
            require(first == each.id, "two in one process are given the same", number=number, first=first, then=each.id)


def note(record: Writer, batch: Batch) -> None:
    for key, number, each in batch.numbered():
        record.note(
            number=number,
            group=key,
            id=each.id,
            subscription=each.subscription,
            branch=each.branch,
            positions=each.positions,
        )


async def follow(
    sub: LiveSubscription, record: Writer, relay: Relay | None, stop: asyncio.Event, same: Same, other: LiveSubscription
) -> None:
    stopped, beside = asyncio.create_task(stop.wait()), asyncio.create_task(look(other, same))
    try:
        while True:
            coming = asyncio.create_task(sub.next_batch())
            await asyncio.wait((coming, stopped, beside), return_when=asyncio.FIRST_COMPLETED)
            if beside.done():
                beside.result()
            if not coming.done():
                coming.cancel()
                return
            batch = coming.result()
            same.note(batch)
            note(record, batch)
            if relay is not None:
                await relay.pass_on(batch)
            await sub.ack(batch)
            for key, last in batch.lasts.items():
                record.note(acked=last, group=key)
    finally:
        stopped.cancel()
        await ended(beside)


async def look(other: LiveSubscription, same: Same) -> None:
    async for batch in other.batches():
        same.note(batch)


async def main(path: str, url: str, name: str, rules: str, type: str = "") -> None:
    record, stop, same = Writer(path), asked_to_stop(), Same()
    record.note(begun=name)
    while not stop.is_set():
        try:
            async with (
                fairlead.connect(url, source=name, replicas=3, patience=20) as fl,
                fl.subscribe(rules, name=name, start="earliest") as sub,
                fl.subscribe(rules, start="earliest") as other,
            ):
                record.note(begun=name)
                await follow(sub, record, Relay(fl, type, record) if type else None, stop, same, other)
                record.note(receipts={key: each.to_json() for key, each in sub.receipts.items()})
        except (LogError, StateError) as error:
            if isinstance(error, StateError) and error.code != "S131":
                raise  # S131 is expected: events that a former process has sent may arrive after the lookup
            record.note(trouble=str(error))
            await asyncio.sleep(AGAIN_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
