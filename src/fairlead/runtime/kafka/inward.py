"""From a Kafka topic into the log: every message is an event of one type, stored once.

A partition is a source, and an offset is its sequence. So the log itself knows how far each partition was read, and a restart
resumes exactly there, whatever was interrupted. Kafka stores no offsets for it.

    1. look up in the log the next offset of every partition; it must still be available
    2. poll some messages
    3. convert them to events
    4. store them, partition by partition; then continue with 2

Messages are JSON objects with the attributes of the type, or CloudEvents (structured, or binary with headers ce_…).

Takes: a topic. Gives: events in the log, in the order of each partition. Never: silently skips a message that Kafka has dropped
before it was read (N021).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from fairlead.dataclass import dataclass
from fairlead.errors import DataError, LogError
from fairlead.runtime.kafka import brokers
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.publisher.event_check import EventCheck, Row
from fairlead.runtime.live.publisher.publisher import Publisher
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.numbered import Numbered, source_name
from fairlead.transport.admission.problems import SPECIAL, at
from fairlead.transport.admission.record_check import Shapes
from fairlead.transport.files.json_lines import floats
from fairlead.transport.output.cloud_events import CloudEvents

Result = TypeVar("Result")
MESSAGES = 4096
"""Messages of one poll: as many as a block has events."""
WAIT_SECONDS = 0.2
LOOK_SECONDS = 30.0
"""How often to look for new partitions."""


@dataclass(frozen=True)
class Topic:
    """`skip`: called with the error of each bad message, which is then skipped; without it, the first one stops. `until_end`:
    stop at the end that the topic had at the beginning."""

    brokers: str
    name: str
    type: str
    properties: Mapping[str, str]
    source: str = "kafka"
    skip: Callable[[DataError], None] | None = None
    until_end: bool = False


async def bring_in(client: Client, topic: Topic, stop: asyncio.Event) -> int:
    """Runs until `stop` is set; returns the number of events stored. Raises DataError, LogError, UsageError."""
    registry = Registry(client.log)
    publisher = Publisher(client.log, registry, None, 0.0, 1.0)
    check = await publisher.check_of(topic.type)
    await publisher.close(flush=False)
    taking = Taking(client, topic, check, MessageReader(registry, topic.type))
    try:
        while not stop.is_set() and not (topic.until_end and taking.done):
            await taking.look()  # 1
            messages = await taking.call(taking.consumer.consume, MESSAGES, WAIT_SECONDS)  # 2
            await taking.take(messages)
        return taking.stored
    finally:
        await taking.close()


class MessageReader:
    """Messages to records."""

    def __init__(self, registry: Registry, type: str) -> None:
        self._type = type
        self._events = CloudEvents(registry.catalogue, prefix=None)
        self._shapes = Shapes(registry.catalogue, allow_nan=True)

    def record(self, message: Message) -> dict[str, Any]:
        """Raises DataError without a place."""
        value = message.value()
        if value is None:
            raise DataError("D009", "the message has no value", "skip such messages: --on-bad skip")
        headers = {name.replace("ce_", "ce-", 1): (each or b"").decode("utf-8", "replace") for name, each in _headers(message)}
        kind = headers.get("content-type", "")
        if kind.startswith("application/cloudevents") or "ce-specversion" in headers:
            (found,) = self._events.read(headers, value)[:1]
            record = found.record
        else:
            record = self._events.parse(value, "the message")
            if not isinstance(record, dict):
                raise DataError("D009", "the message is not a JSON object", "send {attribute: value, …}")
            record.setdefault("type", self._type)
            if self._shapes.needs_decimal:
                floats(record, self._shapes)
        if record["type"] != self._type:
            raise DataError("D026", f"the message is a '{record['type']}', not a '{self._type}'", "send it to another topic")
        return {name: each for name, each in record.items() if name not in SPECIAL}


class Taking:
    def __init__(self, client: Client, topic: Topic, check: EventCheck, reading: MessageReader) -> None:
        self._client, self._topic, self._check, self._reading = client, topic, check, reading
        self.consumer: Consumer = brokers.consumer(topic.brokers, topic.properties)
        self._thread = ThreadPoolExecutor(1)
        self._sources: dict[int, Numbered] = {}
        self._left: dict[int, int] = {}
        self._looked: float | None = None
        self.stored = 0

    async def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Runs the call in a thread, one at a time: the consumer is not closed while it waits for messages."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    async def close(self) -> None:
        await self.call(self.consumer.close)
        self._thread.shutdown()

    @property
    def done(self) -> bool:
        """Everything that was there at the beginning is read."""
        return self._looked is not None and not self._left

    async def look(self) -> None:
        """Assign new partitions, each at the offset after its last stored event."""
        now = asyncio.get_running_loop().time()
        if self._looked is not None and now - self._looked < LOOK_SECONDS:
            return
        for number in await self.call(brokers.partitions, self.consumer, self._topic.name):
            if number not in self._sources:
                await self._take_up(number)
        self._looked = now

    async def _take_up(self, number: int) -> None:
        name, log = self._topic.name, self._client.log
        kind = self._check.type
        source = Numbered(log, kind.topic, kind.name, source_name(f"{self._topic.source}-{name}-{number}"), 60.0)
        after = await source.next()
        low, high = await self.call(brokers.watermarks, self.consumer, name, number)
        if after > high or (0 < after < low):
            there = f"Kafka has {low:,} to {high:,}, and {after:,} comes next"
            fix = "restore the topic, or read it as new under another --source"
            raise LogError("N031", f"messages of '{name}', partition {number}, have been deleted: {there}", fix)
        self._sources[number] = source
        begin = max(after, low)
        if begin < high:
            self._left[number] = high
        await self.call(self.consumer.incremental_assign, [TopicPartition(name, number, begin)])

    async def take(self, messages: Sequence[Message]) -> None:
        rows: dict[int, tuple[list[Row], list[int]]] = {}
        bad: DataError | None = None
        for message in messages:
            partition, offset = int(message.partition() or 0), int(message.offset() or 0)
            if message.error() is not None:
                self._heard(message.error(), partition)
                continue
            try:
                row = self._check.row(self._reading.record(message))  # 3
            except DataError as error:
                found = at(error, f"topic '{self._topic.name}', partition {partition}, offset {offset}")
                if self._topic.skip is None:
                    bad = found
                    break
                self._topic.skip(found)
            else:
                kept = rows.setdefault(partition, ([], []))
                kept[0].append(row)
                kept[1].append(offset)
            if offset + 1 >= self._left.get(partition, offset + 2):
                del self._left[partition]
        for partition, (events, offsets) in sorted(rows.items()):  # 4
            batch = self._check.batch(events)
            self.stored += await self._sources[partition].store(batch, offsets, self._check.schema)
        if bad is not None:
            raise bad

    def _heard(self, error: KafkaError | None, partition: int) -> None:
        """Raises for fatal errors; the Kafka client retries the others."""
        if error is None:
            return
        if error.code() == KafkaError._PARTITION_EOF:
            self._left.pop(partition, None)
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            fix = "restore the topic, or read it as new under another --source"
            raise LogError("N031", f"messages were deleted before they were read: {error.str()}", fix)
        elif error.fatal() or not (error.retriable() or error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)):
            raise brokers.fault(error)


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    return list(message.headers() or [])  # type: ignore[arg-type]
