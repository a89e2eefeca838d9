"""Users with exactly the rights of a policy: they do what they may through the client, and by no way anything else.

The matrix: who × what × way. Every way is tried with a raw client of the server, and afterwards the log is as it was.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nats
import nats.errors
import pytest
from nats.aio.client import Client as Nats

import fairlead
from fairlead.errors import LogError, UsageError
from fairlead.runtime.live.client import Client
from fairlead.runtime.rights.apply import apply
from fairlead.runtime.rights.check import check
from fairlead.runtime.rights.policy import policy_of
from fairlead.runtime.rights.server_config import server_config
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.names import merged_stream
from tests.cli.shop import fairlead as fairlead_command
from tests.runtime.live.reading import rows_of, some
from tests.transport.log.logs import run

pytestmark = pytest.mark.server

USERS = ("boss", "shop", "desk", "both", "clock", "viewer", "web", "none")
POLICY = policy_of(
    """
    users:
      boss: {password: $PASSWORD, manage: true}
      shop: {password: $PASSWORD, publish: [a], sources: [shop]}
      desk: {password: $PASSWORD, subscribe: [a, c], names: [desk], heartbeat: true}
      both: {password: $PASSWORD, publish: [a.A], subscribe: [a], emit: [a.Seen], names: [both], sources: [both]}
      clock: {password: $PASSWORD, heartbeat: true}
      viewer: {password: $PASSWORD, subscribe: [b.B]}
      web: {password: $PASSWORD, gateway: true}
      none: {password: $PASSWORD}
    """
)
TYPES = """TOPIC a (A, AA, Seen) TOPIC b (B) TOPIC c (C)
TYPE A (k INT) TYPE AA (k INT) TYPE Seen (k INT) TYPE B (k INT, secret STRING) TYPE C (k INT)"""
SECRET = b"top secret"
A, B, C, AB, AC = "FL_TOPIC_a", "FL_TOPIC_b", "FL_TOPIC_c", merged_stream("ab"), merged_stream("ac")
PULL = {"ack_policy": "none", "deliver_policy": "all", "mem_storage": True}


@asynccontextmanager
async def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, Client]]:
    """The url, and the client of the boss; the log has events of every topic."""
    monkeypatch.setenv("PASSWORD", "pass")
    with Server(folder, durable=False, more=server_config(POLICY)) as server:
        async with connected(server.url, "boss") as boss:
            await boss.declare(TYPES)
            await apply(boss.log, POLICY)
            await boss.log.open_topics(["a", "b"])
            for number, name in enumerate(("A", "C", "A")):
                await boss.publish(name, k=number, wait=True)
            await boss.publish("B", k=7, secret=SECRET.decode(), wait=True)
            yield server.url, boss


def connected(url: str, user: str, **more: Any) -> Client:
    return fairlead.connect(url, user=user, password="pass", source=user, patience=20, **more)


@asynccontextmanager
async def raw(url: str, user: str, prefix: str | None = None) -> AsyncIterator[Nats]:
    async def quiet(_: Exception) -> None:
        return

    inbox = (prefix or f"_INBOX.{user}").encode()
    client = await nats.connect(url, user=user, password="pass", inbox_prefix=inbox, error_cb=quiet, max_reconnect_attempts=0)
    try:
        yield client
    finally:
        await client.close()


async def answer(client: Nats, subject: str, body: Any, headers: dict[str, str] | None = None) -> bytes:
    """The server's answer, with its headers; nothing if it refuses."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    with suppress(TimeoutError, nats.errors.Error):
        found = await client.request(subject, data, timeout=0.25, headers=headers)
        return json.dumps(found.headers and {**found.headers}, default=str).encode() + (found.data or b"")
    return b""


def is_done(found: bytes) -> bool:
    return bool(found) and b'"error"' not in found and b"503" not in found


def stream(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "storage": "memory", **more}


