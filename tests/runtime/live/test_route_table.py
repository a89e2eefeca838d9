"""Blocks whose events no subscription could take are not sent to its subscribers, and nobody can tell by what is delivered."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairlead
from fairlead.errors import LogError
from fairlead.runtime.live.route_table import TABLE
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.protocol import Stream, Unavailable
from tests.marks import sample_size
from tests.runtime.live.routing import ATOMS, EVENTS, IBM, MIXED, TYPES, all_of, publish_one_by_one, renewed, whole
from tests.transport.log.logs import URLS, run

RULES = st.sampled_from(
    (
        "MATCH A a WHERE {a}",
        "MATCH A a AND A c WHERE {a} AND {c} AND a.k = c.k",
        "MATCH A a AND B b WHERE {a} AND b.k > 0 WITHIN 1 MINUTE",
        "MATCH A a THEN A c WHERE {a} AND {c} PER k WITHIN 1 MINUTE",
        "MATCH A a OR B b WHERE {a} AND b.k = 1",
        "MATCH A a AND B b WHERE {a} AND b.k > 0 WITHOUT A n BETWEEN a AND b WHERE n.k = 2",
        "MATCH A a[2] WHERE a[1].k = 1 AND a[2].k > 0 MATCHING RECENT",
        "MATCH A a WHERE {a} SUBSCRIPTION T MATCH A c WHERE {c}",
        "MATCH A a WHERE {a} WITHOUT B b WITHIN 1 SECOND OF a WHERE b.k = 1",
    )
)


@settings(max_examples=sample_size(60))
@given(RULES, ATOMS, ATOMS, st.lists(st.lists(EVENTS, min_size=1, max_size=3), min_size=1, max_size=8), st.randoms())
def test_nobody_can_tell_a_reader_of_a_route_from_one_of_everything(
    rule: str, first: str, second: str, blocks: list[list[dict[str, Any]]], rolls: random.Random
) -> None:
    rules = "SUBSCRIPTION S " + rule.format(a=f"({first.format('a')})", c=f"({second.format('c')})")

    async def work() -> None:
        async with fairlead.connect("memory:", source="one") as fl:
            await fl.declare(TYPES)
            known = rolls.randrange(len(blocks) + 1)
            for at, block in enumerate(blocks):
                if at == known:
                    async with fl.subscribe(rules, name="early"):
                        pass  # from here on, the route is known
                    await renewed(fl)
                name = rolls.choice("AB")
                rows = [
                    {key: value for key, value in each.items() if key not in ("type", *(["b"] if name == "B" else []))}
                    for each in block
                ]
                await fl.publish_many(name, rows, wait=True)
            one, two = fl.subscribe(rules, name="one", start="earliest"), fl.subscribe(rules, name="two", start="earliest")
            async with one, whole(two):
                assert await all_of(one) == await all_of(two)
                assert one.receipts == two.receipts
                assert one.events_read <= two.events_read
                await one.ack()
                await two.ack()
            assert await fl.compare("one", "two")

    run(work)


@pytest.mark.parametrize("url", URLS)
def test_fewer_blocks_are_read_and_the_same_is_delivered(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url, source="feed") as fl:
            await fl.declare(TYPES)
            await publish_one_by_one(fl, "A", MIXED)  # before the route is known: these go to everybody
            one, two = fl.subscribe(IBM, name="one", start="earliest"), whole(fl.subscribe(IBM, name="two", start="earliest"))
            async with one, two:
                await renewed(fl)
                await publish_one_by_one(fl, "B", MIXED)
                await publish_one_by_one(fl, "A", MIXED * 4, 1)
                await publish_one_by_one(fl, "B", MIXED * 4, 2)
                found = await all_of(one)
                assert len(found) == 10
                assert found == await all_of(two)
                assert one.receipt == two.receipt
                assert (one.events_read, two.events_read) == (5 + 2 + 8 + 8, 50)
                assert await one.lag() == await two.lag() == 0
                await one.ack()
                await two.ack()
            assert await fl.compare("one", "two")
            told = await fl.overview()
            assert {name: texts for each in told.topics for name, texts in each.routes.items()} == dict.fromkeys(
                "ABC", ("(e.s = 'IBM')",)
            )
            assert [(each.name, dict(each.routes), each.lag) for each in told.subscribers] == [
                ("one", {"A": 0, "B": 0, "C": 0}, 0),
                ("two", {}, 0),
            ]

    run(work)


@pytest.mark.parametrize("url", URLS)
def test_states_serve_readers_of_routes_and_of_everything_alike(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            fl._shared.times.every_events = 1
            await fl.declare(TYPES)
            async with fl.subscribe(IBM, name="claim"):
                pass
            feeds = [fairlead.connect(fl.url, source=f"feed-{at}") if fl.url != "memory:" else fl for at in range(2)]
            for each in feeds if feeds[0] is not fl else ():
                await each.__aenter__()
            async with fl.subscribe(IBM, name="check", start="earliest") as check:
                found: list[str] = []
                for turn in range(6):
                    for at, feed in enumerate(feeds):
                        words = MIXED if (turn + at) % 3 else ["X", "Y", "Z"]
                        await publish_one_by_one(feed, "A", words, turn)
                        await publish_one_by_one(feed, "B", words, turn)
                    sub = fl.subscribe(IBM, name="turns", start="earliest")
                    async with whole(sub) if turn in (1, 2, 4) else sub:
                        found += await all_of(sub)
                        await sub.ack()
                assert found == await all_of(check)
                assert found
                await check.ack()
            assert await fl.compare("turns", "check")
            for each in feeds if feeds[0] is not fl else ():
                await each.__aexit__(None, None, None)

    run(work)


def test_a_publisher_that_comes_back_goes_on_with_its_marks(tmp_path: Path) -> None:
    rules = "SUBSCRIPTION S MATCH A a WHERE a.s = 'IBM'"

    async def work() -> None:
        url = f"file:{tmp_path}"
        async with fairlead.connect(url, source="feed") as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(rules, name="one", start="earliest"):
                pass
            await publish_one_by_one(fl, "A", ["IBM", "X", "X"])
        async with fairlead.connect(url, source="feed") as fl:
            await publish_one_by_one(fl, "A", ["X", "IBM", "X"])
            last = await fl.log.last_of("main", "feed")
            assert last is not None
            assert last.block.marks == "n4 u4 u4 u4"
            async with fl.subscribe(rules, name="one") as sub:
                assert len(await all_of(sub)) == 2
                assert sub.events_read == 2

    run(work)


class Behind:
    """A log whose merged streams have not taken up the last blocks."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def last(self, stream: Stream, only: Only | None = None) -> int:
        return int(await self._log.last(stream, only)) - 2


