"""Entries of tables and states of a log, damaged: whatever clients do with it then ends well, or with an error that has a code.
Several entries a case; then a publisher, a subscriber that returns, one that begins, and an operator.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections import Counter
from collections.abc import Awaitable
from functools import cache
from typing import Any

from fairlead.errors import FairleadError
from fairlead.runtime.live.client import Client
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.signed_log import SigningKeys
from tests.runtime.live.whole_log import STATES, begun, built, client, copied, resumed

seen: Counter[str] = Counter()
SECONDS_MAX = 20.0
EDGES: list[Any] = [
    None, True, 0, 1, -1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 10**400, 0.5, 1e308, -1e308, float("nan"), "", "x", "A",
    "\x00", "\ud800", "a" * 5000, [], {}, [[]], [1], [-1], [1, 2], [1, 2, 3], {"": 1}, {"a": {}}, [None], ["A"],
]  # fmt: skip


@cache
def whole() -> MemoryLog:
    return asyncio.run(built(SigningKeys()))


def other_value(value: Any, draw: random.Random) -> Any:
    """The value with something else in one place of it."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        name = draw.choice(sorted(value))
        match draw.randrange(8):
            case 0:
                return {key: each for key, each in value.items() if key != name}
            case 1:
                return value | {draw.choice(["x", "", "seconds", *value]): draw.choice(EDGES)}
        return value | {name: other_value(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.85:
        at = draw.randrange(len(value))
        match draw.randrange(6):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value[:at], value[at], *value[at:]]
        return [*value[:at], other_value(value[at], draw), *value[at + 1 :]]
    if type(value) is int and draw.random() < 0.5:
        return value + draw.choice((-1, 1, 4096, -4096, 10**6))
    return draw.choice(EDGES)


def damaged(value: bytes, draw: random.Random) -> bytes:
    if draw.random() < 0.25:
        made = bytearray(value or b"x")
        for _ in range(draw.choice((1, 1, 4))):
            at = draw.randrange(len(made) + 1)
            made[at : at + draw.choice((0, 1, 1, 8))] = draw.choice(
                (b"", b"[" * 3000, b"\xff", b'"', b"9" * 5000, b"-", b"\x00")
            )
        return bytes(made)
    head, line, rest = value.partition(b"\n")
    try:
        told = json.loads(head)
    except (ValueError, RecursionError):  # it is damaged already
        return value[: len(value) // 2]
    for _ in range(draw.choice((1, 1, 2, 3))):
        told = other_value(told, draw)
    return json.dumps(told).encode("utf-8", "surrogatepass") + line + rest


def damage(log: MemoryLog, draw: random.Random) -> None:
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        table = draw.choice(sorted((*log._tables, STATES)))
        if table == STATES:
            for name in log._objects[STATES]:
                log._objects[STATES][name] = damaged(log._objects[STATES][name], draw)
        elif log._tables[table]:
            key = draw.choice(sorted(log._tables[table]))
            entry = log._tables[table][key]
            log._tables[table][key] = entry._replace(value=damaged(entry.value, draw))


async def attempt(what: str, work: Awaitable[object]) -> None:
    try:
        await work
        seen[f"{what}: done"] += 1
    except FairleadError as error:
        seen[f"{what}: {error.code}"] += 1


async def published(fl: Client) -> None:
    await fl.publish("A", k=90, x=90, wait=True)
    await fl.publish("B", k=90, x=90, wait=True)


async def _case(seed: int) -> None:
    draw, log = random.Random(seed), copied(whole())
    damage(log, draw)
    fl = client(log, SigningKeys())
    await fl.__aenter__()
    try:
        await attempt("publish", published(fl))
        await attempt("resume", resumed(fl))
        await attempt("begin", begun(fl))
        await attempt("compare", fl.compare("desk", "other"))
        await attempt("overview", fl.overview())
        await attempt("retain", fl.retain(apply=draw.random() < 0.5, read=draw.random() < 0.5))
        await attempt("sweep", fl.sweep())
        await attempt("forget", fl.forget("desk"))
    finally:
        await attempt("close", fl.__aexit__(None, None, None))


def case(seed: int) -> None:
    logging.getLogger("fairlead").setLevel(logging.CRITICAL)
    whole()
    asyncio.run(asyncio.wait_for(_case(seed), SECONDS_MAX))
