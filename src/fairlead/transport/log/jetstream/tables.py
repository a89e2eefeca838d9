"""Tables and objects in a NATS server: its key-value and object stores, created on first use.

Takes: small values under a key, large ones under a name. Gives: the stored values. Never: keeps more than the newest value.
"""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from datetime import datetime

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, ObjectStoreConfig, RawStreamMsg, StorageType, StreamConfig
from nats.js.errors import (
    APIError,
    BucketNotFoundError,
    KeyNotFoundError,
    NotFoundError,
    ObjectNotFoundError,
)
from nats.js.kv import KeyValue
from nats.js.object_store import ObjectStore

from fairlead.model.events.values import microseconds
from fairlead.transport.log.jetstream.failures import Refusals, translated
from fairlead.transport.log.jetstream.objects import read_object
from fairlead.transport.log.jetstream.predecessor import EXPECTED, compared_with, headers_of
from fairlead.transport.log.jetstream.reports import with_subjects
from fairlead.transport.log.names import LEASES, LEASES_KEPT_SECONDS, REMOVED_SECONDS, TRACELESS
from fairlead.transport.log.protocol import TableEntry, Unavailable

ANSWER_SECONDS = 5.0
DUPLICATES_SECONDS = 120.0
NAME_IN_USE = 10058
LIFE, NO_LIFE = "Nats-TTL", 10166
"""The header of a message that the server removes after a time, and its error if the stream does not allow that."""
OPERATION, REMOVALS = "KV-Operation", ("DEL", "PURGE")


class Tables:
    def __init__(self, client: Client, js: JetStreamContext, replicas: int, refusals: Refusals) -> None:
        self._client, self._js, self._replicas, self._refusals = client, js, replicas, refusals
        self._tables: dict[str, KeyValue] = {}
        self._stores: dict[str, ObjectStore] = {}

    async def _table(self, name: str) -> KeyValue:
        if name not in self._tables:
            subject = f"$JS.API.STREAM.INFO.KV_{name}"
            try:
                self._tables[name] = await self._refusals.heeded(self._js.key_value(name), subject)
            except (BucketNotFoundError, NotFoundError):
                self._tables[name] = await self._made(name)
        return self._tables[name]

    async def _made(self, name: str) -> KeyValue:
        """Without the rollups that tables have by default: by one of them, a client that may write one key removes all."""
        config = StreamConfig(
            name=f"KV_{name}",
            subjects=[f"$KV.{name}.>"],
            max_msgs_per_subject=1,
            storage=StorageType.FILE,
            num_replicas=self._replicas,
            discard=DiscardPolicy.NEW,
            allow_rollup_hdrs=False,
            duplicate_window=DUPLICATES_SECONDS,
            max_age=LEASES_KEPT_SECONDS if name == LEASES else None,
            allow_msg_ttl=True if name in TRACELESS else None,
        )
        try:
            await self._js.add_stream(config)
        except APIError as error:
            if error.err_code != NAME_IN_USE:  # two clients that create it at the same time
                raise
        return await self._js.key_value(name)

    async def _store(self, name: str) -> ObjectStore:
        if name not in self._stores:
            subject = f"$JS.API.STREAM.INFO.OBJ_{name}"
            try:
                self._stores[name] = await self._refusals.heeded(self._js.object_store(name), subject)
            except (BucketNotFoundError, NotFoundError):
                config = ObjectStoreConfig(name, storage=StorageType.FILE, replicas=self._replicas)
                self._stores[name] = await self._js.create_object_store(name, config)
        return self._stores[name]

    async def get(self, table: str, key: str) -> TableEntry | None:
        found = await self._last(table, key)
        if found is None or headers_of(found).get(OPERATION) in REMOVALS:
            return None
        time = 0 if found.time is None else microseconds(found.time)
        return TableEntry(found.data or b"", found.seq or 0, time, compared_with(found))

    async def revision_of(self, table: str, key: str) -> int:
        found = await self._last(table, key)
        return 0 if found is None else found.seq or 0

    async def _last(self, table: str, key: str) -> RawStreamMsg | None:
        """The last message of a key, from the leader: a replica may lag behind."""
        with translated(self._refusals):
            await self._table(table)
            try:
                asked = self._js.get_last_msg(f"KV_{table}", f"$KV.{table}.{key}")
                return await self._refusals.heeded(asked, f"$JS.API.STREAM.MSG.GET.KV_{table}")
            except NotFoundError:
                return None

    async def put(self, table: str, key: str, value: bytes, revision: int | None) -> int:
        with translated(self._refusals):
            held = await self._table(table)
            if revision is None:
                return await held.put(key, value)
            if revision == 0:
                try:
                    return await held.create(key, value)
                except KeyNotFoundError:  # another client's write is pending
                    raise Unavailable(f"{key} is being written") from None
            return await held.update(key, value, revision)

    async def remove(self, table: str, key: str, revision: int | None = None) -> None:
        """Traces of removed entries cost a request each whenever a client looks at the table."""
        with translated(self._refusals):
            held = await self._table(table)
            if table in TRACELESS:
                marks = {OPERATION: REMOVALS[0], LIFE: f"{REMOVED_SECONDS}s"}
                marks |= {} if revision is None else {EXPECTED: str(revision)}
                subject = f"$KV.{table}.{key}"
                try:
                    asked = self._js.publish(subject, b"", timeout=ANSWER_SECONDS, headers=marks)
                    await self._refusals.heeded(asked, subject)
                    return
                except APIError as error:
                    if error.err_code != NO_LIFE:  # a table of an earlier release
                        raise
            await held.delete(key, revision)

    async def now(self, table: str) -> int:
        with translated(self._refusals):
            await self._table(table)
            subject = f"$JS.API.STREAM.INFO.KV_{table}"
            asked = self._client.request(subject, timeout=ANSWER_SECONDS)
            answer = json.loads((await self._refusals.heeded(asked, subject)).data)
        if "ts" not in answer:
            raise Unavailable(str(answer.get("error", {}).get("description", "the server does not tell its time")))
        return microseconds(datetime.fromisoformat(answer["ts"]))

    async def keys(self, table: str) -> list[str]:
        with translated(self._refusals):
            await self._table(table)
            prefix = f"$KV.{table}."  # from the leader of its stream; the client's own method, a consumer, may end early
            found = await with_subjects(self._client, self._js, f"KV_{table}", f"{prefix}>")
            return sorted(each.removeprefix(prefix) for each in found.state.subjects or {})

    async def put_object(self, store: str, name: str, value: bytes) -> None:
        with translated(self._refusals):
            await self._refusals.heeded((await self._store(store)).put(name, value), f"$O.{store}")

    async def get_object(self, store: str, name: str) -> bytes | None:
        with translated(self._refusals):
            return await read_object(self._js, await self._store(store), store, name)

    async def remove_object(self, store: str, name: str) -> None:
        """Without the mark that the client leaves of every removed object."""
        with translated(self._refusals):
            with suppress(ObjectNotFoundError, NotFoundError):
                await (await self._store(store)).delete(name)
            mark = f"$O.{store}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"
            await self._js.purge_stream(f"OBJ_{store}", subject=mark)

    async def objects(self, store: str) -> list[str]:
        with translated(self._refusals):
            try:
                found = await (await self._store(store)).list(ignore_deletes=True)
            except NotFoundError:
                return []
            return sorted(each.name for each in found)
