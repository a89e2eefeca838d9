"""A merged stream that cannot take up what is published holds publishers back, if somebody reads it; nothing is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import StreamConfig, StreamInfo

import fairlead
from fairlead.errors import LogError
from fairlead.runtime.live import merged_streams
from fairlead.runtime.live.client import Client
from fairlead.testing.live.cluster.request import ask
from fairlead.testing.live.verdict.log_copy import copied
from fairlead.transport.log.jetstream.merge_watch import behind_of
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.names import merged_stream
from fairlead.transport.log.protocol import MergeLag
from tests.transport.log.logs import run
from tests.waiting import until

TYPES = "TOPIC a (A); TOPIC b (B); TYPE A (x INT); TYPE B (x INT)"
RULES = "SUBSCRIPTION S MATCH A a AND B b"
MERGED = merged_stream(["a", "b"])


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(merged_streams, "BEHIND_MAX", 10)
    monkeypatch.setattr(merged_streams, "LOOK_BLOCKS", 2)
    monkeypatch.setattr(merged_streams, "LOOK_SECONDS", 0.05)
    with Server(tmp_path, durable=False) as server:
        yield server


def make_room(server: Server, more: int | None) -> None:
    """For so many bytes in the merged stream, or without a limit."""
    port = [int(server.url.rsplit(":", 1)[1])]
    told = ask(port, f"STREAM.INFO.{MERGED}")
    assert told is not None
    most = -1 if more is None else told["state"]["bytes"] + more
    answer = ask(port, f"STREAM.UPDATE.{MERGED}", {**told["config"], "max_bytes": most})
    assert answer is not None
    assert "error" not in answer


async def published(fl: Client, x: int) -> None:
    await fl.publish("A", x=x)
    await fl.publish("B", x=x)
    await fl.flush()


async def stored(fl: Client) -> None:
    """However often it is refused: the server takes its time to go on."""
    while True:
        try:
            return await fl.flush()
        except LogError as error:
            if error.code != "N011" or not error.accepted:
                raise


async def lag(fl: Client) -> int:
    return {each.stream: each.behind for each in (await fl.overview()).merged}[MERGED]


async def is_late(fl: Client) -> bool:
    return await lag(fl) > merged_streams.BEHIND_MAX


async def refused(fl: Client, first: int) -> tuple[int, LogError]:
    """Publishes until that is refused; gives the last event, which is kept, and why."""
    for x in count(first):
        try:
            await published(fl, x)
        except LogError as error:
            return x, error
    raise AssertionError


def test_publishers_wait_for_a_merged_stream_that_is_full_and_go_on_with_it(server: Server) -> None:
    async def work() -> None:
        async with fairlead.connect(server.url, source="s", patience=1.0) as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(RULES, name="reader", start="earliest") as sub:
                await published(fl, 0)
                assert [each["x"] for each in (await anext(aiter(sub))).members] == [0, 0]
                make_room(server, 0)
                last, why = await refused(fl, 1)
                assert why.code == "N011"
                assert "of a, b is" in why.problem
                assert await lag(fl) > merged_streams.BEHIND_MAX
                waiting = asyncio.create_task(stored(fl))
                make_room(server, None)
                await waiting
                assert [(await anext(aiter(sub))).members[0]["x"] for _ in range(last)] == list(range(1, last + 1))
                assert (await copied(fl, [("a",), ("b",), ("a", "b")], 0)).missing() == []

    run(work)


def test_nobody_waits_for_a_merged_stream_that_nobody_needs(server: Server) -> None:
    async def work() -> None:
        async with fairlead.connect(server.url, source="s", patience=1.0) as fl:
            await fl.declare(TYPES)
            await fl.log.open_topics(["a", "b"])
            make_room(server, 1)
            for x in range(30):
                await published(fl, x)
            await until(lambda: is_late(fl))
            for x in range(30, 40):
                await published(fl, x)
            await fl.publish("Heartbeat", at="2026-01-31T12:00:00Z", wait=True)
            kept = {each.topic: each.events for each in (await fl.overview()).topics}
            assert kept == {"a": 41, "b": 41}  # heartbeats are in both
            assert await lag(fl) > merged_streams.BEHIND_MAX

    run(work)


def info(name: str, topics: str, **lags: int) -> StreamInfo:
    sources: list[dict[str, Any]] = [{"name": each, "lag": count, "active": 0} for each, count in lags.items()]
    config = StreamConfig(name=name, metadata={"topics": topics})
    return StreamInfo.from_response({"config": config.as_dict(), "state": STATE, "sources": sources})


STATE = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}


def test_a_stream_that_is_merged_of_a_merged_one_lacks_what_that_one_lacks() -> None:
    found = behind_of([info("FL_M_2", "a b c", FL_M_1=3, FL_TOPIC_c=5), info("FL_M_1", "a b", FL_TOPIC_a=7, FL_TOPIC_b=0)])
    assert found == [MergeLag("FL_M_1", ("a", "b"), 7), MergeLag("FL_M_2", ("a", "b", "c"), 15)]
