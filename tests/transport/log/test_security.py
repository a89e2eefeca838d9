"""Who may do what is the server's decision; what it refuses is an error with a code."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

import nkeys
import pytest

import fairlead
from fairlead.errors import LogError, UsageError
from fairlead.transport.log.jetstream.server import Server
from tests.runtime.live.reading import APART, TYPES, more, some
from tests.transport.log.logs import run

ACCOUNTS = """
authorization {
  users = [
    { user: admin, password: secret }
    { user: desk, password: pass, permissions: {
        publish: { allow: ["fl.e.a.A.>", "$JS.API.>", "$KV.FL_TYPES.>", "$KV.FL_LEASES.>", "$KV.FL_ORIGINS.>"],
                   deny: ["$JS.API.CONSUMER.CREATE.FL_TOPIC_b.>", "$JS.API.CONSUMER.CREATE.FL_TOPIC_b",
                          "$JS.API.DIRECT.GET.FL_TOPIC_b.>", "$JS.API.DIRECT.GET.FL_TOPIC_b", "$JS.API.STREAM.LIST"] }
        subscribe: ["_INBOX.>"] } }
  ]
}
"""


@pytest.mark.server
def test_a_user_does_what_it_may_and_the_rest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False, more=ACCOUNTS) as server:
            with pytest.raises(LogError, match="N002"):
                async with fairlead.connect(server.url):
                    pass
            with pytest.raises(LogError, match="N002"):
                async with fairlead.connect(server.url, user="desk", password="wrong"):
                    pass
            async with fairlead.connect(server.url, user="admin", password="secret") as admin:
                await admin.declare(APART)
                await admin.publish("B", k=1, x=1, wait=True)
                monkeypatch.setenv("FAIRLEAD_USER", "desk")
                monkeypatch.setenv("FAIRLEAD_PASSWORD", "pass")
                desk = fairlead.connect(server.url, source="desk")
                await desk.__aenter__()
                await desk.publish("A", k=1, x=1, wait=True)
                begun = time.monotonic()
                with pytest.raises(LogError, match="N003"):
                    await desk.publish("B", k=1, x=1, wait=True)
                assert time.monotonic() - begun < 4
                async with desk.subscribe("SUBSCRIPTION S MATCH A a", start="earliest") as sub:
                    assert len(await some(sub, 1)) == 1
                async with desk.subscribe("SUBSCRIPTION S MATCH B b", start="earliest") as sub:
                    with pytest.raises(LogError, match="N003"):
                        await more(sub, 10)
                async with desk.subscribe("SUBSCRIPTION S MATCH A a OR C c", start="earliest") as sub:
                    with pytest.raises(LogError, match=r"N003.*heartbeat"):  # which it would have to store, C being quiet
                        await more(sub, 10)
                await desk.__aexit__(ValueError, None, None)
                assert await admin.log.last(await admin.log.open_topics(["b"])) == 1

    run(work)


@pytest.mark.server
def test_a_token(tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False, more="authorization { token: t0k3n }") as server:
            with pytest.raises(LogError, match="N002"):
                async with fairlead.connect(server.url, token="other"):
                    pass
            async with fairlead.connect(server.url, token="t0k3n") as fl:
                assert await fl.declare(TYPES) == ["A", "B", "C"]

    run(work)


@pytest.mark.server
def test_a_key(tmp_path: Path) -> None:
    seed = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER)
    public = nkeys.from_seed(seed).public_key.decode()
    (tmp_path / "key").write_bytes(seed)

    async def work() -> None:
        with Server(tmp_path / "data", durable=False, more=f"authorization {{ users = [ {{ nkey: {public} }} ] }}") as server:
            async with fairlead.connect(server.url, nkey=str(tmp_path / "key")) as fl:
                assert await fl.declare(TYPES) == ["A", "B", "C"]
            with pytest.raises(UsageError, match="A241"):
                async with fairlead.connect(server.url, nkey=str(tmp_path / "no key")):
                    pass

    run(work)


@pytest.mark.server
def test_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*made.split(), "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)

    async def work() -> None:
        more = f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}'
        with Server(tmp_path / "data", durable=False, more=more) as server:
            url = server.url.replace("nats://", "tls://")
            async with fairlead.connect(url, ca=str(certificate)) as fl:
                assert await fl.declare(TYPES) == ["A", "B", "C"]
            with pytest.raises(LogError, match=r"N00[12]"):
                async with fairlead.connect(url):
                    pass

    run(work)


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(fairlead.connect("nats://127.0.0.1:1", user="u", password="secret")._place)
    assert asyncio.iscoroutinefunction(fairlead.connect("memory:").declare)
