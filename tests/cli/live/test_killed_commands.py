"""Commands that change a log, killed anywhere: readers and publishers notice nothing, and the command completes when it is
repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from shutil import rmtree

import pytest

import fairlead
from fairlead.transport.log.jetstream.server import Server
from tests.cli.live.killed import KillingProxy
from tests.cli.shop import fairlead as done
from tests.marks import sample_size
from tests.runtime.live.reading import more
from tests.runtime.live.test_log_conversion import written_to_folder

TYPES = "TOPIC a (A) KEEP {} TOPIC b (B) KEEP {} TOPIC c (C) TYPE A (k INT) TYPE B (k INT) TYPE C (k INT)"
RULES = "SUBSCRIPTION S MATCH A a AND B b PER k"
POLICY = """
users:
  boss: {nkey: UAH42UG6PV552P5SWLWTBP3H3S5BHAVCO2IEKEXUANJXR75J63RQ5WM6, manage: true}
  desk: {nkey: UAB5XNYMGI7XGXDPP4YWYFHKC4I6SGDWZZGPYJCGYE5M37ETTIHQKVQM, subscribe: [a.A, b.B, c.C], names: [s]}
"""
COMMANDS = {
    "rights apply": ("rights", "apply", "policy.yaml", "--url", "URL"),
    "rights sign": ("rights", "sign", "--adopt", "--signing-keys", "log.keys", "--url", "URL"),
    "sweep": ("streams", "--sweep", "--url", "URL"),
    "retain": ("retain", "--apply", "--url", "URL"),
    "retain --read": ("retain", "--apply", "--read", "--url", "URL"),
}
KILLS = [(share / 7, arrives) for share in range(7) for arrives in (False, True)]
"""Where in the course of the command, and whether the last request arrives."""


def at(folder: Path, arguments: Sequence[str], url: str) -> list[str | Path]:
    files = {each: folder / each for each in ("policy.yaml", "log.keys", "topics.fl")}
    return [url if each == "URL" else files.get(each, each) for each in arguments]


async def pair(url: str, k: int) -> None:
    async with fairlead.connect(url, source="p") as fl:
        for name in "AB":
            await fl.publish(name, k=k, wait=True)


async def resumed(url: str) -> list[int]:
    async with fairlead.connect(url) as fl, fl.subscribe(RULES, name="s", start="earliest") as sub:
        found = [each.events[0]["k"] for each in await more(sub)]
        await sub.ack()
        return found


async def prepared(url: str, command: str) -> None:
    """Durable subscribers, merged streams that nobody uses, and policies that trim everything, if that is to be tried."""
    async with fairlead.connect(url) as fl:
        keep = "1 B" if command == "retain" else "ALL"
        await fl.declare(TYPES.format(keep, keep))
        await fl.publish("C", k=0, wait=True)
        for topics in (["a", "c"], ["a", "b", "c"])[: 0 if command == "rights apply" else 2]:
            await fl.log.open_topics(topics)
    for k in range(3):
        await pair(url, k)
    assert await resumed(url) == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_was_killed_harms_nobody_and_is_completed_by_the_next(command: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "log.keys").write_text(f"{'k' * 40}\n")
    requests: int | None = None
    due = None
    for share, arrives in [(0.0, True), *Random(command).sample(KILLS, sample_size(3))]:
        with Server(tmp_path / "log", durable=False) as server:
            asyncio.run(prepared(server.url, command))
            killed_at = None if requests is None else int(share * requests)
            proxy = KillingProxy(server.url, killed_at, arrives=arrives)
            code, output = proxy.run(at(tmp_path, COMMANDS[command], "URL"))
            assert code == (0 if killed_at is None else -9), output
            requests = requests or proxy.sent
            for k in (3, 4):
                asyncio.run(pair(server.url, k))
                assert asyncio.run(resumed(server.url)) == [k]
                again = done(*at(tmp_path, COMMANDS[command], server.url))
                assert again.exit_code == 0, again.output
            left = asyncio.run(_left(server.url, command))
            due = due or left
            assert left == due
        rmtree(tmp_path / "log")


async def _left(url: str, command: str) -> tuple[list[str], list[int]]:
    """The names of the merged streams, and by topic the first block."""
    async with fairlead.connect(url) as fl:
        merged = [each.name for each in await fl.log.merged()]
        firsts = [(await fl.log.state(await fl.log.open_topics([each]))).first for each in "ab"]
    assert command != "sweep" or len(merged) == 1
    assert not command.startswith("retain") or min(firsts) > 4
    return merged, firsts


@pytest.mark.slow
def test_a_conversion_that_was_killed_is_completed_by_the_next(tmp_path: Path) -> None:
    written_to_folder(tmp_path / "old")
    (tmp_path / "topics.fl").write_text("TOPIC other (Pair)")
    arguments = ("convert", "--from", f"file:{tmp_path / 'old'}", "--topics", "topics.fl", "--url", "URL")
    requests: int | None = None
    due = None
    for share, arrives in [(0.0, True), *Random(1).sample(KILLS, sample_size(3))]:
        with Server(tmp_path / "log", durable=False) as server:
            killed_at = None if requests is None else int(share * requests)
            proxy = KillingProxy(server.url, killed_at, arrives=arrives)
            code, output = proxy.run(at(tmp_path, arguments, "URL"))
            assert code == (0 if killed_at is None else -9), output
            requests = requests or proxy.sent
            again = done(*at(tmp_path, arguments, server.url))
            assert again.exit_code == 0, again.output
            found = asyncio.run(_converted(server.url))
            due = due or found
            assert found == due
        rmtree(tmp_path / "log")
    assert due is not None
    assert len(due) == 10


async def _converted(url: str) -> list[tuple[str, int]]:
    async with fairlead.connect(url) as fl, fl.subscribe("SUBSCRIPTION S MATCH U u", start="earliest") as sub:
        return [(each.events[0].type, each.events[0]["n"]) for each in await more(sub)]
