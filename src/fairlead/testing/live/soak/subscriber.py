"""A durable subscriber as a separate process: python -m fairlead.testing.live.soak.subscriber RECORD URL NAME RULES

Before it acknowledges a batch it notes the sums of all numbers `x` that it has received until then: together with the count
they say whether one is missing or doubled. A restarted process continues the sums of the line before its first delivery.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import fairlead
from fairlead.errors import LogError, StateError, require
from fairlead.matching.results.chunk import Numbers
from fairlead.runtime.live.core.deliveries import Batch
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.testing.live.actors.end_of_input import asked_to_stop
from fairlead.testing.live.actors.records import RecordLines, Writer
from fairlead.transport.log.tasks import ended

AGAIN_SECONDS = 0.2
MODULUS = 2**61 - 1


class Sums:
    """By the number of a delivery, the sums of `x` and of its squares up to it. Only the last few are kept: a process that
    begins again begins after one of them."""

    def __init__(self, path: Path) -> None:
        lines = [each for each in RecordLines(path).refresh() if "sums" in each]
        self._at = {int(each["last"]): (int(each["sums"][0]), int(each["sums"][1])) for each in lines} | {0: (0, 0)}

    def add(self, first: int, xs: Numbers) -> tuple[int, tuple[int, int]]:
        require(first - 1 in self._at, "a batch follows one that was recorded", first=first)
        one, two = self._at[first - 1]
        numbers = xs.astype(object)
        sums = (one + int(xs.sum())) % MODULUS, (two + int((numbers * numbers).sum())) % MODULUS
        last = first + len(xs) - 1
        self._at = {number: each for number, each in self._at.items() if number > last - 1_000_000} | {last: sums}
        return last, sums


def _numbers(batch: Batch) -> Numbers:
    """The `x` of each pair, which both of its members have."""
    members = batch.to_arrow("Pair").column("members").combine_chunks().flatten()
    both: Numbers = members.field("x").to_numpy(zero_copy_only=False).reshape(-1, 2)
    require(bool((both[:, 0] == both[:, 1]).all()), "the two of a pair have one number")
    return both[:, 0]


async def follow(sub: LiveSubscription, sums: Sums, record: Writer, stop: asyncio.Event) -> None:
    stopped, coming = asyncio.create_task(stop.wait()), None
    try:
        while True:
            coming = asyncio.create_task(sub.next_batch())
            await asyncio.wait((coming, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                return
            batch = coming.result()
            (group,) = batch.lasts
            first = batch.lasts[group] - len(batch) + 1
            last, found = sums.add(first, _numbers(batch))
            record.note(last=last, sums=found)
            await sub.ack(batch)
            record.note(acked=last)
    finally:
        await ended(stopped, coming)


async def main(path: str, url: str, name: str, rules: str) -> None:
    record, stop = Writer(path), asked_to_stop()
    while not stop.is_set():
        record.note(begun=name)
        try:
            async with (
                fairlead.connect(url, source=name, replicas=3) as fl,
                fl.subscribe(rules, name=name, start="earliest") as sub,
            ):
                await follow(sub, Sums(Path(path)), record, stop)
                record.note(receipts={key: each.to_json() for key, each in sub.receipts.items()})
        except LogError as error:
            record.note(trouble=str(error))
            await asyncio.sleep(AGAIN_SECONDS)
        except StateError as error:
            record.note(died=str(error))
            raise


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
