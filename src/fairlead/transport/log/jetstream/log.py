"""A log in a NATS server or cluster (JetStream).

A topic's stream has subjects `fl.e.<topic>.<type>.<source>` followed by the letters of a block (block_filter.py), by which
readers filter. A merged stream sources two others (names.py); the server does this by itself, without clients. A block is
appended on condition that the last block of its source, of any type and with any letters, is the expected one. So a block that
is sent again because an answer was lost is refused, at any later time, and two publishers with the same name are detected. What
was stored without such a condition is no block (predecessor.py). Nobody can delete single blocks: the streams deny it. To trim
a topic, its first blocks are purged; that needs a permission which publishers and subscribers do not.

Takes: a URL and credentials. Gives: the protocol of a log. Never: drops stored blocks by itself (appending fails when a
stream is full).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
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
    RePublish,
    StorageType,
    StreamConfig,
    StreamInfo,
    StreamSource,
)
from nats.js.errors import APIError, NotFoundError

from fairlead.errors import DataError, LogError
from fairlead.model.events.values import microseconds
from fairlead.transport.log import names
from fairlead.transport.log.blocks.block import Block, block_of, rejected_block
from fairlead.transport.log.blocks.block_filter import MIXED, Only
from fairlead.transport.log.blocks.repeats import REPEATED, answered, without_repeats
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.connection import connected
from fairlead.transport.log.jetstream.direct_reader import first_since, last_direct
from fairlead.transport.log.jetstream.failures import Refusals, translated, waited
from fairlead.transport.log.jetstream.last_blocks import last_block
from fairlead.transport.log.jetstream.merge_watch import Watching, behind_of
from fairlead.transport.log.jetstream.merged_reader import copied_from, read_merged
from fairlead.transport.log.jetstream.predecessor import MARKS, PRESENT, TopicForm, form_of, headers_of, subject_of
from fairlead.transport.log.jetstream.reader import Connection, Parse, Readers
from fairlead.transport.log.jetstream.reports import made_of, report_of, with_subjects
from fairlead.transport.log.jetstream.stream_reads import read, taking
from fairlead.transport.log.jetstream.tables import Tables
from fairlead.transport.log.protocol import MergeLag, Stored, Stream, StreamState
from fairlead.transport.log.stream_health import problem_of
from fairlead.transport.log.trims import TableReader, TrimRecord, trim_record

LOGGER = logging.getLogger("fairlead")
DUPLICATES_SECONDS = 0.1
"""The shortest time for which a server looks for repeated message ids, which blocks do not have."""
ANSWER_SECONDS = 5.0
NAME_IN_USE = 10058
GONE = ("N010", "N022")
"""The stream is not the one that was opened."""
LIST = "$JS.API.STREAM.LIST"


class JetStreamLog:
    """Made by `connect`."""

    def __init__(
        self, client: Client, readers: Readers, refusals: Refusals, replicas: int, parse: Parse | None, owner: str = ""
    ) -> None:
        self._parse, self.owner = parse, owner
        self._client, self._readers, self._refusals, self._replicas = client, readers, refusals, replicas
        self._js = client.jetstream(timeout=ANSWER_SECONDS)
        self._tables = Tables(client, self._js, replicas, refusals)
        self._way = Connection(client, self._js, readers, refusals)
        self._opened: dict[str, Stream] = {}
        self._forms: dict[str, TopicForm] = {}
        self._own_only: set[str] = set()
        self.bytes_max = client.max_payload - 2048
        self.records: TableReader = self
        """Where this log itself looks up what was trimmed."""
        self.get = self._tables.get
        self.revision_of = self._tables.revision_of
        self.remove = self._tables.remove
        self.keys = self._tables.keys
        self.now = self._tables.now
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
        return await self._open(
            names.topic_stream(name), subjects=[names.topic_subjects(name)], metadata={"topics": name} | MARKS
        )

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
            self._forms[name] = form_of(found.config.metadata)
        return stream_of(found)

    async def _made(self, name: str, more: dict[str, Any]) -> StreamInfo:
        config = StreamConfig(
            name=name,
            storage=StorageType.FILE,
            num_replicas=self._replicas,
            discard=DiscardPolicy.NEW,
            allow_direct=True,
            deny_delete=True,
            duplicate_window=DUPLICATES_SECONDS,
            republish=RePublish(src=">", dest=names.wake_subjects(name), headers_only=True),
            **more,
        )
        try:
            return await self._js.add_stream(config)
        except APIError as error:
            if error.err_code == NAME_IN_USE:
                return await self._js.stream_info(name)
            raise

    async def append(self, block: Block, after: int) -> int:
        """The server compares with the last message of the source under any type and letters."""
        with translated(self._refusals):
            form = await self._form_of(names.topic_stream(block.topic)) if names.is_derived(block.source) else PRESENT
            subject = subject_of(block, apart=form.apart)
            headers = block.headers() | form.condition(block, after)
            asked = self._js.publish(subject, block.payload, timeout=ANSWER_SECONDS, headers=headers)
            answer = await self._refusals.heeded(asked, subject)
        return answer.seq

    async def last_of(self, topic: str, source: str | None, type: str | None = None) -> Stored | None:
        with translated(self._refusals):
            found = await self._last(names.topic_stream(topic), await self._subjects(topic, source, type))
            return None if found is None else (await without_repeats(self.records, [found]))[0]

    async def _subjects(self, topic: str, source: str | None, type: str | None) -> str:
        form = await self._form_of(names.topic_stream(topic)) if source and names.is_derived(source) else PRESENT
        return names.source_subjects(topic, source, type, apart=form.apart)

    async def last_block_of(self, topic: str, source: str, type: str | None = None) -> Stored | None:
        found = await self.last_of(topic, source, type)
        if found is None or not found.block.rejected:
            return found
        await self._topic(topic)
        stream, parse = await self.topic_of(names.topic_stream(topic))
        with translated(self._refusals):
            subjects = await self._subjects(topic, source, type)
            last = await last_block(self._way, stream, subjects, found.sequence, parse)
            if last is None or (await without_repeats(self.records, [last]))[0].block.rejected:
                return None  # one that names no block before it has none
            return last

    async def _last_message(self, stream: str, subjects: str) -> RawStreamMsg | None:
        """From the leader: a replica may lag behind. A client that may read its own blocks only asks under their subject."""
        asked, subject = self._js.get_last_msg(stream, subjects), f"$JS.API.STREAM.MSG.GET.{stream}"
        try:
            if stream not in self._own_only:
                try:
                    return await self._refusals.heeded(asked, subject)
                except LogError as error:
                    if error.code != "N003":
                        raise
                    self._own_only.add(stream)
            else:
                asked.close()
            return await last_direct(self._way, stream, subjects)
        except NotFoundError:
            return None

    async def _last(self, stream: str, subjects: str) -> Stored | None:
        found = await self._last_message(stream, subjects)
        if found is None:
            return None
        parse = await self._parse_of(stream)
        try:
            block = parse(headers_of(found), found.data or b"", found.subject or "", f"{stream} {found.seq}")
        except DataError as error:
            block = rejected_block(error.code, found.subject or "")
        return Stored(found.seq or 0, 0 if found.time is None else microseconds(found.time), block)

    async def _parse_of(self, stream: str) -> Parse:
        """How a message of a stream is read by itself; of a merged stream, without the rule of topics."""
        if self._parse is not None:
            return self._parse
        return block_of if stream.startswith(names.MERGED) else (await self._form_of(stream)).block

    async def _form_of(self, stream: str) -> TopicForm:
        if stream not in self._forms:
            try:
                self._forms[stream] = form_of((await self._js.stream_info(stream)).config.metadata)
            except NotFoundError:
                return PRESENT  # as it will be created
        return self._forms[stream]

    async def topic_of(self, name: str) -> tuple[Stream, Parse]:
        """The stream of a topic, by its own name, and how its messages are read."""
        found = await waited(self._refusals, lambda: self._js.stream_info(name))
        self._forms[name] = form_of(found.config.metadata)
        return stream_of(found), await self._parse_of(name)

    async def copied(self, stream: Stream, topic: str) -> int:
        with translated(self._refusals):
            try:
                found = await self._js.get_last_msg(stream.name, names.topic_subjects(topic))
            except NotFoundError:
                return 0
            return await self._origin(headers_of(found), topic)

    async def _origin(self, headers: Mapping[str, str], topic: str) -> int:
        """The sequence in its topic of a message of a merged stream."""
        origin = copied_from(headers)
        while origin[0] != names.topic_stream(topic):
            origin = await self.origin_of(*origin)
        return origin[1]

    async def record_of(self, stream: str) -> TrimRecord:
        return await answered(lambda: trim_record(self.records, stream))

    async def judged(self, block: Stored) -> Stored:
        return (await without_repeats(self.records, [block]))[0]

    async def origin_of(self, stream: str, sequence: int) -> tuple[str, int]:
        return copied_from(headers_of(await waited(self._refusals, lambda: self._js.get_msg(stream, sequence))))

    async def sources(self, topic: str) -> list[str]:
        with translated(self._refusals):
            try:
                found = await with_subjects(self._client, self._js, names.topic_stream(topic), names.topic_subjects(topic))
            except NotFoundError:
                return []
        return sorted({names.source_of(each) for each in found.state.subjects or ()})

    async def read(self, stream: Stream, after: int, only: Only | None = None) -> AsyncIterator[Sequence[Stored]]:
        subjects = None if only is None else wanted_subjects(only)
        watching = asyncio.create_task(self._watched(stream))
        try:
            if stream.name.startswith(names.MERGED):
                whole = read_merged(self._way, self, stream, after, subjects)
            else:
                parse = await waited(self._refusals, lambda: self._parse_of(stream.name))
                whole = read(self._way, stream, after, taking(stream, parse), subjects)
            async with aclosing(whole) as reading:
                async for some in reading:
                    judged = await without_repeats(self.records, some)
                    for each in judged:
                        if each.block.rejected == REPEATED:
                            LOGGER.warning("%s %s %d: skipped by every reader", REPEATED, stream.name, each.sequence)
                    yield judged
        except LogError as error:
            if error.code in GONE:
                self._opened.pop(stream.name, None)
            raise
        finally:
            watching.cancel()

    async def heads(self, stream: Stream, after: int, last: int) -> AsyncIterator[Sequence[Stored]]:
        if stream.name.startswith(names.MERGED):
            whole = read_merged(self._way, self, stream, after, None, headers_only=True)
        else:
            parse = await waited(self._refusals, lambda: self._parse_of(stream.name))
            whole = read(self._way, stream, after, taking(stream, parse), headers_only=True)
        async with aclosing(whole) as reading:
            while after < last:
                found = await anext(reading)
                after = found[-1].sequence
                yield await without_repeats(self.records, [each for each in found if each.sequence <= last])

    async def state(self, stream: Stream) -> StreamState:
        with translated(self._refusals):
            found = (await self._js.stream_info(stream.name)).state
        return StreamState(max(1, found.first_seq), found.last_seq, found.bytes)

    async def count(self, stream: Stream, after: int, topic: str) -> int:
        """Topics are without gaps, so the first copy and the last one say how many there are, as far as the server has
        merged."""
        with translated(self._refusals):
            try:
                found = await self._js.get_msg(stream.name, after + 1, subject=names.topic_subjects(topic), next=True)
            except NotFoundError:
                return 0
            first = await self._origin(headers_of(found), topic)
        return await self.copied(stream, topic) - first + 1

    async def trim(self, stream: Stream, first: int) -> None:
        """A purge up to a sequence, which is exact whatever is appended meanwhile; limits of the stream are not."""
        subject = f"$JS.API.STREAM.PURGE.{stream.name}"
        with translated(self._refusals):
            await self._refusals.heeded(self._js.purge_stream(stream.name, seq=first), subject)

    async def _watched(self, stream: Stream) -> None:
        if self._replicas > 1 and stream.name.startswith(names.MERGED):
            await Watching(self._client, self._js, self._refusals, stream.name).run()

    async def last(self, stream: Stream, only: Only | None = None) -> int:
        with translated(self._refusals):
            if only is None:
                return (await self._js.stream_info(stream.name)).state.last_seq
            found = [await self._last(stream.name, each) for each in wanted_subjects(only)]
        return max((each.sequence for each in found if each is not None), default=0)

    async def check(self, stream: Stream, sequence: int, time: int) -> None:
        with translated(self._refusals):
            report, _ = await report_of(self._client, self._js, stream, sequence, time)
        problem = problem_of(stream, sequence, time, report)
        if problem is not None:
            self._opened.pop(stream.name, None)
            raise problem

    async def before(self, stream: Stream, time: int) -> int:
        """Uses a consumer that begins at that time: the sequence of its first block, less one. Or a direct request."""
        at = datetime.fromtimestamp(time // 1_000_000, UTC).replace(microsecond=time % 1_000_000)
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=at, ack_policy=AckPolicy.NONE, mem_storage=True
        )
        with translated(self._refusals):
            try:
                if stream.name not in self._readers.direct:
                    asked, subject = self._js.add_consumer(stream.name, config), f"$JS.API.CONSUMER.CREATE.{stream.name}"
                    made = await self._refusals.heeded(asked, subject)
                    await self._js.delete_consumer(stream.name, made.name)
                    return made.delivered.stream_seq if made.delivered else 0
            except LogError as error:
                if error.code != "N003":
                    raise
                self._readers.direct.add(stream.name)
            last = (await self._js.stream_info(stream.name)).state.last_seq  # first: later ones are not before that time
            found = await first_since(self._way, stream.name, time)
        return last if found is None else found - 1

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
    return Stream(info.config.name or "", made_of(info))


def wanted_subjects(only: Only) -> list[str]:
    found = [names.type_subjects(MIXED)]
    for each in only.types:
        route = only.routes.get(each)
        found += [names.type_subjects(each)] if route is None else names.route_subjects(each, route)
    return found


async def connect(url: str, access: Credentials, replicas: int, parse: Parse | None = None) -> JetStreamLog:
    """Raises LogError if no server answers, or the server denies access."""
    readers = Readers(refusals := Refusals())
    client = await connected(url, access, refusals.note, readers.reconnected)
    return JetStreamLog(client, readers, refusals, replicas, parse, access.owner or "")