def test_what_is_not_merged_yet_is_not_passed() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:", source="feed") as fl:
            await fl.declare(TYPES)
            async with fl.subscribe("SUBSCRIPTION S MATCH A a WHERE a.s = 'IBM'", name="one", start="earliest") as sub:
                await publish_one_by_one(fl, "A", ["IBM", "X", "X"])
                ends = await sub.ends()
                while not await sub.has_passed(ends):
                    await sub.next_within(0.01)
                (task,) = sub._tasks
                assert task.groups[0].follower.lineage.after == (1,)
                task._log = Behind(fl.log)
                assert not await sub.has_passed(ends)

    run(work)


class Losing:
    """A log in memory that answers to nothing, once, after it has stored it."""

    def __init__(self, log: Any) -> None:
        self._log, self.lost = log, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, block: Block, after: int) -> int:
        stored: int = await self._log.append(block, after)
        if not self.lost:
            self.lost += 1
            raise Unavailable("the answer is lost")
        return stored


def test_an_attempt_that_was_stored_counts_with_its_own_marks() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:", source="feed", patience=0) as fl:
            await fl.declare(TYPES)
            async with fl.subscribe("SUBSCRIPTION S MATCH A a WHERE a.s = 'IBM'", name="one"):
                pass
            await publish_one_by_one(fl, "A", ["IBM"])
            outbox = fl._publisher._outboxes["main"]
            outbox._log = Losing(outbox._log)
            marks = outbox._lanes["A"].marks
            assert marks is not None
            texts, marks._texts = marks._texts, ()  # it sends the next one, and does not know the route
            marks._next = float("inf")
            await fl.publish("A", k=1, x=1.0, s="X", b=True, at="2026-01-01T00:00:00Z")
            with pytest.raises(fairlead.LogError):
                await fl.flush()
            marks._texts = texts  # it sends it again, and does
            await fl.flush()
            await publish_one_by_one(fl, "A", ["IBM"])
            last = await fl.log.last_of("main", "feed")
            assert last is not None
            assert (last.block.number, last.block.marks) == (2, "y1 u1 u1 u1")
            async with fl.subscribe("SUBSCRIPTION S MATCH A a WHERE a.s = 'IBM'", start="earliest") as sub:
                assert len(await all_of(sub)) == 2

    run(work)


