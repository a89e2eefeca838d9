"""The checks of the failure suite find what they are there for: each is given a run in which something went wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import fairlead
from fairlead.deliver.receipt import ReceiptBook
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.testing.live.actors.jitter import time_of
from fairlead.testing.live.actors.publisher import key_of
from fairlead.testing.live.actors.setting import STREAMS, TYPES
from fairlead.testing.live.verdict import checks
from fairlead.testing.live.verdict.comparison import PLANS
from fairlead.testing.live.verdict.deliveries import DeliveredNumbers, given
from fairlead.testing.live.verdict.log_copy import Copy, copied
from fairlead.testing.live.verdict.publication import publications
from fairlead.testing.live.verdict.trace import Subscriber, trace_of_run
from fairlead.transport.log.protocol import Stored

SOURCES, NAMES = ("left", "right"), ("A", "B", "C")
BOTH, OTHER, ALL = STREAMS
EVENTS = 12
BEGUN_AT = datetime.now(UTC)


def moment(source: str, name: str, x: int) -> datetime:
    return time_of(source, name, x, BEGUN_AT + x * timedelta(seconds=0.3))


async def published() -> Copy:
    async with fairlead.connect("memory:") as fl:
        await fl.declare(TYPES)
        for each in STREAMS:
            await fl.log.open_topics(each)
        for source in SOURCES:
            fl._publisher.source = source
            fl._publisher._outboxes.clear()
            fl._publisher._checks.clear()
            for x in range(EVENTS):
                for name in NAMES:
                    values = {"k": key_of(source, name, x), "x": x, "at": moment(source, name, x)}
                    await fl.publish(name, values, wait=x % 3 > 0 or name == "C")
                await fl.flush()  # every third block of the first topic is a mixed one
        return await copied(fl, STREAMS, 0)


@pytest.fixture
def copy() -> Copy:
    return asyncio.run(published())


RECORDS: dict[str, list[dict[str, Any]]] = {
    source: [
        {word: x, "type": name, "time": moment(source, name, x).isoformat()}
        for x in range(EVENTS)
        for name in NAMES
        for word in ("sent", "published")
    ]
    + [{"stored": EVENTS, "type": name} for name in NAMES]
    for source in SOURCES
}
CATALOGUE = PLANS["one"].catalogue


def subscriber(copy: Copy, name: str, break_it: Callable[[list[Any]], object] = lambda lines: None) -> Subscriber:
    """One who was given what is due, and what `break_it` makes of it."""
    found = {}
    for at, group in enumerate(groups_of(PLANS[name])):
        lines: list[Any] = [
            {
                "number": number,
                "id": each.id,
                "sign": each.sign,
                "subscription": each.subscription,
                "branch": each.branch,
                "positions": each.positions,
                "at": time.monotonic_ns(),
            }
            for number, each in enumerate(checks.expected(copy, group), 1)
        ]
        break_it(lines)
        found[str(at)] = DeliveredNumbers(lines)
    return Subscriber(name, PLANS[name], found)


def receipts(copy: Copy, who: Subscriber) -> dict[str, Any]:
    found = {}
    for key, group in who.groups.items():
        book = ReceiptBook(group.plan.digest)
        book.note(delivery_words(checks.expected(copy, group)))
        found[key] = book.receipt()
    return found


def kept(copy: Copy, *everyone: Subscriber) -> list[str]:
    return checks.kept(trace_of_run(copy, CATALOGUE, {}, everyone), PLANS)


def test_what_went_well_is_found_to_be_well(copy: Copy) -> None:
    everyone = [subscriber(copy, name) for name, plan in PLANS.items() if plan.order is None]
    assert checks.stored(copy, CATALOGUE, RECORDS) == []
    assert checks.merged(copy) == []
    assert [checks.delivered(copy, who, receipts(copy, who)) for who in everyone] == [[]] * len(everyone)
    assert kept(copy, *everyone) == []
    assert sum(len(each.lines) for who in everyone for each in who.given.values()) > 50
    timed = subscriber(copy, "timed")
    assert checks.delivered(copy, timed, receipts(copy, timed)) == []


def with_stream(copy: Copy, topics: tuple[str, ...], blocks: list[Stored]) -> Copy:
    return Copy(copy.streams | {topics: blocks})


def test_a_lost_a_doubled_and_a_changed_block_are_found(copy: Copy) -> None:
    blocks = copy.streams[OTHER]
    changed = blocks[3]._replace(block=replace(blocks[3].block, payload=blocks[4].block.payload))
    for broken, words in [
        (blocks[:3] + blocks[4:], "not numbered one by one"),
        (blocks[:4] + blocks[3:], "not numbered one by one"),
        (blocks[:-1], "12 events of C from right were acknowledged, 11 are stored"),
        ([*blocks[:3], changed], "not as they were"),
    ]:
        assert words in str(checks.stored(with_stream(copy, OTHER, broken), CATALOGUE, RECORDS))
    another = [each | {"time": BEGUN_AT.isoformat()} if each.get("sent") == 5 else each for each in RECORDS["left"]]
    found = checks.stored(copy, CATALOGUE, RECORDS | {"left": another})
    assert found == [f"event 5 of {name} from left has a time with which it was not sent" for name in NAMES]


def test_a_confirmed_event_that_was_lost_and_sent_again_is_found(copy: Copy) -> None:
    """The last event of C is confirmed; then the log loses it, and a restarted publisher sends it again, which the log has."""
    assert publications(copy, CATALOGUE, RECORDS) == []
    before = (moment("left", "C", EVENTS - 1) - timedelta(seconds=9)).isoformat()
    first = [{"begun": "left"}] + [
        each | {"time": before} if each.get("sent") == EVENTS - 1 and each["type"] == "C" else each for each in RECORDS["left"]
    ]
    again = [
        each for each in RECORDS["left"] if each["type"] == "C" and EVENTS - 1 in (each.get("sent"), each.get("published"))
    ]
    confirmed = [*first, {"begun": "left"}, *again, {"stored": EVENTS, "type": "C"}]
    assert checks.stored(copy, CATALOGUE, RECORDS | {"left": confirmed}) == []
    (problem,) = publications(copy, CATALOGUE, RECORDS | {"left": confirmed})
    assert "left/C 11 of" in problem
    assert "was confirmed, and the log does not have it" in problem
    unconfirmed = [each for each in first if "stored" not in each] + confirmed[len(first) :]
    assert publications(copy, CATALOGUE, RECORDS | {"left": unconfirmed}) == []


def test_an_order_of_types_that_is_not_that_of_publishing_is_found(copy: Copy) -> None:
    blocks = copy.streams[BOTH]
    at = next(at for at, each in enumerate(blocks) if each.block.type == "A")
    turned = [
        each._replace(sequence=number)
        for number, each in enumerate([*blocks[:at], blocks[at + 1], blocks[at], *blocks[at + 2 :]], 1)
    ]
    found = checks.stored(with_stream(copy, BOTH, turned), CATALOGUE, RECORDS)
    assert found == ["event 1 of B from left is stored in both before an event that was published before it"]
    lines = RECORDS["left"]
    at = next(at for at, each in enumerate(lines) if each.get("published") == 1 and each["type"] == "B") + 1
    more = {"sent": 1, "type": "A", "time": moment("left", "A", 1).isoformat()}
    again = RECORDS | {"left": [*lines[:at], more, *lines[at:]]}  # A was stored when it was sent once more
    assert checks.stored(with_stream(copy, BOTH, turned), CATALOGUE, again) == []
    mixed = next(each for each in blocks if each.block.is_mixed)
    codes = mixed.block.payload[-mixed.block.count :]
    swapped = mixed._replace(block=replace(mixed.block, payload=mixed.block.payload[: -len(codes)] + codes[::-1]))
    broken = [swapped if each is mixed else each for each in blocks]
    assert "is stored in both before an event" in str(checks.stored(with_stream(copy, BOTH, broken), CATALOGUE, RECORDS))


def test_merged_streams_that_lack_something_or_differ_in_their_order_are_found(copy: Copy) -> None:
    whole = copy.streams[ALL]
    assert "lacks block" in str(checks.merged(with_stream(copy, ALL, whole[:-1])))
    at = next(at for at in range(len(whole)) if whole[at].block.topic == whole[at + 1].block.topic)
    turned = [*whole[:at], whole[at + 1], whole[at], *whole[at + 2 :]]
    assert "in another order" in str(checks.merged(with_stream(copy, ALL, turned)))
    assert checks.merged(with_stream(copy, ALL, [*whole, whole[0]])) == []  # again is not wrong


def test_deliveries_that_are_missing_or_turned_are_found(copy: Copy) -> None:
    less = subscriber(copy, "one", lambda lines: lines.pop())
    assert "are due" in str(checks.delivered(copy, less, receipts(copy, less)))
    assert "receipt" in str(checks.delivered(copy, less, {}))
    nothing = subscriber(copy, "one", lambda lines: lines.clear())
    assert "one was given nothing of Free, 24" in str(checks.delivered(copy, nothing, {}))
    assert "conjunction agreement" in str(kept(copy, less, subscriber(copy, "two")))

    def turn(lines: list[Any]) -> None:
        lines[0]["at"], lines[-1]["at"] = lines[-1]["at"], lines[0]["at"]

    assert "type total order" in str(kept(copy, subscriber(copy, "one", turn), subscriber(copy, "two")))
    covering = subscriber(copy, "covering")
    assert "covering agreement" in str(kept(copy, covering, subscriber(copy, "one", lambda lines: lines.__delitem__(slice(4)))))


def line(number: int, id: str) -> dict[str, Any]:
    return {"number": number, "id": id.removeprefix("-"), "sign": -1 if id.startswith("-") else 1, "group": "g", "at": 0}


BEGUN: dict[str, Any] = {"begun": "desk"}
ACKED: dict[str, Any] = {"acked": 1, "group": "g"}


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ([BEGUN, line(1, "a"), ACKED, line(2, "b"), BEGUN, line(2, "b"), line(3, "c")], None),
        ([BEGUN, line(1, "a"), ACKED, line(2, "b"), BEGUN, line(3, "c")], None),  # acknowledged, and killed before it said so
        ([BEGUN, line(1, "a"), ACKED, BEGUN, line(1, "a")], "is given number 1 where 2 to 2 should come"),
        ([BEGUN, line(1, "a"), ACKED, BEGUN, line(3, "c")], "is given number 3 where 2 to 2 should come"),
        ([BEGUN, line(1, "a"), line(3, "c")], "is given number 3 where 2 to 2 should come"),
        ([BEGUN, line(1, "a"), BEGUN, line(1, "b")], "is given b as number 1, which was a before"),
        ([BEGUN, line(1, "a"), line(2, "-a"), BEGUN, line(1, "a"), line(2, "-a")], None),
        ([BEGUN, line(1, "a"), line(2, "-a"), BEGUN, line(2, "a")], "is given a as number 2, which was -a before"),
    ],
)
def test_a_life_begins_behind_what_was_acknowledged(lines: list[dict[str, Any]], wrong: str | None) -> None:
    _, problems = given("desk", lines)
    assert problems == ([] if wrong is None else [f"desk {wrong}"])
