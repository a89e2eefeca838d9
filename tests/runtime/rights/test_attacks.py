"""Users with exactly the rights of a policy: they do what they may through the client, and by no way anything else.

The matrix: who × what × way. Every way is tried with a raw client of the server, with the permissions of the configuration and
with its accounts alone, and afterwards everything that is stored is as it was, except what the user may write. Where the server
sends its answers is test_reply_attacks.py.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64decode
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import nats.errors
import pytest

from fairlead.errors import LogError, UsageError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.stream_removal import KEY, end_removal, plan_removal
from fairlead.runtime.rights.check import REACHES, check
from fairlead.runtime.rights.policy import policy_of
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.reports import SUBJECTS_MAX
from fairlead.transport.log.jetstream.server import Server
from tests.cli.shop import fairlead as fairlead_command
from tests.runtime.live.reading import rows_of, some
from tests.runtime.rights.served import (
    AB,
    AC,
    ATTACKERS,
    OWN,
    POLICY,
    SECRET,
    TYPES,
    USERS,
    A,
    B,
    answer,
    connected,
    everything,
    is_done,
    js_of,
    raw,
    served,
)
from tests.transport.log.logs import run
from tests.waiting import until

pytestmark = pytest.mark.server

REMOVAL = json.dumps({"streams": [AC, AB], "begun": True}).encode()
PULL = {"ack_policy": "none", "deliver_policy": "all", "mem_storage": True}


def stream(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "storage": "memory", **more}


def push(name: str, subject: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """A consumer that sends stored messages to a subject."""
    config = PULL | {"name": "p", "deliver_subject": subject} | more
    return f"$JS.API.CONSUMER.CREATE.{name}.p", {"stream_name": name, "config": config}


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
    (f"$JS.API.DIRECT.GET.{B}", {"seq": 1, "batch": 100}),
    (f"$JS.API.DIRECT.GET.{B}", {"start_time": "2020-01-01T00:00:00Z", "batch": 100}),
    (f"$JS.API.DIRECT.GET.{A}.fl.e.a.A.boss.>", None),
    (f"$JS.API.DIRECT.GET.{A}.fl.e.a.*.shop.>", {"seq": 1}),
    (f"$JS.API.DIRECT.GET.{AB}.fl.e.b.>", None),
    *(push(name, "_INBOX.spy") for name in (A, B, AB)),
    (f"$JS.API.CONSUMER.CREATE.{A}", {"stream_name": A, "config": PULL}),
    (f"$JS.API.CONSUMER.MSG.NEXT.{A}.spare", {"batch": 1}),
    ("$JS.API.STREAM.CREATE.MINE", stream("MINE", subjects=["mine"], republish={"src": ">", "dest": "fl.e.b.B.boss.u.u.u.u"})),
    ("$JS.API.STREAM.CREATE.MINE", stream("MINE", mirror={"name": B, "external": {"api": "$JS.API", "deliver": "_INBOX"}})),
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
    *((f"$KV.FL_LEASES.{key}", REMOVAL) for key in ("sweep", KEY, "x", "user.x", "user.boss.x", "user.boss", "user.desk.x.y")),
    *((f"$KV.FL_TRIMS.{key}", b'{"first": 9, "planned": 9}') for key in (A, AC, f"{A}.boss")),
    ("$KV.FL_TOPICS.=merged", b'{"topics": []}'),
    ("$KV.FL_TOPICS.a", b'{"topic": "a", "age_us": 0, "bytes": 0}'),
    ("$O.FL_STATES.M.x", b"{}"),
    ("$O.FL_STATES.C.x", b"chunk"),
    ("fl.e.b.B.boss.u.u.u.u", b"x"),
    ("fl.e.b.B.me.u.u.u.u", b"x"),
    ("fl.e.b.=mixed.me.u.u.u.u", b"x"),
    ("fl.e.a.A.boss.u.u.u.u", b"x"),
    ("fl.e.a.AA.boss.u.u.u.u", b"x"),
    ("fl.e.a.=mixed.boss.u.u.u.u", b"x"),
    ("fl.e.new.T.me.u.u.u.u", b"x"),
    *(push(A, each) for each in (f"$JS.API.STREAM.PURGE.{B}", "$KV.FL_TYPES.A", "fl.e.b.B.boss.u.u.u.u", "_INBOX.boss.x")),
    push(A, f"$JS.API.STREAM.DELETE.{B}", headers_only=True, deliver_group="q"),
    (f"fl.e.a.Seen.=e.e-{'0' * 24}-1.u.u.u.u", b"x"),
    (f"fl.e.a.Seen.e-{'0' * 24}-1.u.u.u.u", b"x"),
    ("fl.e.a.Heartbeat.boss.u.u.u.u", b"x"),
    (f"fl.w.{B}.fl.e.b.B.boss.u.u.u.u", b"x"),
    ("fl.none", b"x"),
    ("_R_.AAAAAA.BBBBBB", b"x"),
    ("_INBOX.boss.x", b"spoofed"),
    ("$JS.ACK.FL_TOPIC_b.spare.1.1.1.1.0", b"+ACK"),
    ("$JS.EVENT.ADVISORY.x", b"x"),
    ("$SYS.ACCOUNT.X", b"x"),
]
LISTEN = (
    ">",
    "*",
    "_INBOX.>",
    "_INBOX.boss.>",
    "_R_.>",
    "fl.>",
    "fl.e.>",
    "fl.e.b.>",
    f"fl.w.{B}.>",
    "$KV.>",
    "$JS.API.>",
    "$JS.EVENT.>",
    "$JS.ACK.>",
    "$O.>",
    "$SYS.>",
)
OWN_ANSWERS = ("$SYS.REQ.ACCOUNT.PING.CONNZ",)
"""What a server tells every account of itself, if permissions do not keep it from asking."""


@pytest.mark.slow
@pytest.mark.parametrize("permissions", [True, False], ids=["permissions", "accounts alone"])
def test_nobody_reads_or_changes_what_is_not_theirs(permissions: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack(url: str, user: str) -> list[str]:
        leaks = []
        async with raw(url, user) as client:
            ways = (*READ, *CHANGE)
            told = await asyncio.gather(*(answer(client, subject, body) for subject, body in ways))
            for (subject, body), found in zip(ways, told, strict=True):
                if SECRET in found or (is_done(found) and not is_own(user, subject, found)):
                    leaks.append(f"{user}: {subject} {body!r}: {found[:200]!r}")
        return leaks

    def is_own(user: str, subject: str, found: bytes) -> bool:
        """What `OWN` allows is no leak, nor what a server tells an account of itself."""
        allowed = any(re.fullmatch(each, subject) for each in OWN[user])
        reads = user in ("desk", "both") and subject == f"$JS.API.DIRECT.GET.{A}.fl.e.a.*.shop.>"
        others = ("FL_LOG", *(f"FL_USER_{each}" for each in ATTACKERS if each != user))
        told = not permissions and subject in OWN_ANSWERS and not any(each.encode() in found for each in others)
        return allowed or told or (reads and not permissions)

    async def work() -> None:
        async with served(tmp_path, monkeypatch, permissions=permissions) as (url, boss):
            for name in (A, B):
                await js_of(boss).add_consumer(name, durable_name="spare", ack_policy="explicit")
            async with boss.subscribe("SUBSCRIPTION S MATCH B b", name="boss", start="earliest") as sub:
                assert len(await some(sub, 1)) == 1
            before = await everything(boss)
            for user in sorted(ATTACKERS, key="maker".__eq__):
                assert [each["k"] for each in await rows_of(boss, "B")] == [7]
                assert await attack(url, user) == [], user
                after = await everything(boss)
                assert after.without(OWN[user]) == before.without(OWN[user]), user
                before = after
            async with raw(url, "boss") as client:  # the ways exist: they work for a user with the rights
                got = await answer(client, f"$JS.API.STREAM.MSG.GET.{B}", {"seq": 1})
                assert SECRET in b64decode(json.loads(got.removeprefix(b"null"))["message"]["data"])
                assert SECRET in await answer(client, f"$JS.API.DIRECT.GET.{B}.fl.e.b.>", None)
                for subject, body in READ[8:10]:
                    assert is_done(await answer(client, subject, body)), subject
                assert is_done(await answer(client, "fl.e.b.B.me.u.u.u.u", b"x"))

    run(work)


@pytest.mark.parametrize("permissions", [True, False], ids=["permissions", "accounts alone"])
@pytest.mark.parametrize("queue", ["", "fairlead"])
def test_nobody_hears_what_others_say(queue: str, permissions: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the others publish and read, in every way that the client has."""

    async def work() -> None:
        async with served(tmp_path, monkeypatch, permissions=permissions) as (url, boss), AsyncExitStack() as held:
            heard: list[tuple[str, str, bytes]] = []
            for user in ATTACKERS:
                client = await held.enter_async_context(raw(url, user))

                async def hear(message: Any, user: str = user) -> None:
                    heard.append((user, message.subject, message.data))

                for subject in LISTEN:
                    with suppress(nats.errors.Error):
                        await client.subscribe(subject, queue=queue, cb=hear)
                await client.flush()
            for user in ("boss", "web"):
                async with connected(url, user) as one:
                    await one.publish("B", k=8, secret=SECRET.decode(), wait=True)
                    async with one.subscribe("SUBSCRIPTION S MATCH B b", name=user, start="earliest") as sub:
                        await some(sub, 2)
                        await sub.ack()
            async with raw(url, "both") as both:
                assert is_done(await answer(both, "fl.e.a.A.both.u.u.u.u", b"x"))
                assert is_done(await answer(both, f"$JS.API.STREAM.MSG.GET.{A}", {"seq": 1}))
            await everything(boss)
            told = [each for each in heard if each[0] != "both" and not each[1].startswith(f"_INBOX.{each[0]}.")]
            announced = {each for each in told if each[1].startswith((f"fl.w.{A}.", f"fl.w.{AC}.")) and each[0] == "desk"}
            assert {*told} - announced == set()  # readers hear that something is stored in their topics
            assert not any(SECRET in data for _, _, data in heard)

    run(work)


