"""A log in a folder, for one process at a time: all its changes, in one journal.

A record of the journal is a line of JSON with a length and a checksum, then its bytes. Replaying the journal reconstructs the
same streams, since the order of merged streams is that of the appends. An incomplete record at the end of the journal was never
acknowledged, and is cut off.

Takes: a folder. Gives: the protocol of a log; calls return when the data is on disk. Never: admits a second process; holds more
than fits into memory.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from fairlead.errors import LogError, StateError
from fairlead.transport.files.documents import json_value
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Stream

JOURNALED = tuple(each.name for each in fields(Block) if each.name != "payload" and each.compare)
"""What a block is, besides its payload; not what a reader finds out about it."""


class FileLog(MemoryLog):
    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self.folder / "journal", "a+b")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise LogError(
                "N005", f"the folder {str(folder)!r} is not usable: {error.strerror}", "use another folder"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise in_use(folder) from None
        try:
            self._replay()
        except BaseException:
            self._file.close()  # a damaged journal stays neither open nor locked
            raise

    def _replay(self) -> None:
        self._file.seek(0)
        good = 0
        while line := self._file.readline():
            try:
                record = json_value(line)
                value = self._file.read(record["length"])
            except (ValueError, KeyError, TypeError):
                break
            if len(value) < record["length"] or zlib.crc32(value) != record["check"]:
                break
            self._again(record, value)
            good = self._file.tell()
        self._file.seek(0, os.SEEK_END)
        if self._file.tell() - good > self.bytes_max * 64:
            problem = f"the journal is damaged at byte {good:,}, far from its end"
            raise StateError("S130", problem, "restore it from a backup", str(self.folder / "journal"))
        self._file.truncate(good)

    def _again(self, record: dict[str, Any], value: bytes) -> None:
        match record["do"]:
            case "stream":
                super()._made(record["name"], record["sources"])
            case "append":
                told = record["block"]
                if "topic" not in told:
                    raise of_first_edition(f"file:{self.folder}")
                super()._appended(Block(payload=value, **told | {"types": tuple(told["types"])}), record["at"])
            case "trim":
                self._trim(record["name"], record["first"])
            case "remove stream":
                self._removed(record["name"])
            case "set":
                super()._set(record["table"], record["key"], value, record.get("at", 0), record.get("after"))
            case "remove":
                super()._remove(record["table"], record["key"])
            case "object":
                self._objects.setdefault(record["store"], {})[record["name"]] = value
            case "remove object":
                self._objects.get(record["store"], {}).pop(record["name"], None)

    def _write(self, record: dict[str, Any], value: bytes = b"") -> None:
        line = json.dumps(record | {"length": len(value), "check": zlib.crc32(value)})
        try:
            self._file.write(line.encode() + b"\n" + value)
            self._file.flush()
            os.fdatasync(self._file.fileno())
        except OSError as error:
            raise LogError("N004", f"the log is not writable: {error.strerror}", "free disk space") from None

    def _made(self, name: str, sources: Sequence[str]) -> None:
        self._write({"do": "stream", "name": name, "sources": list(sources)})
        super()._made(name, sources)

    def _appended(self, block: Block, at: int) -> int:
        self._write({"do": "append", "at": at, "block": {name: getattr(block, name) for name in JOURNALED}}, block.payload)
        return super()._appended(block, at)

    async def trim(self, stream: Stream, first: int) -> None:
        """The journal keeps what it has: it is read as far as it goes, and then trimmed."""
        self._write({"do": "trim", "name": stream.name, "first": first})
        self._trim(stream.name, first)

    async def remove_stream(self, stream: Stream) -> None:
        self._write({"do": "remove stream", "name": stream.name})
        self._removed(stream.name)

    def _set(self, table: str, key: str, value: bytes, at: int, after: int | None) -> None:
        self._write({"do": "set", "table": table, "key": key, "at": at, "after": after}, value)
        super()._set(table, key, value, at, after)

    def _remove(self, table: str, key: str) -> None:
        self._write({"do": "remove", "table": table, "key": key})
        super()._remove(table, key)

    async def put_object(self, store: str, name: str, value: bytes) -> None:
        self._write({"do": "object", "store": store, "name": name}, value)
        await super().put_object(store, name, value)

    async def remove_object(self, store: str, name: str) -> None:
        self._write({"do": "remove object", "store": store, "name": name})
        await super().remove_object(store, name)

    async def close(self) -> None:
        self._file.close()


def of_first_edition(url: str) -> LogError:
    problem = "the log was written by a release without topics, in which each type had a stream of its own"
    return LogError("N013", problem, f"copy its events to a new log: `fairlead convert --from {url} --url NEW`")


def in_use(folder: str | os.PathLike[str]) -> LogError:
    fix = "run `fairlead up` with this folder, and connect every process to its url"
    return LogError("N006", f"the folder {os.fspath(folder)!r} is in use by another process", fix)
