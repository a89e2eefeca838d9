"""The steps of a job for rules with ORDER BY, without Spark: however the log is divided, whatever fails, the log has the blocks
of a live subscriber, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from fairlead.errors import StateError, UsageError
from fairlead.model.blobs import packed
from fairlead.runtime.live.client import Client
from fairlead.runtime.spark.log.block_rows import MadeBlock, blocks_in, table_of
from fairlead.runtime.spark.log.cuts import complete_cut, limited_cut
from fairlead.runtime.spark.log.lineage_job import LineageJob, job_of
from fairlead.runtime.spark.log.lineage_task import KeptTasks, LineageTask
from fairlead.runtime.spark.log.options import log_options
from fairlead.runtime.spark.log.sink import SinkRows, store_made
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.log_place import LogPlace
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Log, Stored, Stream
from tests.runtime.live.reading import more
from tests.runtime.spark.log.test_ordered_sink import NAMES, ONE, ORDERS, RULES, SEVERAL

START = datetime(2026, 1, 31, tzinfo=UTC)
SECOND = timedelta(seconds=1)
READER = "ORDER BY at DELAY 4 SECONDS SUBSCRIPTION Late MATCH Paired p THEN Paired q PER k EMIT Second (k = q.k)"
"""Of another subscriber: it reads in the log what the first one has derived."""


class MemoryPlace(LogPlace):
    def __init__(self, log: MemoryLog) -> None:
        super().__init__("memory:", None, 1, Credentials())
        object.__setattr__(self, "_log", log)

    async def open(self, held: ExitStack) -> tuple[Log, str]:
        return self._log, "memory:"  # type: ignore[attr-defined]


def client(log: MemoryLog, source: str) -> Client:
    return Client(MemoryPlace(log), source, 0.001, 10.0, None)


class World:
    """A log with events of two publishers, of which some are late, and what a live subscriber stored."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = int(START.timestamp()) * 1_000_000
        self.log = MemoryLog(self.clock)

    def clock(self) -> int:
        """Blocks of several topics may be stored at the same time."""
        self.now += self.random.choice((0, 1, 200_000))
        return self.now

    async def publish(self, blocks: int) -> None:
        async with client(self.log, "p") as p, client(self.log, "q") as q:
            for _ in range(blocks):
                some = []
                for _ in range(self.random.choice((1, 1, 2, 5))):
                    self.now += 300_000
                    at = self.now / 1e6 - self.random.choice((0, 0, 0, 0.3, 0.8, 1.5, 2.4, 9))
                    some.append({"type": self.random.choice("AABBC"), "k": self.random.randrange(2), "at": moment(at)})
                await self.random.choice((p, q)).publish_all(some, wait=True)

    async def stretches(self, job: LineageJob, streams: Sequence[Stream], topics: Sequence[str]) -> list[Sequence[int]]:
        """The ends of micro-batches, as the data source finds them."""
        end = await complete_cut(self.log, streams, topics) if len(streams) > 1 else list(job.ends)
        at, found = [0] * len(streams), list[Sequence[int]]()
        while at != end:
            blocks = self.random.choice((1, 3, 10, 50))
            at = list(await limited_cut(self.log, streams, at, end, blocks)) if len(at) > 1 else [min(end[0], at[0] + blocks)]
            found.append(at)
        return found

    def read(self, stream: Stream, after: int, last: int) -> Iterator[Sequence[Stored]]:
        yield from [[each] for each in self.log._streams[stream.name][after:last]]


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def of_types(log: MemoryLog, names: Sequence[str]) -> list[Block]:
    blocks = [each.block for name, some in log._streams.items() if name.startswith("FL_TOPIC") for each in some]
    return sorted((each for each in blocks if each.type in names), key=lambda each: (each.source, each.number))


def options(rules: str, **more: str) -> Any:
    return log_options({"url": "nats://nowhere", "rules": rules} | more)


