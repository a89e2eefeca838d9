"""What the page on operations says: a copy of the data folder is a backup; the dashboard shows metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

import pytest

import fairlead
from fairlead.errors import LogError
from fairlead.transport.log.jetstream.server import Server
from fairlead.web.metrics import METRICS
from tests.root import ROOT
from tests.runtime.live.reading import RULES, TYPES, ids, publish_some, some
from tests.transport.log.logs import run
from tests.waiting import until


@pytest.mark.server
def test_a_copy_of_the_data_folder_is_a_backup(tmp_path: Path) -> None:
    async def work() -> None:
        first = Server(tmp_path / "log").start()
        try:
            async with fairlead.connect(first.url) as fl:
                await fl.declare(TYPES)
                await publish_some(fl, 40)
                async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                    before = await some(sub, 5)
                    await sub.ack(before[-1])
        finally:
            first.stop()
        shutil.copytree(tmp_path / "log", tmp_path / "backup")
        expected = []
        for folder in ("log", "backup"):
            server = Server(tmp_path / folder).start()
            try:
                async with fairlead.connect(server.url) as fl, fl.subscribe(RULES, name="desk") as sub:
                    expected.append(ids(await some(sub, 5)))
            finally:
                server.stop()
        assert expected[0] == expected[1]
        assert not {*ids(before)} & {*expected[0]}

    run(work)


async def in_turn(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    for each in works:
        await each


@pytest.mark.server
def test_a_full_log_is_trimmed_once_its_limit_is_raised(tmp_path: Path) -> None:
    """Without a restart; trimming needs room, too, and publishers keep what they could not store."""

    async def work() -> None:
        with Server(tmp_path, durable=False, bytes_max=3_000_000) as server:
            server.port = int(server.url.rpartition(":")[2])
            async with fairlead.connect(server.url, patience=20) as fl:
                await fl.declare("TOPIC t (T) KEEP 1 MB TYPE T (x INT, text STRING)")
                fill = (fl.publish("T", x=x, text="t" * 100_000, wait=True) for x in range(100))
                with pytest.raises(LogError, match="N004"):
                    await in_turn(fill)
                with pytest.raises(LogError, match="N004"):
                    await fl.retain(apply=True)
                server.bytes_max = 3_300_000
                server.reload()
                await until(lambda: "max_file_store" in (tmp_path / "log").read_text())
                (found,) = await fl.retain(apply=True)
                assert found.trimmed > 10
                await fl.flush()
                state = await fl.log.state(await fl.log.open_topics(["t"]))
                assert (state.first, state.last) == (found.trimmed + 1, found.last + 1)

    run(work)


def test_the_dashboard_shows_metrics_that_exist() -> None:
    dashboard = json.loads((ROOT / "docs" / "grafana.json").read_text("utf-8"))
    shown = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"fairlead_\w+", target["expr"])
    }
    source = (ROOT / "src/fairlead/runtime/spark/stream/progress.py").read_text("utf-8")
    of_streams = {f"fairlead_{name}" for name in re.findall(r'"(\w+)", "[A-Z]', source)} | {"fairlead_relations_total"}
    assert shown <= {f"fairlead_gateway_{name}" for name in METRICS} | of_streams
    assert {name for name in METRICS if name.endswith("_sent_total")} <= {
        each.removeprefix("fairlead_gateway_") for each in shown
    }
