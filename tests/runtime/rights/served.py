"""A server with the rights of a policy, for the tests: clients of its users, raw ones, and all that the server has stored."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import nats
import nats.errors
import pytest
from nats.aio.client import Client as Nats
from nats.js import JetStreamContext
from nats.js.api import StreamInfo

import fairlead
from fairlead.runtime.live.client import Client
from fairlead.runtime.rights.apply import apply
from fairlead.runtime.rights.policy import policy_of
from fairlead.runtime.rights.server_config import server_config
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.names import merged_stream

USERS = ("boss", "shop", "desk", "both", "clock", "maker", "viewer", "web", "none")
ATTACKERS = tuple(each for each in USERS if each not in ("boss", "web"))
POLICY = policy_of(
    """
    users:
      boss: {password: $PASSWORD, manage: true}
      shop: {password: $PASSWORD, publish: [a], sources: [shop]}
      desk: {password: $PASSWORD, subscribe: [a, c], names: [desk], heartbeat: true}
      both: {password: $PASSWORD, publish: [a.A], subscribe: [a], emit: [a.Seen], names: [both], sources: [both]}
      clock: {password: $PASSWORD, heartbeat: true}
      maker: {password: $PASSWORD, declare: true, emit: [c]}
      viewer: {password: $PASSWORD, subscribe: [b.B]}
      web: {password: $PASSWORD, gateway: true}
      none: {password: $PASSWORD}
    """
)
TYPES = """TOPIC a (A, AA, Seen) TOPIC b (B) TOPIC c (C)
TYPE A (k INT) TYPE AA (k INT) TYPE Seen (k INT) TYPE B (k INT, secret STRING) TYPE C (k INT)"""
SECRET = b"top secret"
A, B, C, AB, AC = "FL_TOPIC_a", "FL_TOPIC_b", "FL_TOPIC_c", merged_stream("ab"), merged_stream("ac")
TABLE = r"\$KV\.FL_"
DERIVED = r"=e\..*"
OWN = {
    "shop": [r"fl\.e\.a\.[^.]+\.shop\..*"],
    "desk": [
        r"fl\.e\.[a-z]+\.Heartbeat\.(desk|=pulse)\..*",
        rf"{TABLE}(SUBS|ACKS|RECEIPTS|SINKS)\.desk",
        rf"{TABLE}(LEASES\.user\.desk|ORIGINS)\.[^.]+",
    ],
    "both": [
        r"fl\.e\.a\.A\.both\..*",
        rf"fl\.e\.a\.Seen\.{DERIVED}",
        rf"{TABLE}(SUBS|ACKS|RECEIPTS|SINKS)\.both",
        rf"{TABLE}(LEASES\.user\.both|ORIGINS)\.[^.]+",
    ],
    "clock": [r"fl\.e\.[a-z]+\.Heartbeat\.clock\..*"],
    "maker": [rf"fl\.e\.c\.[^.]+\.{DERIVED}", rf"{TABLE}TYPES\.[^.]+"],
    "viewer": [],
    "none": [],
}
"""What a user may write, by the words of docs/rights.md and not by the code."""
PERMISSIONS = re.compile(r", permissions: \{.*?\n        \}", re.DOTALL)


def configuration(*, permissions: bool = True) -> str:
    """Without permissions, accounts alone keep users apart: what is imported is all that there is."""
    made = server_config(POLICY)
    return made if permissions else PERMISSIONS.sub("", made)


@asynccontextmanager
async def served(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, permissions: bool = True
) -> AsyncIterator[tuple[str, Client]]:
    """The url, and the client of the boss; the log has events of every topic."""
    monkeypatch.setenv("PASSWORD", "pass")
    with Server(folder, durable=False, more=configuration(permissions=permissions)) as server:
        async with connected(server.url, "boss") as boss:
            await boss.declare(TYPES)
            await apply(boss.log, POLICY)
            await boss.log.open_topics(["a", "b"])
            for number, name in enumerate(("A", "C", "A")):
                await boss.publish(name, k=number, wait=True)
            await boss.publish("B", k=7, secret=SECRET.decode(), wait=True)
            yield server.url, boss


def connected(url: str, user: str, **more: Any) -> Client:
    return fairlead.connect(url, user=user, password="pass", source=user, **{"patience": 20, **more})


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
    return bool(found) and b'"error"' not in found and not any(each in found for each in (b'"Status": "4', b'"Status": "5'))


def js_of(boss: Client) -> JetStreamContext:
    js: JetStreamContext = boss.log._log._log._js  # type: ignore[attr-defined]
    return js


class StoredMessage(NamedTuple):
    stream: str
    sequence: int
    subject: str
    content: str


class Everything(NamedTuple):
    """All that a server stores: the configurations of its streams, and all messages."""

    streams: tuple[tuple[str, str], ...]
    messages: tuple[StoredMessage, ...]

    def without(self, own: list[str]) -> Everything:
        """Without messages under subjects that a user may write."""
        pattern = re.compile("|".join(own) or "(?!)")
        return self._replace(messages=tuple(each for each in self.messages if not pattern.fullmatch(each.subject)))


async def merged(js: JetStreamContext) -> list[StreamInfo]:
    """The streams, when those that are merged have all that their sources have."""
    while True:
        told = await js.streams_info()
        last = {each.config.name: each.state.last_seq for each in told}
        if all(
            each.state.last_seq >= sum(last[one.name] for one in each.config.sources) for each in told if each.config.sources
        ):
            return told
        await asyncio.sleep(0.02)  # the server fills them without telling


async def everything(boss: Client) -> Everything:
    """What is stored when nothing changes any more: the same at two looks."""
    known = None
    while True:
        found = await _stored(js_of(boss))
        if found == known:
            return found
        known = found


async def _stored(js: JetStreamContext) -> Everything:
    told = sorted(await merged(js), key=lambda each: each.config.name or "")
    messages = []
    for each in told:
        name = each.config.name or ""
        reading = await js.subscribe(">", stream=name, ordered_consumer=True)
        for _ in range(each.state.messages):
            try:
                one = await reading.next_msg(5)
            except nats.errors.TimeoutError:
                break  # what was left has gone by itself
            at = one.metadata
            content = f"{at.timestamp} {one.headers} {one.data!r}"
            if "Nats-TTL" not in (one.headers or {}):  # otherwise the trace of a removed lease, which goes by itself
                messages.append(StoredMessage(name, at.sequence.stream, one.subject, content))
            if not at.num_pending:
                break
        await reading.unsubscribe()
    return Everything(tuple((each.config.name or "", str(each.config)) for each in told), tuple(messages))