async def made_in(world: World, job: LineageJob, streams: Sequence[Stream], topics: Sequence[str]) -> list[list[MadeBlock]]:
    """By micro-batch. Tasks are dumped and loaded, or kept by the worker; some micro-batches are repeated."""
    kept, states, found = KeptTasks(), dict[str, bytes](), list[list[MadeBlock]]()
    for ends in await world.stretches(job, streams, topics):
        for _ in range(world.random.choice((1, 1, 2))):
            some, after = list[MadeBlock](), dict[str, bytes]()
            for setup in job.lineages:
                task = kept.resumed(job.start, setup, states.get(setup.key))
                some += task.feed(world.read, ends)
                after[setup.key] = kept.keep(job.start, task)
                if world.random.random() < 0.5:
                    kept = KeptTasks()
        states |= after
        found.append(some)
    return found


CASES = [(types, order) for types in ("one", "several") for order in ORDERS]


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES)))
def test_any_division_of_the_log_makes_the_blocks_of_a_live_subscriber(case: int) -> None:
    types, order = CASES[case]
    declared, rules = {"one": ONE, "several": SEVERAL}[types], f"{ORDERS[order]} {RULES}"

    async def work() -> None:
        world = World(case)
        async with client(world.log, "declaring") as fl:
            await fl.declare(declared)
            deliveries = []
            async with fl.subscribe(rules, start="earliest") as sub:
                for _ in range(6):
                    await world.publish(8)
                    deliveries += [(each.subscription, each.id, each.sign) for each in await more(sub)]
            wanted = of_types(world.log, NAMES)
            async with fl.subscribe(READER, start="earliest") as sub:
                await more(sub)
            beyond = of_types(world.log, ["Second"])

        asked = options(rules, into="Found")
        job = await job_of(world.log, asked, ends=True)
        topics = sorted({topic for each in job.lineages for (topic,) in each.group.sources})
        streams = [await world.log.open_topics([topic]) for topic in topics]
        found = [each.block for some in await made_in(world, job, streams, topics) for each in some]
        found.sort(key=lambda each: (each.source, each.number))
        assert [each for each in found if each.type in NAMES] == wanted
        told = [row for each in found if each.type == "Found" for row in each.batch.to_pylist()]
        for name in {name for name, *_ in deliveries}:
            mine = [(each["relation_id"], each["sign"]) for each in told if each["subscription"] == name]
            assert mine == [(relation, sign) for owner, relation, sign in deliveries if owner == name]

        job = await job_of(world.log, options(READER), ends=True)
        (task,) = [each.begun() for each in job.lineages]
        assert [each.block for each in task.feed(world.read, job.ends)] == beyond
        assert {each.hops for each in beyond} <= {2}  # they were released by derived events
        assert beyond or case

    asyncio.run(work())


class Failing(MemoryLog):
    """Fails at an append, once."""

    left = -1

    async def append(self, block: Block, after: int) -> int:
        self.left -= 1
        if self.left == 0:
            raise OSError("cut off")
        return await super().append(block, after)


def messages(made: Sequence[MadeBlock]) -> list[SinkRows | None]:
    """Of two tasks, and one that made nothing."""
    parts = [pa.Table.from_batches([table_of(some)]) for some in (made[::2], made[1::2])]
    return [SinkRows(packed(parts[0])), SinkRows(None), SinkRows(packed(parts[1]))]


async def job_in(world: World, **more: str) -> tuple[Any, list[list[MadeBlock]]]:
    asked = options(f"{ORDERS['revising']} {RULES}", **more)
    async with client(world.log, "declaring") as fl:
        await fl.declare(ONE)
        await world.publish(30)
    job = await job_of(world.log, asked, ends=True)
    return asked, await made_in(world, job, [await world.log.open_topics(["main"])], ["main"])


