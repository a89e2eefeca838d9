"""What a server reports of a stream, for its readers (stream_health.py).

Takes: a connection, a stream, the last block that was read. Gives: a report. Never: raises because the client may not look at a
single message.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamInfo
from nats.js.errors import NotFoundError

from fairlead.transport.log.protocol import Stream, Unavailable
from fairlead.transport.log.stream_health import StreamReport

ANSWER_SECONDS = 5.0
SUBJECTS_MAX = 100_000
"""Subjects in one answer of a server."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def report_of(
    client: Client, js: JetStreamContext, stream: Stream, after: int, time: int | None
) -> tuple[StreamReport, bool]:
    """`time`: that of the block `after`, if it is known. And whether it is a stream of a cluster, whose servers may answer from
    the past."""
    told = await js.stream_info(stream.name)
    state, found = told.state, None
    if time is not None and state.first_seq <= after <= state.last_seq:
        found = await time_of(js, stream.name, after)
    removed = await _removed(client, stream.name) if state.num_deleted else []
    clustered = told.cluster is not None and bool(told.cluster.replicas)
    return StreamReport(made_of(told), state.first_seq, state.last_seq, removed, found), clustered


def made_of(told: StreamInfo) -> str:
    return "" if told.created is None else told.created.isoformat()


async def time_of(js: JetStreamContext, stream: str, sequence: int) -> int | None:
    """When a block was stored, in microseconds; None if it is not there, or the client may not ask."""
    try:
        found = await js.get_msg(stream, sequence)
    except (NotFoundError, nats.errors.TimeoutError):
        return None
    return None if found.time is None else (found.time - EPOCH) // timedelta(microseconds=1)


async def _removed(client: Client, stream: str) -> list[int]:
    """The sequences that are gone between others."""
    asked = json.dumps({"deleted_details": True}).encode()
    answer = await client.request(f"$JS.API.STREAM.INFO.{stream}", asked, timeout=ANSWER_SECONDS)
    return sorted(json.loads(answer.data).get("state", {}).get("deleted") or ())


async def with_subjects(client: Client, js: JetStreamContext, stream: str, pattern: str) -> StreamInfo:
    """What a server reports of a stream, with all subjects of a pattern, and how many messages each has. A server reports so
    many at a time, in the order of their names: a client that may store under some subjects could hide those of others."""

    async def page(offset: int) -> dict[str, int]:
        asked = json.dumps({"subjects_filter": pattern, "offset": offset}).encode()
        answer = json.loads((await client.request(f"$JS.API.STREAM.INFO.{stream}", asked, timeout=ANSWER_SECONDS)).data)
        if "error" in answer:
            raise Unavailable(str(answer["error"].get("description", "the server does not report the subjects")))
        return answer["state"].get("subjects") or {}

    told = await js.stream_info(stream, subjects_filter=pattern)
    return replace(told, state=replace(told.state, subjects=await all_pages(told.state.subjects or {}, page)))


async def all_pages(
    first: dict[str, int], page: Callable[[int], Awaitable[dict[str, int]]], most: int = SUBJECTS_MAX
) -> dict[str, int]:
    """Every page begins at or before the last subject of the one before it, so that none is passed over while others are
    removed. `page`: those from an index on, at most so many."""
    found, some, at = dict(first), first, 0
    while len(some) >= most:
        last, wanted, back = max(found), at + len(some) - 1, 1
        while True:
            at = max(0, wanted)
            some = await page(at)
            if not at or (some and min(some) <= last):
                break
            wanted, back = wanted - back, 2 * back
        found |= some
    return found
