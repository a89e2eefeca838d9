"""Errors of a NATS server or its client, as Fairlead's errors.

Takes: exceptions of nats-py. Gives: LogError, Conflict or Unavailable. Never: hides the server's message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import nats.errors
import nats.js.errors

from fairlead.errors import LogError
from fairlead.transport.log.blocks.repeats import answered
from fairlead.transport.log.protocol import Conflict, Unavailable
from fairlead.transport.log.tasks import unreported

Answer = TypeVar("Answer")
WRONG_LAST = {10070, 10071, 10164}
"""The server's codes for an unexpected last sequence or message id."""
FULL = {10002, 10023, 10028, 10047, 10077, 10122}
"""Not enough memory or storage, or a limit of the account or the stream."""

NO_PEERS = 10005
"""There are fewer servers than replicas, mostly because one has not been discovered yet."""


NOTHING_THERE = "no log is there for this user: the server is starting, has no JetStream, or must read its accounts again"


def speaks_of_login(error: Exception) -> bool:
    return "uthoriz" in str(error) or "uthentic" in str(error)


class Refusals:
    """Permission errors of the server: it reports them separately, and the answer never arrives."""

    def __init__(self) -> None:
        self.said: str | None = None
        self.login = ""
        """Why the server does not let the client in again, if it does not."""
        self._news = asyncio.Event()

    async def note(self, error: Exception) -> None:
        if speaks_of_login(error):
            self.login = str(error).removeprefix("nats: ").strip("'")
        elif "permissions violation" in str(error).lower():
            self.said = str(error).removeprefix("nats: ").strip("'")
            self._news.set()

    def let_in(self) -> None:
        self.login = ""

    async def heeded(self, asked: Coroutine[Any, Any, Answer], subject: str) -> Answer:
        """The answer to a request on a subject, or on subjects that begin with its words. Raises LogError as soon as the server
        reports that permission is missing."""
        answer = asyncio.ensure_future(asked)
        unreported(answer)  # it may fail when nobody waits for it any more
        try:
            while not answer.done():
                self._news.clear()
                news = asyncio.ensure_future(self._news.wait())
                try:
                    await asyncio.wait((answer, news), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
                if not answer.done() and self._speaks_of(subject):
                    raise not_allowed(self.take() or "")
            return answer.result()
        finally:
            answer.cancel()  # this does not undo what is already done

    def _speaks_of(self, subject: str) -> bool:
        said = "" if self.said is None else self.said.lower()
        return any(f'"{subject}{end}'.lower() in said for end in ('"', "."))

    def take(self) -> str | None:
        said, self.said = self.said, None
        return said


def not_allowed(said: str) -> LogError:
    return LogError(
        "N003", f"the server does not permit the action: {said}", "ask for the permission, or connect as another user"
    )


@contextmanager
def translated(refusals: Refusals) -> Iterator[None]:
    try:
        yield
    except nats.js.errors.KeyWrongLastSequenceError as error:
        raise Conflict(str(error)) from None
    except nats.js.errors.APIError as error:
        if error.err_code in WRONG_LAST:
            raise Conflict(str(error.description)) from None
        if error.err_code in FULL or error.code == 507:
            fix = "raise the limit (max_file_store) or free disk space, then trim: see docs/operations.md, A full log"
            raise LogError("N004", f"the log is full: {error.description}", fix) from None
        starting = error.err_code == NO_PEERS or "in process" in str(error.description)
        if error.code in (None, 500, 503) or starting:  # a new leader, a server that is starting
            raise Unavailable(error.description or NOTHING_THERE, refusals.login) from None
        if error.code == 404:
            raise LogError(
                "N010", f"the stream has been removed: {error.description}", "declare the types and subscribe again"
            ) from None
        raise LogError("N008", f"the server rejects the request: {error.description}", "see the server's log") from None
    except nats.errors.MaxPayloadError:
        raise LogError("N009", "the block is larger than the server accepts", "raise the server's max_payload") from None
    except (nats.errors.AuthorizationError, nats.errors.SecureConnRequiredError) as error:
        raise refused(error) from None
    except (
        TimeoutError,
        nats.errors.TimeoutError,
        nats.js.errors.NoStreamResponseError,
        nats.errors.NoRespondersError,
        nats.errors.ConnectionClosedError,
        nats.errors.StaleConnectionError,
        nats.errors.OutboundBufferLimitError,
        OSError,
    ) as error:
        said = refusals.take()
        if said is not None:
            raise not_allowed(said) from None
        raise Unavailable(str(error) or type(error).__name__, refusals.login) from None


async def waited(refusals: Refusals, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """What a reading asks beside its blocks: it waits for a server that does not answer, then continues."""

    async def asked() -> Answer:
        with translated(refusals):
            return await ask()

    return await answered(asked)


def refused(error: Exception) -> LogError:
    said = str(error).removeprefix("nats: ").strip("'")
    return LogError("N002", f"the server rejects the connection: {said}", "pass its user and password, token or key to connect")


def unreachable(url: str, why: str) -> LogError:
    return LogError("N001", f"no server answers at {url}: {why}", "start one (`fairlead up`), or correct the url")
