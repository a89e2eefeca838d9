"""Where a subscriber starts: at the beginning, with what is new, at a time or a position, or behind its acknowledgements."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

import fairlead
from fairlead.deliver.receipt import Receipt
from fairlead.errors import StateError, UsageError
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.subscriber.record import groups_of_name
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from tests.runtime.live.reading import APART, RULES, TYPES, exported, ids, matched, more, publish_some, some
from tests.transport.log.logs import run


@pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
@pytest.mark.server
def test_a_restarted_subscriber_goes_on_behind_what_it_acknowledged(types: str) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            fl._shared.times.every_events = 100
            await fl.declare(types)
            await publish_some(fl, seed=2)
            async with fl.subscribe(RULES, name="whole", start="earliest") as sub:
                whole = ids(await more(sub))
                assert len(whole) > 40
            got: list[str] = []
            for count in (1, 20, 0, 3, 11):
                async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                    for relation in await some(sub, count):
                        got.append(relation.id)
                        await sub.ack(relation)
                    await some(sub, 2)  # which are not acknowledged, and so come again
            async with fl.subscribe(RULES, name="desk") as sub:
                async for batch in sub.batches():
                    got += ids(batch)
                    assert batch.to_arrow().column("id").to_pylist() == ids(batch)
                    await sub.ack(batch)
                    if len(got) >= len(whole):
                        break
            assert got == whole
            assert await fl.log.objects("FL_STATES")
            async with fl.subscribe(RULES, name="desk") as sub:
                assert await more(sub) == []
                assert sub.receipt.count == len(whole)
            with pytest.raises(UsageError, match="A245"):
                async with fl.subscribe("SUBSCRIPTION S MATCH A a", name="desk"):
                    pass

    run(work)


def assert_joined(early: Receipt, late: Receipt, before: int, after: int) -> None:
    """Both are of one lineage; one joined when it had `before` deliveries, and delivered `after`."""
    assert (early.joined, early.delivered) == (0, before + after)
    assert (late.joined, late.delivered) == (before, after)
    assert (late.count, late.digest) == (early.count, early.digest)
    found = fairlead.compare(early, late)
    assert (found.outcome, found.agreed, found.start) == ("agree" if before else "equal", after, before + 1)


@pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
@pytest.mark.server
def test_a_late_joiner_delivers_what_the_others_deliver_from_there_on(types: str) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            fl._shared.times.every_events = 50
            await fl.declare(types)
            async with fl.subscribe(RULES, start="earliest") as early:
                await publish_some(fl, seed=3)
                before = await more(early)
                async with (
                    fl.subscribe(RULES, start="new") as late,
                    fl.subscribe(RULES, start="snapshot") as later,
                    fl.subscribe(RULES, start="earliest") as whole,
                ):
                    await publish_some(fl, seed=4)
                    after = await more(early)
                    assert ids(await more(late)) == ids(after)
                    assert early.receipt == whole_receipt(await more(whole), whole)
                    assert_joined(early.receipt, late.receipt, len(before), len(after))
                    joined = await more(later)
                    assert ids(joined) == ids([*before, *after])[-len(joined) :]
                    assert len(after) <= len(joined) < len(before) + len(after)
                    assert_joined(early.receipt, later.receipt, len(before) + len(after) - len(joined), len(joined))

    def whole_receipt(_: list[Relation], sub: LiveSubscription) -> Any:
        return sub.receipt

    run(work)


@pytest.mark.server
def test_the_first_of_several_decides_where_new_begins() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            await publish_some(fl, seed=5, rounds=10)
            async with fl.subscribe(RULES) as one:
                await publish_some(fl, seed=6, rounds=10)
                first = await more(one)
                async with fl.subscribe(RULES) as two:
                    await publish_some(fl, seed=7, rounds=10)
                    assert ids(await more(one)) == ids(await more(two))
                    assert_joined(one.receipt, two.receipt, len(first), one.receipt.count - len(first))
                    assert one.receipt.count > len(first) > 0

    run(work)


@pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
@pytest.mark.server
def test_new_is_what_is_published_from_now_on_also_where_the_stream_is_new(types: str) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(types)
            for name in "AB":
                for k in range(200):
                    await fl.publish(name, k=k, x=0, wait=True)
            async with fl.subscribe(RULES) as sub:
                await fl.publish("A", k=1000, x=1, wait=True)
                await fl.publish("B", k=1000, x=2, wait=True)
                assert [each.members[0]["k"] for each in await more(sub)] == [1000]

    run(work)


@pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
@pytest.mark.server
def test_start_at_a_position_or_a_time(types: str) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(types)
            await publish_some(fl, seed=8, rounds=10)
            events = await exported(fl, ["A", "B"])
            middle = events[len(events) // 2][0] + 1
            async with fl.subscribe(RULES, start=middle) as sub:
                assert ids(await more(sub)) == ids(matched(f"{TYPES}; {RULES}", [each for each in events if each[0] >= middle]))
            now = datetime.now(UTC)
            await fl.publish("A", k=99, x=1, wait=True)
            await fl.publish("B", k=99, x=2, wait=True)
            async with fl.subscribe(RULES, start=now) as sub:
                (only,) = await more(sub)
                assert only.members[0]["k"] == 99
            for wrong in ("newest", -1, True, 1.5, 10**30, datetime(2999, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)):
                with pytest.raises(UsageError, match="A251"):
                    fl.subscribe(RULES, start=wrong)  # type: ignore[arg-type]

    run(work)


@pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
@pytest.mark.server
def test_receipts_in_the_log_distinguish_what_was_delivered_from_what_the_lineage_had(types: str) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            fl._shared.times.every_events = 30
            await fl.declare(types)
            async with fl.subscribe(RULES, name="early", start="earliest") as early:
                await publish_some(fl, seed=3, rounds=20)
                before = len(await more(early))
                await early.ack()
            async with fl.subscribe(RULES, name="late") as late:  # which finds nothing new
                assert await more(late) == []
                assert (late.receipt.joined, late.receipt.delivered) == (before, 0)
                await late.ack()
            found = await fl.compare("early", "late")
            assert (found.outcome, found.agreed, found.start) == ("agree", 0, before + 1)
            assert "no delivery was delivered by both" in found.problem
            assert f"the first has {before:,} from before the second joined" in found.problem
            for _ in range(3):  # it returns, each time with something new and something that is not acknowledged
                async with fl.subscribe(RULES, name="late") as late:
                    await publish_some(fl, seed=4, rounds=5)
                    await some(late, 2)
                    await late.ack()
                    await some(late, 1)
            async with fl.subscribe(RULES, name="early") as early, fl.subscribe(RULES, name="late") as late:
                for each in (early, late):
                    await more(each)
                    await each.ack()
            (one,), (other,) = [list((await fl.receipts(name)).values()) for name in ("early", "late")]
            assert_joined(one, other, before, one.count - before)
            lines = {line.name: line for line in (await fl.overview()).subscribers}
            assert (lines["early"].acknowledged, lines["early"].joined) == (one.count, 0)
            assert (lines["late"].acknowledged, lines["late"].joined) == (one.count - before, before)

    run(work)


@pytest.mark.server
def test_a_record_of_an_earlier_release_says_nothing_of_joining() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            await publish_some(fl, seed=3, rounds=20)
            async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                delivered = len(await some(sub, 5))
                await sub.ack()
            entry = await fl.log.get("FL_SUBS", "desk")
            assert entry is not None
            told = json.loads(entry.value) | {"groups": await groups_of_name(fl.log, "desk")}
            for each in told["groups"].values():
                del each["joined"], each["joined_digest"]
            del told["generation"]
            await fl.log.remove("FL_ACKS", "desk")
            await fl.log.put("FL_SUBS", "desk", json.dumps(told).encode(), entry.revision)
            async with fl.subscribe(RULES, name="desk") as sub:
                delivered += len(await more(sub))
                await sub.ack()
                assert (sub.receipt.joined, sub.receipt.delivered) == (0, delivered)

    run(work)


def test_who_takes_a_name_over_shuts_the_other_out() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(RULES, name="desk", start="earliest") as one:
                await fl.publish("A", k=1, x=1, wait=True)
                await fl.publish("B", k=1, x=1, wait=True)
                (relation,) = await some(one, 1)
                async with fl.subscribe(RULES, name="desk") as two:
                    assert ids(await some(two, 1)) == [relation.id]
                    with pytest.raises(StateError, match="S134"):
                        await one.ack(relation)
                    await two.ack(relation)

    run(work)


@pytest.mark.parametrize("emit", ["", " EMIT Seen (k = a.k)"], ids=["", "emits"])
@pytest.mark.parametrize("start", ["new", "snapshot"])
def test_who_joins_one_that_begins_at_a_later_position_gets_everything_from_now_on(start: str, emit: str) -> None:
    """Found by the simulator: those that join began there, too, and missed the events in between. Seed 7043940."""
    rules = f"SUBSCRIPTION S MATCH A a{emit}"

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare("TYPE A (k INT); TYPE Seen (k INT) TOPIC a (A) TOPIC seen (Seen)")
            async with (
                fl.subscribe(rules, name="later", start=2 << 12) as later,
                fl.subscribe(rules, name="now", start=start) as now,
                fl.subscribe("SUBSCRIPTION T MATCH Seen s", start="earliest") as derived,
            ):
                for k in range(3):
                    await fl.publish("A", k=k, wait=True)
                assert [each.events[0]["k"] for each in await some(now, 3)] == [0, 1, 2]
                assert [each.events[0]["k"] for each in await some(later, 2)] == [1, 2]
                if emit:
                    assert [each.events[0]["k"] for each in await some(derived, 3)] == [0, 1, 2]
                    assert len(await more(derived)) == 0

    run(work)
