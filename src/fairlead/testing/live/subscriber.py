"""A subscriber as a process of its own, to be killed: python -m fairlead.testing.live.subscriber RECORD URL NAME RULES [TYPE]

What it was given is in its record before it is acknowledged, and what it has acknowledged after. With a TYPE, it publishes an
event for every few relations (relaying.py), under its own name.
"""

from __future__ import annotations

import asyncio
import sys

import fairlead
from fairlead.errors import LogError, StateError
from fairlead.runtime.live.batch import Batch
from fairlead.runtime.live.subscribing import LiveSubscription
from fairlead.testing.live.records import Writer
from fairlead.testing.live.relaying import Relay
from fairlead.testing.live.stopping import asked_to_stop

AGAIN_SECONDS = 0.2


def note(record: Writer, batch: Batch) -> None:
    for number, each in enumerate(batch, batch.first):
        record.note(
            number=number,
            group=batch.key,
            id=each.id,
            subscription=each.subscription,
            branch=each.branch,
            positions=each.positions,
        )


async def follow(sub: LiveSubscription, record: Writer, relay: Relay | None, stop: asyncio.Event) -> None:
    stopped = asyncio.create_task(stop.wait())
    try:
        while True:
            coming = asyncio.create_task(sub.next_batch())
            await asyncio.wait((coming, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                return
            batch = coming.result()
            note(record, batch)
            if relay is not None:
                await relay.pass_on(batch)
            await sub.ack(batch)
            record.note(acked=batch.last, group=batch.key)
    finally:
        stopped.cancel()


async def main(path: str, url: str, name: str, rules: str, type: str = "") -> None:
    record, stop = Writer(path), asked_to_stop()
    record.note(begun=name)
    while not stop.is_set():
        try:
            async with (
                fairlead.connect(url, source=name, replicas=3, patience=20) as fl,
                fl.subscribe(rules, name=name, start="earliest") as sub,
            ):
                record.note(begun=name)
                await follow(sub, record, Relay(fl, type, record) if type else None, stop)
                record.note(receipts={key: each.to_json() for key, each in sub.receipts.items()})
        except (LogError, StateError) as error:
            if isinstance(error, StateError) and error.code != "S131":
                raise  # but what a former life has sent may arrive after we have looked
            record.note(trouble=str(error))
            await asyncio.sleep(AGAIN_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
