"""A lasting connection to a NATS server or cluster: after the first success, it waits for the server as long as needed.

Takes: a URL, credentials, and callbacks for errors and for a new connection. Gives: a connected client of nats-py. Never:
retries if no server answers the first time.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from fairlead.errors import LogError
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.failures import refused, speaks_of_login, unreachable
from fairlead.transport.log.jetstream.predecessor import read_headers, text_of

CONNECT_SECONDS = 5
VERSION_MIN = (2, 11)
"""The first version that compares an append with the last message under any of several subjects."""


ANSWER = re.compile(
    rb"Nats-Stream: [^\r]+\r\nNats-Subject: ([^\r]+)\r\nNats-Sequence: (\d+)\r\nNats-Time-Stamp: ([^\r]+)\r\n"
    rb"(?:Nats-Num-Pending: \d+\r\nNats-Last-Sequence: \d+\r\n)?\r\n$"
)
"""The end of the headers of a stored message that was asked for directly."""
STATUS = re.compile(rb"NATS/1\.0 +(\d{3}) *([^\r]*)\r\n")
STATUS_NAMES = ("Status", "Description")
"""By which the client knows what the server says itself, in the first line of headers."""


class AnswerHeaders(dict[str, str]):
    """The headers of a message that may be such an answer. `stored`: those of the stored message; its sender may have given it
    the same headers as the server gives answers, so these are taken from the end, where the server writes them."""

    def __init__(self, told: dict[str, str], stored: dict[str, str], subject: str, sequence: int, time: str) -> None:
        super().__init__(told)
        self.stored, self.subject, self.sequence, self.time = stored, subject, sequence, time


class CertainClient(Client):
    """Headers as the server has read them (predecessor.py). Subjects and headers may have any bytes: a server stores and sends
    what a publisher gave it, and a client that raises an error there has no connection any more. A connection that the server
    does not accept is closed before the next attempt: nats-py leaves it open, five in a second if the login is refused."""

    async def _connect_to_server(self, s: Any) -> None:
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call]
        await super()._connect_to_server(s)

    async def _process_headers(self, headers: bytes) -> dict[str, str] | None:
        if not headers:
            return None
        told, at = read_headers(headers), headers.rfind(b"Nats-Stream: ")
        told = {name: each for name, each in told.items() if name not in STATUS_NAMES}
        answer = ANSWER.match(headers, at) if at >= 0 else None
        if answer is None:
            return told | status_of(headers)
        subject, sequence, time = answer.groups()
        return AnswerHeaders(told, read_headers(headers[:at] + b"\r\n"), text_of(subject), int(sequence), time.decode())

    def _build_message(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None) -> Msg:
        return Msg(self, text_of(subject), text_of(reply), data, headers, _sid=sid)


def status_of(headers: bytes) -> dict[str, str]:
    """What the server says in the first line of headers, after the version. A stored message may have such a line, too."""
    first = STATUS.match(headers)
    return {} if first is None else dict(zip(STATUS_NAMES, (first[1].decode(), text_of(first[2])), strict=True))


async def connected(
    url: str,
    access: Credentials,
    note: Callable[[Exception], Awaitable[None]],
    reconnected: Callable[[], Awaitable[None]],
    version_min: tuple[int, int] = VERSION_MIN,
) -> Client:
    """Raises LogError if no server answers, or the server denies access or is too old."""
    client, first = CertainClient(), list[Exception]()

    async def noted(error: Exception) -> None:
        first.append(error)
        await note(error)

    options: dict[str, Any] = {
        "servers": url.split(","),
        "error_cb": noted,
        "reconnected_cb": reconnected,
        "connect_timeout": CONNECT_SECONDS,
        "max_reconnect_attempts": 1,
        "reconnect_time_wait": 0.2,
        "allow_reconnect": True,
        "ping_interval": 10,
    }
    if access.encrypted:
        options["tls"] = access.context()
    if access.inbox is not None:
        options["inbox_prefix"] = access.inbox.encode()
    options |= {name: value for name, value in access.credentials().items() if value is not None}
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await client.connect(**options)
        stay_connected(client)
    except (nats.errors.Error, OSError, TimeoutError, ValueError, ssl.SSLError) as error:
        await _quietly(client.close())
        cause = next((each for each in first if speaks_of_login(each)), None)
        if cause is not None or isinstance(error, nats.errors.AuthorizationError):
            raise refused(cause or error) from None
        shown = first[0] if first else error
        raise unreachable(url, str(shown) or type(shown).__name__) from None
    version = client.connected_server_version
    if (version.major, version.minor) < version_min:
        await _quietly(client.close())
        least = ".".join(map(str, version_min))
        problem = f"the server has version {version.major}.{version.minor}, and {least} is the oldest supported"
        raise LogError("N012", problem, f"use nats-server {least} or later")
    return client


def stay_connected(client: Client) -> None:
    """Reconnect without end. nats-py has one number for the first connection and for later ones, so it is changed in between,
    in `client.options`, which is not a public interface (a test of the connection fails if it changes)."""
    client.options["max_reconnect_attempts"] = -1


async def _quietly(closing: Awaitable[None]) -> None:
    try:
        await closing
    except Exception:
        return
