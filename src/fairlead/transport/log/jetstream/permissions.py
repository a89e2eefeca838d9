"""Which subjects a server lets a user publish on: by requests that it answers with an error, and that change nothing.

Takes: a url, credentials and subjects. Gives: the account of the user; whether the streams of the log can be reached; for each
subject, whether the server answers. Never: stores a message: a request names a stream that does not exist, and its body is
invalid.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import NamedTuple

import nats.errors

from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.connection import connected
from fairlead.transport.log.names import TYPES

ANSWER_SECONDS = 1.0
NOWHERE = {"Nats-Expected-Stream": "FL_NONE"}
INVALID = b"?"
EVERYBODY = f"$JS.API.STREAM.INFO.KV_{TYPES}"
WHO = "$SYS.REQ.USER.INFO"
"""By which the server reports a user its own account and permissions."""


class Answers(NamedTuple):
    """`account`: of the user; empty if the server does not say it. `reaches`: whether there is a log that answers. `subjects`:
    of each that was asked, whether the user may publish there: the answer is the same if nobody is there."""

    account: str
    reaches: bool
    subjects: list[bool]


async def answered(url: str, access: Credentials, subjects: Sequence[str]) -> Answers:
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

    async def reaches() -> bool:
        """Every user may ask for this."""
        try:
            await client.request(EVERYBODY, timeout=ANSWER_SECONDS)
        except (TimeoutError, nats.errors.Error):
            return False
        return True

    async def account() -> str:
        """Empty if the server does not say it, as servers whose configuration was made by an earlier release."""
        try:
            told = json.loads((await client.request(WHO, timeout=ANSWER_SECONDS)).data)
            return str(told["data"]["account"])
        except (TimeoutError, nats.errors.Error, ValueError, KeyError, TypeError):
            return ""

    try:
        return Answers(await account(), await reaches(), await asyncio.gather(*map(is_answered, subjects)))
    finally:
        await client.close()
