"""A durable subscriber's record in the log: its rules, and its acknowledgements in each group.

One process at a time owns a name. A process that opens the name takes it over, and the previous owner gets an error at its next
acknowledgement (S134).

Takes: a name and rules. Gives: the acknowledgements under that name. Never: lets two processes acknowledge under one name.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fairlead.deliver.receipt import Comparison, Receipt, combined, compare
from fairlead.errors import StateError, UsageError
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup, places_to_json
from fairlead.transport.log.names import checked
from fairlead.transport.log.protocol import Conflict, Log, Stream

TABLE, RECEIPTS = "FL_SUBS", "FL_RECEIPTS"


class SubscriberRecord:
    """`groups`: by the key of the group, its subscription, streams, origin, and the number of acknowledged deliveries with
    their digest."""

    def __init__(self, log: Log, name: str) -> None:
        self._log, self.name = log, checked(name, "subscriber")
        self._revision = 0
        self._holder = uuid.uuid4().hex[:16]
        self.rules = self.text = self.digest = ""
        self.groups: dict[str, dict[str, Any]] = {}

    async def read(self) -> bool:
        """Whether the name is known."""
        entry = await self._log.get(TABLE, self.name)
        if entry is None:
            return False
        told = json.loads(entry.value)
        if not all("names" in each for each in told["groups"].values()):
            problem = f"'{self.name}' was last used by an earlier release, with another form of state"
            raise StateError("S139", problem, "continue with that release, or forget the subscriber and subscribe again")
        self._revision = entry.revision
        self.rules, self.text, self.digest, self.groups = told["rules"], told["text"], told["digest"], told["groups"]
        return True

    def require(self, digests: Collection[str]) -> None:
        """Raises unless the name is subscribed to one of these: rules may be added, changed and removed, but not all at
        once."""
        if not any(self.has_read(each) for each in digests):
            problem = f"'{self.name}' is subscribed to other rules, and to none of these"
            raise UsageError("A245", problem, "subscribe under another name, or forget this one")

    def has_read(self, digest: str) -> bool:
        """Whether the name is subscribed to a subscription with this digest."""
        return any(each.get("subscription") == digest for each in self.groups.values())

    def begin_group(
        self,
        key: str,
        group: StreamGroup,
        streams: Sequence[Stream],
        origin: Origin,
        silent_until: Sequence[int] | None,
        acknowledged: Mapping[str, Any],
    ) -> None:
        """Record a new group. `acknowledged`: of its ledger; nothing counts if it is not known where the subscriber joins."""
        inputs = zip(group.inputs, streams, strict=True)
        self.groups[key] = {
            "parts": [{"types": each.types, "topics": each.topics, "stream": stream.name} for each, stream in inputs],
            "origin": places_to_json(origin),
            "silent_until": silent_until and places_to_json(silent_until),
            "subscription": group.digest,
            **acknowledged,
        }

    async def write(self) -> None:
        told = {
            "holder": self._holder,
            "rules": self.rules,
            "text": self.text,
            "digest": self.digest,
            "groups": self.groups,
        }
        while True:
            try:
                self._revision = await self._log.put(TABLE, self.name, json.dumps(told).encode(), self._revision)
                return
            except Conflict:
                self._revision = await self._own_revision()

    async def _own_revision(self) -> int:
        """That of the record, if this process wrote it: an attempt without an answer may be stored later. Raises StateError if
        another process has taken over the name."""
        entry = await self._log.get(TABLE, self.name)
        if entry is not None and entry.revision > self._revision and json.loads(entry.value).get("holder") == self._holder:
            return entry.revision
        problem = f"another process has subscribed as '{self.name}' in the meantime"
        raise StateError("S134", problem, "give every process its own subscriber name")

    async def write_receipts(self, receipts: Mapping[str, Receipt]) -> None:
        told = {key: each.to_json() for key, each in receipts.items()}
        await self._log.put(RECEIPTS, self.name, json.dumps(told).encode())


async def receipts_of(log: Log, name: str) -> dict[str, Receipt]:
    """By group, the receipt of what a subscriber acknowledged. Raises UsageError."""
    entry = await log.get(RECEIPTS, checked(name, "subscriber"))
    if entry is None:
        known = ", ".join((await log.keys(RECEIPTS))[:10]) or "none"
        raise UsageError("A250", f"there is no subscriber '{name}'", f"known subscribers: {known}")
    return {key: Receipt.from_json(each) for key, each in json.loads(entry.value).items()}


def compared(a: Mapping[str, Receipt], b: Mapping[str, Receipt]) -> Comparison:
    """Compares group by group; returns the first difference, else the first group of which one side has more."""
    return combined([compare(a[key], b[key]) for key in a if key in b])


async def forget(log: Log, name: str) -> None:
    for table in (TABLE, RECEIPTS):
        await log.remove(table, checked(name, "subscriber"))
