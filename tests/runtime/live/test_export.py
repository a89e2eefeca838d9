"""An exported file has the events of the stream that live subscribers read, at the same positions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.errors import DataError, LogError, UsageError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.export import export, export_events
from fairlead.runtime.live.subscriber.stream_reader import blocks_between, pulse
from fairlead.transport.log.blocks.block_filter import Only
from tests.runtime.live.reading import APART, COVERING, RULES, TYPES, ids, more, publish_some
from tests.transport.log.logs import a_log, run
from tests.transport.log.test_logs import block


async def declared(fl: Client, types: str) -> None:
    await fl.declare(types)
    await publish_some(fl, 3)
    await fl.flush()


@pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
@pytest.mark.server
def test_the_file_comes_to_the_relations_of_a_live_subscriber(tmp_path: Path, types: str) -> None:
    path = tmp_path / "events.parquet"

    async def work() -> None:
        async with fairlead.connect() as fl:
            await declared(fl, types)
            exported = await export(fl.log, RULES, path)
            async with fl.subscribe(RULES, start="earliest") as sub:
                live = await more(sub)
            table = pq.read_table(path)
            assert table.column_names == ["position", "type", "k", "x", "at"]
            assert exported.events == table.num_rows > 0
            assert exported.types == ("A", "B")
            found = fairlead.match(fairlead.compile(f"{TYPES} {RULES}"), table, position="position")
            assert ids(found.relations) == ids(live) != []

    run(work)


@pytest.mark.parametrize("topics", ["", "TOPIC a (A); TOPIC b (B);"])
@pytest.mark.server
def test_heartbeats_are_in_the_file(tmp_path: Path, topics: str) -> None:
    types = "TYPE A (k INT, at TIMESTAMP) TIME at TYPE B (k INT, at TIMESTAMP) TIME at"
    rules = "SUBSCRIPTION Alone MATCH A a WITHOUT B b WITHIN 1 SECONDS OF a WHERE b.k = a.k"

    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(topics + types)
            for second in range(5):
                await fl.publish("A", k=second, at=f"2026-01-01T00:00:0{second}Z", wait=True)
                if second % 2:
                    await fl.publish("B", k=second, at=f"2026-01-01T00:00:0{second}Z", wait=True)
            await fl.publish("Heartbeat", at="2026-01-01T00:01:00Z", wait=True)
            await export(fl.log, rules, tmp_path / "events.parquet")
            async with fl.subscribe(rules, start="earliest") as sub:
                live = await more(sub)
        table = pq.read_table(tmp_path / "events.parquet")
        assert table.column("type").to_pylist().count("Heartbeat") == (2 if topics else 1)
        found = fairlead.match(fairlead.compile(f"{types} {rules}"), table, position="position")
        assert ids(found.relations) == ids(live)
        assert live

    run(work)


TIMED = "TOPIC b (A) TOPIC a (B) " + " ".join(f"TYPE {name} (k INT, at TIMESTAMP) TIME at" for name in "AB")
ORDERS = {
    "the log's": "",
    "sorted": "ORDER BY at DELAY 2 SECONDS",
    "by source": "ORDER BY at DELAY 2 SECONDS PER SOURCE IDLE 4 SECONDS",
    "ahead": "ORDER BY at DELAY 2 SECONDS AHEAD 1 HOUR",
    "revised": "ORDER BY at DELAY 2 SECONDS LATE REVISE WITHIN 1 HOUR",
}
MATCHES = {
    "pairs": "A a AND B b PER k",
    "absence": "A a WITHOUT B b WITHIN 500 MILLISECONDS OF a PER k",
    "either": "(A a AND B b) OR (B c AND B d) WHERE a.k = b.k AND c.k = d.k",
}


CASES = [(order, match) for order in ORDERS for match in MATCHES if match == "pairs" or order in ("the log's", "revised")]


@pytest.mark.parametrize(("order", "match"), CASES)
@pytest.mark.server
def test_heartbeats_of_waiting_readers_are_in_no_file(tmp_path: Path, order: str, match: str) -> None:
    """They take no positions and repeat nothing: the file has the relations and the positions of live subscribers."""
    rules = f"{ORDERS[order]} SUBSCRIPTION S MATCH {MATCHES[match]}"
    plan = fairlead.compile(f"{TIMED} {rules}")

    async def work() -> None:
        async with fairlead.connect(source="p") as fl:
            await fl.declare(TIMED)
            for second in range(12):
                for topic in "ab" if second % 3 else "a":
                    await pulse(fl.log, topic)
                at = f"2026-01-01T00:00:{second:02}Z"
                await fl.publish("AB"[second % 2], k=second // 2 % 2, at=at, wait=True)
            await fl.publish("Heartbeat", at="2026-01-01T00:01:00Z", wait=True)
            exported = await export(fl.log, rules, tmp_path / "events.parquet")
            async with fl.subscribe(rules, start="earliest", verdicts=True) as sub:
                live = await more(sub)
                assert not sub.verdict_counts
        table = pq.read_table(tmp_path / "events.parquet")
        beats = [row["at"].year for row in table.to_pylist() if row["type"] == "Heartbeat"]
        assert beats == [2026] * len(beats)
        assert exported.events == table.num_rows
        if order != "the log's":
            assert set(table.column("_source").to_pylist()) == {"p"}
            found = fairlead.match(plan, table)
        elif "stream" in table.column_names:
            found = fairlead.match(plan, table, position="position", stream="stream")
        else:
            found = fairlead.match(plan, table, position="position")
        assert [(each.id, each.sign) for each in found.relations] == [(each.id, each.sign) for each in live] != []
        if order == "the log's":
            assert [each.positions for each in found.relations] == [each.positions for each in live]

    run(work)


@pytest.mark.server
def test_a_url_and_types(tmp_path: Path) -> None:
    with fairlead.connect().sync as fl:
        fl.declare(APART)
        fl.publish_many("A", {"k": [1, 2], "x": [1, 2]}, wait=True)
        exported = export_events(fl.url, ["A"], tmp_path / "a.parquet")
        assert (exported.events, list(exported.streams)) == (2, ["FL_TOPIC_a"])
        assert pq.read_table(tmp_path / "a.parquet").column("position").to_pylist() == [4096, 4097]
        assert export_events(fl.url, ["A", "B"], tmp_path / "b.parquet", position="p").events == 2
        for what, path, code in (
            (COVERING, "c.parquet", "A260"),
            ([], "c.parquet", "A261"),
            (["A"], "c.csv", "A103"),
        ):
            with pytest.raises(UsageError, match=code):
                export_events(fl.url, what, tmp_path / path)
        with pytest.raises(UsageError, match="A262"):
            export_events(fl.url, ["A"], tmp_path / "c.parquet", position="k")
        with pytest.raises(DataError, match="D001"):
            export_events(fl.url, ["D"], tmp_path / "c.parquet")
        fl.declare("TOPIC e (E); TYPE E (k STRING)")
        with pytest.raises(UsageError, match="A263"):
            export_events(fl.url, ["A", "E"], tmp_path / "c.parquet")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


@pytest.mark.server
def test_what_is_removed_from_the_log_is_missed() -> None:
    async def work() -> None:
        async with a_log("jetstream") as log:
            js = log._js  # type: ignore[attr-defined]
            await js.add_stream(name="FL_TOPIC_main", subjects=["fl.e.main.>"])  # ours would deny it
            stream = await log.open_topics(["main"])
            after = 0
            for number in range(5):
                after = await log.append(replace(block("A", "s", number), topic="main"), after)
            await js.purge_stream(stream.name, seq=3)
            with pytest.raises(LogError, match=r"N020.*1 to 2"):
                _ = [each async for each in blocks_between(log, stream, 0, 5)]
            found = [each.sequence async for some in blocks_between(log, stream, 2, 4) for each in some]
            assert found == [3, 4]
            await js.delete_msg(stream.name, 4)
            with pytest.raises(LogError, match=r"N020.*4 to 4"):
                _ = [each async for each in blocks_between(log, stream, 2, 4)]
            with pytest.raises(LogError, match=r"N020.*4 to 4"):
                await anext(log.read(stream, 2, Only(("B",))))  # also to those who would not have got it

    run(work)
