"""State, numbers and receipts of a live subscription are its own: whatever it is called, whatever stands beside it, what was
added to its types, and whatever becomes of the other rules of its subscriber."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import fairlead
from fairlead.errors import StateError, UsageError
from fairlead.matching.state.encoding import Change
from fairlead.runtime.live.client import Client
from tests.runtime.live.reading import ids, more, rows_of
from tests.transport.log.logs import run

TYPES = "TYPE A (k INT, x INT); TYPE B (k INT, x INT); TYPE C (k INT, x INT)"
PAIR = "SUBSCRIPTION Pair MATCH A a AND B b PER k EMIT Both (k = a.k)"
OTHER = "SUBSCRIPTION Other MATCH A a AND B b WHERE a.x > 100 PER k EMIT Unread (k = a.k)"
SAME = "SUBSCRIPTION Renamed MATCH B y AND A x PER k EMIT Both (k = x.k)"
READER = "SUBSCRIPTION Reader MATCH Both p AND C c PER k"
WIDER = "TYPE A (k INT, x INT, more STRING)"


def on_a_log(work: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    """The work, with a client of a new log that has the types."""

    async def whole() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            await work(fl)

    run(whole)


async def publish(fl: Client, *words: str) -> None:
    for word in words:
        await fl.publish(word[0], k=int(word[1:]), x=1, wait=True)


async def stored(fl: Client, name: str) -> int:
    return len(await rows_of(fl, name))


@pytest.mark.sampled
@pytest.mark.parametrize("rules", [SAME, f"{OTHER} {PAIR}", f"{SAME} {OTHER}", f"{PAIR} {READER}"])
@pytest.mark.parametrize("change", [None, WIDER])
@pytest.mark.parametrize("start", ["new", "snapshot", "earliest"])
def test_a_joiner_shares_what_it_has_in_common(rules: str, change: str | None, start: str) -> None:
    async def work(fl: Client) -> None:
        async with fl.subscribe(PAIR, name="one", start="earliest") as one:
            await publish(fl, "A0", "B0", "A1", "A2")
            found = await more(one)
            if change:
                await fl.declare(change)
            async with fl.subscribe(rules, name="two", start=start) as two:
                await publish(fl, "B1", "A3", "B3", "B2")
                later = await more(one)
                name = next(each.name for each in two.plan.subscriptions if each.digest == one.plan["Pair"].digest)
                joined = [each for each in await more(two) if each.subscription == name]
                assert len(later) == 3
                assert ids(joined) == ids(found if start != "new" else []) + ids(later)
                assert await stored(fl, "Both") == 4
                await one.ack()
                await two.ack()
        compared = await fl.compare("one", "two")
        assert (compared.outcome, compared.agreed) == (("agree", 3) if start == "new" else ("equal", 4))

    on_a_log(work)


def test_the_ids_of_a_reader_do_not_depend_on_what_else_its_file_derives() -> None:
    async def work(fl: Client) -> None:
        unread = "SUBSCRIPTION Unread MATCH A a EMIT Y (k = a.k)"
        pair = "SUBSCRIPTION S1 MATCH A a EMIT X (k = a.k) SUBSCRIPTION S2 MATCH X p AND A a"
        async with (
            fl.subscribe(f"{unread} {pair} {READER} {PAIR}", start="earliest", emit=False) as long,
            fl.subscribe(pair, start="earliest", emit=False) as short,
        ):
            await publish(fl, "A0", "B0", "A1", "C0")
            found = [each for each in await more(long) if each.subscription in ("S1", "S2")]
            expected = await more(short)
            assert sorted(ids(found)) == sorted(ids(expected))
            assert str(next(each.positions[1] for each in expected if each.subscription == "S2")).endswith("+1")

    on_a_log(work)


def test_rules_of_a_durable_subscriber_change_and_the_others_go_on() -> None:
    async def work(fl: Client) -> None:
        gone = "SUBSCRIPTION Gone MATCH C c[2]"
        async with fl.subscribe(f"{PAIR} {gone}", name="desk", start="earliest") as desk:
            assert desk.change == Change((), ("Pair", "Gone"))
            await publish(fl, "A0", "B0", "A1", "C1")
            assert [each.positions for each in await more(desk)]
            await desk.ack()
        added = "SUBSCRIPTION Added MATCH A a[2]"
        async with fl.subscribe(f"{added} {SAME}", name="desk", start="earliest") as desk:
            assert desk.change == Change(("Renamed",), ("Added",), ("Gone",))
            assert str(desk.change) == "resumed: Renamed; started: Added; dropped: Gone"
            await publish(fl, "B1", "C2")
            found = await more(desk)
            assert sorted(each.subscription for each in found) == ["Added", "Renamed"]
            await desk.ack()
        async with fl.subscribe(f"{added} {SAME}", name="desk", start="earliest") as desk:
            assert desk.change == Change(("Added", "Renamed"))
            assert not await more(desk)
        with pytest.raises(UsageError, match="A245"):
            async with fl.subscribe(gone, name="desk"):
                pass

    on_a_log(work)


def test_the_same_subscription_under_another_name_begins_beside_the_one_that_goes_on() -> None:
    async def work(fl: Client) -> None:
        other = "SUBSCRIPTION Any MATCH A a AND B b"
        async with fl.subscribe(PAIR, name="desk", start="earliest", emit=False) as desk:
            await publish(fl, "A0", "B0")
            assert len(await more(desk)) == 1
            await desk.ack()
        for rules in (f"{PAIR} {SAME}", f"{other} {PAIR} {SAME}"):
            async with fl.subscribe(rules, name="desk", start="earliest", emit=False) as desk:
                assert {each.subscription for each in await more(desk)} == {"Renamed" if other not in rules else "Any"}
                await desk.ack()

    on_a_log(work)


@pytest.mark.parametrize(
    ("after", "delivered", "change"),
    [
        ("Y", "Y", Change(resumed=("Y",), dropped=("X",))),
        ("YX", "Y", Change(resumed=("Y", "X"))),
        ("X", "", Change(resumed=("X",), dropped=("Y",))),
        ("ZXY", "ZY", Change(resumed=("X", "Y"), started=("Z",))),
        ("YZX", "YZ", Change(resumed=("Y", "X"), started=("Z",))),
        ("ZY", "Y", Change(resumed=("Z", "Y"))),  # another name for X
        ("YZ", "Y", Change(resumed=("Y", "Z"))),
    ],
)
def test_of_equal_subscriptions_each_goes_on_with_what_was_acknowledged_under_its_name(
    after: str, delivered: str, change: Change
) -> None:
    def equal(names: str) -> str:
        return " ".join(f"SUBSCRIPTION {name} MATCH A a AND B b PER k" for name in names)

    async def work(fl: Client) -> None:
        await publish(fl, "A0", "B0")
        async with fl.subscribe(equal("XY"), name="desk", start="earliest") as desk:
            first = await desk.next_within(None)
            assert first is not None
            await desk.ack(first)
        for again in (False, True):
            async with fl.subscribe(equal(after), name="desk", start="earliest") as desk:
                assert again or desk.change == change
                assert [each.subscription for each in await more(desk)] == [*delivered]

    on_a_log(work)


def test_a_name_that_an_earlier_release_used_is_refused() -> None:
    async def work(fl: Client) -> None:
        async with fl.subscribe(PAIR, name="desk"):
            pass
        entry = await fl.log.get("FL_SUBS", "desk")
        assert entry is not None
        told = json.loads(entry.value)
        for each in told["groups"].values():
            del each["names"], each["subscription"]
        await fl.log.put("FL_SUBS", "desk", json.dumps(told).encode())
        with pytest.raises(StateError, match="S139"):
            async with fl.subscribe(PAIR, name="desk"):
                pass

    on_a_log(work)