def test_a_micro_batch_that_failed_half_way_is_stored_once() -> None:
    async def stored(at: int) -> list[Block]:
        world = World(5)
        world.log = log = Failing(world.clock)
        asked, batches = await job_in(world, into="Found")
        for made in batches:
            log.left = at
            for _ in range(4):
                with suppress(OSError):
                    await store_made(log, asked, messages(made))
        found = of_types(log, [*NAMES, "Found"])
        assert found == sorted((each.block for made in batches for each in made), key=lambda each: (each.source, each.number))
        return found

    wanted = asyncio.run(stored(-1))
    assert len(wanted) > 15
    for at in (1, 2, 5):
        assert asyncio.run(stored(at)) == wanted


def test_blocks_of_a_job_beside_subscribers_that_started_elsewhere_are_refused() -> None:
    async def work() -> None:
        world = World(6)
        async with client(world.log, "declaring") as fl:
            await fl.declare(ONE)
            await world.publish(5)
            async with fl.subscribe(f"{ORDERS['revising']} {RULES}", start="new"):
                pass
        asked, batches = await job_in(world)
        with pytest.raises(UsageError, match="A228"):
            await store_made(world.log, asked, messages([each for made in batches for each in made]))
        assert not of_types(world.log, NAMES)

    asyncio.run(work())


def test_a_stream_that_stores_deliveries_later_stores_them_from_the_beginning() -> None:
    async def work() -> None:
        world = World(7)
        _, batches = await job_in(world)
        whole = await job_of(world.log, options(f"{ORDERS['revising']} {RULES}", into="Found"), ends=True)
        for setup in whole.lineages:
            plain = replace(setup, into=None).begun()
            middle = [whole.ends[0] // 2]
            before = [each.block for each in plain.feed(world.read, middle)]
            wanted = [each.block for each in setup.begun().feed(world.read, whole.ends)]
            later = LineageTask.load(setup, plain.dump())
            assert [each.block for each in later.feed(world.read, whole.ends)] == wanted
            without = LineageTask.load(replace(setup, into=None), setup.begun().dump())
            assert [each.block for each in without.feed(world.read, whole.ends)] == [
                each for each in wanted if each.type in NAMES
            ]
            assert before == [each for each in wanted if each.type in NAMES][: len(before)]
            head = plain.dump().replace(b'"version": 1', b'"version": 0', 1)
            with pytest.raises(StateError, match="S110"):
                LineageTask.load(setup, head)
            other = replace(setup, streams=(Stream(setup.streams[0].name, "other"),))
            with pytest.raises(StateError, match="S137"):
                LineageTask.load(other, plain.dump())
        assert batches

    asyncio.run(work())


def test_the_type_of_deliveries_keeps_what_was_declared_of_it() -> None:
    async def work() -> None:
        world, declared = (
            World(8),
            "(subscription STRING, relation_id STRING, branch INT, completed_at BIGINT, positions STRING",
        )
        async with client(world.log, "declaring") as fl:
            await fl.declare(f"TYPE Unsigned {declared}) TYPE Wider {declared}, sign INT, note STRING)")
        _, batches = await job_in(world, into="Unsigned")
        (rows,) = {tuple(each.block.batch.schema.names) for made in batches for each in made if each.block.type == "Unsigned"}
        assert rows[-1] == "sign"
        asked, batches = await job_in(world, into="Wider")
        await store_made(world.log, asked, messages([each for made in batches for each in made]))
        (row, *_), *_ = [each.batch.to_pylist() for each in of_types(world.log, ["Wider"])]
        assert (row["sign"], row["note"]) == (1, None)

    asyncio.run(work())


def test_rows_of_blocks_are_these_blocks() -> None:
    block = Block("D", f"e-{'a' * 24}-0", 3, 9, 2, "s" * 16, b"payload", topic="t", hops=2)
    made = [MadeBlock("key", (1 << 12, 0), block)]
    assert list(blocks_in(pa.Table.from_batches([table_of(made)]))) == made
