"""Sources that left long ago: what the log knows of them does not grow, readers that lag are told what they lost, and a
publisher that returns stores every event once."""

from __future__ import annotations

import uuid
from datetime import timedelta
from random import Random

import pytest

import fairlead
from fairlead.errors import StateError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.block_columns import columns_of
from fairlead.runtime.live.forgotten_sources import FORGOTTEN, first_numbers, forget_source, joined_heads
from fairlead.runtime.live.merged_streams import caught_up, merged_to_keep
from fairlead.runtime.live.publisher.publisher import Publisher
from fairlead.runtime.live.subscriber.stream_reader import blocks_between
from fairlead.transport.log.blocks.block_filter import ROUTES
from fairlead.transport.log.names import TRIMS, merged_stream, topic_stream
from fairlead.transport.log.trims import TrimmedHead, note_trimmed, trimmed_heads
from tests.runtime.live.reading import APART, EMITTING, RULES, TYPES, ids, more
from tests.transport.log.logs import KINDS, URLS, a_log, run
from tests.waiting import until

AT_ONCE = timedelta(days=-1)
"""All sources without blocks, whenever they stored something."""
PLACES = pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
LOGS = pytest.mark.parametrize("url", URLS)


async def publish(fl: Client, source: str | None, low: int, high: int, names: str = "AB") -> None:
    """One block for each event; without a name, each from a source of its own. Merged streams have them in this order, too:
    otherwise they may keep blocks between those of another topic, and these are not forgotten."""
    merged = await merged_to_keep(fl.log)
    for k in range(low, high):
        publisher = Publisher(fl.log, fl._registry, source, 0.001, 60.0)
        for name in names:
            await publisher.publish(name, {"k": k, "x": k}, wait=True)
            for parts, stream in merged.items():
                await caught_up(fl.log, stream, parts)
        await publisher.close(flush=True)


