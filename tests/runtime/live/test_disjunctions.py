"""Disjunctions: one merged stream for each conjunction, and one order of what they come to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import fairlead
from fairlead.cli.command_table import cli
from fairlead.engine import compile
from fairlead.errors import DataError, UsageError
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.runtime.live.core.stream_merge import PULSE, Reached
from fairlead.runtime.live.subscriber import stream_reader
from fairlead.runtime.live.subscriber.stream_reader import OrderedReader
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Stored, Stream
from tests.marks import sample_size
from tests.runtime.live.reading import APART, TYPES, ids, more, publish_some, some
from tests.transport.log.logs import run

LEFT = "SUBSCRIPTION L MATCH A a AND B b WHERE a.k = b.k"
RIGHT = "SUBSCRIPTION R MATCH B d AND C c WHERE d.k = c.k"
TOPICS = (("a", "b"), ("b", "c"))
EITHER = "SUBSCRIPTION D MATCH (A a AND B b) OR (B d AND C c) WHERE a.k = b.k AND d.k = c.k"


def members(relations: Sequence[Relation], branch: int = 0) -> list[list[tuple[object, ...]]]:
    """What those of a branch are made of, whatever the positions."""
    return [[(event.type, *event.values.values()) for event in each.members] for each in relations if each.branch == branch]


def test_a_disjunction_has_a_part_for_each_set_of_topics_that_its_conjunctions_read() -> None:
    plan = compile(f"{APART}; {EITHER} {LEFT} SUBSCRIPTION E MATCH (A a) OR (A a AND A b)")
    either, left, same = groups_of(plan)
    assert [each.types for each in either.parts] == [("A", "B"), ("B", "C")]
    assert [each.plan["D"].numbers for each in either.parts] == [(0,), (1,)]
    assert [each.types for each in left.parts] == [("A", "B")]
    assert [each.types for each in same.parts] == [("A",)]
    assert [each.topics for each in either.parts] == [("a", "b"), ("b", "c")]


def test_conjunctions_within_a_topic_are_one_part() -> None:
    for topics, parts in {
        "": [("A", "B", "C")],
        "TOPIC t (A, B, C)": [("A", "B", "C")],
        "TOPIC t (A, C)": [("A", "B", "C")],
        "TOPIC t (A, B)": [("B", "C"), ("A", "B")],
        "TOPIC t (C)": [("A", "B"), ("B", "C")],
    }.items():
        (group,) = groups_of(compile(f"{topics} {TYPES}; {EITHER}"))
        assert [each.types for each in group.parts] == parts


def test_what_waits_for_an_absence_stays_in_one_part() -> None:
    timed = APART.replace("x INT)", "at TIMESTAMP) TIME at")
    plan = compile(f"{timed}; SUBSCRIPTION S MATCH A a OR (B b AND C c) WITHOUT B n WITHIN 1 SECOND OF a")
    (group,) = groups_of(plan)
    assert [each.types for each in group.parts] == [("A", "B", "C")]


@pytest.mark.server
def test_equal_disjunctions_agree_and_who_has_one_of_the_conjunctions_finds_the_same_for_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl, fairlead.connect(fl.url) as other:
            await fl.declare(APART)
            async with (
                fl.subscribe(EITHER, name="desk-1", start="earliest") as one,
                other.subscribe(EITHER, name="desk-2", start="earliest") as two,
                other.subscribe(LEFT, start="earliest") as left,
                other.subscribe(RIGHT, start="earliest") as right,
            ):
                await publish_some(fl, seed=1)
                early = await more(one)
                await publish_some(fl, seed=2)
                later, second = await asyncio.gather(more(one), more(two))
                first = [*early, *later]
                assert len(first) > 100
                assert ids(first) == ids(second)
                assert len(set(ids(first))) == len(first)
                assert one.receipt == two.receipt
                assert members(first, 0) == members(await more(left))
                assert members(first, 1) == members(await more(right))
                assert {each.branch for each in first} == {0, 1}
                assert {each.branch for each in early} == {each.branch for each in later} == {0, 1}  # in turns
                await asyncio.gather(one.ack(), two.ack())
                receipt = one.receipt
            assert (await fl.compare("desk-1", "desk-2")).agreed == len(first)
            overview = await fl.overview()
            assert {each.types for each in overview.subscribers} == {(("A", "B"), ("B", "C"))}
            assert {each.topics for each in overview.merged} == {("a", "b"), ("b", "c")}
            async with fl.subscribe(EITHER, start="earliest") as again:
                assert ids(await more(again)) == ids(first)
            exported = await fl.export(EITHER, tmp_path / "either.parquet")
            assert len(exported.streams) == 2

            plan, table = compile(f"{APART}; {EITHER}"), pq.read_table(tmp_path / "either.parquet")
            for event_by_event in (False, True):
                found = fairlead.match(plan, table, position="position", stream="stream", event_by_event=event_by_event)
                assert ids(found[:]) == ids(first)
                assert found.receipt.digest == receipt.digest
                assert found.to_arrow().column("id").to_pylist() == ids(first)
                assert found.to_arrow().column("branch").to_pylist() == [each.branch for each in first]
            (tmp_path / "either.fl").write_text(f"{APART}; {EITHER}")
            named = [str(tmp_path / name) for name in ("either.fl", "either.parquet")]
            for out in ("out.parquet", "out.jsonl"):
                asked = ["--position", "position", "--stream", "stream", "--out", str(tmp_path / out)]
                done = CliRunner().invoke(cli, ["run", named[0], "--events", named[1], *asked, "--json"])
                assert done.exit_code == 0, done.output
                assert receipt.digest in done.stdout
            assert pq.read_table(tmp_path / "out.parquet").column("id").to_pylist() == ids(first)
            with pytest.raises(DataError, match="D025"):
                fairlead.match(compile(f"{APART}; {LEFT}"), table, position="position", stream="stream")
            with pytest.raises(UsageError, match="A217"):
                fairlead.match(plan, table, stream="stream")

    run(work)


@pytest.mark.server
def test_a_restarted_one_goes_on_and_a_late_joiner_delivers_the_same() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            fl._shared.times.every_events = 60
            await fl.declare(APART)
            await publish_some(fl, seed=2)
            async with fl.subscribe(EITHER, start="earliest") as sub:
                whole = ids(await more(sub))
            got: list[str] = []
            for count in (1, 20, 0, 3, 31):
                async with fl.subscribe(EITHER, name="desk", start="earliest") as sub:
                    for relation in await some(sub, count):
                        got.append(relation.id)
                        await sub.ack(relation)
                    await some(sub, 2)  # which are not acknowledged, and so come again
            async with fl.subscribe(EITHER, name="desk") as sub:
                got += ids(await more(sub))
                await sub.ack()
                assert got == whole
                assert await fl.log.objects("FL_STATES")
                async with fl.subscribe(EITHER, start="new") as late, fl.subscribe(EITHER, start="snapshot") as later:
                    await publish_some(fl, seed=3)
                    after = ids(await more(sub))
                    assert len(after) > 50
                    assert sub.receipt.count == len(got) + len(after)
                    assert ids(await more(late)) == after
                    assert ids(await more(later))[-len(after) :] == after
                    found = fairlead.compare(sub.receipt, later.receipt)
                    assert (found.outcome, found.agreed) == ("agree", later.receipt.delivered)
                    assert found.start == sub.receipt.count - later.receipt.delivered + 1

    run(work)


@pytest.mark.server
def test_a_quiet_stream_is_moved_on_by_heartbeats_that_those_who_wait_store_once() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(APART)
            async with (
                fl.subscribe(EITHER, start="earliest") as one,
                fl.subscribe(EITHER, start="earliest") as two,
            ):
                for at in range(3):
                    await fl.publish("A", k=at, x=at)
                    await fl.publish("B", k=at, x=at, wait=True)
                    (first,), (second,) = await some(one, 1), await some(two, 1)
                    assert first == second
            assert await fl.log.sources("c") == [PULSE]
            before = await beats(fl)
            async with fl.subscribe(EITHER, start="new") as sub:
                assert await more(sub) == []
                await asyncio.sleep(3 * stream_reader.PULSE_SECONDS)  # nothing is held, so nobody stores any
            assert await beats(fl) == before

    run(work)


async def beats(fl: Client) -> list[int]:
    return [await fl.log.last(await fl.log.open_topics([each])) for each in "abc"]


@pytest.mark.server
def test_where_a_disjunction_may_start() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(APART)
            await publish_some(fl, seed=5, rounds=5)
            async with fl.subscribe(EITHER, start="earliest") as sub:
                assert await more(sub)
            moment = datetime.now(UTC)
            await publish_some(fl, seed=6, rounds=5)
            async with fl.subscribe(EITHER, start=moment) as one, fl.subscribe(EITHER, start=moment) as two:
                after = ids(await more(one))
                assert after
                assert after == ids(await more(two))
            with pytest.raises(UsageError, match="A264"):
                async with fl.subscribe(EITHER, start=4096):
                    pass

    run(work)


@pytest.mark.server
def test_what_a_disjunction_emits_is_stored_once() -> None:
    emitting = f"{EITHER} EMIT Pair(x = coalesce(a.x, c.x))"

    async def work() -> None:
        async with fairlead.connect() as fl, fairlead.connect(fl.url) as other:
            await fl.declare(APART)
            async with (
                fl.subscribe(emitting, name="one", start="earliest") as one,
                other.subscribe(emitting, name="two", start="earliest") as two,
            ):
                await publish_some(fl, seed=7, rounds=15)
                first, second = await asyncio.gather(more(one), more(two))
                assert ids(first) == ids(second)
            async with fl.subscribe("SUBSCRIPTION P MATCH Pair p", start="earliest") as derived:
                assert [each.members[0].values["x"] for each in await more(derived)] == [each.emitted["x"] for each in first]

    run(work)


@pytest.fixture(scope="module")
def quick_pulses() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_reader, "PULSE_SECONDS", 0.002)
        yield


class SetBack(MemoryLog):
    """Tells the times at which blocks were stored as a clock would have that is set back now and then."""

    async def read(self, stream: Stream, after: int, only: object = None) -> AsyncIterator[Sequence[Stored]]:
        for each in self._streams[stream.name][after:]:
            yield [each._replace(time=random.Random(each.sequence // 5).randrange(100) + each.sequence)]
        await asyncio.Event().wait()


@pytest.mark.usefixtures("quick_pulses")
@settings(max_examples=sample_size(40), deadline=None)
@given(st.lists(st.sampled_from("ABC"), min_size=4, max_size=40), st.integers(1, 40), st.integers(0, 40))
def test_who_goes_on_beside_somebody_who_is_less_far_keeps_its_order(types: list[str], cut: int, less: int) -> None:
    """Also where clocks were set back."""

    async def work() -> None:
        log = SetBack(lambda: 0)
        streams = [await log.open_topics(topics) for topics in TOPICS]
        for number, name in enumerate([*types, *"ABC"]):
            await log.append(block(name, f"s{number}", 0), 0)
        for number, topic in enumerate("ac" * 200):
            await log.append(replace(block(HEARTBEAT.name, f"h{number}", 0), topic=topic), 0)

        async def order(reached: Sequence[Reached], further: Sequence[Reached]) -> list[tuple[int, int, int]]:
            reading, found = (
                OrderedReader(log, streams, TOPICS, reached, None, None, {at: [each] for at, each in enumerate(further)}),
                [],
            )
            async for stretches in reading.read():
                found += [(each.part, stored.sequence, stored.order_time) for each in stretches for stored in each.blocks]
                if not reading._merge.holds and max(reading.seen) > len(types) + 100:
                    return found
            raise AssertionError

        whole = await order([Reached(0)] * 2, [])
        before = {part: Reached(sequence, time) for part, sequence, time in whole[:cut]}
        there = [before.get(part, Reached(0)) for part in (0, 1)]
        beside = await order([Reached(min(each.sequence, less)) for each in there], there)
        mine = [each for each in beside if each[1] > there[each[0]].sequence]
        assert mine == whole[cut:]

    run(work)


class Slow(MemoryLog):
    """Gives out what it has in pieces, whenever it likes."""

    def __init__(self, seed: int) -> None:
        self.now, self.passing, self.rolls = 0, False, random.Random(seed)
        super().__init__(self._time)

    def _time(self) -> int:
        self.now += self.passing
        return self.now

    async def read(self, stream: Stream, after: int, only: object = None) -> AsyncIterator[Sequence[Stored]]:
        while True:
            found = self._streams[stream.name][after : after + self.rolls.choice([1, 1, 2, 9])]
            if found and self.rolls.random() < 0.7:
                after = found[-1].sequence
                yield found
            await asyncio.sleep(0)  # others go on


def block(type: str, source: str, number: int) -> Block:
    return Block(type, source, number, number, 1, "", b"", topic=type.lower())


@pytest.mark.usefixtures("quick_pulses")
@settings(max_examples=sample_size(60), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["A", "B", "C"]), st.integers(-2, 5)), min_size=1, max_size=40),
    st.integers(0, 1000),
    st.integers(1, 40),
)
def test_the_order_of_several_streams_is_a_function_of_the_log(
    events: list[tuple[str, int]], seed: int, resume_at: int
) -> None:
    """However blocks come, with a clock that is set back at times, and from wherever one goes on."""

    async def order(log: Slow, reached: Sequence[Reached] | None = None) -> list[tuple[int, int, int]]:
        streams = [await log.open_topics(topics) for topics in TOPICS]
        reading = OrderedReader(log, streams, TOPICS, reached or [Reached(0), Reached(0)])
        ends = [await log.last(each) for each in streams]
        found: list[tuple[int, int, int]] = []
        async for stretches in reading.read():
            found += [(each.part, stored.sequence, stored.order_time) for each in stretches for stored in each.blocks]
            if reading.has_given(ends):
                return found
        raise AssertionError

    async def filled(rolls: int) -> Slow:
        log = Slow(rolls)
        for topics in TOPICS:
            await log.open_topics(topics)
        tails = dict.fromkeys("abc", 0)
        numbers = dict.fromkeys(tails, 0)
        for name, step in [*events, ("A", 10), ("B", 0), ("C", 0)]:
            log.now, topic = max(0, log.now + step), name.lower()
            tails[topic] = await log.append(block(name, "s", numbers[topic]), tails[topic])
            numbers[topic] += 1
        log.passing = True
        return log

    async def work() -> None:
        whole = await order(await filled(seed))
        assert whole == await order(await filled(seed + 1))
        cut = whole[: min(resume_at, len(whole) - 3)]
        last = {part: Reached(sequence, time) for part, sequence, time in cut}
        reached = [last.get(part, Reached(0)) for part in (0, 1)]
        assert cut + await order(await filled(seed + 2), reached) == whole

    run(work)


def test_a_limit_counts_over_all_branches_so_they_are_one_part() -> None:
    limited, one = groups_of(compile(f"{APART}; {EITHER} LIMIT 2 {LEFT} LIMIT 2"))
    assert [each.types for each in limited.parts] == [("A", "B", "C")]
    assert [each.types for each in one.parts] == [("A", "B")]