def test_a_full_table_and_those_who_only_have_a_look() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:", source="feed") as fl:
            await fl.declare(TYPES)
            look = fl.subscribe("SUBSCRIPTION S MATCH A a WHERE a.s = 'one'", start="earliest")
            async with look:
                assert await fl.log.get(TABLE, "A") is None
            words = ("one", "two", "three", "four", "five")
            for word in words:
                async with fl.subscribe(f"SUBSCRIPTION S MATCH A a WHERE a.s = '{word}'", name=word):
                    pass
            await publish_one_by_one(fl, "A", [*words, "one", "five"])
            expected = {"one": 2, "four": 1, "five": 7, "one' AND a.k = 5 AND a.x > '0": 2}
            for word, read in expected.items():
                rules = f"SUBSCRIPTION S MATCH A a WHERE a.s = '{word}'".replace("x > '0'", "x > 0")
                for name in (None, "late"):
                    one, two = fl.subscribe(rules, name=name, start="earliest"), whole(fl.subscribe(rules, start="earliest"))
                    async with one, two:
                        assert await all_of(one) == await all_of(two)
                        assert one.events_read == read
                    await fl.forget("late")

    run(work)


@pytest.mark.parametrize("value", [b"nonsense", b"[]", b'{"routes": ["nonsense (", "(e.gone = 1)"]}'])
def test_a_damaged_table_costs_reading_and_nothing_else(value: bytes) -> None:
    async def work() -> None:
        async with fairlead.connect("memory:", source="feed") as fl:
            await fl.declare(TYPES)
            await fl.log.put(TABLE, "A", value)
            async with fl.subscribe("SUBSCRIPTION S MATCH A a WHERE a.s = 'IBM'", name="one", start="earliest") as sub:
                await publish_one_by_one(fl, "A", MIXED)
                assert len(await all_of(sub)) == 2

    run(work)


def test_a_block_of_a_route_that_is_missing_stops_its_reader() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:", source="feed") as fl:
            await fl.declare(TYPES)
            rules = "SUBSCRIPTION S MATCH A a WHERE a.s = 'IBM'"
            async with fl.subscribe(rules, name="one"):
                pass
            await publish_one_by_one(fl, "A", ["X", "IBM", "X", "IBM", "X"])
            held = fl.log._log._log._streams["FL_TOPIC_main"]  # type: ignore[attr-defined]
            del held[1]
            async with fl.subscribe(rules, start="earliest") as sub:
                with pytest.raises(LogError, match="N020"):
                    await sub.next_within(10)

    run(work)


def test_types_that_grow_and_publishers_that_do_not_know_it_yet() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:", source="old") as fl:
            await fl.declare("TYPE G (x INT)")
            await fl.publish("G", x=1, wait=True)
            old = fl._publisher
            await fl._registry.declare("TYPE G (x INT, y INT)")  # by another client: ours is not told
            rules = "SUBSCRIPTION S MATCH G g WHERE g.y IS NULL AND g.x > 0 SUBSCRIPTION T MATCH G g WHERE g.y = 1"
            async with fl.subscribe(rules, name="one", start="earliest") as one:
                await renewed(fl)
                assert old._checks["G"].type.attribute("y") is None
                await fl.publish("G", x=2, wait=True)
                await fl.publish("G", x=0, wait=True)
                await old.renew()
                await fl.publish("G", x=3, wait=True)
                await fl.publish("G", x=0, wait=True)
                await fl.publish("G", x=0, y=1, wait=True)
                assert len(await all_of(one)) == 4
                assert one.events_read == 5  # for S and T together

    run(work)


@pytest.mark.server
def test_subscribers_come_at_the_same_time_and_share_their_routes() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)

            async def one(word: str, at: int) -> dict[str, int]:
                async with fairlead.connect(fl.url) as mine:
                    rules = f"SUBSCRIPTION S MATCH A a WHERE a.s = '{word}'"
                    async with mine.subscribe(rules, name=f"{word}-{at}") as sub:
                        (each,) = sub._tasks
                        assert each.only is not None
                        return dict(each.only.routes)

            words = ("one", "two", "three", "four")
            found = await asyncio.gather(*(one(word, at) for word in words for at in range(2)))
            assert found[::2] == found[1::2]
            assert sorted(each["A"] for each in found[::2]) == [0, 1, 2, 3]

    run(work)
