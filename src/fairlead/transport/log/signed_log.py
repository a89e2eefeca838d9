"""A log whose tables and objects are signed: a client that has the keys relies on no entry that was written without them.

An entry begins with a line: `fairlead-signed 1`, a revision, and an HMAC-SHA256 by the first of the keys. It is computed over

    the kind of the entry, the table or store, the key or name, the revision, the content

so an entry does not verify under another name, nor after another revision. The revision is the one that the writer replaced:
the log compared it with the last one when it stored the entry, and says so (`TableEntry.after`). So an old version that is
stored again does not verify either: the log refuses it, or it was stored without the comparison. Objects have no revisions; the
names of states say what they contain, so there is one content for each name.

Without keys nothing is signed or verified; the content of signed entries is read as it is.

Takes: a log, keys. Gives: the same log, with contents. Never: returns a content that none of the keys has signed, if there are
keys; notices that an entry was removed.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from fairlead.dataclass import dataclass
from fairlead.errors import StateError, UsageError
from fairlead.transport.log.entry_values import UNREADABLE
from fairlead.transport.log.protocol import Conflict, Log, TableEntry

SIGNED = re.compile(rb"fairlead-signed 1 (\d{1,19}) ([0-9a-f]{64})\n")
CHARACTERS_MIN = 32
"""Of a key: 128 bits in hexadecimal digits."""
LONG_BYTES = 1 << 20
"""A content that is signed and verified in a thread: it takes more than a millisecond."""
UNSIGNED = "S146"
LOGGER = logging.getLogger("fairlead")


class Signing(Enum):
    """What became of an entry that was to be signed by the first key."""

    KEPT = "has the signature of the first key"
    SIGNED = "is signed now"
    REFUSED = "has no valid signature"


class SignedValue(NamedTuple):
    """`after`, `tag`: of its first line; no tag if it has none."""

    after: int
    tag: str
    content: bytes


def parts_of(value: bytes) -> SignedValue:
    told = SIGNED.match(value)
    return SignedValue(int(told[1]), told[2].decode(), value[told.end() :]) if told else SignedValue(0, "", value)


@dataclass(frozen=True)
class SigningKeys:
    """The first one signs, each of them verifies."""

    keys: tuple[bytes, ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.keys)

    def signed(self, place: Sequence[str], after: int, content: bytes) -> bytes:
        """`place`: the kind, the table or store, and the key or name."""
        if not self.keys:
            return content
        return b"fairlead-signed 1 %d %s\n%s" % (after, _tag(self.keys[0], place, after, content).encode(), content)

    def signer(self, place: Sequence[str], value: SignedValue) -> int | None:
        """The number of the key that signed the value for this place."""
        tags = (_tag(key, place, value.after, value.content) for key in self.keys)
        return next((number for number, tag in enumerate(tags) if hmac.compare_digest(tag, value.tag)), None)


def _tag(key: bytes, place: Sequence[str], after: int, content: bytes) -> str:
    head = json.dumps([*place, after]).encode()
    made = hmac.new(key, head + b"\n", "sha256")
    made.update(content)
    return made.hexdigest()


def signing_keys(path: str | None) -> SigningKeys:
    """The keys of a file: one per line; empty lines, and lines that begin with #, do not count. Raises UsageError."""
    if path is None:
        return SigningKeys()
    try:
        lines = [line.strip() for line in Path(path).read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("A299", f"the file of signing keys is not readable: {error}", FIX, path) from None
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys or min(map(len, keys)) < CHARACTERS_MIN:
        problem = "a signing key is shorter than 32 characters" if keys else "the file has no signing key"
        raise UsageError("A299", problem, FIX, path)
    return SigningKeys(tuple(each.encode() for each in keys))


def no_keys() -> UsageError:
    return UsageError("A299", "there is no file of signing keys: pass --signing-keys", FIX)


FIX = "write one key per line, the one that signs first: openssl rand -hex 32 > FILE"


def ignored(error: StateError) -> None:
    """Reports an entry that is not relied on, because what it says can be found again. Raises other errors."""
    if error.code not in (UNSIGNED, UNREADABLE):
        raise error
    LOGGER.warning("%s", error)


class SignedLog:
    def __init__(self, log: Log, keys: SigningKeys) -> None:
        self._log, self._keys = log, keys
        self.bytes_max, self.owner = log.bytes_max, log.owner
        self.open_topics, self.append, self.remove_stream = log.open_topics, log.append, log.remove_stream
        self.last_of, self.last_block_of, self.copied = log.last_of, log.last_block_of, log.copied
        self.sources, self.read, self.heads, self.state = log.sources, log.read, log.heads, log.state
        self.count, self.trim, self.check, self.last = log.count, log.trim, log.check, log.last
        self.before, self.merged, self.behind, self.close = log.before, log.merged, log.behind, log.close
        self.revision_of, self.remove, self.keys = log.revision_of, log.remove, log.keys
        self.remove_object, self.objects, self.now = log.remove_object, log.objects, log.now

    async def get(self, table: str, key: str) -> TableEntry | None:
        """Raises StateError (S146), and what the log raises."""
        entry = await self._log.get(table, key)
        if entry is None:
            return None
        value = parts_of(entry.value)
        if self._keys and (entry.after != value.after or self._keys.signer(("table", table, key), value) is None):
            raise _unsigned(f"the entry '{key}' of the table {table}")
        return entry._replace(value=value.content)

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        """With keys, always by a comparison: without `revision`, whatever is there is replaced."""
        if not self._keys:
            return await self._log.put(table, key, value, revision)
        while True:
            after = revision or await self._log.revision_of(table, key)
            if revision == 0 and await self._log.get(table, key) is not None:
                raise Conflict(f"{key} exists")
            try:
                return await self._log.put(table, key, self._keys.signed(("table", table, key), after, value), after)
            except Conflict:
                if revision is not None:
                    raise

    async def get_object(self, store: str, name: str) -> bytes | None:
        """Raises StateError (S146), and what the log raises."""
        found = await self._log.get_object(store, name)
        if found is None:
            return None
        value = parts_of(found)
        if self._keys and await self._signer(("object", store, name), value) is None:
            raise _unsigned(f"the object '{name}' of {store}")
        return value.content

    async def _signer(self, place: Sequence[str], value: SignedValue) -> int | None:
        if len(value.content) < LONG_BYTES:
            return self._keys.signer(place, value)
        return await asyncio.to_thread(self._keys.signer, place, value)

    async def put_object(self, store: str, name: str, value: bytes) -> None:
        await self._log.put_object(store, name, await asyncio.to_thread(self._keys.signed, ("object", store, name), 0, value))

    async def sign(self, table: str, key: str, *, adopt: bool) -> Signing:
        """Sign an entry by the first key. `adopt`: also one that has no signature at all."""
        entry = await self._log.get(table, key)
        if entry is None:
            return Signing.KEPT
        value = parts_of(entry.value)
        signer = self._keys.signer(("table", table, key), value) if entry.after == value.after else None
        if signer == 0 or (signer is None and (value.tag or not adopt)):
            return Signing.KEPT if signer == 0 else Signing.REFUSED
        await self.put(table, key, value.content, entry.revision)
        return Signing.SIGNED

    async def sign_object(self, store: str, name: str, *, adopt: bool) -> Signing:
        found = await self._log.get_object(store, name)
        if found is None:
            return Signing.KEPT
        value = parts_of(found)
        signer = await self._signer(("object", store, name), value)
        if signer == 0 or (signer is None and (value.tag or not adopt)):
            return Signing.KEPT if signer == 0 else Signing.REFUSED
        await self.put_object(store, name, value.content)
        return Signing.SIGNED


def _unsigned(what: str) -> StateError:
    problem = f"{what} is not signed by one of your keys for this place"
    return StateError(UNSIGNED, problem, "find out who wrote it; remove it, or sign it if it is right: fairlead rights sign")
