"""Bodies of the gateway without its sockets, many more of them: JSON, lines and CloudEvents in their three modes, mutated. A
request is stored as it says, or refused with a code and not stored at all; an event means the same in each mode."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any

from fairlead.errors import DataError, UsageError
from fairlead.runtime.live.registry import Registry
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.patient_log import PatientLog
from fairlead.web.bodies import Bodies
from fairlead.web.publishing import Publishing
from tests.fuzz.requests import EDGES, KEYS, MEDIA, TYPES, body, record

seen: Counter[str] = Counter()
BODIES = 40
SECONDS_MAX = 300.0
Headers = list[tuple[str, str]]


def headers_of(rng: random.Random, cloud: bool) -> Headers:
    structured = ["application/cloudevents+json", "application/cloudevents-batch+json"]
    usual = structured if cloud else ["application/json", "application/x-ndjson"]
    found = [("Content-Type", rng.choice(usual if rng.random() < 0.9 else MEDIA))]
    if rng.random() < 0.2:
        found += [(f"ce-{rng.choice(KEYS)}", str(rng.choice(EDGES))[:200]) for _ in range(rng.randrange(5))]
    return found


def modes(event: dict[str, Any]) -> list[tuple[Headers, bytes]]:
    """A CloudEvent as a structured one, as a batch of one, and with its attributes in headers."""
    whole = json.dumps(event).encode()
    attributes = [(f"ce-{name}", value) for name, value in event.items() if name != "data"]
    data = b"" if event.get("data") is None else json.dumps(event["data"]).encode()  # null is no data
    return [
        ([("Content-Type", "application/cloudevents+json")], whole),
        ([("Content-Type", "application/cloudevents-batch+json")], b"[" + whole + b"]"),
        ([("Content-Type", "application/json"), *attributes], data),
    ]


def outcome(bodies: Bodies, headers: Headers, raw: bytes) -> tuple[str, Any]:
    try:
        return "", [each for _, each in bodies.records(headers, raw, None)]
    except (DataError, UsageError) as error:
        return error.code, None


def compared(rng: random.Random, bodies: Bodies) -> None:
    event = record(rng, cloud=True)
    texts = {
        name: value
        for name, value in event.items()
        if name == "data" or (isinstance(value, str) and value.isascii() and value.isprintable() and value)
    }
    if set(texts) != set(event):
        return  # headers have texts only
    found = [outcome(bodies, *each) for each in modes(event)]
    kinds = {bool(code) for code, _ in found}
    values = {json.dumps(records, sort_keys=True, default=str) for _, records in found}
    assert len(kinds) == len(values) == 1, f"{event!r}: {found!r}"
    seen["compared" if not found[0][0] else "refused alike"] += 1


async def stored(log: MemoryLog) -> int:
    stream = await log.open_topics(["main"])
    last = await log.last(stream)
    return sum([each.block.count async for some in log.heads(stream, 0, last) for each in some])


async def published(rng: random.Random, bodies: Bodies, publishing: Publishing, log: MemoryLog) -> None:
    cloud = rng.random() < 0.5
    headers, raw = headers_of(rng, cloud), body(rng, "/events", cloud)
    before = await stored(log)
    try:
        records = bodies.records(headers, raw, rng.choice((None, None, "A", "Z")))
        counts = await publishing.publish(records, lambda _: None)
    except (DataError, UsageError) as error:
        refused = error.code
    else:
        refused = ""
    if refused:
        assert await stored(log) == before, f"{refused} and yet stored: {raw[:3000]!r}"
        seen[refused] += 1
        return
    assert (counts.stored + counts.repeated, await stored(log) - before) == (len(records), counts.stored), raw[:3000]
    seen["stored" if counts.stored else "nothing new"] += 1


async def _case(seed: int) -> None:
    rng, log = random.Random(seed), MemoryLog()
    patient = PatientLog(log, 5.0)
    registry = Registry(patient)
    await registry.declare(TYPES)
    publishing = Publishing(patient, registry, None, 0.0, 5.0)
    bodies = Bodies(registry.catalogue, None)
    for _ in range(BODIES):
        await published(rng, bodies, publishing, log)
        compared(rng, bodies)
    await publishing.close()


def case(seed: int) -> None:
    asyncio.run(asyncio.wait_for(_case(seed), SECONDS_MAX))