READ = [
    *((f"$JS.API.STREAM.MSG.GET.{name}", {"seq": 1}) for name in (B, AB)),
    (f"$JS.API.STREAM.MSG.GET.{B}", {"last_by_subj": "fl.e.b.>"}),
    (f"$JS.API.STREAM.MSG.GET.{AB}", {"last_by_subj": "fl.e.b.>"}),
    (f"$JS.API.DIRECT.GET.{B}", {"seq": 1}),
    (f"$JS.API.DIRECT.GET.{B}", {"multi_last": ["fl.e.b.>"]}),
    (f"$JS.API.DIRECT.GET.{B}.fl.e.b.>", None),
    (f"$JS.API.DIRECT.GET.{AB}", {"next_by_subj": "fl.e.b.>", "seq": 1}),
    *((f"$JS.API.CONSUMER.CREATE.{name}", {"stream_name": name, "config": PULL}) for name in (B, AB)),
    *((f"$JS.API.CONSUMER.CREATE.{name}.x", {"stream_name": name, "config": PULL | {"name": "x"}}) for name in (B, AB)),
    (
        f"$JS.API.CONSUMER.CREATE.{B}.x.fl.e.b.>",
        {"stream_name": B, "config": PULL | {"name": "x", "filter_subject": "fl.e.b.>"}},
    ),
    (f"$JS.API.CONSUMER.DURABLE.CREATE.{B}.y", {"stream_name": B, "config": PULL | {"durable_name": "y"}}),
    (f"$JS.API.CONSUMER.MSG.NEXT.{B}.spare", {"batch": 1}),
    (f"$JS.API.CONSUMER.INFO.{B}.spare", None),
    (f"$JS.API.CONSUMER.LIST.{B}", None),
    (f"$JS.API.STREAM.SNAPSHOT.{B}", {"deliver_subject": "_INBOX.spy"}),
    ("$JS.API.STREAM.CREATE.MINE", stream("MINE", sources=[{"name": B}])),
    ("$JS.API.STREAM.CREATE.MINE", stream("MINE", mirror={"name": B})),
    ("$JS.API.STREAM.CREATE.MINE", stream("MINE", subjects=["_INBOX.>"])),
    ("$JS.API.STREAM.CREATE.MINE", stream("MINE", subjects=["$KV.FL_SUBS2.>"])),
    (f"$JS.API.STREAM.UPDATE.{B}", stream(B, subjects=["fl.e.b.>"], republish={"src": ">", "dest": "_INBOX.spy.>"})),
    ("$JS.API.STREAM.MSG.GET.OBJ_FL_STATES", {"seq": 1}),
    ("$JS.API.CONSUMER.CREATE.OBJ_FL_STATES", {"stream_name": "OBJ_FL_STATES", "config": PULL}),
    ("$JS.API.STREAM.MSG.GET.KV_FL_LINEAGES", {"seq": 1}),
    ("$JS.API.STREAM.LIST", None),
    ("$JS.API.STREAM.NAMES", None),
    ("$JS.API.INFO", None),
    ("$JS.API.ACCOUNT.PURGE.X", None),
    ("$SYS.REQ.ACCOUNT.PING.CONNZ", None),
    ("$SYS.REQ.SERVER.PING.SUBSZ", None),
]
CHANGE = [
    *(
        (f"$JS.API.STREAM.{what}.{name}", {} if what == "PURGE" else None)
        for what in ("DELETE", "PURGE")
        for name in (A, B, AC, "KV_FL_TYPES", "KV_FL_SUBS", "KV_FL_RECEIPTS", "KV_FL_ORIGINS", "KV_FL_LEASES")
    ),
    *((f"$JS.API.STREAM.MSG.DELETE.{name}", {"seq": 1}) for name in (A, B, "KV_FL_SUBS", "KV_FL_TYPES")),
    ("$JS.API.STREAM.PURGE.KV_FL_SUBS", {"filter": "$KV.FL_SUBS.boss"}),
    *((f"$JS.API.STREAM.UPDATE.{name}", stream(name, max_age=1)) for name in (A, B)),
    (f"$JS.API.STREAM.LEADER.STEPDOWN.{A}", None),
    (f"$JS.API.CONSUMER.DELETE.{B}.spare", None),
    (f"$JS.API.CONSUMER.PAUSE.{B}.spare", {"pause_until": "2099-01-01T00:00:00Z"}),
    (f"$JS.API.STREAM.RESTORE.{B}", {"config": stream(B)}),
    ("$KV.FL_TYPES.ZZZ", b"not json"),
    ("$KV.FL_TYPES.A", b"not json"),
    ("$KV.FL_SUBS.boss", b"{}"),
    ("$KV.FL_RECEIPTS.boss", b"{}"),
    ("$KV.FL_ROUTES.A", b"{}"),
    ("$KV.FL_LINEAGES.x", b"[]"),
    ("$O.FL_STATES.M.x", b"{}"),
    ("$O.FL_STATES.C.x", b"chunk"),
    ("fl.e.b.B.boss.u.u.u.u", b"x"),
    ("fl.e.b.B.me.u.u.u.u", b"x"),
    ("fl.e.b.=mixed.me.u.u.u.u", b"x"),
    ("fl.e.a.A.boss.u.u.u.u", b"x"),
    ("fl.e.a.AA.boss.u.u.u.u", b"x"),
    ("fl.e.a.=mixed.boss.u.u.u.u", b"x"),
    ("fl.e.new.T.me.u.u.u.u", b"x"),
    ("_INBOX.boss.x", b"spoofed"),
    ("$JS.ACK.FL_TOPIC_b.spare.1.1.1.1.0", b"+ACK"),
    ("$JS.EVENT.ADVISORY.x", b"x"),
    ("$SYS.ACCOUNT.X", b"x"),
]
LISTEN = (
    ">",
    "_INBOX.>",
    "_INBOX.boss.>",
    "fl.e.>",
    "fl.e.b.>",
    "$KV.>",
    "$JS.API.>",
    "$JS.EVENT.>",
    "$JS.ACK.>",
    "$O.>",
    "$SYS.>",
    "*",
)


