"""The Kafka client: its settings, its errors in Fairlead's words, the partitions of a topic.

Takes: addresses and properties. Gives: configurations, partitions. Never: prints a property, which may be a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from fairlead.errors import LogError, UsageError

ANSWER_SECONDS = 10.0


def properties_of(path: str | None) -> dict[str, str]:
    """Lines `key=value` of a file; # begins a comment."""
    if path is None:
        return {}
    found: dict[str, str] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("A280", f"{path} is not readable: {error}", "use a file with key=value lines") from None
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            key, equals, value = line.partition("=")
            if not equals:
                raise UsageError("A280", "expected key=value", "see librdkafka's configuration", f"{path}, line {number}")
            found[key.strip()] = value.strip()
    return found


def consumer(brokers: str, properties: Mapping[str, str]) -> Consumer:
    """The consumer joins no group and commits nothing: the log knows which messages were read."""
    fixed = {
        "bootstrap.servers": brokers,
        "group.id": properties.get("group.id", "fairlead"),
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "auto.offset.reset": "error",
        "enable.partition.eof": "true",
        "queued.max.messages.kbytes": "16384",
    }
    return Consumer(configured(properties, fixed))


def configured(properties: Mapping[str, str], fixed: Mapping[str, str]) -> dict[str, str]:
    wrong = sorted(name for name in fixed if properties.get(name, fixed[name]) != fixed[name])
    if wrong:
        raise UsageError("A280", f"the property {wrong[0]} is set by Fairlead", "remove it")
    return dict(properties) | dict(fixed)


def partitions(client: Consumer, topic: str) -> list[int]:
    """The partitions of an existing topic. Raises LogError, UsageError."""
    try:
        found = client.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic]
    except KafkaException as error:
        raise fault(error.args[0]) from None
    if found.error is not None:
        raise UsageError("A281", f"the topic '{topic}' is not readable: {found.error.str()}", "use an existing topic")
    return sorted(found.partitions)


def watermarks(client: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """The first offset that is available, and the offset of the next message."""
    try:
        found = client.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_SECONDS)
    except KafkaException as error:
        raise fault(error.args[0]) from None
    if found is None:
        raise LogError("N030", "Kafka does not answer", "check that its brokers run")
    low, high = found
    return low, high


def fault(error: KafkaError) -> LogError:
    return LogError("N030", f"Kafka: {error.str()}", "check that its brokers run, and your permissions")