def test_the_servers_own_headers_do_nothing_for_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers by which a server removes, redirects, traces, schedules or answers, on what a user may write."""
    elsewhere = f"$JS.API.STREAM.PURGE.{B}"
    identity = json.dumps({"acc": "FL_LOG", "svc": "FL_LOG", "user": "boss", "kind": "Client"})
    forged: list[dict[str, str]] = [
        *({"Nats-Rollup": scope} for scope in ("all", "sub")),
        {"Nats-Request-Info": identity},
        {"Nats-Msg-Id": "boss:A:%d"},
        {"Nats-Expected-Last-Subject-Sequence": "0", "Nats-Expected-Last-Subject-Sequence-Subject": "fl.e.a.*.boss.>"},
        {"Nats-TTL": "1s"},
        {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": elsewhere},
        {"Nats-Batch-Id": "x", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
        {"Nats-Incr": "1"},
        {"Nats-Trace-Dest": elsewhere},
        {"Nats-Trace-Dest": elsewhere, "Nats-Trace-Only": "true"},
        {"Nats-Trace-Dest": "fl.e.b.B.boss.u.u.u.u"},
        {"Nats-Stream-Source": f"{B} 1 > >"},
        {"Nats-Sequence": "1", "Nats-Subject": "fl.e.b.B.boss.u.u.u.u", "Nats-Stream": B},
        {"KV-Operation": "PURGE", "Nats-Rollup": "sub"},
        {"Nats-Marker-Reason": "Purge"},
        {"Status": "503"},
    ]
    writes = {
        "shop": ["fl.e.a.A.shop.u.u.u.u"],
        "both": [
            "fl.e.a.A.both.u.u.u.u",
            f"fl.e.a.Seen.=e.e-{'0' * 24}-1.u.u.u.u",
            "$KV.FL_SUBS.both",
            "$KV.FL_LEASES.user.both.x",
        ],
        "clock": ["fl.e.b.Heartbeat.clock.u.u.u.u"],
    }

    async def work() -> None:
        async with served(tmp_path, monkeypatch, permissions=False) as (url, boss):
            await boss.log.put("FL_SUBS", "boss", b"{}")
            before, rows, ids = await everything(boss), await rows_of(boss, "A"), count(2)
            for user, subjects in writes.items():
                async with raw(url, user) as client:
                    for subject in subjects:
                        for headers in forged:
                            # merged streams drop the second message with an id, and `everything` waits for all messages
                            told = {name: value.replace("%d", str(next(ids))) for name, value in headers.items()}
                            await answer(client, subject, b"{}", told)
                        assert is_done(await answer(client, subject, b"{}")), subject
                    for headers in forged:  # and on requests
                        assert not is_done(await answer(client, elsewhere, b"{}", headers))
                        assert not is_done(await answer(client, f"$JS.API.STREAM.MSG.GET.{B}", {"seq": 1}, headers))
                after = await everything(boss)
                assert after.without(OWN[user]) == before.without(OWN[user]), user
                before = after
            await boss.publish("A", k=9, wait=True)
            assert await rows_of(boss, "A") == [*rows, {"k": 9}]

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


def test_a_subscriber_can_neither_have_a_stream_removed_nor_keep_others_from_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = "SUBSCRIPTION S MATCH A a AND C c WHERE a.k = 0"

    async def subscribes(fl: Client) -> bool:
        try:
            async with fl.subscribe(rules, start="earliest") as sub:
                return len(await some(sub, 1)) == 1
        except LogError as error:
            return error.code != "N027"

    async def work() -> None:
        async with (
            served(tmp_path, monkeypatch) as (url, boss),
            connected(url, "desk") as desk,
            connected(url, "desk", patience=1) as hasty,
        ):
            async with raw(url, "desk") as client:
                for key in ("sweep", KEY):
                    await answer(client, f"$KV.FL_LEASES.{key}", REMOVAL)
            assert await subscribes(hasty)
            async with boss.subscribe("SUBSCRIPTION S MATCH A a AND B b", start="earliest") as sub:
                assert len(await some(sub, 1)) == 1
                async with raw(url, "desk") as client:
                    for key in ("sweep", KEY):
                        await answer(client, f"$KV.FL_LEASES.{key}", REMOVAL)
                assert await boss.sweep() == []
            async with raw(url, "boss") as client:  # the attack exists: it works for a user with the right
                assert is_done(await answer(client, f"$KV.FL_LEASES.{KEY}", REMOVAL))
            assert not await subscribes(hasty)
            assert await boss.sweep() == [AB]  # the other one is provided for users of the policy
            planned = await plan_removal(boss.log, [AC])
            assert planned is not None
            waiting = asyncio.create_task(subscribes(desk))
            await until(lambda: _is_leased(boss))
            assert not waiting.done()  # it may not withdraw the plan
            await end_removal(boss.log, planned)
            assert await waiting

    async def _is_leased(boss: Client) -> bool:
        return len(await boss.log.keys("FL_LEASES")) > 1

    run(work)


@pytest.mark.slow
def test_no_subscriber_hides_or_removes_what_others_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server names a hundred thousand subjects in an answer; whoever has more could hide those of others."""

    async def work() -> None:
        async with (
            served(tmp_path, monkeypatch) as (url, boss),
            boss.subscribe("SUBSCRIPTION S MATCH A a AND B b", start="earliest") as sub,
        ):
            assert len(await some(sub, 1)) == 1
            (held,) = await boss.log.keys("FL_LEASES")
            async with raw(url, "desk") as client:
                for number in range(SUBJECTS_MAX + 10):  # in the order of names, before and after others
                    await client.publish(f"$KV.FL_LEASES.user.desk.{number:x}", b"{}")
                    await client.publish(f"$KV.FL_LEASES.{number:x}", b"{}")
                    if number % 5_000 == 0:
                        await client.flush()
                for key in (held, held.removeprefix("user.boss.")):
                    assert not is_done(await answer(client, f"$KV.FL_LEASES.{key}", b"", {"KV-Operation": "DEL"}))
            keys = await boss.log.keys("FL_LEASES")
            assert held in keys
            assert len(keys) == SUBJECTS_MAX + 11
            assert all(each.startswith("user.") for each in keys)

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
            before = await everything(boss)
            with pytest.raises(UsageError, match="A424"):
                await check(url, Credentials("x", "pass"), POLICY, "x")
            found = await asyncio.gather(*(check(url, Credentials(user, "pass"), POLICY, user) for user in USERS))
            for user, lines in zip(USERS, found, strict=True):
                assert [each for each in lines if each.found != each.expected] == [], user
            assert all(each.found for each in found[0])
            assert [each.what for each in found[-1] if each.found] == ["is in the account FL_USER_none", REACHES]
            assert await everything(boss) == before
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
