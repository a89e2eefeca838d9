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
from fairlead.transport.log.jetstream import merge_watch as jetstream_watching
from fairlead.transport.log.jetstream.failures import Refusals, translated
from fairlead.transport.log.jetstream.merge_watch import MergeProgress, Watching, is_silent
from fairlead.transport.log.protocol import Unavailable
from tests.runtime.live.test_subscribing import TYPES
from tests.transport.log.logs import run

SECOND = 1_000_000_000


def told(*active: int | None, leader: str = "one", names: str = "FL_T_A") -> StreamInfo:
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


def watched(monkeypatch: pytest.MonkeyPatch, infos: dict[str, list[StreamInfo]]) -> list[str]:
    monkeypatch.setattr(jetstream_watching, "PATIENCE_SECONDS", 0.0)

    async def work() -> list[str]:
        server: Any = Server(infos)
        watching = Watching(server, server, Refusals(), "FL_M_x")
        for _ in range(3):
            await watching._look("FL_M_x")
            await asyncio.sleep(0.001)
        return list(server.asked)

    return asyncio.run(work())


def test_a_leader_whose_source_stays_silent_steps_down(monkeypatch: pytest.MonkeyPatch) -> None:
    down = ["$JS.API.STREAM.LEADER.STEPDOWN.FL_M_x"]
    assert watched(monkeypatch, {"FL_M_x": [told(-1), told(-1), told(0)]}) == down
    assert watched(monkeypatch, {"FL_M_x": [told(-1), told(0), told(-1)]}) == []
    assert watched(monkeypatch, {"FL_M_x": [told(-1), told(-1, leader="two"), told(0)]}) == []
    assert watched(monkeypatch, {"FL_M_x": [told(-1, leader="")]}) == []


def test_a_leader_whose_stream_stands_still_steps_down_though_its_sources_are_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetstream_watching, "PROGRESS_LOOKS", 1)

    def merged(count: int) -> StreamInfo:
        made = told(0)
        state = replace(made.state, last_seq=count, subjects={"fl.t.A.s": count})
        return replace(made, state=state, config=replace(made.config, metadata={"types": "A"}))

    source = replace(told(), state=replace(told().state, last_seq=5))
    down = ["$JS.API.STREAM.LEADER.STEPDOWN.FL_M_x"]
    assert watched(monkeypatch, {"FL_M_x": [merged(3)], "FL_T_A": [source]}) == down
    assert watched(monkeypatch, {"FL_M_x": [merged(5)], "FL_T_A": [source]}) == []
    moving = [merged(count) for count in (1, 1, 2, 2, 3, 3)]  # two questions each look
    assert watched(monkeypatch, {"FL_M_x": moving, "FL_T_A": [source]}) == []


def test_a_merged_stream_that_takes_up_nothing_of_a_source_that_has_more_stands_still() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            client = await nats.connect(fl.url)
            js = client.jetstream()
            await fl.declare(TYPES)
            stream = await fl.log.open_merged(["A", "B"])
            progress = MergeProgress(js)

            async def looked() -> bool:
                return await progress.stands_still(await js.stream_info(stream.name))

            async def published(name: str, last: int) -> None:
                await fl.publish(name, k=1, x=1, wait=True)
                while await fl.log.last(stream) < last:
                    await asyncio.sleep(0.01)

            await published("A", 1)
            await published("B", 2)
            assert [await looked(), await looked()] == [False, False]
            config = (await js.stream_info(stream.name)).config
            await js.update_stream(config, max_msgs=2)
            await fl.publish("B", k=2, x=2, wait=True)
            assert [await looked(), await looked()] == [False, True]  # nothing came of B between two looks
            await js.update_stream(config, max_msgs=3)
            while await fl.log.last(stream) < 3:
                await asyncio.sleep(0.01)
            await fl.publish("A", k=3, x=3, wait=True)
            assert [await looked(), await looked()] == [False, True]  # something came of B, and then nothing of A
            await js.update_stream(config, max_msgs=-1)
            while await fl.log.last(stream) < 4:
                await asyncio.sleep(0.01)
            assert [await looked(), await looked()] == [False, False]
            await client.close()

    run(work)


def test_streams_that_a_merged_one_is_made_of_are_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    infos = {"FL_M_x": [told(0, names="FL_M_y")], "FL_M_y": [told(-1), told(-1), told(0)]}
    assert watched(monkeypatch, infos) == ["$JS.API.STREAM.LEADER.STEPDOWN.FL_M_y"]


def test_a_cluster_that_is_still_coming_together_is_asked_again() -> None:
    def refuse() -> None:
        with translated(Refusals()):
            raise nats.js.errors.BadRequestError(code=400, err_code=10005, description="no suitable peers for placement")

    with pytest.raises(Unavailable, match="no suitable peers"):
        refuse()
