"""What a subscription derives is stored once, whoever comes first: viewers, subscribers with other starts, larger files, other
names, types that have more attributes since; and after they come back."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import fairlead
from fairlead.runtime.live.client import Client
from tests.runtime.live.reading import EMITTING, TYPES, more, rows_of
from tests.transport.log.logs import URLS, run

CHANGES = {
    "nothing": ("", EMITTING),
    "attribute": ("TYPE A (k INT, x INT, extra STRING)", EMITTING),
    "larger file": ("", f"{EMITTING} SUBSCRIPTION Other MATCH A a AND B b WHERE a.k > 1000 PER k"),
    "renamed": ("", EMITTING.replace("SUBSCRIPTION S", "SUBSCRIPTION Renamed")),
}
STARTS = ("earliest", "new", "snapshot")


async def pairs(fl: Client, low: int, high: int) -> None:
    for k in range(low, high):
        for name in "AB":
            await fl.publish(name, k=k, x=k, wait=True)


async def derived(fl: Client) -> list[int]:
    return [each["k"] for each in await rows_of(fl, "Pair")]


async def one_life(fl: Client, rules: str, low: int, high: int, **told: Any) -> None:
    """A subscriber that comes, is there while events are published, and leaves."""
    async with fl.subscribe(rules, **told) as sub:
        await more(sub)
        await pairs(fl, low, high)
        await more(sub)
        await sub.ack()


@pytest.mark.sampled
@pytest.mark.parametrize(("change", "first", "second"), list(product(CHANGES, STARTS, STARTS)))
@pytest.mark.parametrize("viewer", [False, True], ids=["emitter first", "viewer first"])
def test_two_subscribers_one_after_the_other_store_each_event_once(change: str, first: str, second: str, viewer: bool) -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            await pairs(fl, 0, 2)
            await one_life(fl, EMITTING, 2, 4, name="one", start=first, emit=not viewer)
            assert await derived(fl) == ([] if viewer else list(range(2 if first == "new" else 0, 4)))
            declared, rules = CHANGES[change]
            if declared:
                await fl.declare(declared)
            await one_life(fl, rules, 4, 6, name="two", start=second)
            joined = first if second != "earliest" or not viewer else second  # who stores decides where that begins
            due = list(range(2 if joined == "new" else 0, 6))
            assert await derived(fl) == due
            await one_life(fl, EMITTING, 6, 8, name="one", emit=not viewer)  # both come back
            await one_life(fl, rules, 8, 10, name="two")
            assert await derived(fl) == [*due, 6, 7, 8, 9]
            await fl.forget("one")
            await one_life(fl, rules, 10, 12, name="two")
            assert await derived(fl) == [*due, 6, 7, 8, 9, 10, 11]

    run(work)


@pytest.mark.parametrize("starts", list(product(STARTS, STARTS)), ids="-".join)
@pytest.mark.parametrize("url", URLS)
def test_subscribers_side_by_side_store_each_event_once(url: str | None, starts: tuple[str, str]) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            await pairs(fl, 0, 2)
            async with (
                fl.subscribe(EMITTING, start="new", emit=False) as viewer,
                fl.subscribe(EMITTING, name="one", start=starts[0]) as one,
            ):
                await pairs(fl, 2, 4)
                async with fl.subscribe(CHANGES["larger file"][1], name="two", start=starts[1]) as two:
                    await pairs(fl, 4, 6)
                    for sub in (viewer, one, two):
                        await more(sub)
            due = list(range(0 if starts[0] == "earliest" else 2, 6))
            assert await derived(fl) == due

    run(work)


def test_a_viewer_resumes_from_states_of_its_own() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            await one_life(fl, EMITTING, 0, 4, name="viewer", start="earliest", emit=False)
            assert [each for each in await fl.log.objects("FL_STATES") if "-v-" in each]
            async with fl.subscribe(EMITTING, name="viewer", emit=False) as sub:
                assert sub.events_read == 8
                assert await more(sub) == []

    run(work)
