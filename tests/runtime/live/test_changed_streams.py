"""Streams that are deleted and created again, cut off, or written by others: readers and publishers notice, say it, and
publishers go on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import nats
import pytest
from nats.js.errors import APIError

import fairlead
from fairlead.errors import LogError, StateError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.publisher.publisher import Publisher
from fairlead.transport.log.blocks.block import NUMBER_MAX
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.protocol import Stream
from fairlead.transport.log.stream_health import StreamReport, problem_of
from tests.runtime.live.reading import more
from tests.transport.log.logs import URLS, run

TYPES = "TOPIC a (A); TOPIC b (B); TYPE A (k INT); TYPE B (k INT)"
ONE, TWO = "SUBSCRIPTION S MATCH A a", "SUBSCRIPTION S MATCH A a AND B b PER k"
READ = Stream("FL_TOPIC_a", "monday")


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (StreamReport("monday", 1, 10), None),
        (StreamReport("monday", 1, 7, (3, 5)), None),  # gone, but read before
        (StreamReport("monday", 8, 7), None),
        (StreamReport("monday", 1, 10, time=70), None),
        (StreamReport("tuesday", 1, 10), "N022"),
        (StreamReport("monday", 1, 6), "N022"),
        (StreamReport("monday", 1, 10, time=71), "N022"),
        (StreamReport("monday", 9, 10), None),  # the first blocks may have been trimmed: the reader finds that out
        (StreamReport("monday", 1, 20, (3, 9, 10, 12)), "N020 blocks 9 to 10 "),
    ],
)
def test_what_a_report_says_of_a_stream_that_was_read_up_to_7(report: StreamReport, code: str | None) -> None:
    found = problem_of(READ, 7, 70, report)
    assert (found is None) if code is None else str(found).startswith(code)


async def publish(fl: Client, first: int, last: int) -> None:
    for number in range(first, last):
        for name in "AB":
            await fl.publish(name, k=number, wait=True)


@pytest.mark.server
@pytest.mark.parametrize("rules", [ONE, TWO])
@pytest.mark.parametrize("deleted", ["FL_TOPIC_a", "FL_TOPIC_b"])
def test_a_stream_that_is_created_again_is_said_to_its_readers(rules: str, deleted: str, tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False) as server:
            async with fairlead.connect(server.url, source="first") as fl:
                await fl.declare(TYPES)
                async with fl.subscribe(rules, name="desk", start="earliest") as sub:
                    await publish(fl, 0, 3)
                    assert len(await more(sub)) == 3
                    await sub.ack()
                    client = await nats.connect(server.url)
                    await client.jetstream().delete_stream(deleted)
                    await client.close()
                    async with fairlead.connect(server.url, source="second") as second:
                        await publish(second, 3, 9)  # acknowledged, in a stream that the reader does not know
                        if rules == ONE and deleted == "FL_TOPIC_b":
                            assert len(await more(sub)) == 6
                            return
                        with pytest.raises(LogError, match=r"N010 .*removed|N022 .*created again"):
                            await sub.next_within(60)
                if rules == ONE:
                    with pytest.raises(StateError, match="S136"):
                        await fl.subscribe(rules, name="desk").__aenter__()
                    await fl.forget("desk")
                    async with fl.subscribe(rules, name="desk", start="earliest") as again:
                        assert len(await more(again)) == 6
                    return
                late = await fl.subscribe(rules, name="late", start="earliest").__aenter__()
                with pytest.raises((LogError, StateError), match=r"N022|N023"):
                    await more(late, 30)
                await late.__aexit__(None, None, None)

    run(work)


@pytest.mark.server
def test_a_stream_that_is_cut_off_is_said_when_a_subscriber_returns(tmp_path: Path) -> None:
    async def work(stage: str, url: str) -> None:
        async with fairlead.connect(url, source="feed") as fl:
            await fl.declare("TYPE A (k INT)")
            if stage == "cut":
                with pytest.raises(LogError, match=r"N022 blocks 4 to 6 .* were read, and are gone"):
                    async with fl.subscribe(ONE, name="desk"):
                        pass
                for number in range(5):
                    await fl.publish("A", k=number, wait=True)
                with pytest.raises(LogError, match=r"N022 block 6 .* another one is in its place"):
                    async with fl.subscribe(ONE, name="desk"):
                        pass
                async with fl.subscribe(ONE, start="earliest") as sub:
                    assert len(await more(sub)) == 8
                return
            async with fl.subscribe(ONE, name="desk", start="earliest") as sub:
                for number in range(3):
                    await fl.publish("A", k=number, wait=True)
                assert len(await more(sub)) == 3
                await sub.ack()

    kept = tmp_path / "kept"
    with Server(tmp_path / "log", durable=True) as server:
        run(lambda: work("first", server.url))
    (held,) = (tmp_path / "log").rglob("FL_TOPIC_main")
    shutil.copytree(held, kept)
    with Server(tmp_path / "log", durable=True) as server:
        run(lambda: work("more", server.url))
    shutil.rmtree(held)
    shutil.copytree(kept, held)
    with Server(tmp_path / "log", durable=True) as server:
        run(lambda: work("cut", server.url))


@pytest.mark.server
def test_a_publisher_whose_blocks_are_gone_is_told_once_and_goes_on(tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False) as server:
            async with fairlead.connect(server.url, source="feed", patience=2) as fl:
                await fl.declare("TYPE A (k INT)")
                await fl.publish("A", k=0, wait=True)
                await fl.publish("A", k=1, wait=True)
                client = await nats.connect(server.url)
                await client.jetstream().delete_stream("FL_TOPIC_main")
                await client.close()
                async with fairlead.connect(server.url, source="other") as other:
                    await other.publish("A", k=2, wait=True)
                    with pytest.raises(LogError, match="N022") as raised:
                        await fl.publish("A", k=3, wait=True)
                    assert raised.value.accepted  # type: ignore[attr-defined]
                    await fl.flush()
                    async with other.subscribe(ONE, start="earliest") as sub:
                        assert [each.events[0]["k"] for each in await more(sub)] == [2, 3]

    run(work)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("number", [0, 1, 7, NUMBER_MAX - 1])
def test_a_publisher_goes_on_after_a_block_of_another_in_its_source(number: int, url: str | None) -> None:
    """Both append as they should: nobody can say which is the right one. It is said once, and nothing is lost or doubled."""

    async def work() -> None:
        async with fairlead.connect(url, source="feed") as fl:
            await fl.declare("TYPE A (k INT)")
            await fl.publish("A", k=0, wait=True)
            last = await fl.log.last_of("main", "feed")
            assert last is not None
            theirs = replace(last.block, number=number, sequence=number, writer="another")
            await fl.log.append(theirs, last.sequence)
            with pytest.raises(StateError, match="S131") as raised:
                await fl.publish("A", k=1, wait=True)
            assert raised.value.accepted  # type: ignore[attr-defined]
            await fl.publish("A", k=2, wait=True)
            await fl.publish("A", k=3, wait=True)
            async with fl.subscribe(ONE, start="earliest") as sub:
                assert [each.events[0]["k"] for each in await more(sub)] == [0, 0, 1, 2, 3]

    run(work)


@pytest.mark.server
def test_nobody_deletes_blocks(tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False) as server:
            async with fairlead.connect(server.url) as fl:
                await fl.declare(TYPES)
                await fl.publish("A", k=0, wait=True)
                merged = await fl.log.open_topics(["a", "b"])
                client = await nats.connect(server.url)
                js = client.jetstream()
                for name in ("FL_TOPIC_a", merged.name):
                    with pytest.raises(APIError):
                        await js.delete_msg(name, 1)
                await client.close()

    run(work)


async def publish_as(source: str, fl: Client, first: int, last: int) -> None:
    publisher = Publisher(fl.log, fl._registry, source, 0.001, 60.0)
    for number in range(first, last):
        for name in "AB":
            await publisher.publish(name, {"k": number}, wait=True)
    await publisher.close(flush=True)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("lost", [{"a": 2}, {"b": 2}, {"a": 1, "b": 2}, {"a": 4}, {"a": 4, "b": 4}], ids=str)
@pytest.mark.parametrize("retained", [False, True], ids=["whole", "retained"])
@pytest.mark.parametrize("merged", [False, True], ids=["made after", "there before"])
def test_a_merged_stream_does_not_hide_that_blocks_were_removed(
    url: str | None, lost: dict[str, int], retained: bool, merged: bool, tmp_path: Path
) -> None:
    """Every reader that begins with the beginning is told, whichever topic lacks blocks, also if some were trimmed before; and
    nobody else is."""

    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            await publish_as("feed", fl, 0, 1)
            if retained:
                await publish_as("feed", fl, 1, 2)
                await fl.declare("TOPIC a KEEP 1 B; TOPIC b KEEP 1 B")
                await fl.retain(apply=True)
                await fl.declare("TOPIC a KEEP ALL; TOPIC b KEEP ALL")
            if merged:  # and somebody has read half of it
                async with fl.subscribe(TWO, name="old", start="earliest") as sub:
                    await more(sub)
                    await sub.ack()
            streams = {topic: await fl.log.open_topics([topic]) for topic in lost}
            first = {topic: (await fl.log.state(each)).first for topic, each in streams.items()}
            await publish_as("feed", fl, 2, 5)
            for topic, count in lost.items():  # by somebody else: without a record of what these blocks were
                await fl.log.trim(streams[topic], min(first[topic] + count, (await fl.log.state(streams[topic])).last + 1))
            if merged and lost == {"a": 1, "b": 2} and not retained:
                return  # these blocks were read
            for start in ("earliest", *([] if merged else ["snapshot"]), datetime(2020, 1, 1, tzinfo=UTC)):
                with pytest.raises(LogError, match=r"N020 blocks .* of the stream FL_TOPIC_[ab] have been deleted"):
                    async with fl.subscribe(TWO, start=start) as sub:
                        await more(sub)
            with pytest.raises(LogError, match="N020"):
                await fl.export(TWO, tmp_path / "e.parquet")
            async with fl.subscribe(TWO, name="new", start="new") as sub:
                await publish_as("other", fl, 5, 7)
                assert [each.members[0]["k"] for each in await more(sub)] == [5, 6]
                await sub.ack()
            async with fl.subscribe(TWO, name="new") as sub:
                await publish_as("other", fl, 7, 8)
                assert [each.members[0]["k"] for each in await more(sub)] == [7]

    run(work)
