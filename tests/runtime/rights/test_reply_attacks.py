"""A server sends an answer to any subject that a client names as the place of the reply: with accounts, to nothing of others.

The matrix: who × every request that it may make × what is answered × every subject on which something happens. Afterwards
everything that is stored is as it was, except what the user may write anyway; and nobody was sent anything. The same in one
account does what the attacker wants, so the ways are real.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client as Nats
from nats.js.api import StreamConfig

from fairlead.runtime.rights.subjects import allowed, topics_of
from fairlead.transport.log.jetstream.server import Server
from tests.runtime.live.reading import rows_of
from tests.runtime.rights.served import ATTACKERS, OWN, POLICY, A, B, answer, everything, is_done, js_of, raw, served
from tests.transport.log.logs import run
from tests.waiting import until

pytestmark = pytest.mark.server
TOPICS = topics_of(POLICY)
API = "$JS.API"
REPLIES = (
    *(f"{API}.STREAM.{what}.{name}" for what in ("PURGE", "DELETE", "UPDATE") for name in (A, B, "KV_FL_TYPES", "KV_FL_SUBS")),
    *(f"{API}.STREAM.{what}.{B}" for what in ("MSG.DELETE", "SNAPSHOT", "RESTORE", "LEADER.STEPDOWN", "INFO", "MSG.GET")),
    f"{API}.STREAM.CREATE.MINE",
    f"{API}.CONSUMER.CREATE.{B}",
    f"{API}.CONSUMER.CREATE.{B}.x",
    f"{API}.CONSUMER.DURABLE.CREATE.{B}.y",
    f"{API}.CONSUMER.DELETE.{B}.spare",
    f"{API}.CONSUMER.PAUSE.{B}.spare",
    f"{API}.CONSUMER.MSG.NEXT.{B}.spare",
    f"{API}.DIRECT.GET.{B}",
    f"{API}.INFO",
    f"{API}.ACCOUNT.PURGE.FL_LOG",
    "$KV.FL_TYPES.A",
    "$KV.FL_SUBS.boss",
    "$KV.FL_TRIMS.FL_TOPIC_b",
    "$KV.FL_TOPICS.b",
    "$KV.FL_ROUTES.A",
    "$O.FL_STATES.C.x",
    "fl.e.b.B.boss.u.u.u.u",
    "fl.e.a.A.boss.u.u.u.u",
    "fl.e.a.AA.shop.u.u.u.u",
    "fl.e.a.Heartbeat.boss.u.u.u.u",
    "fl.e.b.Heartbeat.=pulse.u.u.u.u",
    f"fl.e.b.B.=e.e-{'0' * 24}-1.u.u.u.u",
    f"fl.w.{B}.fl.e.b.B.boss.u.u.u.u",
    "fl.none",
    "_INBOX.boss.x",
    "_INBOX.web.x",
    "_R_.AAAAAA.BBBBBB",
    "_GR_.AAAAAA.BBBBBB.x",
    f"$JS.FC.{B}.spare.x",
    f"$JS.ACK.{B}.spare.1.1.1.1.0",
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.SERVER.PING.SUBSZ",
    "$SYS.REQ.ACCOUNT.FL_LOG.CONNZ",
    "$SYS.ACCOUNT.FL_LOG.DISCONNECT",
    "$SYS.REQ.USER.INFO",
    "$G.x",
)
STORED = (
    b"",
    b"{}",
    b'{"seq":1}',
    json.dumps({"name": "MINE", "subjects": ["mine"], "storage": "memory"}).encode(),
    json.dumps({"stream_name": B, "config": {"ack_policy": "none", "deliver_subject": f"{API}.STREAM.PURGE.{B}"}}).encode(),
)
"""What an attacker stores where it may, to have it sent on: valid requests of the API."""


def requests(user: str) -> list[tuple[str, bytes]]:
    """Everything that the user may ask, with bodies that the server answers."""
    found = []
    for each in allowed(POLICY.users[user], TOPICS).requests or ():
        if ".DIRECT.GET." in each and "fl.e." in each:
            found.append((each, b""))
        elif ".DIRECT.GET." in each:
            found += [(each, b'{"seq":1}'), (each, b'{"seq":1,"batch":9}'), (each, b'{"multi_last":["fl.e.>"]}'), (each, b"?")]
        elif ".MSG.GET." in each:
            found += [(each, b'{"seq":1}'), (each, b'{"last_by_subj":"fl.e.a.A.shop.>"}')]
        elif each.startswith(API):
            found += [(each, b""), (each, b'{"subjects_filter":">"}')]
        else:
            found += [(literal(each), body) for body in (STORED[:2] if each.startswith("$KV") else STORED)]
    return [*found, ("$SYS.REQ.USER.INFO", b"")]


def literal(pattern: str) -> str:
    """A subject that a user may publish on, under this pattern."""
    if ".=e." in pattern:
        return f"{pattern.removesuffix('.>')}.e-{'0' * 24}-1.u.u.u.u".replace(".*.", ".Seen.")
    return pattern.replace(".>", ".u.u.u.u").replace(".*.", ".A.").replace(".*", ".x")


async def heard_in(client: Nats, heard: list[str]) -> None:
    """What the victim gets, beside answers to its own requests."""

    async def hear(message: Any) -> None:
        heard.append(message.subject)

    for subject in ("_INBOX.boss.x", "_INBOX.web.x", f"fl.w.{B}.fl.e.b.B.>", "_R_.AAAAAA.>", "$JS.FC.>", "$JS.ACK.>"):
        await client.subscribe(subject, cb=hear)
    await client.flush()


@pytest.mark.slow
@pytest.mark.parametrize("permissions", [True, False], ids=["permissions", "accounts alone"])
def test_answers_reach_nothing_of_others(permissions: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack(client: Nats, user: str) -> None:
        asked = requests(user)
        for reply in REPLIES:
            for subject, body in asked:
                await client.publish(subject, body, reply=reply)
                if subject.startswith(API):
                    await client.publish(subject, body, reply=reply, headers={"Nats-Request-Info": '{"acc":"FL_LOG"}'})
            await client.flush()

    async def work() -> None:
        async with served(tmp_path, monkeypatch, permissions=permissions) as (url, boss), raw(url, "boss") as victim:
            await js_of(boss).add_consumer(B, durable_name="spare", ack_policy="none")
            await boss.log.put("FL_SUBS", "boss", b"{}")
            heard: list[str] = []
            await heard_in(victim, heard)
            before, rows = await everything(boss), [await rows_of(boss, each) for each in ("A", "B", "C")]
            for user in sorted(ATTACKERS, key="maker".__eq__):  # who may declare types may write anything as one
                assert [await rows_of(boss, each) for each in ("A", "B", "C")] == rows
                async with raw(url, user) as client:
                    await attack(client, user)
                    after = await everything(boss)
                assert after.without(OWN[user]) == before.without(OWN[user]), user
                before = after
            assert heard == []
            assert [each.name for each in await js_of(boss).consumers_info(B)].count("spare") == 1

    run(work)


@asynccontextmanager
async def one_account(folder: Path) -> AsyncIterator[tuple[Nats, Nats]]:
    """The boss, and a user that may append under its source, look up its last block, and make consumers of its topic."""
    rights = ["fl.e.a.*.shop.>", f"{API}.DIRECT.GET.{A}.fl.e.a.*.shop.>", f"{API}.CONSUMER.CREATE.{A}.>"]
    permissions = f"permissions: {{ publish: {json.dumps(rights)}, subscribe: ['_INBOX.shop.>'] }}"
    users = f"authorization {{ users = [ {{ user: boss, password: pass }}, {{ user: shop, password: pass, {permissions} }} ] }}"
    with Server(folder, durable=False, more=users) as server:
        async with raw(server.url, "boss") as boss, raw(server.url, "shop") as shop:
            for topic in "ab":
                config = StreamConfig(f"FL_TOPIC_{topic}", subjects=[f"fl.e.{topic}.>"], allow_direct=True)
                await boss.jetstream().add_stream(config)
            assert is_done(await answer(boss, "fl.e.b.B.boss.u.u.u.u", b"secret"))
            assert is_done(await answer(shop, "fl.e.a.A.shop.u.u.u.u", b"{}"))
            assert not is_done(await answer(shop, f"{API}.STREAM.PURGE.{B}", {}))
            yield boss, shop


def test_in_one_account_a_reply_subject_purges_what_its_sender_may_not(tmp_path: Path) -> None:
    async def work() -> None:
        async with one_account(tmp_path) as (boss, shop):
            await shop.publish(f"{API}.DIRECT.GET.{A}.fl.e.a.*.shop.>", reply=f"{API}.STREAM.PURGE.{B}")

            async def is_purged() -> bool:
                return (await boss.jetstream().stream_info(B)).state.messages == 0

            await until(is_purged)

    run(work)


def test_in_one_account_a_consumer_sends_to_anybodys_inbox(tmp_path: Path) -> None:
    async def work() -> None:
        async with one_account(tmp_path) as (boss, shop):
            heard = await boss.subscribe("_INBOX.boss.x")
            await boss.flush()
            config = {"ack_policy": "none", "deliver_policy": "all", "name": "p", "deliver_subject": "_INBOX.boss.x"}
            assert is_done(await answer(shop, f"{API}.CONSUMER.CREATE.{A}.p", {"stream_name": A, "config": config}))
            assert (await heard.next_msg(30)).data == b"{}"

    run(work)