async def trim(fl: Client, topics: dict[str, int], sources: timedelta | None = None) -> None:
    """Trims topics to about so many of their newest blocks."""
    for topic, blocks in topics.items():
        state = await fl.log.state(await fl.log.open_topics([topic]))
        size = max(1, state.bytes * blocks // max(1, state.last - state.first + 1))
        await fl.declare(f"TOPIC {topic} KEEP {size} B")
    await fl.retain(apply=True, sources=sources)
    for topic in topics:
        await fl.declare(f"TOPIC {topic} KEEP ALL")


async def sources_known(fl: Client) -> set[str]:
    """The sources of which trimmed blocks are recorded, in any stream."""
    keys = [key for key in await fl.log.keys(TRIMS) if await fl.log.get(TRIMS, key) is not None]
    return {key.partition(".")[2] for key in keys} - {"", FORGOTTEN}


async def keys_left(fl: Client, name: str) -> list[int]:
    """Of the events of a type that the log has."""
    event_type = (await fl.types())[name]
    stream = await fl.log.open_topics([event_type.topic])
    state = await fl.log.state(stream)
    blocks = [each async for some in blocks_between(fl.log, stream, state.first - 1, state.last) for each in some]
    table = columns_of(blocks, {name: event_type}, 0).tables.get(name)
    return [] if table is None else [row["k"] for row in table.to_pylist()]


@LOGS
@PLACES
@pytest.mark.parametrize("named", [False, True], ids=["generated", "named"])
def test_what_is_known_of_sources_that_left_does_not_grow(url: str | None, types: str, named: bool) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(types)
            topics = dict.fromkeys(sorted({each.topic for each in await fl.types() if each.name in "AB"}), 2)
            for turn in range(4):
                async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                    if named:
                        for k in range(10 * turn, 10 * turn + 10):
                            await publish(fl, f"till-{k}", k, k + 1)
                    else:
                        await publish(fl, None, 10 * turn, 10 * turn + 10)
                    assert len(await more(sub)) == 10
                    await sub.ack()
                await trim(fl, topics, AT_ONCE)

                async def few() -> bool:
                    return len(await sources_known(fl)) <= 3

                await until(few)
            async with fl.subscribe(RULES, name="desk") as sub:
                assert not await more(sub)

    run(work)


@LOGS
@PLACES
@pytest.mark.parametrize("named", [False, True], ids=["generated", "named"])
def test_a_reader_that_lags_is_told_of_the_events_of_forgotten_sources(url: str | None, types: str, named: bool) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(types)
            topics = sorted({each.topic for each in await fl.types() if each.name in "AB"})
            for name, rules in (("lags", RULES), ("other", "SUBSCRIPTION T MATCH C c")):
                async with fl.subscribe(rules, name=name, start="earliest") as sub:
                    assert not await more(sub)
            await publish(fl, "gone" if named else None, 0, 5)
            await publish(fl, "stays", 5, 9)
            await trim(fl, dict.fromkeys(topics, 2), AT_ONCE)
            assert "gone" not in await sources_known(fl)
            with pytest.raises(StateError, match="S144"):
                async with fl.subscribe(RULES, name="lags") as sub:
                    await more(sub)
            async with fl.subscribe("SUBSCRIPTION T MATCH C c", name="other") as sub:  # no event of its type is lost
                await publish(fl, "stays", 9, 10, "C")
                assert len(await more(sub)) == 1

    run(work)


@LOGS
@PLACES
@pytest.mark.parametrize("forgotten", [False, True], ids=["known", "forgotten"])
def test_a_publisher_that_returns_stores_every_event_once_under_new_numbers(
    url: str | None, types: str, forgotten: bool
) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(types)
            topic = (await fl.types())["A"].topic
            topics = sorted({each.topic for each in await fl.types() if each.name in "AB"})
            async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                await publish(fl, "p", 0, 6)
                await publish(fl, "q", 100, 104)
                assert len(await more(sub)) == 10
                await sub.ack()
            await trim(fl, dict.fromkeys(topics, 2), AT_ONCE if forgotten else None)
            assert ("p" in await sources_known(fl)) is not forgotten
            before = 6 if types == APART else 12
            await publish(fl, "p", 6, 9)
            await publish(fl, "fresh", 200, 202)
            stream = await fl.log.open_topics([topic])
            last = (await fl.log.state(stream)).last
            blocks = [each async for some in fl.log.heads(stream, last - (5 if types == APART else 10), last) for each in some]
            mine = [each.block for each in blocks if each.block.source == "p" and each.block.type == "A"]
            assert [each.number for each in mine] == [6, 7, 8]
            assert mine[0].sequence == before  # also without a record: no event has a number that another one had
            async with fl.subscribe(RULES, name="desk") as sub:
                assert [each.members[0]["k"] for each in await more(sub)] == [6, 7, 8, 200, 201]
            await publish(fl, "p", 9, 10)
            await trim(fl, dict.fromkeys(topics, 1), AT_ONCE if forgotten else None)
            await publish(fl, "p", 10, 11)
            assert (await keys_left(fl, "A"))[-1] == 10

    run(work)


@LOGS
def test_a_source_whose_blocks_a_merged_stream_still_has_is_not_forgotten(url: str | None) -> None:
    """Readers of the merged stream look up which of its messages are blocks; its topic has lost them."""

    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(APART)
            async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                await publish(fl, "slow", 0, 1, "B")
                assert not await more(sub)
                for name in ("one", None):
                    await publish(fl, name, 1, 4, "A")
                await publish(fl, "last", 4, 7, "A")
                await trim(fl, {"a": 1}, AT_ONCE)  # the merged stream begins with a block of b, which b keeps
                assert "one" in await sources_known(fl)
                await publish(fl, "one", 7, 8, "A")
                await publish(fl, "slow", 1, 8, "B")
                whole = ids(await more(sub))
            await trim(fl, {"a": 1}, AT_ONCE)
            async with fl.subscribe(RULES, start="earliest") as sub:
                assert ids(await more(sub)) == whole != []
            await trim(fl, {"b": 1}, AT_ONCE)
            await publish(fl, "one", 8, 10, "A")
            await trim(fl, {"a": 1}, AT_ONCE)
            assert await sources_known(fl) <= {"one", "slow"}  # they have blocks in their topics

    run(work)


@LOGS
@PLACES
def test_derived_events_continue_when_their_last_ones_are_long_gone(url: str | None, types: str) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(types)
            async with fl.subscribe(EMITTING, name="desk", start="earliest") as sub:
                await publish(fl, "p", 0, 4)
                assert len(await more(sub)) == 4
                await sub.ack()
            await publish(fl, "p", 100, 103, "C")
            await trim(fl, dict.fromkeys(await fl._registry.all_topics(), 1), AT_ONCE)
            async with fl.subscribe(EMITTING, name="desk") as sub:
                await publish(fl, "p", 4, 6)
                assert [each.members[0]["k"] for each in await more(sub)] == [4, 5]

                async def stored() -> bool:
                    return (await keys_left(fl, "Pair"))[-2:] == [4, 5]

                await until(stored)

    run(work)


@LOGS
def test_a_merged_stream_that_is_made_again_does_not_inherit_what_was_trimmed_of_the_first(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(APART)
            async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                await publish(fl, "p", 0, 30)
                assert len(await more(sub)) == 30
                await sub.ack()
            await trim(fl, {"a": 2, "b": 2})
            name = merged_stream("ab")
            assert any(key.startswith(name) for key in await fl.log.keys(TRIMS))
            await fl.forget("desk")
            assert name in await fl.sweep()

            async def nothing() -> bool:
                return not any([await fl.log.get(TRIMS, key) for key in await fl.log.keys(TRIMS) if key.startswith(name)])

            await until(nothing)
            async with fl.subscribe(RULES, name="again", start="earliest") as sub:
                await more(sub)
                await sub.ack()
            await publish(fl, "p", 30, 36, "C")
            await trim(fl, {"a": 1, "b": 1})
            async with fl.subscribe(RULES, name="again") as sub:  # everything that was trimmed of this one was read
                await publish(fl, "p", 36, 38)
                assert [each.members[0]["k"] for each in await more(sub)] == [36, 37]

    run(work)


def head(rolls: Random, at: int) -> TrimmedHead:
    routes = tuple(rolls.randrange(at + 1) for _ in range(ROUTES))
    return TrimmedHead("A", rolls.randrange(50), rolls.randrange(500), rolls.randrange(1, 9), "", at, at * 10, routes)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_has_the_largest_of_every_number_in_whichever_order_sources_are_forgotten(seed: int) -> None:
    rolls = Random(seed)
    heads = [{"A": head(rolls, at)} for at in rolls.sample(range(1, 100), 6)]

    def left(order: list[dict[str, TrimmedHead]]) -> tuple[object, ...]:
        found: dict[str, TrimmedHead] = {}
        for each in order:
            found = joined_heads(found, each)
        one = found["A"]
        return one.number, one.sequence + one.count, one.at, one.time, one.routes

    every = [each["A"] for each in heads]
    wanted = (
        max(each.number for each in every),
        max(each.sequence + each.count for each in every),
        max(each.at for each in every),
        max(each.time for each in every),
        tuple(max(each.routes[at] for each in every) for at in range(ROUTES)),
    )
    assert left(heads) == left(rolls.sample(heads, len(heads))) == left([*heads, *heads]) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_client_records_meanwhile_is_not_forgotten(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as log:
            stream, rolls = topic_stream("main"), Random(1)
            await log.open_topics(["main"])
            await note_trimmed(log, stream, "p", {"A": head(rolls, 5)})
            revision = await log.revision_of(TRIMS, f"{stream}.p")
            assert not await forget_source(log, stream, "p", before=50)  # its last block is of time 50
            assert await log.revision_of(TRIMS, f"{stream}.p") == revision
            assert await forget_source(log, stream, "p", before=51)
            assert await log.get(TRIMS, f"{stream}.p") is None
            await note_trimmed(log, stream, "p", {"A": head(rolls, 9)})
            assert (await trimmed_heads(log, stream, "p"))["A"].at == 9
            assert (await trimmed_heads(log, stream, FORGOTTEN))["A"].at == 5
            assert await first_numbers(log, "main", f"s-{uuid.uuid4().hex}") == (0, {})

    run(work)
