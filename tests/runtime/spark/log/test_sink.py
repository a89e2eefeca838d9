"""The sink's own steps, without Spark: whatever fails in between, every block is stored once, under the same number."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import fairlead
from fairlead.errors import StateError, UnsupportedError, UsageError
from fairlead.model.blobs import packed
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.merged_streams import open_streams
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.live.subscriber.leading_lineage import LeadingLineage
from fairlead.runtime.spark.job.result_rows import ResultRows
from fairlead.runtime.spark.log.frames import to_log
from fairlead.runtime.spark.log.lineage_job import ordered_options
from fairlead.runtime.spark.log.options import log_options
from fairlead.runtime.spark.log.outputs import kept
from fairlead.runtime.spark.log.provenance import found_in_log, note_events, note_relations, note_same
from fairlead.runtime.spark.log.sink import SinkRows, only_group, stored
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.memory_log import MemoryLog

RULES = """
TYPE A (k INT, x INT)
TYPE B (k INT, x INT)
SUBSCRIPTION Pairs MATCH A a THEN B b WHERE a.k = b.k EMIT D (k = a.k, x = b.x)
"""
OPTIONS = {"url": "nats://nowhere", "rules": RULES, "into": "Found"}


class Failing(MemoryLog):
    """Fails at an append, once."""

    left = -1

    async def append(self, block: Block, after: int) -> int:
        self.left -= 1
        if self.left == 0:
            raise OSError("cut off")
        return await super().append(block, after)


def batches() -> list[list[SinkRows]]:
    """Three micro-batches of relations, each from two tasks; a block of the log has ten events."""
    plan = fairlead.compile(RULES)
    events = [{"type": "AB"[at % 2], "k": at % 6 // 2, "x": at, "p": (1 + at // 10 << 12) + at % 10} for at in range(120)]
    table = ResultRows(plan).relations(fairlead.match(plan, events, position="p").relations)
    whole = kept(table.to_batches())
    assert whole is not None
    block = whole.column("completed_at").to_numpy() >> 12
    parts = [whole.filter((block > low) & (block <= low + 4)) for low in (0, 4, 8)]
    assert all(each.num_rows > 10 for each in parts)
    return [[SinkRows(packed(each.slice(7))), SinkRows(None), SinkRows(packed(each.slice(0, 7)))] for each in parts]


def content(log: MemoryLog) -> dict[str, list[Block]]:
    blocks = [each.block for each in log._streams["FL_TOPIC_main"]]
    return {name: [each for each in blocks if each.type == name] for name in ("D", "Found")}


def test_a_micro_batch_that_failed_half_way_is_stored_once() -> None:
    asked, given = log_options(OPTIONS), batches()

    async def whole() -> dict[str, list[Block]]:
        log = MemoryLog()
        for number, each in enumerate(given):
            await stored(log, asked, each, number)
        return content(log)

    async def interrupted(at: int) -> dict[str, list[Block]]:
        log = Failing()
        for number, each in enumerate(given):
            log.left = at
            with pytest.raises(OSError, match="cut off"):
                await stored(log, asked, each, number)
            await stored(log, asked, each, number)
            await stored(log, asked, each, number)  # Spark did not hear of it
        return content(log)

    wanted = asyncio.run(whole())
    for blocks in wanted.values():
        assert [each.number for each in blocks] == list(range(len(blocks)))
        assert len(blocks) == 12
    for at in (1, 2, 4, 7):
        assert asyncio.run(interrupted(at)) == wanted


def test_a_batch_job_stores_what_streams_stored() -> None:
    async def work() -> None:
        log, asked, given = MemoryLog(), log_options(OPTIONS), batches()
        await stored(log, asked, [each for some in given for each in some], None)
        before = content(log)
        for number, each in enumerate(given):
            await stored(log, asked, each, number)
        assert content(log) == before

    asyncio.run(work())


def test_what_does_not_fit_is_refused() -> None:
    async def work() -> None:
        log, asked, given = MemoryLog(), log_options(OPTIONS), batches()
        await stored(log, asked, given[0], 0)
        with pytest.raises(StateError, match="S138"):
            await stored(log, asked, given[2], 2)
        await stored(log, asked, given[0], 0)  # a new checkpoint begins with the log, and finds it stored
        assert len(content(log)["D"]) == 4

        other = MemoryLog()
        group = only_group(await _plan(other))
        streams = await open_streams(other, group.sources)
        leading = LeadingLineage(other, group, streams, group.key(streams), emits=True)
        assert await leading.beside((5 << 12,)) == (1 << 12,)  # not later than the next event
        with pytest.raises(UsageError, match="A228"):
            await stored(other, asked, given[0], 0)
        nothing: dict[str, Any] = {"url": "nats://nowhere", "rules": RULES.partition("EMIT")[0]}
        with pytest.raises(UsageError, match="A229"):
            await stored(MemoryLog(), log_options(nothing), given[0], 0)

    asyncio.run(work())


async def _plan(log: MemoryLog) -> Plan:
    return await Registry(log).plan(RULES)


class Frame:
    """A stand-in for a frame of Spark."""

    sparkSession = None


def test_relations_of_rules_with_an_order_by_value_come_from_a_frame_of_a_log() -> None:
    text = "TYPE A (at TIMESTAMP) TIME at ORDER BY at DELAY 1 SECOND SUBSCRIPTION S MATCH A a EMIT D (at = a.at)"
    plan, told = fairlead.compile(text), {"url": "nats://nowhere", "rules": text, "start": "earliest"}

    def refused(relations: Any, plan: Plan, code: str = "U124", kind: type[Exception] = UnsupportedError, **more: Any) -> None:
        with pytest.raises(kind, match=code):
            to_log(relations, plan, "nats://nowhere", **more)

    def found(plan: Plan, **options: str) -> Any:
        events, relations = Frame(), Frame()
        if options:
            note_events(events, options)
        note_relations(relations, plan, events)
        return relations

    refused(found(plan), plan)  # of files
    refused(found(plan, types="A", start="earliest"), plan)
    refused(found(plan, **told | {"start": "new"}), plan)
    refused(found(fairlead.compile(text.replace("1 SECOND", "2 SECONDS")), **told), plan)
    refused(found(plan, **told), fairlead.compile(text.replace("ORDER BY at DELAY 1 SECOND", "")))
    refused(found(plan, **told), plan, "A228", UsageError, start=4096)
    same, counted = found(plan, **told), Frame()
    note_same(counted, same)
    assert found_in_log(counted) == found_in_log(same)
    assert ordered_options(counted, plan, {"start": "0", "into": "Found"}) == told | {"into": "Found"}
