"""Relations of a subscription to a Kafka topic, each once and in order.

The key of a message is the relation's id, the same for every subscriber and every run. A header says, by group of
subscriptions, up to which number relations have been sent. The last message of the partition tells a restart where to resume,
so relations that were sent but not acknowledged are not sent again. Another header has the sign of the delivery: -1 if it takes
the relation back (LATE REVISE). Both deliveries have the same key.

    1. read the header of the last message
    2. send the relations after it
    3. wait until Kafka has stored them
    4. acknowledge, and continue with 2

Takes: a durable subscription. Gives: messages in one partition, which preserves the order. Never: acknowledges a relation that
Kafka does not have.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from fairlead.dataclass import dataclass
from fairlead.errors import LogError, UsageError
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.kafka import brokers
from fairlead.runtime.live.core.deliveries import Batch
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.transport.files.documents import json_value
from fairlead.transport.output.cloud_events import JSON, STRUCTURED
from fairlead.transport.output.delivery_events import relation_event

SENT = "fairlead_sent"
SIGN = "fairlead_sign"
SEND_SECONDS = 30.0


@dataclass(frozen=True)
class Outlet:
    """`what`: relations, cloudevents (one for each relation), or emitted (the attributes of the derived event)."""

    brokers: str
    topic: str
    properties: Mapping[str, str]
    partition: int = 0
    what: str = "relations"


async def send_out(sub: LiveSubscription, outlet: Outlet, stop: asyncio.Event) -> int:
    """Runs until `stop` is set; returns the number of messages sent. Raises LogError, UsageError."""
    fixed = {"bootstrap.servers": outlet.brokers, "enable.idempotence": "true"}
    producer = Producer({"linger.ms": "5"} | brokers.configured(outlet.properties, fixed))
    sent = await asyncio.to_thread(_sent, outlet)  # 1
    count, stopped = 0, asyncio.create_task(stop.wait())
    try:
        while not stop.is_set():
            waiting = asyncio.create_task(sub.next_batch())
            await asyncio.wait((waiting, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                await asyncio.wait((waiting,))
                break
            count += await asyncio.to_thread(_send, producer, outlet, waiting.result(), sub.plan, sent)  # 2, 3
            await sub.ack(waiting.result())  # 4
    finally:
        stopped.cancel()
    return count


def _send(producer: Producer, outlet: Outlet, batch: Batch, plan: Plan, sent: dict[str, int]) -> int:
    failed: list[KafkaError] = []

    def told(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    count, write = 0, WRITTEN[outlet.what]
    for key, number, relation in batch.numbered():
        if number <= sent.get(key, 0):
            continue
        sent[key] = number
        media, value = write(relation, plan, number)
        headers: list[tuple[str, str | bytes | None]] = [
            ("content-type", media.encode()),
            (SIGN, str(relation.sign).encode()),
            (SENT, json.dumps(sent, sort_keys=True).encode()),
        ]
        body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        while True:
            try:
                producer.produce(outlet.topic, body, relation.id, partition=outlet.partition, headers=headers, on_delivery=told)
                break
            except BufferError:  # the producer's queue is full: wait for deliveries
                producer.poll(0.1)
            except KafkaException as error:
                raise brokers.fault(error.args[0]) from None
        producer.poll(0)
        count += 1
    left = producer.flush(SEND_SECONDS)
    if failed:
        raise brokers.fault(failed[0])
    if left:
        raise LogError(
            "N030", f"Kafka did not accept {left} messages in {SEND_SECONDS:.0f} seconds", "check that its brokers run"
        )
    return count


def _sent(outlet: Outlet) -> dict[str, int]:
    """By group, the number of the last relation in the topic. Raises UsageError if another writer uses the topic."""
    reader = brokers.consumer(outlet.brokers, {})
    try:
        if outlet.partition not in brokers.partitions(reader, outlet.topic):
            problem = f"the topic '{outlet.topic}' has no partition {outlet.partition}"
            raise UsageError("A281", problem, "use an existing partition")
        low, high = brokers.watermarks(reader, outlet.topic, outlet.partition)
        if low == high:
            return {}
        reader.assign([TopicPartition(outlet.topic, outlet.partition, high - 1)])
        (last,) = reader.consume(1, brokers.ANSWER_SECONDS) or (None,)
        if last is None or last.error() is not None:
            raise LogError("N030", "the last message of the topic is not readable", "check that Kafka's brokers run")
        told = dict(last.headers() or []).get(SENT)
        try:
            return {str(key): int(number) for key, number in json_value(told or b"").items()}
        except (ValueError, TypeError, AttributeError):
            problem = f"partition {outlet.partition} of '{outlet.topic}' holds messages that `fairlead kafka out` did not write"
            raise UsageError("A282", problem, "use another topic or partition") from None
    finally:
        reader.close()


def _emitted(relation: Relation, plan: Plan, number: int) -> tuple[str, Any]:
    return JSON, relation.to_json()["emitted"]


WRITTEN: Mapping[str, Callable[[Relation, Plan, int], tuple[str, Any]]] = {
    "relations": lambda relation, plan, number: (JSON, relation.to_json()),
    "cloudevents": lambda relation, plan, number: (STRUCTURED, relation_event(relation, plan, number)),
    "emitted": _emitted,
}
