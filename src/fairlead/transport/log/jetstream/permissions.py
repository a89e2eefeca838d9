"""Which subjects a server lets a user publish on: by requests that it answers with an error, and that change nothing.

Takes: a url, credentials and subjects. Gives: for each, whether the server answers. Never: stores a message: a request names a
stream that does not exist, and its body is invalid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import nats.errors

from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.connection import connected

ANSWER_SECONDS = 1.0
NOWHERE = {"Nats-Expected-Stream": "FL_NONE"}
INVALID = b"?"


async def answered(url: str, access: Credentials, subjects: Sequence[str]) -> list[bool]:
    """Raises LogError."""

    async def nothing(*_: object) -> None:
        return

    client = await connected(url, access, nothing, nothing)

    async def is_answered(subject: str) -> bool:
        try:
            await client.request(subject, INVALID, timeout=ANSWER_SECONDS, headers=NOWHERE)
        except nats.errors.NoRespondersError:
            return True
        except (TimeoutError, nats.errors.TimeoutError):
            return False  # the server says nothing to what it refuses
        return True

    try:
        return await asyncio.gather(*map(is_answered, subjects))
    finally:
        await client.close()
