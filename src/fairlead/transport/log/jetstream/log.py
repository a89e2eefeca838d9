"""A log in a NATS server or cluster (JetStream).

A topic's stream has subjects `fl.e.<topic>.<type>.<source>` followed by the letters of a block (block_filter.py), by which
readers filter. A merged stream sources two others (names.py); the server does this by itself, without clients. A block is
appended on condition that the last block of its source, of any type and with any letters, is the expected one. So a block that
is sent again because an answer was lost is rejected, at any later time, and two publishers with the same name are detected.

Takes: a URL and credentials. Gives: the protocol of a log. Never: drops stored blocks (appending fails when a stream is full).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from nats.aio.client import Client
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RawStreamMsg,
    StorageType,
    StreamConfig,
    StreamInfo,
    StreamSource,
)
from nats.js.errors import APIError, NotFoundError

from fairlead.transport.log import names
from fairlead.transport.log.blocks.block import Block, block_of
from fairlead.transport.log.blocks.block_filter import MIXED, Only
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.connection import connected
from fairlead.transport.log.jetstream.failures import Refusals, translated
from fairlead.transport.log.jetstream.merge_watch import Watching, behind_of
from fairlead.transport.log.jetstream.reader import Parse, Readers, read
from fairlead.transport.log.jetstream.tables import Tables
from fairlead.transport.log.protocol import Conflict, MergeLag, Stored, Stream

DUPLICATES_SECONDS = 600.0
ANSWER_SECONDS = 5.0
NAME_IN_USE = 10058
LIST = "$JS.API.STREAM.LIST"


class JetStreamLog:
    """Made by `connect`."""

    def __init__(self, client: Client, readers: Readers, refusals: Refusals, replicas: int, parse: Parse = block_of) -> None:
        self._parse = parse
        self._client, self._readers, self._refusals, self._replicas = client, readers, refusals, replicas
        self._js = client.jetstream(timeout=ANSWER_SECONDS)
        self._tables = Tables(self._js, replicas, refusals)
        self._opened: dict[str, Stream] = {}
        self.bytes_max = client.max_payload - 2048
        self.get = self._tables.get
        self.remove = self._tables.remove
        self.keys = self._tables.keys
        self.put_object = self._tables.put_object
        self.get_object = self._tables.get_object
        self.remove_object = self._tables.remove_object
        self.objects = self._tables.objects

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        return await self._tables.put(table, key, value, revision)

    async def open_topics(self, topics: Sequence[str]) -> Stream:
        """Creates the streams along the order of the topics, so that the shorter ones exist as sources."""
        first, *others = sorted(topics)
        opened = await self._topic(first)
        for at, name in enumerate(others, 2):
            await self._topic(name)
            part = sorted(topics)[:at]
            sources = [StreamSource(name=each) for each in names.merged_sources(part)]
            opened = await self._open(names.merged_stream(part), sources=sources, metadata={"topics": " ".join(part)})
        return opened

    async def _topic(self, name: str) -> Stream:
        return await self._open(names.topic_stream(name), subjects=[names.topic_subjects(name)], metadata={"topics": name})

    async def _open(self, name: str, **more: Any) -> Stream:
        """Creates the stream on first use. Two clients that create it at the same time ask for the same stream, and both get
        it. Topics are permanent; merged streams may have been swept."""
        if name in self._opened:
            return self._opened[name]
        with translated(self._refusals):
            try:
                found = await self._js.stream_info(name)
            except NotFoundError:
                found = await self._made(name, more)
        if "sources" not in more:
            self._opened[name] = stream_of(found)
        return stream_of(found)

    async def _made(self, name: str, more: dict[str, Any]) -> StreamInfo:
        config = StreamConfig(
            name=name,
            storage=StorageType.FILE,
            num_replicas=self._replicas,
            discard=DiscardPolicy.NEW,
            allow_direct=True,
            duplicate_window=DUPLICATES_SECONDS,
            **more,
        )
        try:
            return await self._js.add_stream(config)
        except APIError as error:
            if error.err_code == NAME_IN_USE:
                return await self._js.stream_info(name)
            raise

    async def append(self, block: Block, after: int) -> int:
        """The server compares with the last block of the source under any type and letters. All clients name the subjects in
        the same way: servers of a cluster detect concurrent attempts by that."""
        headers = block.headers() | {
            "Nats-Expected-Last-Subject-Sequence": str(after),
            "Nats-Expected-Last-Subject-Sequence-Subject": names.source_subjects(block.topic, block.source),
        }
        with translated(self._refusals):
            subject = names.subject(block.topic, block.type, block.source, block.letters)
            asked = self._js.publish(subject, block.payload, timeout=ANSWER_SECONDS, headers=headers)
            answer = await self._refusals.heeded(asked, subject)
        if answer.duplicate:
            raise Conflict(f"the log has a block {block.id}")  # the caller finds out whose it is
        return answer.seq

    async def last_of(
        self, topic: str, source: str | None, type: str | None = None, merged: Stream | None = None
    ) -> Stored | None:
        stream = names.topic_stream(topic) if merged is None else merged.name
        with translated(self._refusals):
            found = await self._last(stream, names.source_subjects(topic, source, type))
        if found is None:
            return None
        return Stored(
            found.seq or 0, 0, block_of(found.headers, found.data or b"", found.subject or "", f"{stream} {found.seq}")
        )

    async def _last(self, stream: str, subjects: str) -> RawStreamMsg | None:
        try:
            return await self._js.get_last_msg(stream, subjects)  # from the leader: a replica may lag behind
        except NotFoundError:
            return None

    async def sources(self, topic: str) -> list[str]:
        with translated(self._refusals):
            try:
                found = await self._js.stream_info(names.topic_stream(topic), subjects_filter=names.topic_subjects(topic))
            except NotFoundError:
                return []
        return sorted({names.source_of(each) for each in found.state.subjects or ()})

    async def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        subjects = None if only is None else wanted_subjects(only)
        watching = asyncio.create_task(self._watched(stream))
        try:
            whole = read(self._client, self._js, self._readers, self._refusals, stream, after, subjects, self._parse)
            async with aclosing(whole) as reading:
                async for some in reading:
                    yield some
        finally:
            watching.cancel()

    async def _watched(self, stream: Stream) -> None:
        if self._replicas > 1 and stream.name.startswith(names.MERGED):
            await Watching(self._client, self._js, self._refusals, stream.name).run()

    async def last(self, stream: Stream, only: Only | None = None) -> int:
        with translated(self._refusals):
            if only is None:
                return (await self._js.stream_info(stream.name)).state.last_seq
            found = [await self._last(stream.name, each) for each in wanted_subjects(only)]
        return max((each.seq or 0 for each in found if each is not None), default=0)

    async def before(self, stream: Stream, time: int) -> int:
        """Uses a consumer that begins at that time: the sequence of its first block, less one."""
        at = datetime.fromtimestamp(time // 1_000_000, UTC).replace(microsecond=time % 1_000_000)
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=at, ack_policy=AckPolicy.NONE, mem_storage=True
        )
        with translated(self._refusals):
            made = await self._js.add_consumer(stream.name, config)
            await self._js.delete_consumer(stream.name, made.name)
        return made.delivered.stream_seq if made.delivered else 0

    async def merged(self) -> list[Stream]:
        return [stream_of(each) for each in await self._every_merged()]

    async def behind(self) -> list[MergeLag]:
        return behind_of(await self._every_merged())

    async def _every_merged(self) -> list[StreamInfo]:
        found: list[StreamInfo] = []
        with translated(self._refusals):
            while every := await self._refusals.heeded(self._js.streams_info(offset=len(found)), LIST):
                found += every
        return [each for each in found if (each.config.name or "").startswith(names.MERGED)]

    async def remove_stream(self, stream: Stream) -> None:
        with translated(self._refusals):
            await self._js.delete_stream(stream.name)

    async def close(self) -> None:
        if not self._client.is_closed:
            await self._client.close()


def stream_of(info: StreamInfo) -> Stream:
    return Stream(info.config.name or "", "" if info.created is None else info.created.isoformat())


def wanted_subjects(only: Only) -> list[str]:
    found = [names.type_subjects(MIXED)]
    for each in only.types:
        route = only.routes.get(each)
        found += [names.type_subjects(each)] if route is None else names.route_subjects(each, route)
    return found


async def connect(url: str, access: Credentials, replicas: int, parse: Parse = block_of) -> JetStreamLog:
    """Raises LogError if no server answers, or the server denies access."""
    refusals, readers = Refusals(), Readers()
    client = await connected(url, access, refusals.note, readers.reconnected)
    return JetStreamLog(client, readers, refusals, replicas, parse)
