"""A subscriber as a separate process, to be killed: python -m fairlead.testing.live.actors.subscriber RECORD URL NAME RULES
[TYPE [START [TOPIC]]]

START may be `position` or `time`: then it begins with the last event of a topic, as its first process finds it (beginning.py).
Deliveries are in its record before they are acknowledged, and acknowledgements after. With a TYPE, it publishes an event for
every few relations (relay.py), under its own name.

Beside it, in the same process and on the same connection, a subscriber without a name has the same rules and start.
Both read the same streams together, and must receive the same relations under the same numbers. Reports on events that take no
part (late, ahead) are in the record, too, for both.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import fairlead
from fairlead.errors import LogError, StateError, require
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.deliveries import Batch
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.testing.live.actors.beginning import Start, chosen_start
from fairlead.testing.live.actors.end_of_input import asked_to_stop
from fairlead.testing.live.actors.records import RecordLines, Writer
from fairlead.testing.live.actors.relay import Relay
from fairlead.testing.live.actors.skewed_clock import skew_clock
from fairlead.transport.log.tasks import ended

AGAIN_SECONDS = 0.2


class Same:
    """The delivery of each number, as the first subscriber of this process received it."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, int], tuple[int, str]] = {}

    def note(self, batch: Batch) -> None:
        for key, number, each in batch.numbered():
            mine = each.sign, each.id
            first = self._given.setdefault((key, number), mine)
            require(first == mine, "two in one process are given the same", number=number, first=first, then=mine)


class Reports:
    """Reports on events, as they are recorded: each with the number of the last delivery before it, if that is known."""

    def __init__(self, record: Writer, *, beside: bool) -> None:
        self._record, self._beside = record, beside
        self._last: dict[str, int] = {}

    def note(self, batch: Batch) -> None:
        """By subscription, as each of them is a group of its own."""
        numbered, done = list(batch.numbered()), 0
        for report, before in zip(batch.reports, batch.before, strict=True):
            self._last |= {each.subscription: number for _, number, each in numbered[done:before]}
            done = before
            event = [report.event.type, report.event.source, report.event["x"]]
            for name in report.subscriptions:
                self._record.note(
                    verdict=report.verdict, subscription=name, event=event, after=self._last.get(name), beside=self._beside
                )
        self._last |= {each.subscription: number for _, number, each in numbered[done:]}


def note(record: Writer, batch: Batch) -> None:
    for key, number, each in batch.numbered():
        record.note(
            number=number,
            group=key,
            id=each.id,
            sign=each.sign,
            subscription=each.subscription,
            branch=each.branch,
            positions=each.positions,
        )


async def follow(
    sub: LiveSubscription, record: Writer, relay: Relay | None, stop: asyncio.Event, same: Same, other: LiveSubscription
) -> None:
    stopped, beside = asyncio.create_task(stop.wait()), asyncio.create_task(look(other, same, Reports(record, beside=True)))
    reports = Reports(record, beside=False)
    coming: asyncio.Task[Batch] | None = None
    try:
        while True:
            coming = asyncio.create_task(sub.next_batch())
            await asyncio.wait((coming, stopped, beside), return_when=asyncio.FIRST_COMPLETED)
            if beside.done():
                beside.result()
            if not coming.done():
                return
            batch = coming.result()
            same.note(batch)
            note(record, batch)
            reports.note(batch)
            if relay is not None:
                await relay.pass_on(batch)
            if not len(batch):
                continue  # reports only
            await sub.ack(batch)
            for key, last in batch.lasts.items():
                record.note(acked=last, group=key)
    finally:
        await ended(stopped, beside, coming)


async def look(other: LiveSubscription, same: Same, reports: Reports) -> None:
    async for batch in other.batches():
        same.note(batch)
        reports.note(batch)


async def subscribed(
    fl: Client, record: Writer, name: str, rules: str, start: Start, type: str, stop: asyncio.Event, same: Same
) -> None:
    """One life: from a connection to its end."""
    async with (
        fl.subscribe(rules, name=name, start=start, verdicts=True) as sub,
        fl.subscribe(rules, start=start, verdicts=True) as other,
    ):
        record.note(begun=name)
        await follow(sub, record, Relay(fl, type, record) if type else None, stop, same, other)
        record.note(receipts={key: each.to_json() for key, each in sub.receipts.items()})


async def main(path: str, url: str, name: str, rules: str, type: str = "", how: str = "earliest", topic: str = "both") -> None:
    skew_clock(name)
    before, record, stop, same = RecordLines(Path(path)).refresh(), Writer(path), asked_to_stop(), Same()
    record.note(begun=name)
    while not stop.is_set():
        try:
            async with fairlead.connect(url, source=name, replicas=3) as fl:
                start = await chosen_start(fl, how, topic, before, record)
                await subscribed(fl, record, name, rules, start, type, stop, same)
        except (LogError, StateError) as error:
            if isinstance(error, StateError) and error.code != "S131":
                raise  # S131 is expected: events that a former process has sent may arrive after the lookup
            record.note(trouble=str(error))
            await asyncio.sleep(AGAIN_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