async def as_it_was(boss: Client) -> Any:
    js = boss.log._log._log._js  # type: ignore[attr-defined]
    while True:  # merged streams have all that their sources have
        told = await js.streams_info()
        stored = {each.config.name: each.state.messages for each in told}
        if all(
            each.state.messages == sum(stored[source.name] for source in each.config.sources)
            for each in told
            if each.config.sources
        ):
            break
        await asyncio.sleep(0.02)  # the server fills them without telling
    come_and_go = ("KV_FL_LEASES",)  # of a lease that was given back nothing is left
    return sorted(
        (each.config.name, each.config.name in come_and_go or each.state.messages, each.state.last_seq, str(each.config))
        for each in told
    )


@pytest.mark.slow
def test_nobody_reads_or_changes_what_is_not_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack(url: str, user: str) -> list[str]:
        leaks = []
        async with raw(url, user) as client:
            heard: list[bytes] = []

            async def hear(message: Any) -> None:
                heard.append(message.data)

            for subject in LISTEN:
                with suppress(nats.errors.Error):
                    await client.subscribe(subject, cb=hear)
            await client.flush()
            for subject, body in (*READ, *CHANGE):
                found = await answer(client, subject, body)
                if SECRET in found or is_done(found):
                    leaks.append(f"{user}: {subject} {body!r}: {found[:200]!r}")
            if any(SECRET in each for each in heard):
                leaks.append(f"{user} heard it")
        return leaks

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (url, boss):
            js = boss.log._log._log._js  # type: ignore[attr-defined]
            await js.add_consumer(B, durable_name="spare", ack_policy="explicit")
            async with boss.subscribe("SUBSCRIPTION S MATCH B b", name="boss", start="earliest") as sub:
                assert len(await some(sub, 1)) == 1
            before = await as_it_was(boss)
            found = await asyncio.gather(*(attack(url, user) for user in USERS if user not in ("boss", "web")))
            assert [each for one in found for each in one] == []
            assert await as_it_was(boss) == before
            async with raw(url, "boss") as client:  # the ways exist: they work for a user with the rights
                got = await answer(client, f"$JS.API.STREAM.MSG.GET.{B}", {"seq": 1})
                assert SECRET in b64decode(json.loads(got.removeprefix(b"null"))["message"]["data"])
                assert SECRET in await answer(client, f"$JS.API.DIRECT.GET.{B}.fl.e.b.>", None)
                for subject, body in READ[8:10]:
                    assert is_done(await answer(client, subject, body)), subject
                assert is_done(await answer(client, "fl.e.b.B.me.u.u.u.u", b"x"))

    run(work)


