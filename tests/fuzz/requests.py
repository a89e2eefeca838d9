"""Requests to the gateway, mutated anywhere: bodies, CloudEvents, headers, raw bytes. A coded answer every time: no 500, no
crash, no hang, and afterwards the gateway still answers."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import random
from collections import Counter
from typing import Any

from fairlead.web.gateway import Settings
from fairlead.web.serving import gateway

seen: Counter[str] = Counter()
SECONDS_MAX = 30.0
REQUESTS = 25
TYPES = "TYPE A (i INT, l BIGINT, d DOUBLE, m DECIMAL(38,10), s STRING, b BINARY, o BOOLEAN, at TIMESTAMP) TIME at"
EDGES: list[Any] = [
    None, True, 0, -1, 2**31, 2**53 + 1, 2**62 - 1, 2**62, 2**63, 10**400, 1e308, -0.0, float("nan"), float("inf"),
    "", "\x00", "\ud800", "é😀", "a" * 300, "9999-12-31T23:59:59Z", "NaN", "=mixed", "Heartbeat", "..", "*", ">", [],
    {}, [[]], {"": {}},
]  # fmt: skip
KEYS = [
    "type",
    "_source",
    "_sequence",
    "i",
    "l",
    "d",
    "m",
    "s",
    "b",
    "o",
    "at",
    "specversion",
    "id",
    "source",
    "data",
    "sequence",
]
JSON, CLOUD = ["application/json"], ["application/cloudevents+json", "application/cloudevents-batch+json"]
MEDIA = [*JSON, *CLOUD, "application/x-ndjson", "text/plain", "application/json; charset=utf-16", "", "application/json\u00e9"]
SUBSCRIBER = "/subscriptions/a"
PATHS = [
    *["/events"] * 3, "/events?type=A", "/events?type=%00", "/types", "/subscriptions", f"{SUBSCRIBER}/acknowledgements",
    "/subscriptions/%2e%2e%2f/receipts", f"{SUBSCRIBER}/events?early=true", "/comparison?a=a&b=b", SUBSCRIBER, "/%ff", "//x",
    f"{SUBSCRIBER}/socket?window=%F0%9F%98%80", "/openapi.json", "/metrics", f"/subscriptions/{'n' * 300}/receipts",
]  # fmt: skip


def record(rng: random.Random, cloud: bool) -> dict[str, Any]:
    values = {"i": 1, "l": 2, "d": 0.5, "m": "1.5", "s": "x", "b": "AAE=", "o": True, "at": "2026-01-01T00:00:00Z"}
    if cloud:
        made: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "s", "type": "x.A", "data": values, "sequence": "1"}
    else:
        made = {"type": "A", **values, "_source": "s", "_sequence": rng.randrange(100)}
    for _ in range(rng.choice((0, 0, 1, 2, 4))):
        if rng.random() < 0.3:
            made.pop(rng.choice(list(made)), None)
        else:
            made[rng.choice(KEYS)] = rng.choice(EDGES)
    return made


def subscription(rng: random.Random) -> Any:
    rules = rng.choice(["SUBSCRIPTION S MATCH A a", "SUBSCRIPTION S MATCH A a AND A b", "TYPE", "(" * 200, "\ud800", "/*"])
    made = {"name": rng.choice(["a", "b", "", "a b", "\r\nX: y"]), "rules": rules, "start": rng.choice(["new", *EDGES])}
    if rng.random() < 0.3:
        made[rng.choice(["name", "rules", "start", "more"])] = rng.choice(EDGES)
    return made


def body(rng: random.Random, path: str, cloud: bool) -> bytes:
    if path == "/subscriptions":
        value: Any = subscription(rng)
    elif path == "/types":
        value = rng.choice([{"text": "TYPE B (i INT)"}, {"text": "TYPE A (i STRING)"}, {"text": rng.choice(EDGES)}, *EDGES])
    elif path.endswith("acknowledgements"):
        value = {"id": rng.choice(["0", "1-" + "0" * 32, *EDGES])}
    else:
        value = [record(rng, cloud) for _ in range(rng.choice((0, 1, 1, 3)))]
        value = value[0] if len(value) == 1 and rng.random() < 0.7 else value
    made = json.dumps(value).encode("utf-8", "surrogatepass")
    if rng.random() < 0.4 and made:
        mutable = bytearray(made)
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(mutable))
            if rng.random() < 0.5:
                mutable[at] = rng.randrange(256)
            else:
                mutable[at:at] = rng.choice(
                    [b"[" * 2000, b"\x00", b"\xff", b"{", b'"', b"\n", b"1" * 5000, bytes(mutable[:at])]
                )
        made = bytes(mutable)
    return made


def request(rng: random.Random) -> bytes:
    path = rng.choice(PATHS)
    writes = path.startswith(("/events", "/types")) or path.endswith(("subscriptions", "acknowledgements"))
    method = "POST" if writes else "DELETE" if path.endswith("/a") else "GET"
    if rng.random() < 0.05:
        method = rng.choice(["PUT", "OPTIONS", "HEAD", "G\x00T", "POST", "GET"])
    cloud = rng.random() < 0.4
    payload = body(rng, path.partition("?")[0], cloud)
    media = CLOUD if cloud and path.startswith("/events") else JSON
    headers = [("Host", "localhost"), ("Content-Type", rng.choice(media if rng.random() < 0.8 else MEDIA))]
    if rng.random() < 0.2:
        headers += [(f"ce-{rng.choice(KEYS)}", str(rng.choice(EDGES))[:200]) for _ in range(rng.randrange(5))]
    if rng.random() < 0.2:
        names = ["Last-Event-ID", "Authorization", "Origin", "Host", "Accept", "Sec-Fetch-Site", "Upgrade", "Transfer-Encoding"]
        headers.append((rng.choice(names), str(rng.choice([*EDGES, "chunked", "websocket", "Bearer \x7f"]))[:200]))
    if rng.random() < 0.1:
        payload = rng.choice([gzip.compress(payload), payload, gzip.compress(b" " * 3_000_000)])
        headers.append(("Content-Encoding", rng.choice(["gzip", "deflate", "br", "none"])))
    length = len(payload) if rng.random() < 0.98 else rng.choice([0, len(payload) + 5, -1, "x"])
    headers.append(("Content-Length", str(length)))
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
    raw = head.encode("utf-8", "surrogatepass") + b"\r\n" + payload
    if rng.random() < 0.1:
        at = rng.randrange(len(raw))
        raw = raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :]
    return raw


async def status(host: str, port: int, raw: bytes) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(raw)
        line = await reader.readline()
        if line.startswith(b"HTTP/1.1 500"):
            raise AssertionError(f"{await reader.read(4000)!r} to {raw[:3000]!r}")
        return line[9:12].decode() or "closed"
    except ConnectionError:
        return "closed"
    finally:
        writer.close()


async def _case(seed: int) -> None:
    rng = random.Random(seed)
    settings = Settings(body_bytes_max=1_000_000, body_seconds=0.3, head_seconds=0.3, request_seconds=10.0)
    async with gateway("memory:", settings) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        declared = f"POST /types HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(TYPES)}\r\n\r\n{TYPES}"
        assert await status(host, int(port), declared.encode()) == "200"
        for _ in range(REQUESTS):
            seen[await status(host, int(port), request(rng))] += 1
        assert await status(host, int(port), b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n") == "200"


def case(seed: int) -> None:
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # it reports every malformed head
    asyncio.run(asyncio.wait_for(_case(seed), SECONDS_MAX))
