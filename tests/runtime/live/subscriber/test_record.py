"""An acknowledgement costs what is acknowledged, however long the rules are; and a name has one owner."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

import fairlead
from fairlead.deliver.receipt import NOTHING, Receipt, ReceiptBook, compare
from fairlead.errors import LogError, StateError, UsageError
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.runtime.live.subscriber import record
from fairlead.runtime.live.subscriber.record import SubscriberRecord, groups_of_name, receipt_bytes, receipts_of
from fairlead.transport.log.entry_values import entry_value
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Conflict, TableEntry, Unavailable
from tests.runtime.live.reading import more, some
from tests.runtime.live.whole_log import KEYS, MemoryPlace
from tests.transport.log.logs import run

EMPTY = Receipt("rules", 0, NOTHING)


class Counting(MemoryLog):
    """Counts the bytes that are put into tables."""

    bytes_put = 0

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        self.bytes_put += len(value)
        return await super().put(table, key, value, revision)


def acknowledged(number: int) -> dict[str, Any]:
    return {"count": number, "digest": f"{number:032x}", "joined": 0, "joined_digest": "0" * 32}


async def opened(log: MemoryLog, groups: int, rules: str = "") -> SubscriberRecord:
    found = SubscriberRecord(log, "desk")
    if not await found.read():
        found.rules = found.text = rules
        part = {"types": ["A"], "topics": ["main"], "stream": "FL_TOPIC_main"}
        begun = {"parts": [part], "origin": 0, "silent_until": None, "count": None, "digest": None}
        found.groups = {f"g{at}": {"names": [f"S{at}"], **begun} for at in range(groups)}
    assert await found.take_over()
    await found.write()
    return found


@pytest.mark.parametrize("size", [10, 600_000])
def test_an_acknowledgement_does_not_store_the_rules_again(size: int) -> None:
    async def work() -> None:
        log = Counting()
        found = await opened(log, 1000, "x" * size)
        log.bytes_put = 0
        for number in range(50):
            await found.acknowledge({"g7": acknowledged(number)})
        assert log.bytes_put < 50 * 300
        for at in range(1000):
            await found.acknowledge({f"g{at}": acknowledged(at)})
        assert log.bytes_put / 1000 < 20_000 + 2 * size / record.SINCE_MAX * 1.2
        assert {key: each["count"] for key, each in (await groups_of_name(log, "desk")).items()} == {
            f"g{at}": at for at in range(1000)
        }

    run(work)


def test_the_owner_of_a_name_changes_without_a_loss() -> None:
    async def work() -> None:
        log = MemoryLog()
        first = await opened(log, 3)
        await first.acknowledge({"g1": acknowledged(5)})
        second = await opened(log, 3)
        assert second.groups["g1"]["count"] == 5
        with pytest.raises(StateError, match="S134"):
            await first.acknowledge({"g1": acknowledged(6)})
        await second.acknowledge({"g2": acknowledged(7)})
        third = SubscriberRecord(log, "desk")
        assert await third.read()
        await second.acknowledge({"g2": acknowledged(8)})  # after the third has read
        assert not await third.take_over()
        again = await opened(log, 3)
        assert [again.groups[f"g{at}"]["count"] for at in range(3)] == [None, 5, 8]

    run(work)


class Delaying(MemoryLog):
    """Stores some of what is put later, when asked to, as a leader does that was cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.delays, self._sent = False, list[tuple[str, str, bytes, int | None]]()

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        if self.delays:
            self._sent.append((table, key, value, revision))
            raise Unavailable("no answer")
        return await super().put(table, key, value, revision)

    async def store(self) -> None:
        for each in self._sent:
            with suppress(Conflict):
                await super().put(*each)
        self._sent.clear()


