"""What a server reports of a stream, for its readers (stream_health.py).

Takes: a connection, a stream, the last block that was read. Gives: a report. Never: raises because the client may not look at a
single message.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamInfo
from nats.js.errors import NotFoundError

from fairlead.transport.log.protocol import Stream
from fairlead.transport.log.stream_health import StreamReport

ANSWER_SECONDS = 5.0
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
