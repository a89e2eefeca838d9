"""Opens a client's log: at a URL, in its own server, in a folder, or in memory.

    nats://host:port[,nats://…]   a NATS server or cluster (tls:// as well)
    memory:                       this process, nothing is stored
    file:folder                   a journal in a folder, for one process
    nothing                       a server of its own; its data in `data`, or in a temporary folder that is removed with it

Takes: the arguments of `connect`. Gives: an open log, and what to stop when it is closed. Never: leaves a server running.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from typing import Protocol, runtime_checkable

from fairlead.dataclass import dataclass
from fairlead.errors import UnsupportedError, UsageError
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.protocol import Log
from fairlead.transport.log.signed_log import SignedLog, signing_keys
from fairlead.transport.log.trims import TableReader


@runtime_checkable
class RecordUser(Protocol):
    """A log that reads its own tables, as they are for its users."""

    records: TableReader


@dataclass(frozen=True)
class LogPlace:
    url: str | None
    data: str | None
    replicas: int
    access: Credentials

    async def open(self, held: ExitStack) -> tuple[Log, str]:
        """The log and its URL. Cleanup is registered with `held`. Raises LogError, UnsupportedError, UsageError."""
        return await self.open_signed(held)

    async def open_signed(self, held: ExitStack) -> tuple[SignedLog, str]:
        keys = signing_keys(self.access.signing_keys)
        log, url = await self._log(held)
        signed = SignedLog(log, keys)
        if isinstance(log, RecordUser):
            log.records = signed
        return signed, url

    async def _log(self, held: ExitStack) -> tuple[Log, str]:
        if self.url is not None and self.url.startswith("memory:"):
            from fairlead.transport.log.memory_log import MemoryLog

            return MemoryLog(), self.url
        if self.url is not None and self.url.startswith("file:"):
            from fairlead.transport.log.file_log import FileLog

            return FileLog(self.url.removeprefix("file:")), self.url
        try:
            from fairlead.transport.log.jetstream.log import connect
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("nats"):
                raise
            raise UnsupportedError("U121", "the NATS client is not installed", "pip install 'fairlead[live]'") from None
        url = self.url or self._started(held)
        return await connect(url, self.access, self.replicas), url

    def _started(self, held: ExitStack) -> str:
        from fairlead.transport.log.jetstream.server import Server

        folder = self.data or held.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True))
        return held.enter_context(Server(folder, durable=self.data is not None)).url


def place_of(url: str | None, data: str | os.PathLike[str] | None, replicas: int | None, access: Credentials) -> LogPlace:
    if url is not None and data is not None:
        raise UsageError("A246", "both a url and a data folder are set", "pass the one that holds the events")
    if url is None and data is None:
        url = os.environ.get("FAIRLEAD_URL") or None
    if replicas is None:
        told = os.environ.get("FAIRLEAD_REPLICAS", "1")
        replicas = int(told) if told.isdecimal() else 0
        place: str | None = "environment variable FAIRLEAD_REPLICAS"
    else:
        told, place = str(replicas), None
    if replicas not in (1, 3, 5):
        raise UsageError("A247", f"replicas is {told}", "use 1, or 3 or 5 in a cluster of that many servers", place)
    return LogPlace(url, None if data is None else os.fspath(data), replicas, access.with_environment())