@pytest.mark.parametrize("when", range(5))
@pytest.mark.parametrize("lost", ["acknowledgement", "record"])
def test_what_a_previous_owner_sent_may_be_stored_at_any_time(lost: str, when: int) -> None:
    """Its last write was not answered, so it subscribes again, and that write is stored meanwhile: nobody is shut out, and
    nothing that was acknowledged in the end is lost."""

    async def work() -> None:
        log = Delaying()
        first = await opened(log, 3)
        await first.acknowledge({"g1": acknowledged(5)})
        log.delays = True
        with pytest.raises(Unavailable):
            await (first.acknowledge({"g1": acknowledged(6)}) if lost == "acknowledgement" else first.write())
        log.delays = False
        found = SubscriberRecord(log, "desk")

        async def store(step: int) -> None:
            if step == when:
                await log.store()

        await store(0)
        assert await found.read()
        await store(1)
        while not await found.take_over():
            assert (when, lost) == (1, "acknowledgement")
            assert await found.read()
        await store(2)
        await found.write()
        await store(3)
        seen = found.groups["g1"]["count"]
        assert seen == (6 if lost == "acknowledgement" and when < 2 else 5)
        await found.acknowledge({"g2": acknowledged(7)})
        await store(4)
        await found.acknowledge({"g2": acknowledged(8)})
        again = await opened(log, 3)
        assert [again.groups[f"g{at}"]["count"] for at in range(3)] == [None, seen, 8]

    run(work)


def test_a_server_that_is_behind_shuts_nobody_out() -> None:
    """After a refusal it returns the entry as it was before."""

    class Behind(MemoryLog):
        older: TableEntry | None = None

        async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
            if self.older is not None:
                raise Conflict("refused")
            return await super().put(table, key, value, revision)

        async def get(self, table: str, key: str) -> TableEntry | None:
            older, self.older = self.older, None
            return older or await super().get(table, key)

    async def work() -> None:
        log = Behind()
        await opened(log, 2)
        older = [await log.get(table, "desk") for table in (record.ACKNOWLEDGEMENTS, record.TABLE)]
        found = await opened(log, 2)
        log.older = older[0]
        await found.acknowledge({"g1": acknowledged(5)})
        log.older = older[1]
        await found.write()
        assert (await groups_of_name(log, "desk"))["g1"]["count"] == 5

    run(work)


def test_a_record_without_acknowledgements_of_its_own_is_read() -> None:
    """Of an earlier release, or of a process that was killed between the two entries."""

    async def work() -> None:
        async with fairlead.connect("memory:", source="s") as fl:
            await fl.declare("TYPE A (k INT)")
            for number in range(6):
                await fl.publish("A", k=number, wait=True)
            async with fl.subscribe("SUBSCRIPTION S MATCH A a", name="desk", start="earliest") as sub:
                await some(sub, 2)
                await sub.ack()
            async with fl.subscribe("SUBSCRIPTION S MATCH A a", name="desk"):
                await fl.log.remove("FL_ACKS", "desk")
            async with fl.subscribe("SUBSCRIPTION S MATCH A a", name="desk") as sub:
                assert [each.events[0]["k"] for each in await more(sub)] == [2, 3, 4, 5]

    run(work)


def test_receipts_that_were_sent_without_an_answer_replace_no_later_ones() -> None:
    """Nor do those of a process that does not own the name any more."""

    async def work() -> None:
        log = Delaying()
        first = await opened(log, 3)
        log.delays = True
        with pytest.raises(Unavailable):
            await first.write_receipts({"g1": EMPTY})
        log.delays = False
        await first.write_receipts({"g1": EMPTY, "g2": EMPTY})
        await log.store()
        assert {*await receipts_of(log, "desk")} == {"g1", "g2"}
        second = await opened(log, 3)
        await second.write_receipts({"g2": EMPTY})
        await first.write_receipts({"g1": EMPTY})
        assert {*await receipts_of(log, "desk")} == {"g2"}

    run(work)


def test_who_is_recorded_and_has_no_receipts_yet_is_known() -> None:
    """It ended before it had counted what was delivered before it joined. Seed 9087281 of the simulator."""

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            record = await opened(fl.log, 1)  # type: ignore[arg-type]
            assert await receipts_of(fl.log, "desk") == {}
            found = await fl.compare("desk", "desk")
            assert (found.equal, found.problem) == (False, "the first has no receipts yet: it has not begun to deliver")
            await record.write_receipts({"g0": EMPTY})
            assert (await fl.compare("desk", "desk")).equal

    run(work)


