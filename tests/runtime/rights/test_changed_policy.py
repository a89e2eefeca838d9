"""A policy changes while its users are connected: the server reads its configuration anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from fairlead.errors import LogError
from fairlead.runtime.live.client import Client
from fairlead.runtime.rights.apply import apply
from fairlead.runtime.rights.check import REACHES, check
from fairlead.runtime.rights.policy import policy_of
from fairlead.runtime.rights.server_config import server_config
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.server import Server
from tests.runtime.live.reading import more
from tests.runtime.rights.served import connected
from tests.transport.log.logs import run
from tests.waiting import until

pytestmark = [pytest.mark.server, pytest.mark.slow]

TYPES = "TOPIC a (A) TOPIC c (C) TYPE A (k INT) TYPE C (k INT)"
RULES = "SUBSCRIPTION S MATCH A a"
BOSS = "boss: {password: $PASSWORD, manage: true}"
BEFORE = f"users: {{{BOSS}, shop: {{password: $PASSWORD, publish: [a, c]}}, desk: {{password: $PASSWORD, subscribe: [a, c]}}}}"
AFTER = f"users: {{{BOSS}, shop: {{password: $PASSWORD, publish: [c]}}, next: {{password: $PASSWORD, publish: [a]}}}}"


@asynccontextmanager
async def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Server, Client]]:
    monkeypatch.setenv("PASSWORD", "pass")
    with Server(folder, durable=False, more=server_config(policy_of(BEFORE))) as server:
        server.port = int(server.url.rpartition(":")[2])
        async with connected(server.url, "boss") as boss:
            await boss.declare(TYPES)
            await apply(boss.log, policy_of(BEFORE))
            yield server, boss


async def reload(server: Server, policy: str) -> None:
    """As `nats-server --signal reload` does it."""

    def told() -> int:
        return (server.folder / "log").read_text().count("Reloaded server configuration")

    async def has_reloaded() -> bool:
        return told() > before

    before, server.more = told(), server_config(policy_of(policy))
    server.reload()
    await until(has_reloaded)


async def publishes(url: str, user: str) -> bool:
    async with connected(url, user, patience=1) as fl:
        with suppress(LogError):
            await fl.publish("A", k=2, wait=True)
            return True
    return False


def test_a_new_user_is_let_to_the_streams_by_the_second_reading_and_check_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (server, boss):
            reaches = False
            for _ in (1, 2):
                await reload(server, AFTER)
                await apply(boss.log, policy_of(AFTER))
                lines = await check(server.url, Credentials("next", "pass").with_environment(), policy_of(AFTER), "next")
                reaches = next(each.found for each in lines if each.what == REACHES)
                assert await publishes(server.url, "next") == reaches
            assert reaches
            assert all(each.found == each.expected for each in lines)

    run(work)


def test_who_is_not_let_in_any_more_is_told_and_who_is_let_in_again_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right that is taken is an error at once; a user that is gone waits, since servers read new rights one by one."""

    async def work() -> None:
        async with (
            served(tmp_path, monkeypatch) as (server, boss),
            connected(server.url, "shop") as shop,
            connected(server.url, "desk", patience=2) as desk,
            desk.subscribe(RULES, name="desk", start="earliest") as sub,
        ):
            await shop.publish("A", k=1, wait=True)
            assert len(await more(sub)) == 1
            await reload(server, AFTER)
            await boss.publish("A", k=2, wait=True)
            with pytest.raises(LogError, match="N003"):
                await shop.publish("A", k=3, wait=True)
            with pytest.raises(LogError, match="N002"):
                await desk.log.keys("FL_TYPES")
            waiting = asyncio.create_task(anext(aiter(sub)))
            await reload(server, BEFORE)
            await reload(server, BEFORE)
            assert (await waiting).events[0]["k"] == 2
            await reload(server, AFTER)
            with pytest.raises(LogError, match="N002"):
                await anext(aiter(sub))
            await reload(server, BEFORE)
            await reload(server, BEFORE)
            await shop.flush()

    run(work)
