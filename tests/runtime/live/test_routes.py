"""Blocks whose events no subscription could take are not sent to its subscribers, and nobody can tell by what is delivered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairlead
from fairlead.engine import Engine, compile
from fairlead.errors import StateError
from fairlead.matching.compiled.running.vector import is_columnwise
from fairlead.model.columns import arrow_schema
from fairlead.model.plan import Plan
from fairlead.runtime.live import keeping
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.grouping import groups_of
from fairlead.runtime.live.marking import letters
from fairlead.runtime.live.route_table import TABLE
from fairlead.runtime.live.routes import condition_of, is_within, routes_of, text_of
from fairlead.runtime.live.subscribing import LiveSubscription
from fairlead.transport.admission.records import read_records
from fairlead.transport.log.block import Block
from fairlead.transport.log.block_filter import ROUTES, Only, Standing, is_marks, letters_of
from fairlead.transport.log.protocol import Stream, Unavailable
from tests.transport.log.logs import run

TYPES = """
TYPE A (k INT, x DOUBLE, s STRING, b BOOLEAN, at TIMESTAMP) TIME at
TYPE B (k INT, x DOUBLE, s STRING, at TIMESTAMP) TIME at
TYPE C EXTENDS B (z INT)
EVENT UNION AB = A + B
"""
LOGS = ("memory:", None)


def routes(rules: str) -> dict[str, str]:
    plan = compile(TYPES + rules)
    types = sorted({name for group in groups_of(plan) for name in group.types})
    return {name: text_of(each) for name, each in routes_of(plan, types).items()}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("MATCH A a WHERE a.s = 'x'", {"A": "(e.s = 'x')"}),
        ("MATCH A a AND B b WHERE a.s = 'x' AND a.k > 1 AND a.k = b.k", {"A": "(e.k > 1) AND (e.s = 'x')"}),
        ("MATCH A a WHERE a.k > 1 AND a.s = 'x'", {"A": "(e.k > 1) AND (e.s = 'x')"}),
        ("MATCH A a AND A c WHERE a.k = 1 AND c.k = 2", {"A": "(e.k = 1) OR (e.k = 2)"}),
        ("MATCH A a AND A c WHERE a.k = 1 AND c.k = 1 AND c.s = 'x'", {"A": "(e.k = 1)"}),
        ("MATCH A a WHERE (a.k = 1 OR a.s = 'x') AND a.b", {"A": "(e.k = 1) AND e.b OR (e.s = 'x') AND e.b"}),
        ("MATCH A a[2] WHERE a[1].k = 1", {}),
        ("MATCH A a[2] WHERE a[1].k = 1 AND a[2].k = 1", {"A": "(e.k = 1)"}),
        ("MATCH A a AND A c WHERE a.k = 1", {}),
        ("MATCH A a WHERE position(a) > 3", {}),
        ("MATCH A a WHERE position(a) > 3 AND a.k = 1", {"A": "(e.k = 1)"}),
        ("MATCH A a WHERE time(a) > TIMESTAMP '2026-01-01T00:00:00Z'", {"A": "(time(e) > TIMESTAMP '2026-01-01T00:00:00Z')"}),
        ("MATCH B b WHERE b.k = 1", {"B": "(e.k = 1)", "C": "(e.k = 1)"}),
        ("MATCH B b AND C c WHERE b.k = 1 AND c.z = 2", {"B": "(e.k = 1)", "C": "(e.k = 1) OR (e.z = 2)"}),
        ("MATCH AB e AND A a WHERE e.k = 1", {"B": "(e.k = 1)", "C": "(e.k = 1)"}),
        ("MATCH A a OR B b WHERE a.k = 1", {"A": "(e.k = 1)"}),
        ("MATCH A a PER k WHERE a.k = 1", {"A": "(e.k = 1)"}),
        (
            "MATCH A a AND B b WHERE a.k = 1 AND b.k = 1 WITHOUT C c BETWEEN a AND b WHERE c.z = 1",
            {"A": "(e.k = 1)", "B": "(e.k = 1)"},
        ),
        (
            "MATCH A a AND B b WHERE a.k = 1 AND b.k = 1 WITHOUT A n BETWEEN a AND b WHERE n.k = 1",
            {"B": "(e.k = 1)", "C": "(e.k = 1)"},
        ),
        ("MATCH A a WHERE a.k = 1 WITHOUT B b WITHIN 1 MINUTE OF a WHERE b.k = 1", {}),
        ("MATCH A a WHERE a.k = 1 SUBSCRIPTION T MATCH A a WHERE a.k = 2", {"A": "(e.k = 1) OR (e.k = 2)"}),
        ("MATCH A a WHERE a.k = 1 SUBSCRIPTION T MATCH A a", {}),
        ("MATCH A a WHERE a.k = 1 EMIT D(k = a.k) SUBSCRIPTION T MATCH D d WHERE d.k = 1", {}),
        ("MATCH A a WHERE a.k = 1 EMIT D(k = a.k)", {"A": "(e.k = 1)"}),
    ],
)
def test_what_is_pushed_and_what_is_not(rules: str, expected: dict[str, str]) -> None:
    assert routes(f"SUBSCRIPTION S {rules}") == expected


def test_a_condition_with_too_many_alternatives_is_not_pushed() -> None:
    many = " AND ".join(f"(a.k = {n} OR a.x > {n})" for n in range(12))
    assert routes(f"SUBSCRIPTION S MATCH A a WHERE {many}") == {}


def test_a_condition_within_another_is_seen_by_its_form() -> None:
    def condition(text: str) -> Any:
        return condition_of(text, compile(TYPES).catalogue["A"])

    narrow, wide = condition("e.k = 1 AND e.s = 'x'"), condition("e.k = 1 OR e.b")
    assert is_within(narrow, wide)
    assert not is_within(wide, narrow)
    assert is_within(wide, wide)
    assert condition("e.unknown = 1") is None
    assert condition("nonsense (") is None
    assert condition("e.k = 1 SUBSCRIPTION T MATCH A a") is None


def test_marks_go_there_and_back_and_follow_what_is_stored() -> None:
    standing = Standing()
    assert standing.marks("uuuu", 0) == ""
    standing.passed("", 0)
    told = standing.marks("ynuu", 1)
    assert (told, letters_of(told), is_marks(told)) == ("y0 n0 u0 u0", "ynuu", True)
    standing.passed(told, 1)
    assert standing.marks("uuuu", 2) == "u1 u0 u1 u1"  # not the same as no marks: on the second route, block 1 was not sent
    standing.passed("u1 u0 u1 u1", 2)
    assert standing.marks("uuuu", 3) == ""
    assert not is_marks("y0 n0 u0")
    assert not is_marks("x0 n0 u0 u0")


NUMBERS = st.sampled_from((None, 0, 1, 2, -1))
FLOATS = st.sampled_from((None, 0.0, 1.5, float("nan"), float("inf"), -2.0))
WORDS = st.sampled_from((None, "", "x", "xy", "X"))
EVENTS = st.fixed_dictionaries(
    {
        "type": st.just("A"),
        "k": NUMBERS,
        "x": FLOATS,
        "s": WORDS,
        "b": st.sampled_from((None, True, False)),
        "at": st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")),
    }
)
ATOMS = st.sampled_from(
    (
        "{0}.k = 1", "{0}.k > 0", "{0}.k IS NULL", "{0}.k IN (1, 2)", "{0}.k NOT IN (1, NULL)", "{0}.x > 1", "{0}.x = {0}.k",
        "{0}.x + 1 < 2.5", "isnan({0}.x)", "NOT isnan({0}.x)", "{0}.x / {0}.k > 0", "{0}.s = 'x'", "{0}.s LIKE 'x%'",
        "upper({0}.s) = 'X'", "length({0}.s) > {0}.k", "coalesce({0}.s, 'x') = 'x'", "{0}.b", "NOT {0}.b",
        "{0}.s IN ('x', 'X')", "{0}.b OR {0}.k = 2", "hour({0}.at) = 0", "time({0}) > TIMESTAMP '2026-01-01T00:00:00Z'",
        "({0}.k = 1 AND {0}.x > 0 OR NOT ({0}.s = 'x' OR {0}.k >= 1))",
    )
)  # fmt: skip


@given(st.lists(ATOMS, min_size=1, max_size=3), st.lists(EVENTS, max_size=6))
def test_a_block_is_left_out_exactly_where_the_matcher_accepts_none_of_its_events(
    atoms: list[str], events: list[dict[str, Any]]
) -> None:
    where = " AND ".join(f"({each.format('a')})" for each in atoms)
    plan = compile(f"{TYPES} SUBSCRIPTION S MATCH A a WHERE {where}")
    condition = routes_of(plan, ["A"])["A"]
    known = condition_of(text_of(condition), plan.catalogue["A"])
    assert known == condition
    relations = [
        each for columns in read_records(events, plan.catalogue, allow_nan=True) for each in Engine(plan).feed(columns)
    ]
    batch = batch_of(plan, events)
    assert letters(batch, plan.catalogue["A"], [known, None]) == ("y" if relations else "n") + "u" * (ROUTES - 1)


@given(st.lists(ATOMS, min_size=1, max_size=2), st.lists(EVENTS, min_size=1, max_size=4))
def test_of_a_large_block_only_what_takes_long_is_not_told(atoms: list[str], events: list[dict[str, Any]]) -> None:
    where = " AND ".join(f"({each.format('a')})" for each in atoms)
    plan = compile(f"{TYPES} SUBSCRIPTION S MATCH A a WHERE {where}")
    condition = routes_of(plan, ["A"])["A"]
    small = batch_of(plan, events)
    large = pa.Table.from_batches([small] * 600).combine_chunks().to_batches()[0]
    (few, *_), (many, *_) = (letters(each, plan.catalogue["A"], [condition]) for each in (small, large))
    assert many == (few if is_columnwise(condition) else "u")


@pytest.mark.parametrize(
    ("where", "by_columns"),
    [
        ("a.s = 'x' AND a.k > 1 AND a.x + 1 < a.k", True),
        ("a.s IN ('x', 'y') OR a.b OR a.s IS NULL", True),
        ("a.s IN ('x', NULL)", False),
        ("a.s LIKE 'x%'", False),
        ("a.s != 'x'", False),
        ("a.k % 2 = 0", False),
        ("isnan(a.x)", False),
        ("a.b AND upper(a.s) = 'X'", False),
    ],
)
def test_what_takes_long_on_a_large_block(where: str, by_columns: bool) -> None:
    plan = compile(f"{TYPES} SUBSCRIPTION S MATCH A a WHERE {where}")
    assert is_columnwise(routes_of(plan, ["A"])["A"]) == by_columns


def batch_of(plan: Plan, events: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    schema = arrow_schema(plan.catalogue["A"])
    if not events:
        return pa.RecordBatch.from_pylist([], schema=schema)
    (columns,) = read_records(events, plan.catalogue, allow_nan=True)
    return columns.tables["A"]


async def all_of(sub: LiveSubscription) -> list[str]:
    """The ids of all that comes of what is stored now."""
    ends, found = await sub.ends(), []
    while True:
        relation = await sub.next_within(0.02)
        if relation is not None:
            found.append(relation.id)
        elif await sub.has_passed(ends):
            return found


def whole(sub: LiveSubscription) -> LiveSubscription:
    """It reads everything."""
    sub.routed = False
    return sub


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


@settings(max_examples=60)
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
                    for outbox in fl._publisher._outboxes.values():
                        await outbox._marking._ask(outbox.checking.type.name)
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


async def publish_one_by_one(fl: Client, name: str, words: Sequence[str], second: int = 0) -> None:
    """One event a block."""
    for at, word in enumerate(words):
        moment = f"2026-01-01T00:{second:02d}:{at % 60:02d}Z"
        more = {"b": True} if name == "A" else {}
        await fl.publish(name, k=at, x=1.0, s=word, at=moment, wait=True, **more)


IBM = "SUBSCRIPTION S MATCH A a AND B b WHERE a.s = 'IBM' AND b.s = 'IBM' AND a.k = b.k"
MIXED = ["IBM", "X", "Y", "IBM", "X"]


async def renewed(fl: Client) -> None:
    """The publisher looks at the routes again, as it does every second."""
    for outbox in fl._publisher._outboxes.values():
        await outbox._marking._ask(outbox.checking.type.name)


@pytest.mark.parametrize("url", LOGS)
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
            assert {each.type: each.routes for each in told.types if each.routes} == dict.fromkeys("ABC", ("(e.s = 'IBM')",))
            assert [(each.name, dict(each.routes), each.lag) for each in told.subscribers] == [
                ("one", {"A": 0, "B": 0, "C": 0}, 0),
                ("two", {}, 0),
            ]

    run(work)


@pytest.mark.parametrize("url", LOGS)
def test_states_serve_readers_of_routes_and_of_everything_alike(url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "EVERY_EVENTS", 1)

    async def work() -> None:
        async with fairlead.connect(url) as fl:
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
            last = await fl.log.last_of("A", "feed")
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
                (course,) = sub._courses
                assert course.following.followers[0].lineage.after == (1,)
                course.following._log = Behind(fl.log)
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
            outbox = fl._publisher._outboxes["A"]
            outbox._log = Losing(outbox._log)
            marking = outbox._marking
            texts, marking._texts = marking._texts, ()  # it sends the next one, and does not know the route
            marking._next = float("inf")
            await fl.publish("A", k=1, x=1.0, s="X", b=True, at="2026-01-01T00:00:00Z")
            with pytest.raises(fairlead.LogError):
                await fl.flush()
            marking._texts = texts  # it sends it again, and does
            await fl.flush()
            await publish_one_by_one(fl, "A", ["IBM"])
            last = await fl.log.last_of("A", "feed")
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
            held = fl.log._log._streams["FL_T_A"]  # type: ignore[attr-defined]
            del held[2]  # nobody who reads the route misses it
            async with fl.subscribe(rules, start="earliest") as sub:
                assert len(await all_of(sub)) == 2
            del held[1]
            async with fl.subscribe(rules, start="earliest") as sub:
                with pytest.raises(StateError, match="S120"):
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
                assert old._outboxes["G"].checking.type.attribute("y") is None
                await fl.publish("G", x=2, wait=True)
                await fl.publish("G", x=0, wait=True)
                await old.renew()
                await fl.publish("G", x=3, wait=True)
                await fl.publish("G", x=0, wait=True)
                await fl.publish("G", x=0, y=1, wait=True)
                assert len(await all_of(one)) == 4
                assert one.events_read == 5  # for S and T together

    run(work)


def test_subscribers_come_at_the_same_time_and_share_their_routes() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)

            async def one(word: str, at: int) -> dict[str, int]:
                async with fairlead.connect(fl.url) as mine:
                    rules = f"SUBSCRIPTION S MATCH A a WHERE a.s = '{word}'"
                    async with mine.subscribe(rules, name=f"{word}-{at}") as sub:
                        (each,) = sub._courses
                        assert each.following.only is not None
                        return dict(each.following.only.routes)

            words = ("one", "two", "three", "four")
            found = await asyncio.gather(*(one(word, at) for word in words for at in range(2)))
            assert found[::2] == found[1::2]
            assert sorted(each["A"] for each in found[::2]) == [0, 1, 2, 3]

    run(work)