def test_a_receipt_that_counts_less_does_not_replace_one_of_the_same_deliveries() -> None:
    """A subscriber joined after three deliveries, and returns before it acknowledged one. Seed 9020416 of the simulator."""
    three = replace(EMPTY, count=3, joined=3, samples=(NOTHING,) * 3)

    async def work() -> None:
        log = MemoryLog()
        await (await opened(log, 3)).write_receipts({"g1": three, "g2": three, "gone": three})
        second = await opened(log, 3)
        await second.write_receipts({"g1": EMPTY, "g2": replace(EMPTY, plan="other")})
        assert await receipts_of(log, "desk") == {"g1": three, "g2": replace(EMPTY, plan="other")}
        four = replace(three, count=4, samples=(NOTHING,) * 4)
        await second.write_receipts({"g1": four})
        assert await receipts_of(log, "desk") == {"g1": four}
        await log.put("FL_RECEIPTS", "desk", b"damaged")
        await second.write_receipts({"g1": EMPTY})
        assert await receipts_of(log, "desk") == {"g1": EMPTY}

    run(work)


class SlowOnce(MemoryLog):
    """`slow`: the next acknowledgement arrives after others that are sent later."""

    slow = False

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        if self.slow and table == "FL_ACKS":
            self.slow = False
            for _ in range(20):
                await asyncio.sleep(0)
        return await super().put(table, key, value, revision)


def test_acknowledgements_of_several_tasks_replace_no_later_ones() -> None:
    async def work() -> None:
        log = SlowOnce()
        mine = await opened(log, 3)
        log.slow = True
        await asyncio.gather(*(mine.acknowledge({"g1": acknowledged(number)}) for number in (1, 2, 3)))
        assert (await groups_of_name(log, "desk"))["g1"]["count"] == 3
        assert mine.is_stored

    run(work)


class Silent(MemoryLog):
    """`silent`: acknowledgements reach no server."""

    silent = False

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        if self.silent and table == "FL_ACKS":
            raise Unavailable("no answer")
        return await super().put(table, key, value, revision)


def test_receipts_count_nothing_whose_acknowledgement_is_not_stored() -> None:
    """It is delivered again, so a receipt of it would go back."""

    async def work() -> None:
        log = Silent()
        async with Client(MemoryPlace(log, KEYS), "p", 0.0, 0.1, None) as fl:
            await fl.declare("TYPE A (k INT)")
            for k in range(3):
                await fl.publish("A", k=k, wait=True)
            async with fl.subscribe("SUBSCRIPTION S MATCH A a", name="desk", start="earliest") as sub:
                first, *others = await some(sub, 3)
                await sub.ack(first)
                await sub.write_receipts()
                log.silent = True
                with pytest.raises(LogError, match="N001"):
                    await sub.ack(others[-1])
                await sub.write_receipts()
            assert [each.count for each in (await receipts_of(fl.log, "desk")).values()] == [1]
            log.silent = False
            async with fl.subscribe("SUBSCRIPTION S MATCH A a", name="desk") as sub:
                assert [each.events[0]["k"] for each in await some(sub, 2)] == [1, 2]
                await sub.ack()
            assert [each.count for each in (await receipts_of(fl.log, "desk")).values()] == [3]

    run(work)


TYPES = "TYPE A (k INT, x INT); TYPE B (k INT, x INT);"


def rules_of(count: int) -> str:
    return " ".join(f"SUBSCRIPTION S{at} MATCH A a AND B b WHERE a.k = b.k AND a.x >= {at}" for at in range(count))


