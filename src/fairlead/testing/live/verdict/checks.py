"""The conditions that must hold after a run, whatever failed in between. Each check returns the problems, in words.

    stored     every source's events are in the log once, as they were sent, and all that were acknowledged; in the order of
               their type, and in that of publishing within a topic
    merged     merged streams have every block of their topics, in the order of the topics; shorter ones agree with longer ones
    delivered  each subscriber received exactly what an engine finds in the log, in that order; receipts agree
    derived    events that subscriptions EMIT are in the log once; in event time, when they are final
    kept       the property checkers, each over the subscriptions with that guarantee

Takes: a copy of the log and the records. Gives: problems. Never: stops at the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from itertools import combinations
from typing import Any

from fairlead.deliver.receipt import Receipt, ReceiptBook
from fairlead.engine import Engine
from fairlead.guarantees import Runtime, derive
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.model.events.types import Catalogue
from fairlead.model.guarantee import Property
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import PLUS, Relation
from fairlead.runtime.live.core.block_columns import columns_of
from fairlead.runtime.live.core.stream_groups import StreamGroup
from fairlead.testing.live.actors.publisher import key_of
from fairlead.testing.live.actors.records import Line
from fairlead.testing.live.verdict.deliveries import delivery_of
from fairlead.testing.live.verdict.event_time import due
from fairlead.testing.live.verdict.log_copy import (
    Copy,
    Name,
    Topics,
    first_of_each,
    first_positions,
    identities,
    in_one_order,
    name_of,
)
from fairlead.testing.live.verdict.trace import Subscriber
from fairlead.testing.properties.checkers import CHECKERS
from fairlead.testing.properties.trace import Trace
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.protocol import Stored


def stored(copy: Copy, catalogue: Catalogue, records: Mapping[str, Sequence[Line]]) -> list[str]:
    """`records`: by source."""
    problems = []
    for source, lines in records.items():
        mine = [each for blocks in copy.topics.values() for each in blocks if each.block.source == source]
        for lane in {(each.block.topic, each.block.type) for each in mine}:
            numbers = [each.block.number for each in mine if (each.block.topic, each.block.type) == lane]
            if numbers != list(range(len(numbers))):
                problems.append(f"the blocks of {lane[1]} from {source} are not numbered one by one: {_odd(numbers)}")
        for name in sorted({each["type"] for each in lines if "type" in each}):
            found = _rows(mine, catalogue, name)
            rows = [(row["k"], row["x"]) for row in found]
            wanted = [(key_of(source, name, x), x) for x in range(len(rows))]
            times = {(each["sent"], each["time"]) for each in lines if "sent" in each and each["type"] == name}
            other = next((row["x"] for row in found if (row["x"], row["at"].isoformat()) not in times), None)
            if other is not None:
                problems.append(f"event {other} of {name} from {source} has a time with which it was not sent")
            if rows != wanted:
                problems.append(f"the events of {name} from {source} are not as they were sent: {_first(rows, wanted)}")
            acknowledged = max((each["stored"] for each in lines if "stored" in each and each["type"] == name), default=0)
            if len(rows) < acknowledged:
                problems.append(f"{acknowledged} events of {name} from {source} were acknowledged, {len(rows)} are stored")
            sent = max((each["sent"] + 1 for each in lines if "sent" in each and each["type"] == name), default=0)
            if len(rows) > sent:
                problems.append(f"{sent} events of {name} from {source} were sent, {len(rows)} are stored")
        for topic, blocks in copy.topics.items():
            if (turned := _turned(blocks, source, lines)) is not None:
                problems.append(f"{turned} from {source} is stored in {topic} before an event that was published before it")
    return problems


def _turned(blocks: Sequence[Stored], source: str, lines: Sequence[Line]) -> str | None:
    """An event that was sent after another of its topic had been published, and is stored before it. What was sent again after
    a restart had not been stored before."""
    at = {who: position for position, who in identities(first_of_each(blocks)).items() if who[1] == source}
    last = {(each["type"], each["sent"]): number for number, each in enumerate(lines) if "sent" in each}
    reached = -1
    for number, each in enumerate(lines):
        if "sent" in each and last[each["type"], each["sent"]] == number:
            if at.get((each["type"], source, each["sent"]), reached + 1) <= reached:
                return f"event {each['sent']} of {each['type']}"
        elif "published" in each and last.get((each["type"], each["published"]), number) < number:
            reached = max(reached, at.get((each["type"], source, each["published"]), -1))
    return None


def _rows(blocks: Sequence[Stored], catalogue: Catalogue, name: str) -> list[dict[str, Any]]:
    """The events of a type."""
    table = columns_of(blocks, {name: catalogue[name]}, 0).tables.get(name)
    return [] if table is None else table.to_pylist()


def merged(copy: Copy) -> list[str]:
    problems = [
        f"a merged stream lacks block {number} of {name} from {source}" for _, name, source, number in copy.missing()[:3]
    ]
    whole = {topics: first_of_each(blocks) for topics, blocks in copy.streams.items()}
    for topics, blocks in whole.items():
        for topic in topics:
            if _names(blocks, (topic,)) != [name_of(each) for each in copy.topics[topic]]:
                problems.append(f"the stream of {', '.join(topics)} has {topic} in another order, or not all of it")
    for one, other in combinations(sorted(whole, key=len), 2):
        if other[: len(one)] == one and _names(whole[other], one) != _names(whole[one], one):
            problems.append(f"the streams of {', '.join(one)} and of {', '.join(other)} differ in their order")
    return problems


def expected(copy: Copy, group: StreamGroup, start: int | datetime | None = None) -> Sequence[Relation]:
    """The relations that engines find in the group's streams, part by part, in the merged order; in event time, all deliveries,
    with those that take relations back. `start`: where the subscriber begins; None is the beginning of the log."""
    if group.plan.order is not None:
        return due(copy, group)[0]
    parts = tuple(each.topics for each in group.parts)
    first = first_positions(copy, parts, start)
    key = parts, first, group.digest
    if key not in copy.matched:
        engines, catalogue = [Engine(each.plan) for each in group.parts], group.plan.catalogue
        found: list[Relation] = []
        for part, blocks in in_one_order(copy, parts):
            wanted = {name: catalogue[name] for name in group.parts[part].types}
            left = [each for each in blocks if each.sequence >= first[part] >> INDEX_BITS]
            found += engines[part].feed(columns_of(left, wanted, first[part]))
        copy.matched[key] = found
    return copy.matched[key]


def delivered(copy: Copy, who: Subscriber, receipts: Mapping[str, Receipt]) -> list[str]:
    """`receipts`: by group, the receipts of this subscriber in the log."""
    problems = [
        f"{who.name} was given nothing of {', '.join(each.names)}, {len(relations)} relations are due"
        for each in who.silent
        if (relations := expected(copy, each, who.start))
    ]
    for key, group in who.groups.items():
        relations = expected(copy, group, who.start)
        wanted = [each.id if each.sign == PLUS else f"-{each.id}" for each in relations]
        found = [delivery_of(line) for line in who.given[key].lines]
        if found != wanted:
            problems.append(f"{who.name} was given {len(found)} relations, {len(wanted)} are due: {_first(found, wanted)}")
        problems += _receipts(who.name, receipts.get(key), due_receipt(copy, group, who.start, relations))
    return problems


def due_receipt(copy: Copy, group: StreamGroup, start: int | datetime | None, relations: Sequence[Relation]) -> Receipt:
    """Receipts from different origins need not agree, so they name the origin, if it is not the beginning of the log."""
    first = first_positions(copy, [each.topics for each in group.parts], start)
    book = ReceiptBook(f"{group.digest}@{'+'.join(map(str, first))}" if any(first) else group.digest)
    book.note(delivery_words(relations))
    return book.receipt()


def _receipts(name: str, found: Receipt | None, wanted: Receipt) -> list[str]:
    if found is None:
        return [f"there is no receipt of {name}, it should be {wanted}"]
    other = [each.name for each in fields(wanted) if getattr(found, each.name) != getattr(wanted, each.name)]
    if not other:
        return []
    problem = f"the receipt of {name} is {found}, and should be {wanted}"
    return [problem if {"count", "digest"} & {*other} else f"{problem}: other {', '.join(other)}"]


def derived(catalogue: Catalogue, blocks: Sequence[Stored], name: str, relations: Iterable[Relation]) -> list[str]:
    """`blocks`: of the topic. `relations`: those whose derived events of the type `name` are due."""
    found, wanted = _rows(first_of_each(blocks), catalogue, name), [each.emitted for each in relations]
    if found != wanted:
        return [f"{len(found)} events of {name} are stored, {len(wanted)} are due: {_first(found, wanted)}"]
    return []


def kept(trace: Trace, plans: Mapping[str, Plan]) -> list[str]:
    """`plans`: by the name of the subscriber."""
    problems = []
    for each, check in CHECKERS.items():
        promised = {process.name for process in trace.processes if _promised(process.name, plans, each)}
        judged = replace(
            trace,
            processes=tuple(process for process in trace.processes if process.name in promised or not process.subscription),
            deliveries=tuple(delivery for delivery in trace.deliveries if delivery.process in promised),
        )
        found = check(judged)
        problems += [str(found)] if found is not None else []
    return problems


def _promised(process: str, plans: Mapping[str, Plan], wanted: Property) -> bool:
    subscriber, _, subscription = process.partition("/")
    verdicts = derive(plans[subscriber], Runtime.LIVE)[subscription] if subscription else ()
    return any(each.property is wanted and each.kept for each in verdicts)


def _names(blocks: Iterable[Stored], topics: Topics) -> list[Name]:
    return [name_of(each) for each in blocks if each.block.topic in topics]


def _odd(numbers: Sequence[int]) -> str:
    at = next(at for at, number in enumerate(numbers) if at != number)
    return f"{numbers[at]} stands where {at} should"


def _first(found: Sequence[object], wanted: Sequence[object]) -> str:
    for at, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if one != other:
            return f"number {at + 1} is {one}, not {other}"
    return f"they agree in the first {min(len(found), len(wanted))}"