def test_a_key_of_ones_own_removes_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the rollup header a table would lose all other keys."""

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (url, boss):
            await boss.log.put("FL_SUBS", "boss", b"{}")
            async with raw(url, "desk") as client:
                for scope in ("all", "sub"):
                    assert not is_done(await answer(client, "$KV.FL_SUBS.desk", b"{}", {"Nats-Rollup": scope}))
                assert is_done(await answer(client, "$KV.FL_SUBS.desk", b"{}"))
            assert (await boss.log.get("FL_SUBS", "boss")) is not None

    run(work)


def test_a_server_can_limit_a_consumer_to_one_type_but_not_what_mixed_blocks_hold(tmp_path: Path) -> None:
    """What is true of reading one type of a topic: a right on the filter in the subject of the request is enforced, for blocks
    of one type. Mixed blocks hold several types, so the policy grants nothing, and says it."""
    right = f"$JS.API.CONSUMER.CREATE.{A}.*.fl.e.a.A.>"
    permissions = f'permissions: {{ publish: ["{right}"], subscribe: ["_INBOX.one.>"] }}'
    users = (
        f"authorization {{ users = [ {{ user: boss, password: pass }},\n {{ user: one, password: pass, {permissions} }} ] }}"
    )

    async def work() -> None:
        with Server(tmp_path, durable=False, more=users) as server:
            async with connected(server.url, "boss") as boss:
                await boss.declare(TYPES)
                await boss.publish("A", k=1, wait=True)
            async with raw(server.url, "one") as client:
                config = PULL | {"name": "x", "filter_subject": "fl.e.a.A.>"}
                subject = f"$JS.API.CONSUMER.CREATE.{A}.x"
                assert is_done(await answer(client, f"{subject}.fl.e.a.A.>", {"stream_name": A, "config": config}))
                for name, other in [("y", "fl.e.a.>"), ("z", "fl.e.a.AA.>"), ("w", None)]:
                    asked = {"stream_name": A, "config": config | {"name": name, "filter_subject": other}}
                    for way in (
                        f"$JS.API.CONSUMER.CREATE.{A}.{name}.fl.e.a.A.>",
                        f"$JS.API.CONSUMER.CREATE.{A}.{name}.{other}",
                    ):
                        assert not is_done(await answer(client, way, asked)), (way, asked)

    run(work)


def test_everybody_does_what_they_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "SUBSCRIPTION S MATCH A a AND C c WHERE a.k = 0"

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (url, boss):
            for _ in range(2):  # a publisher that returns continues its numbers
                async with connected(url, "shop") as shop:
                    await shop.publish("A", k=10, wait=True)
                    await shop.publish_all([{"type": "A", "k": 11}, {"type": "AA", "k": 12}], wait=True)
                with pytest.raises(LogError, match="N003"):
                    async with connected(url, "shop") as shop:
                        await shop.publish("B", k=1, secret="", wait=True)
            async with connected(url, "desk") as desk:
                found = {}
                for start in ("earliest", "snapshot", datetime(2020, 1, 1, tzinfo=UTC), 0):
                    async with desk.subscribe("SUBSCRIPTION S MATCH A a", start=start) as sub:
                        found[str(start)] = [each.id for each in await some(sub, 4)]
                assert len({str(each) for each in found.values()}) == 1
                async with desk.subscribe(rules, name="desk", start="earliest") as sub:  # a merged stream
                    (one,) = await some(sub, 1)
                    await sub.ack(one)
                async with desk.subscribe(rules, name="desk") as sub:
                    await boss.publish("A", k=0, wait=True)
                    await boss.publish("C", k=5, wait=True)
                    assert (await some(sub, 1))[0].id != one.id
                async with desk.subscribe("SUBSCRIPTION S MATCH A a OR C c", start="earliest") as sub:
                    assert len(await some(sub, 5)) == 5  # it stores heartbeats where a topic is quiet
                async with desk.subscribe("SUBSCRIPTION S MATCH C c", start="new") as sub:
                    await boss.publish("C", k=6, wait=True)
                    assert len(await some(sub, 1)) == 1
                exported = await desk.export(rules, tmp_path / "day.parquet")
                assert exported.events >= 8
                with pytest.raises(LogError, match="N003"):
                    async with desk.subscribe("SUBSCRIPTION S MATCH B b", start="earliest") as sub:
                        await some(sub, 1)
                with pytest.raises(LogError, match="N003"):
                    async with desk.subscribe("SUBSCRIPTION S MATCH A a", name="boss", start="earliest") as sub:
                        await some(sub, 1)
            async with connected(url, "both") as both:
                emitting = "SUBSCRIPTION S MATCH A a EMIT Seen (k = a.k)"
                async with both.subscribe(emitting, name="both", start="earliest") as sub:
                    assert len(await some(sub, 5)) == 5
                await both.publish("A", k=20, wait=True)
            async with boss.subscribe("SUBSCRIPTION S MATCH Seen s", start="earliest") as sub:
                assert [each.events[0]["k"] for each in await some(sub, 5)] == [0, 2, 10, 11, 10]

    run(work)


def test_what_the_server_allows_is_what_the_policy_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (url, boss):
            before = await as_it_was(boss)
            with pytest.raises(UsageError, match="A424"):
                await check(url, Credentials("x", "pass"), POLICY, "x")
            found = await asyncio.gather(*(check(url, Credentials(user, "pass"), POLICY, user) for user in USERS))
            for user, lines in zip(USERS, found, strict=True):
                assert [each for each in lines if each.found != each.expected] == [], user
            assert all(each.found for each in found[0])
            assert not any(each.found for each in found[-1])
            assert await as_it_was(boss) == before
            wider = policy_of("users: {none: {password: $PASSWORD, publish: [a.A]}}")
            assert any(each.found != each.expected for each in await check(url, Credentials("none", "pass"), wider, "none"))

    run(work)


def test_the_configuration_has_no_password_in_clear_and_says_what_no_server_enforces(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("users: {desk: {password: $DESK, subscribe: [b.B], names: ['d*'], publish: [a.A, a.AA]}}", "utf-8")
    result = fairlead_command("rights", str(path))
    assert "password: $DESK," in result.stdout
    for note in ("a server cannot separate them", "mixed blocks", "only the gateway can tell"):
        assert note in result.stderr
    assert "FL_TOPIC_b" not in result.stdout


@pytest.mark.parametrize("condition", ["", "0", "1"])
def test_a_copy_under_the_subject_of_another_source_is_no_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    """A server answers to any subject: `both` has a block that it made stored where it may not publish."""

    async def work() -> None:
        async with served(tmp_path, monkeypatch) as (url, boss):
            stored = await boss.log.last_of("b", "boss")
            assert stored is not None
            asked = {
                "Nats-Expected-Last-Subject-Sequence": condition,
                "Nats-Expected-Last-Subject-Sequence-Subject": "fl.e.b.*.boss.>",
            }
            forged = replace(stored.block, number=1, sequence=1).headers() | (asked if condition else {})
            async with raw(url, "both") as client:
                await answer(client, "fl.e.a.A.both.u.u.u.u", stored.block.payload, forged)
                await answer(client, f"$JS.API.CONSUMER.CREATE.{A}.x", {"stream_name": A, "config": PULL | {"name": "x"}})
                await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{A}.x", b'{"batch":9}', reply="fl.e.b.B.boss.u.u.u.u")
                await client.flush()
            await boss.publish("B", k=8, secret=None, wait=True)
            assert [each["k"] for each in await rows_of(boss, "B")] == [7, 8]

    run(work)
