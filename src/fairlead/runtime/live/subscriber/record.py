"""A durable subscriber's record in the log: its rules, and its acknowledgements in each group.

The record is written when a process opens the name. What is acknowledged afterwards is an entry of its own, so that an
acknowledgement does not store the rules again. It names the record that it follows by its generation: it counts if that is the
one in the log.

One process at a time owns a name: the one that the entry of acknowledgements names. A process that opens the name takes it
over, and the previous owner gets an error at its next acknowledgement (S134). What the previous owner sent without an answer
may be stored at any time: before the takeover it is read again, after it the server refuses an acknowledgement, and a whole
record is overwritten.

Takes: a name and rules. Gives: the acknowledgements under that name. Never: lets two processes acknowledge under one name.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fairlead.deliver.receipt import SAMPLES_MAX, Comparison, Receipt, combined, compare
from fairlead.errors import FairleadError, StateError, UsageError
from fairlead.runtime.live.core.derived_blocks import Emission, loop_of
from fairlead.runtime.live.core.stream_groups import PLACES, Origin, StreamGroup, places_from_json, places_to_json
from fairlead.transport.log.blocks.block_filter import ROUTES
from fairlead.transport.log.entry_values import DIGEST, NOTHING, entry_bytes, entry_value, fits, is_readable, unreadable
from fairlead.transport.log.names import checked
from fairlead.transport.log.protocol import Conflict, Log, Stream, TableEntry

TABLE, ACKNOWLEDGEMENTS, RECEIPTS = "FL_SUBS", "FL_ACKS", "FL_RECEIPTS"
ACKNOWLEDGED = ("count", "digest", "joined", "joined_digest", "verdicts")
SINCE_MAX = 64
"""Groups in one acknowledgement, of some 150 bytes each."""
SAMPLE_BYTES = 20
"""Of a sample in a compressed entry: 32 hexadecimal digits, quotation marks and a comma."""
COUNT_DIGITS = 13
"""Hexadecimal ones of a number of deliveries, or a position."""
HEAD_BYTES = 2_000
"""Of a message, beside the value: its subject, headers and signature."""


class SubscriberRecord:
    """`groups`: by the key of the group, its subscription, streams, origin, and the number of acknowledged deliveries with
    their digest."""

    def __init__(self, log: Log, name: str) -> None:
        self._log, self.name = log, checked(name, "subscriber")
        self._revision = self._acknowledged = self._receipted = self._generation = 0
        self._since: dict[str, dict[str, Any]] = {}
        """What was acknowledged since the whole record was written, by group."""
        self._asked = self._stored = 0
        """How often something was acknowledged, and the last of these times that is stored."""
        self._storing = asyncio.Lock()
        self._holder = uuid.uuid4().hex[:16]
        self.rules = self.text = self.digest = ""
        self.groups: dict[str, dict[str, Any]] = {}

    async def read(self) -> bool:
        """Whether the name is known."""
        since = await self._log.get(ACKNOWLEDGEMENTS, self.name)
        self._acknowledged = 0 if since is None else since.revision
        entry = await self._log.get(TABLE, self.name)
        if entry is None:
            return False
        told = joined_record(entry, since, self.name)
        if not all("names" in each for each in told["groups"].values()):
            problem = f"'{self.name}' was last used by an earlier release, with another form of state"
            raise StateError("S139", problem, "continue with that release, or forget the subscriber and subscribe again")
        self._revision, self._generation = entry.revision, told.get("generation", 0)
        self._since = {} if since is None else later_groups(since, self._generation, self.name)
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
            "joining": True,
            **acknowledged,
        }

    def require_room(self, groups: Mapping[str, tuple[StreamGroup, Sequence[Stream]]]) -> None:
        """Raises UsageError if a record of these groups, by key, is longer than a server accepts."""
        had, self.groups = self.groups, {}
        for key, (group, streams) in groups.items():
            some = hashlib.sha512(key.encode()).hexdigest()  # as long as real ones, and as little alike
            counts, digests = [int(some[at : at + COUNT_DIGITS], 16) for at in (64, 80, 96)], (some[:32], some[32:64])
            acknowledged = dict(zip(ACKNOWLEDGED, (counts[0], digests[0], counts[1], digests[1], {}), strict=True))
            places = (counts[2],) * len(streams)
            self.begin_group(key, group, streams, places, places, acknowledged)
            self.groups[key] |= {"names": [*group.names], "emits": [*group.emits], "reports": False, "routes": {}}
        told, most = self._told(), self._log.bytes_max - HEAD_BYTES
        self.groups, size = had, len(told)
        if size > most or not is_readable(told, RECORD):
            accepted = f"and the server accepts {most:,}" if size > most else "and more values than can be read"
            problem = f"a record of {len(groups):,} subscriptions has {size:,} bytes, {accepted}"
            fix = "subscribe under several names, each with some of the rules, or raise the server's max_payload"
            raise UsageError("A267", problem, fix)

    def drop_joining(self) -> set[str]:
        """Without the groups that were recorded, and perhaps not yet opened; returns the keys of the others."""
        self.groups = {key: each for key, each in self.groups.items() if not each.get("joining")}
        return {*self.groups}

    async def end_joining(self) -> None:
        """The new groups are opened."""
        for each in self.groups.values():
            each.pop("joining", None)
        await self.write()

    async def take_over(self) -> bool:
        """Become the owner of the name as it was read; False if its previous owner has acknowledged something since: then it
        has to be read again."""
        try:
            self._acknowledged = await self._log.put(ACKNOWLEDGEMENTS, self.name, self._told_since(), self._acknowledged)
        except Conflict:
            return False
        return True

    async def write(self) -> None:
        """Store the whole record, with all acknowledgements. 1. the record, 2. the acknowledgements after it: none yet. Those
        of an earlier record do not count any more. If the process is killed between the steps, nothing that was acknowledged
        is lost."""
        self._generation += 1
        self._since = {}
        self._revision = await self._put(TABLE, self._told(), self._revision)  # 1
        await self._write_since()  # 2

    def _told(self) -> bytes:
        told = {
            "holder": self._holder,
            "generation": self._generation,
            "rules": self.rules,
            "text": self.text,
            "digest": self.digest,
            "groups": self.groups,
        }
        return entry_bytes(told, self._log.bytes_max - HEAD_BYTES)

    async def acknowledge(self, changed: Mapping[str, Mapping[str, Any]]) -> None:
        """Store what is acknowledged of some groups: only these groups are written, and those since the last whole record. When
        they are many, the whole record is written again. Those of several tasks are stored one after the other, or together:
        one that is sent again must not replace a later one."""
        self._asked += 1
        asked = self._asked
        for key, each in changed.items():
            self.groups[key] |= each
            self._since[key] = {name: self.groups[key][name] for name in ACKNOWLEDGED if name in self.groups[key]}
        async with self._storing:
            if self._stored < asked:
                stored = self._asked
                await (self.write() if len(self._since) > SINCE_MAX else self._write_since())
                self._stored = stored

    @property
    def is_stored(self) -> bool:
        """Whether everything that was acknowledged is stored. If not, it may be delivered again: no receipt may count it."""
        return self._stored == self._asked

    async def _write_since(self) -> None:
        self._acknowledged = await self._put(ACKNOWLEDGEMENTS, self._told_since(), self._acknowledged)

    def _told_since(self) -> bytes:
        return json.dumps({"holder": self._holder, "generation": self._generation, "groups": self._since}).encode()

    async def _put(self, table: str, told: bytes, revision: int) -> int:
        while True:
            try:
                return await self._log.put(table, self.name, told, revision)
            except Conflict:
                revision = await self._own_revision(table, revision)

    async def _own_revision(self, table: str, revision: int) -> int:
        """The one to store after. 1. a server that is behind has answered: try again, 2. an earlier attempt without an answer
        was stored, 3. a record of the previous owner was stored after the takeover. Raises StateError if another process has
        taken over the name."""
        entry = await self._log.get(table, self.name)
        if entry is not None and entry.revision <= revision:
            return revision  # 1
        if entry is not None and self._wrote(entry):
            return entry.revision  # 2
        if entry is not None and table == TABLE and self._wrote(await self._log.get(ACKNOWLEDGEMENTS, self.name)):
            return entry.revision  # 3
        problem = f"another process has subscribed as '{self.name}' in the meantime"
        raise StateError("S134", problem, "give every process its own subscriber name")

    def _wrote(self, entry: TableEntry | None) -> bool:
        return entry is not None and _holder_of(entry) == self._holder

    async def write_receipts(self, receipts: Mapping[str, Receipt]) -> None:
        """Each after the one before, so that one that was sent without an answer cannot replace a later one. Those of a process
        that does not own the name any more are not stored. One that counts less than the stored one does not replace it: a
        subscriber that returns, and has acknowledged nothing, counts up to where it joined once more."""
        wanted = receipts
        while True:
            told = receipt_bytes(wanted, self._log.bytes_max - HEAD_BYTES)
            try:
                self._receipted = await self._log.put(RECEIPTS, self.name, told, self._receipted)
                return
            except Conflict:
                entry = await self._log.get(RECEIPTS, self.name)
                if not self._wrote(await self._log.get(ACKNOWLEDGEMENTS, self.name)):
                    return
                self._receipted = 0 if entry is None else entry.revision
                stored = {} if entry is None else stored_receipts(entry, self.name)
                wanted = {key: further(each, stored.get(key)) for key, each in receipts.items()}


PART = {"types": [str], "topics": [str], "stream": str}
COUNTED = {
    "count": (int, NOTHING),
    "digest": (DIGEST, NOTHING),
    "joined?": int,
    "joined_digest?": DIGEST,
    "verdicts?": {str: int},
}
GROUP = {
    "names?": [str],
    "parts": [PART],
    "origin": PLACES,
    "silent_until": (NOTHING, *PLACES),
    "subscription?": str,
    "emits?": [str],
    "routes?": {str: int},
    "reports?": bool,
    "joining?": bool,
} | COUNTED
RECORD = {"rules": str, "text": str, "digest": str, "generation?": int, "holder?": str, "groups": {str: dict}}
"""The shapes of a record and its groups; those of earlier releases have no names (S139)."""
SINCE = {"generation": int, "holder?": str, "groups": {str: COUNTED}}


def _holder_of(entry: TableEntry) -> str:
    """Who wrote an entry; empty if it does not say so."""
    try:
        found: str = entry_value(entry.value, {"holder": str}, TABLE, "")["holder"]
    except StateError:
        return ""
    return found


def joined_record(entry: TableEntry, since: TableEntry | None, name: str) -> dict[str, Any]:
    """A record with the acknowledgements since. Raises StateError (S147)."""
    told: dict[str, Any] = entry_value(entry.value, RECORD, TABLE, name)
    if not all(_is_group(each) for each in told["groups"].values()):
        raise unreadable(TABLE, name)
    for key, each in ({} if since is None else later_groups(since, told.get("generation", 0), name)).items():
        if key in told["groups"]:
            told["groups"][key] |= each
    return told


def _is_group(told: dict[str, Any]) -> bool:
    if not fits(told, GROUP) or not all(each["topics"] for each in told["parts"]):
        return False
    if not all(0 <= each < ROUTES for each in told.get("routes", {}).values()):
        return False
    places = [told["origin"], *([told["silent_until"]] if told["silent_until"] is not None else [])]
    return bool(told["parts"]) and all(len(places_from_json(each)) == len(told["parts"]) for each in places)


def later_groups(since: TableEntry, generation: int, name: str) -> dict[str, dict[str, Any]]:
    """By key, what was acknowledged after the record of this generation. Raises StateError (S147)."""
    later = entry_value(since.value, SINCE, ACKNOWLEDGEMENTS, name)
    found: dict[str, dict[str, Any]] = later["groups"] if later["generation"] == generation else {}
    return found


async def groups_of_name(log: Log, name: str) -> dict[str, dict[str, Any]]:
    """By key, what is recorded of the groups of a durable subscriber; empty if there is none."""
    entry = await log.get(TABLE, name)
    found: dict[str, dict[str, Any]] = {}
    return found if entry is None else joined_record(entry, await log.get(ACKNOWLEDGEMENTS, name), name)["groups"]


async def require_no_loop(log: Log, name: str | None, groups: Sequence[StreamGroup]) -> None:
    """Raises UsageError if what these groups emit is, by the rules of other durable subscribers, read to emit what they
    read."""
    own = [(each.types, each.emits) for each in groups if each.emits]
    others: list[Emission] = []
    for key in await log.keys(TABLE) if own else ():
        for told in (await groups_of_name(log, key)).values() if key != name else ():
            others.append(([each for part in told["parts"] for each in part["types"]], told.get("emits", [])))
    loop = loop_of(own, others)
    if loop:
        problem = f"the rules derive events in a loop with other subscribers: {' → '.join(loop)}"
        raise UsageError("A266", problem, "change the rules, or subscribe with emit=False")


def receipt_bytes(receipts: Mapping[str, Receipt], most: int) -> bytes:
    """With as many samples of each as fit into an entry of so many bytes: fewer say less exactly where two receipts differ."""
    samples = SAMPLES_MAX
    while samples and sum(min(len(each.samples), samples) for each in receipts.values()) * SAMPLE_BYTES > most:
        samples //= 2
    while True:
        told = entry_bytes({key: each.thinned(samples).to_json() for key, each in receipts.items()}, most)
        if len(told) <= most or not samples:
            return told
        samples //= 2


async def receipts_of(log: Log, name: str) -> dict[str, Receipt]:
    """By group, the receipt of what a subscriber acknowledged; empty if it has none yet: it is recorded before it has counted
    what was delivered before it joined, and can end in between. Raises UsageError."""
    entry = await log.get(RECEIPTS, checked(name, "subscriber"))
    if entry is None and await log.get(TABLE, name) is not None:
        return {}
    if entry is None:
        known = ", ".join((await log.keys(RECEIPTS))[:10]) or "none"
        raise UsageError("A250", f"there is no subscriber '{name}'", f"known subscribers: {known}")
    return receipts_in(entry, name)


def receipts_in(entry: TableEntry, name: str) -> dict[str, Receipt]:
    return {key: Receipt.from_json(each) for key, each in entry_value(entry.value, {str: dict}, RECEIPTS, name).items()}


def stored_receipts(entry: TableEntry, name: str) -> dict[str, Receipt]:
    """Nothing if they are damaged: they are about to be replaced."""
    try:
        return receipts_in(entry, name)
    except FairleadError:
        return {}


def further(one: Receipt, stored: Receipt | None) -> Receipt:
    """The stored one if it is of the same deliveries, and counts more of them."""
    return one if stored is None or stored.plan != one.plan or stored.count <= one.count else stored


async def group_names(log: Log, name: str) -> dict[str, str]:
    """By group of a subscriber, the name of its subscription."""
    record = SubscriberRecord(log, name)
    await record.read()
    return {key: ", ".join(each["names"]) for key, each in record.groups.items()}


def compared(a: Mapping[str, Receipt], b: Mapping[str, Receipt], names: Mapping[str, str]) -> Comparison:
    """Compares the subscriptions that both have, group by group."""
    if not a or not b:
        return Comparison(
            False, f"the {'second' if a else 'first'} has no receipts yet: it has not begun to deliver", related=False
        )
    return combined({names.get(key, key): compare(a[key], b[key]) for key in a if key in b})


async def forget(log: Log, name: str) -> None:
    for table in (TABLE, ACKNOWLEDGEMENTS, RECEIPTS):
        await log.remove(table, checked(name, "subscriber"))
