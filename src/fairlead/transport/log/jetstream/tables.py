"""Tables and objects in a NATS server: its key-value and object stores, created on first use.

Takes: small values under a key, large ones under a name. Gives: the stored values. Never: keeps more than the newest value.
"""

from __future__ import annotations

from nats.js import JetStreamContext
from nats.js.api import KeyValueConfig, ObjectStoreConfig, StorageType
from nats.js.errors import (
    BucketNotFoundError,
    KeyDeletedError,
    KeyNotFoundError,
    NotFoundError,
    ObjectDeletedError,
    ObjectNotFoundError,
)
from nats.js.kv import KeyValue
from nats.js.object_store import ObjectStore

from fairlead.transport.log.jetstream.failures import Refusals, translated
from fairlead.transport.log.protocol import TableEntry, Unavailable


class Tables:
    def __init__(self, js: JetStreamContext, replicas: int, refusals: Refusals) -> None:
        self._js, self._replicas, self._refusals = js, replicas, refusals
        self._tables: dict[str, KeyValue] = {}
        self._stores: dict[str, ObjectStore] = {}

    async def _table(self, name: str) -> KeyValue:
        if name not in self._tables:
            try:
                self._tables[name] = await self._js.key_value(name)
            except (BucketNotFoundError, NotFoundError):
                config = KeyValueConfig(name, history=1, storage=StorageType.FILE, replicas=self._replicas, direct=False)
                self._tables[name] = await self._js.create_key_value(config)
        return self._tables[name]

    async def _store(self, name: str) -> ObjectStore:
        if name not in self._stores:
            try:
                self._stores[name] = await self._js.object_store(name)
            except (BucketNotFoundError, NotFoundError):
                config = ObjectStoreConfig(name, storage=StorageType.FILE, replicas=self._replicas)
                self._stores[name] = await self._js.create_object_store(name, config)
        return self._stores[name]

    async def get(self, table: str, key: str) -> TableEntry | None:
        with translated(self._refusals):
            try:
                found = await (await self._table(table)).get(key)
            except (KeyNotFoundError, KeyDeletedError):
                return None
            return TableEntry(found.value or b"", found.revision or 0)

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

    async def remove(self, table: str, key: str) -> None:
        with translated(self._refusals):
            await (await self._table(table)).purge(key)

    async def keys(self, table: str) -> list[str]:
        with translated(self._refusals):
            await self._table(table)
            prefix = f"$KV.{table}."  # from the leader of its stream; the client's own method, a consumer, may end early
            found = await self._js.stream_info(f"KV_{table}", subjects_filter=f"{prefix}>")
            return sorted(each.removeprefix(prefix) for each in found.state.subjects or {})

    async def put_object(self, store: str, name: str, value: bytes) -> None:
        with translated(self._refusals):
            await self._refusals.heeded((await self._store(store)).put(name, value), f"$O.{store}")

    async def get_object(self, store: str, name: str) -> bytes | None:
        with translated(self._refusals):
            try:
                return (await (await self._store(store)).get(name)).data
            except (ObjectNotFoundError, ObjectDeletedError, NotFoundError):
                return None

    async def remove_object(self, store: str, name: str) -> None:
        with translated(self._refusals):
            try:
                await (await self._store(store)).delete(name)
            except (ObjectNotFoundError, NotFoundError):
                return

    async def objects(self, store: str) -> list[str]:
        with translated(self._refusals):
            try:
                found = await (await self._store(store)).list(ignore_deletes=True)
            except NotFoundError:
                return []
            return sorted(each.name for each in found)