@pytest.mark.slow
def test_a_subscriber_may_have_thousands_of_rules() -> None:
    """As JSON, its record is longer than a message may be."""
    count = 2_500

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(rules_of(count), name="desk", start="earliest") as sub:
                await fl.publish("A", k=1, x=count // 2)
                await fl.publish("B", k=1, x=0, wait=True)
                assert len(await more(sub)) == count // 2 + 1
                await sub.ack()
            groups = await groups_of_name(fl.log, "desk")
            assert len(groups) == len(await receipts_of(fl.log, "desk")) == count
            assert len(json.dumps(groups)) > fl.log.bytes_max / 2
            async with fl.subscribe(rules_of(count), name="desk") as sub:
                await fl.publish("A", k=2, x=0)
                await fl.publish("B", k=2, x=0, wait=True)
                assert [each.subscription for each in await more(sub)] == ["S0"]

    run(work)


def test_rules_that_no_record_can_hold_are_refused_before_anything_is_stored() -> None:
    async def work() -> None:
        log = MemoryLog()
        log.bytes_max = 12_000
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            plan = fairlead.compile(f"{TYPES} {rules_of(200)}")
            groups = groups_of(plan)
            stream = await log.open_topics(["main"])
            found = SubscriberRecord(log, "desk")
            found.rules = found.text = rules_of(200)
            with pytest.raises(UsageError, match="A267 a record of 200 subscriptions"):
                found.require_room({f"{at:024x}": (each, [stream]) for at, each in enumerate(groups)})
            found.require_room({f"{at:024x}": (each, [stream]) for at, each in enumerate(groups[:20])})
            assert found.groups == {}
            assert await log.keys(record.TABLE) == []

    run(work)


@pytest.mark.parametrize("seed", range(20))
def test_what_has_room_is_stored_whatever_is_delivered(seed: int) -> None:
    """The room that a record asks for is enough for every acknowledgement."""
    rolls = random.Random(seed)
    count = rolls.randrange(1, 400)
    groups = groups_of(fairlead.compile(f"{TYPES} {rules_of(count)}"))

    async def work() -> None:
        log = MemoryLog()
        stream = await log.open_topics(["main"])
        keys = [f"{rolls.getrandbits(96):024x}" for _ in groups]
        for log.bytes_max in range(4_000, 600_000, 4_000):
            found = SubscriberRecord(log, "desk")
            found.rules = found.text = rules_of(count)
            with suppress(UsageError):
                found.require_room({key: (group, [stream]) for key, group in zip(keys, groups, strict=True)})
                break
        assert await found.take_over()
        for key, group in zip(keys, groups, strict=True):
            found.begin_group(key, group, [stream], (rolls.getrandbits(42),), None, acknowledged(0))
            found.groups[key] |= {"names": [*group.names], "emits": [], "reports": False, "routes": {"A": 1}}
        await found.write()
        for key in keys:
            digest = {each: f"{rolls.getrandbits(128):032x}" for each in ("digest", "joined_digest")}
            await found.acknowledge({key: {"count": rolls.getrandbits(40), "joined": rolls.getrandbits(20)} | digest})
        await found.write()
        assert len(await groups_of_name(log, "desk")) == count

    run(work)


@pytest.mark.parametrize("seed", range(10))
def test_receipts_fit_into_an_entry_and_still_agree(seed: int) -> None:
    """Eight subscriptions with 4,096 deliveries each had more samples than a message may have."""
    rolls = random.Random(seed)
    receipts = {}
    for at in range(rolls.choice([1, 8, 60])):
        book = ReceiptBook(f"{rolls.getrandbits(256):064x}")
        book.note([f"{rolls.getrandbits(128):032x}" for _ in range(rolls.choice([0, 1, 700, 5000]))])
        receipts[f"g{at}"] = book.receipt()
    most = rolls.choice([20_000 + 400 * len(receipts), 1_000_000])
    stored = receipt_bytes(receipts, most)
    assert len(stored) <= most
    for key, told in entry_value(stored, {str: dict}, "T", "k").items():
        found = Receipt.from_json(told)
        assert (found.count, found.digest) == (receipts[key].count, receipts[key].digest)
        assert compare(found, receipts[key])
        longer = ReceiptBook.after(receipts[key])
        longer.note([f"{rolls.getrandbits(128):032x}"])
        assert not compare(found, longer.receipt()).differs
