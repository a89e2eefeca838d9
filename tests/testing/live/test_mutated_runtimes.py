"""A small run without failures, with the processes' own code: starts at a position and at a time, and a gateway. It has no
problem. With a runtime that is broken on purpose in one place, the checks find one: each of them can fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import fairlead
from fairlead.deliver.receipt import ReceiptBook
from fairlead.errors import FairleadError
from fairlead.order.stored_numbers import StoredNumbers
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core import lineage
from fairlead.runtime.live.core.stream_groups import Origin
from fairlead.runtime.live.subscriber import group_start, record
from fairlead.runtime.live.subscriber.leading_lineage import LeadingLineage
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.runtime.numbered import Numbered
from fairlead.testing.live.actors.beginning import chosen_start
from fairlead.testing.live.actors.gateway_process import WebSubscriber
from fairlead.testing.live.actors.publisher import Working
from fairlead.testing.live.actors.records import Line, RecordLines, Writer
from fairlead.testing.live.actors.setting import (
    BEGINNING,
    EMITTED,
    EMITTED_TOPIC,
    GATEWAY,
    RULES,
    STREAMS,
    TYPES,
    WEB,
    WEB_TYPES,
)
from fairlead.testing.live.actors.subscriber import Same, subscribed
from fairlead.testing.live.actors.web_publisher import WebPublisher
from fairlead.testing.live.verdict import checks
from fairlead.testing.live.verdict.comparison import CATALOGUE, recorded_subscriber
from fairlead.testing.live.verdict.log_copy import Copy, copied
from fairlead.testing.live.verdict.publication import publications
from fairlead.testing.live.verdict.trace import Subscriber
from fairlead.transport.log.jetstream.log import JetStreamLog
from fairlead.transport.log.jetstream.server import Server
from fairlead.web.gateway import Settings
from fairlead.web.serving import gateway
from fairlead.web.streams.feed import Feed, FeedMessage
from tests.transport.log.logs import run

pytestmark = [pytest.mark.server, pytest.mark.slow]

PAUSE = 0.005
LINES_MIN = 100
"""Of the record of a publisher, in each half of a run."""
QUIET_SECONDS_MAX = 10.0
"""A broken runtime may never deliver what is due: it is not waited for longer than this after the last acknowledgement."""
SUBSCRIBERS = (*BEGINNING, GATEWAY)
Records = dict[str, RecordLines]


class SmallRun:
    def __init__(self, folder: Path, fl: Client, address: str) -> None:
        self._folder, self._fl, self._address = folder, fl, address
        self.records = {name: RecordLines(folder / f"{name}.jsonl") for name in (*SUBSCRIBERS, "left", WEB)}
        self._writers = {name: Writer(folder / f"{name}.jsonl") for name in self.records}
        self._publishing, self._first, self._following = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self) -> list[str]:
        """The problems."""
        async with asyncio.TaskGroup() as everything:
            for name in ("A", "B", "C"):
                working = Working("left", PAUSE, self._writers["left"], self._publishing)
                everything.create_task(working.publish(self._fl, name))
            web = WebPublisher(self._writers[WEB], self._address, WEB, WEB_TYPES.split(","), [])
            everything.create_task(web.run(PAUSE, self._publishing))
            first = everything.create_task(self._web_subscriber().run(self._first))
            await self._written(LINES_MIN)
            self._first.set()  # the program that subscribes through the gateway ends, and another continues
            await first
            following = [asyncio.create_task(self._web_subscriber().run(self._following))]
            following += [asyncio.create_task(self._begun(name, how)) for name, how in BEGINNING.items()]
            await self._written(2 * LINES_MIN)
            self._publishing.set()
        while True:  # subscribers that wait store heartbeats
            copy = await copied(self._fl, STREAMS, QUIET_SECONDS_MAX)
            await self._delivered(copy, following)
            if (await copied(self._fl, STREAMS, QUIET_SECONDS_MAX)).count == copy.count:
                break
        self._following.set()
        ends = await asyncio.gather(*following, return_exceptions=True)
        return [*(str(each) for each in ends if each), *await self._problems(copy)]

    def _web_subscriber(self) -> WebSubscriber:
        return WebSubscriber(self._writers[GATEWAY], self._address, GATEWAY, RULES[GATEWAY])

    async def _begun(self, name: str, how: str) -> None:
        start = await chosen_start(self._fl, how, "both", [], self._writers[name])
        await subscribed(self._fl, self._writers[name], name, RULES[name], start, "", self._following, Same())

    async def _written(self, lines: int) -> None:
        async with asyncio.timeout(60):
            while any(len(self.records[name].refresh()) < lines for name in ("left", WEB)):
                await asyncio.sleep(0.01)  # the same

    async def _delivered(self, copy: Copy, following: Sequence[asyncio.Task[None]]) -> None:
        """Waits until all have acknowledged what is due, or nobody has acknowledged anything for long enough."""
        clock, acknowledged, end = asyncio.get_running_loop().time, -1, 0.0
        while not any(each.done() for each in following):
            everyone = [recorded_subscriber(name, self.records[name].refresh())[0] for name in SUBSCRIBERS]
            before, acknowledged = acknowledged, sum(each.acked for who in everyone for each in who.given.values())
            if acknowledged > before:
                end = clock() + QUIET_SECONDS_MAX
            settled = not any(who.silent for who in everyone) and all(
                who.given[key].acked >= len(checks.expected(copy, group, who.start))
                for who in everyone
                for key, group in who.groups.items()
            )
            if settled or clock() > end:
                return
            await asyncio.sleep(0.05)  # records of other processes are files

    async def _problems(self, copy: Copy) -> list[str]:
        sent: Mapping[str, Sequence[Line]] = {name: self.records[name].refresh() for name in ("left", WEB)}
        problems = checks.stored(copy, CATALOGUE, sent) + publications(copy, CATALOGUE, sent) + checks.merged(copy)
        for name in SUBSCRIBERS:
            who, wrong = recorded_subscriber(name, self.records[name].refresh())
            problems += wrong + checks.delivered(copy, who, await self._fl.receipts(name))
            if name == GATEWAY:
                problems += await self._derived(copy, who)
        return problems

    async def _derived(self, copy: Copy, first: Subscriber) -> list[str]:
        """What the subscriber that came first derives from the beginning is stored once; the others derive nothing else."""
        found = (await copied(self._fl, [(EMITTED_TOPIC,)], QUIET_SECONDS_MAX)).topics[EMITTED_TOPIC]
        relations = [each for group in first.groups.values() for each in checks.expected(copy, group)]
        return checks.derived(first.plan.catalogue, found, EMITTED, relations)


async def a_run(folder: Path) -> list[str]:
    with Server(folder / "data", durable=False) as server:
        async with fairlead.connect(server.url, source="left") as fl:
            await fl.declare(TYPES)
            for each in STREAMS:
                await fl.log.open_topics(each)
            async with gateway(server.url, Settings()) as address:
                return await SmallRun(folder, fl, address).run()


def later_by_a_block(patch: pytest.MonkeyPatch) -> None:
    before = JetStreamLog.before

    async def late(self: JetStreamLog, *given: Any) -> int:
        return await before(self, *given) + 1

    patch.setattr(JetStreamLog, "before", late)


def at_the_beginning_of_its_block(patch: pytest.MonkeyPatch) -> None:
    beginning_of = group_start.beginning_of

    async def rounded(log: Any, group: Any, streams: Any, start: Any, leading: Any) -> Any:
        return await beginning_of(log, group, streams, start >> 12 << 12 if isinstance(start, int) else start, leading)

    patch.setattr(group_start, "beginning_of", rounded)


def from_the_first_event(patch: pytest.MonkeyPatch) -> None:
    """Starts in the middle of the log are ignored."""
    beginning_of = group_start.beginning_of

    async def whole(log: Any, group: Any, streams: Any, start: Any, leading: Any) -> Any:
        return await beginning_of(log, group, streams, start if isinstance(start, str) else "earliest", leading)

    patch.setattr(group_start, "beginning_of", whole)


def receipts_without_an_origin(patch: pytest.MonkeyPatch) -> None:
    """So two subscribers with different starts seem to have the same receipts to give."""
    patch.setattr(lineage, "book_of", lambda group, origin: ReceiptBook(group.digest))


def receipts_without_samples(patch: pytest.MonkeyPatch) -> None:
    """Equal as they are printed."""
    patch.setattr(record, "SAMPLES_MAX", 1)


def repeats_are_new(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoredNumbers, "new_of", lambda self, numbers: list(range(len(numbers))))


def stored_without_storing(patch: pytest.MonkeyPatch) -> None:
    store, calls = Numbered.store, count(1)

    async def lossy(self: Numbered, *given: Any) -> int:
        return 0 if next(calls) % 9 == 0 else await store(self, *given)

    patch.setattr(Numbered, "store", lossy)


def one_message_less(patch: pytest.MonkeyPatch) -> None:
    iterate, calls = Feed.__aiter__, count(1)

    async def lossy(self: Feed) -> AsyncIterator[FeedMessage]:
        async for each in iterate(self):
            if next(calls) % 20:
                yield each

    patch.setattr(Feed, "__aiter__", lossy)


def acknowledged_without_storing(patch: pytest.MonkeyPatch) -> None:
    """By the gateway: other subscribers store them."""
    acknowledge = LiveSubscription.acknowledge

    async def careless(self: LiveSubscription, numbers: Mapping[str, int]) -> None:
        if self.name != GATEWAY:
            await acknowledge(self, numbers)

    patch.setattr(LiveSubscription, "acknowledge", careless)


def derived_by_every_start(patch: pytest.MonkeyPatch) -> None:
    async def beside(self: LeadingLineage, origin: Origin) -> Origin:
        return origin

    patch.setattr(LeadingLineage, "beside", beside)


def test_a_run_without_failures_has_no_problem(tmp_path: Path) -> None:
    assert run(lambda: a_run(tmp_path)) == []


@pytest.mark.parametrize(
    ("mutation", "word"),
    [
        (later_by_a_block, "at-time"),
        (at_the_beginning_of_its_block, "at-position"),
        (from_the_first_event, "at-time"),
        (receipts_without_an_origin, "other plan"),
        (receipts_without_samples, "other stride, samples"),
        (repeats_are_new, "from web"),
        (stored_without_storing, "from web"),
        (one_message_less, "gateway"),
        (acknowledged_without_storing, "gateway"),
        (derived_by_every_start, "events of Pair are stored"),
    ],
)
def test_a_broken_runtime_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    try:
        problems = run(lambda: a_run(tmp_path))
    except* FairleadError as errors:  # a publisher notices it
        problems = [str(each) for each in errors.exceptions]
    assert any(word in each for each in problems), problems
