"""A stream whose positions end: publishers stop in time, and everything that is stored can be read, up to the last position."""

from __future__ import annotations

import json
from pathlib import Path

import nats
import numpy as np
import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.errors import LogError
from fairlead.runtime.live.export import export
from fairlead.transport.log.blocks.room import BLOCKS_LEFT, BLOCKS_MAX, require_room
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.trims import TrimRecord, note_record
from tests.runtime.live.reading import more
from tests.transport.log.logs import run

RULES = "SUBSCRIPTION S MATCH A a THEN A b PER k"
TYPES = "TYPE A (k INT)"
EVENTS = 600
"""In a block: so many that kernels take over."""


async def begin(url: str, first: int) -> None:
    """The topic, as if all blocks before this number had been trimmed."""
    async with fairlead.connect(url) as fl:
        await fl.declare(TYPES)
        await fl.log.open_topics(["main"])
    client = await nats.connect(url)
    told = json.loads((await client.request("$JS.API.STREAM.INFO.FL_TOPIC_main")).data)
    await client.jetstream().delete_stream("FL_TOPIC_main")
    config = json.dumps({**told["config"], "first_seq": first}).encode()
    assert "error" not in json.loads((await client.request("$JS.API.STREAM.CREATE.FL_TOPIC_main", config)).data)
    await client.close()
    async with fairlead.connect(url) as fl:
        await note_record(fl.log, "FL_TOPIC_main", TrimRecord(first))


async def publish(fl: fairlead.runtime.live.client.Client, blocks: int) -> int:
    """How many blocks are stored."""
    for number in range(blocks):
        try:
            await fl.publish_many("A", {"k": np.arange(EVENTS, dtype=np.int32)}, wait=True)
        except LogError as error:
            return number if error.code == "N026" and not error.accepted else -1
    return blocks


@pytest.mark.server
def test_publishers_stop_in_time_and_what_is_stored_is_read(tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path / "log", durable=False) as server:
            await begin(server.url, BLOCKS_MAX - BLOCKS_LEFT - 3)
            async with fairlead.connect(server.url, source="s") as fl:
                assert await publish(fl, 9) == 4
                async with fairlead.connect(server.url, source="other") as other:
                    assert await publish(other, 9) == 1  # it does not know yet how far the topic is
                (topic,) = (await fl.overview()).topics
                assert topic.used > 0.999

    run(work)


@pytest.mark.server
def test_the_last_positions_are_read_as_any_others_and_none_after_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Live, with a restart between, and from the export; the ids of the pairs agree."""
    for module in ("runtime.live.publisher.outbox", "transport.log.blocks.block_store"):
        monkeypatch.setattr(f"fairlead.{module}.require_room", lambda *_, **__: None)

    async def work() -> None:
        with Server(tmp_path / "log", durable=False) as server:
            await begin(server.url, BLOCKS_MAX - 4)
            found = []
            async with fairlead.connect(server.url, source="s") as fl:
                for _ in range(2):
                    async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                        await publish(fl, 2)
                        found += [each.id for each in await more(sub)]
                        await sub.ack()
                assert len(found) == 2 * EVENTS
                path = tmp_path / "a.parquet"
                await export(fl.log, ["A"], path, "_position")
                result = fairlead.match(fairlead.compile(f"{TYPES}; {RULES}"), pq.read_table(path), position="_position")
                assert [each.id for each in result] == found
                await publish(fl, 1)
                with pytest.raises(LogError, match="N026"):
                    async with fl.subscribe(RULES, name="desk") as sub:
                        await more(sub)
                with pytest.raises(LogError, match="N026"):
                    await export(fl.log, ["A"], tmp_path / "b.parquet", "_position")

    run(work)


@pytest.mark.parametrize(("last", "fine"), [(0, True), (BLOCKS_MAX - BLOCKS_LEFT - 1, True), (BLOCKS_MAX - BLOCKS_LEFT, False)])
def test_room(last: int, fine: bool) -> None:
    if fine:
        require_room("main", last)
    else:
        with pytest.raises(LogError, match="N026"):
            require_room("main", last)
