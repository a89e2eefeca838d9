"""Kafka for the tests: the mock brokers of its own client, which keep everything in memory, and speak over real sockets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.waiting import wait_until


class Kafka:
    def __init__(self) -> None:
        self._producer = Producer({"test.mock.num.brokers": "1", "linger.ms": "0"})
        found = self._producer.list_topics(timeout=10).brokers
        self.brokers = ",".join(f"{each.host}:{each.port}" for each in found.values())

    def topic(self, name: str) -> None:
        """Mock brokers make a topic when they are asked for it, with four partitions."""
        wait_until(lambda: self._producer.list_topics(name, timeout=10).topics[name].error is None)

    def send(self, topic: str, values: Sequence[Any], partition: int = 0, headers: Any = None) -> None:
        for each in values:
            body = each if each is None or isinstance(each, bytes) else json.dumps(each).encode()
            self._producer.produce(topic, body, partition=partition, headers=headers)
        assert self._producer.flush(10) == 0

    def received(self, topic: str, count: int) -> list[Any]:
        """The messages of partition 0, so many, and no more."""
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": "test", "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Any] = []
        while len(found) < count and (some := consumer.consume(count - len(found), 10)):
            found += some
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, len(found))
        consumer.close()
        return found
