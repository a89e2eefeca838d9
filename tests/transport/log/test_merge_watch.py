"""A merged stream whose leader waits for its sources: another leader takes over. Real servers do it in test_campaign.py."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import nats
import nats.js.errors
import pytest
from nats.js.api import ClusterInfo, StreamConfig, StreamInfo, StreamSourceInfo, StreamState

import fairlead
from fairlead.transport.log.jetstream.failures import Refusals, translated
from fairlead.transport.log.jetstream.merge_watch import MergeProgress, Watching, is_silent
from fairlead.transport.log.protocol import Unavailable
from tests.runtime.live.reading import APART, merged
from tests.transport.log.logs import run

SECOND = 1_000_000_000


def told(*active: int | None, leader: str = "one", names: str = "FL_TOPIC_a") -> StreamInfo:
    state = StreamState(messages=0, bytes=0, first_seq=0, last_seq=0, consumer_count=0)
    sources = [StreamSourceInfo(name=names, active=each) for each in active]
    return StreamInfo(StreamConfig(name="FL_M_x"), state, sources=sources, cluster=ClusterInfo(leader=leader))


@pytest.mark.parametrize(
    ("active", "silent"),
    [((), False), ((0, SECOND), False), ((0, -1), True), ((None,), True), ((20 * SECOND, 0), True)],
)
def test_a_source_that_is_not_heard_of_is_silent(active: tuple[int | None, ...], silent: bool) -> None:
    assert is_silent(told(*active)) == silent


class Server:
    """Says what it was told to say, and notes what it is asked to do."""

    def __init__(self, infos: dict[str, list[StreamInfo]]) -> None:
        self._infos, self.asked = infos, list[str]()

    async def stream_info(self, name: str, **_: object) -> StreamInfo:
        left = self._infos.get(name, [told()])
        return left.pop(0) if len(left) > 1 else left[0]

    async def request(self, subject: str, *_: object, **__: object) -> None:
        self.asked.append(subject)


def watched(infos: dict[str, list[StreamInfo]], progress_looks: int = 3) -> list[str]:
    async def work() -> list[str]:
        server: Any = Server(infos)
        watching = Watching(server, server, Refusals(), "FL_M_x", patience=0.0, progress_looks=progress_looks)
        for _ in range(3):
            await watching._look("FL_M_x")
        return list(server.asked)

    return asyncio.run(work())


def test_a_leader_whose_source_stays_silent_steps_down() -> None:
    down = ["$JS.API.STREAM.LEADER.STEPDOWN.FL_M_x"]
    assert watched({"FL_M_x": [told(-1), told(-1), told(0)]}) == down
    assert watched({"FL_M_x": [told(-1), told(0), told(-1)]}) == []
    assert watched({"FL_M_x": [told(-1), told(-1, leader="two"), told(0)]}) == []
    assert watched({"FL_M_x": [told(-1, leader="")]}) == []


def test_a_leader_whose_stream_stands_still_steps_down_though_its_sources_are_heard_of() -> None:
    def holding(count: int) -> StreamInfo:
        made = told(0)
        state = replace(made.state, last_seq=count, subjects={"fl.e.a.A.s.u.u.u.u": count})
        return replace(made, state=state, config=replace(made.config, metadata={"topics": "a"}))

    source = replace(told(), state=replace(told().state, last_seq=5))
    down = ["$JS.API.STREAM.LEADER.STEPDOWN.FL_M_x"]
    assert watched({"FL_M_x": [holding(3)], "FL_TOPIC_a": [source]}, progress_looks=1) == down
    assert watched({"FL_M_x": [holding(5)], "FL_TOPIC_a": [source]}, progress_looks=1) == []
    moving = [holding(count) for count in (1, 1, 2, 2, 3, 3)]  # two questions each look
    assert watched({"FL_M_x": moving, "FL_TOPIC_a": [source]}, progress_looks=1) == []


@pytest.mark.server
def test_a_merged_stream_that_takes_up_nothing_of_a_source_that_has_more_stands_still() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            client = await nats.connect(fl.url)
            js = client.jetstream()
            await fl.declare(APART)
            stream = await fl.log.open_topics(["a", "b"])
            progress = MergeProgress(client, js)

            async def looked() -> bool:
                return await progress.stands_still(await js.stream_info(stream.name))

            async def published(name: str, last: int) -> None:
                await fl.publish(name, k=1, x=1, wait=True)
                await merged(fl, ["A", "B"], last)

            await published("A", 1)
            await published("B", 2)
            assert [await looked(), await looked()] == [False, False]
            config = (await js.stream_info(stream.name)).config
            await js.update_stream(config, max_msgs=2)
            await fl.publish("B", k=2, x=2, wait=True)
            assert [await looked(), await looked()] == [False, True]  # nothing came of B between two looks
            await js.update_stream(config, max_msgs=3)
            await merged(fl, ["A", "B"], 3)
            await fl.publish("A", k=3, x=3, wait=True)
            assert [await looked(), await looked()] == [False, True]  # something came of B, and then nothing of A
            await js.update_stream(config, max_msgs=-1)
            await merged(fl, ["A", "B"], 4)
            assert [await looked(), await looked()] == [False, False]
            await client.close()

    run(work)


def test_streams_that_a_merged_one_is_made_of_are_looked_at_too() -> None:
    infos = {"FL_M_x": [told(0, names="FL_M_y")], "FL_M_y": [told(-1), told(-1), told(0)]}
    assert watched(infos) == ["$JS.API.STREAM.LEADER.STEPDOWN.FL_M_y"]


def test_a_cluster_that_is_still_coming_together_is_asked_again() -> None:
    def refuse() -> None:
        with translated(Refusals()):
            raise nats.js.errors.BadRequestError(code=400, err_code=10005, description="no suitable peers for placement")

    with pytest.raises(Unavailable, match="no suitable peers"):
        refuse()
