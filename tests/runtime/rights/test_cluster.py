"""The rights of a policy in a cluster: a user is connected to one server, and the streams it reads have leaders on others."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

import fairlead
from fairlead.errors import LogError
from fairlead.runtime.live.client import Client
from fairlead.runtime.rights.apply import apply
from fairlead.runtime.rights.server_config import server_config
from fairlead.testing.live.cluster.ports import free_ports
from fairlead.transport.log.jetstream.server import Server
from tests.runtime.live.reading import ids, more, rows_of, some
from tests.runtime.rights.served import ATTACKERS, OWN, POLICY, SECRET, TYPES, B, everything, raw
from tests.runtime.rights.test_reply_attacks import API, requests
from tests.transport.log.logs import run
from tests.waiting import until

pytestmark = [pytest.mark.server, pytest.mark.slow]


def servers(folder: Path, held: ExitStack) -> list[str]:
    """Three servers; the urls."""
    listening = free_ports(3)
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in listening)
    found = []
    for number, port in enumerate(listening):
        cluster = f'cluster {{ name: rights, listen: "127.0.0.1:{port}", no_advertise: true, routes: [{routes}] }}\n'
        made = Server(folder / str(number), durable=False, name=f"s{number}", more=cluster + server_config(POLICY))
        found.append(held.enter_context(made).url)
    return found


def connected(url: str, user: str) -> Client:
    return fairlead.connect(url, user=user, password="pass", source=user, replicas=3, patience=60)


def test_users_of_other_servers_read_publish_and_attack_as_on_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "pass")
    rules = "SUBSCRIPTION S MATCH A a AND C c"

    async def work() -> None:
        with ExitStack() as held:
            urls = servers(tmp_path, held)

            async def has_begun() -> bool:
                try:
                    async with connected(urls[0], "boss") as boss:
                        await boss.declare(TYPES)
                except LogError:  # the servers have no leader yet
                    return False
                return True

            await until(has_begun)
            async with connected(urls[0], "boss") as boss:
                await apply(boss.log, POLICY)
                await boss.publish("B", k=7, secret=SECRET.decode(), wait=True)
                seen = []
                for url in urls:
                    async with connected(url, "shop") as shop, connected(url, "desk") as desk:
                        async with desk.subscribe(rules, start="earliest") as sub:
                            for number in range(10):
                                await shop.publish("A", k=number, wait=True)
                                await boss.publish("C", k=number, wait=True)
                            await some(sub, 10)
                        async with desk.subscribe(rules, start="earliest") as sub:
                            seen.append(ids(await more(sub)))
                async with boss.subscribe(rules, start="earliest") as sub:
                    whole = ids(await more(sub))
                assert [whole[: len(each)] for each in seen] == seen
                before = await everything(boss)
                for number, user in enumerate(ATTACKERS):
                    async with raw(urls[number % 3], user) as client:
                        for subject, body in requests(user):
                            for reply in (f"{API}.STREAM.PURGE.{B}", "fl.e.b.B.boss.u.u.u.u", "$KV.FL_SUBS.boss"):
                                await client.publish(subject, body, reply=reply)
                        await client.flush()
                    after = await everything(boss)
                    assert after.without(OWN[user]) == before.without(OWN[user]), user
                    before = after
                    if user == "both":
                        assert [each["k"] for each in await rows_of(boss, "B")] == [7]

    run(work)
