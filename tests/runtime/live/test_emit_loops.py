"""Rules of several subscribers that derive events of one another: refused if they are known, ended otherwise."""

from __future__ import annotations

import asyncio
import logging

import pytest

import fairlead
from fairlead.errors import UsageError
from fairlead.runtime.live.core.derived_blocks import HOPS_MAX, loop_of
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.transport.log.tasks import ended
from tests.runtime.live.reading import more, rows_of
from tests.transport.log.logs import URLS, run
from tests.waiting import until

TYPES = "TYPE A (k INT); TYPE B (k INT); TYPE C (k INT)"
PING, PONG = "SUBSCRIPTION P MATCH A a EMIT B (k = a.k)", "SUBSCRIPTION Q MATCH B b EMIT A (k = b.k)"
VIA = "SUBSCRIPTION V MATCH B b EMIT C (k = b.k)"
BACK = "SUBSCRIPTION W MATCH C c EMIT A (k = c.k)"


@pytest.mark.parametrize("others", [[PING], [PING, VIA]], ids=["two", "three"])
def test_a_loop_with_durable_subscribers_is_refused(others: list[str]) -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            for at, rules in enumerate(others):
                async with fl.subscribe(rules, name=f"s{at}"):
                    pass
            closing = PONG if len(others) == 1 else BACK
            with pytest.raises(UsageError, match=r"A266 .*: A → B → .*A"):
                async with fl.subscribe(closing, name="last"):
                    pass
            async with fl.subscribe(closing, name="viewer", emit=False):
                pass
            async with fl.subscribe(others[0], name="s0"):  # resumes: a viewer closes no loop
                pass
            await fl.forget("s0")
            async with fl.subscribe(closing, name="last"):
                pass

    run(work)


def test_chains_are_no_loops() -> None:
    assert loop_of([(["A"], ["B"])], [(["B"], ["C"]), (["X"], ["A"])]) == []
    assert loop_of([(["A"], ["B"])], [(["B"], ["C"]), (["C"], ["C2"]), (["C2"], ["A"])]) == ["B", "C", "C2", "A", "B"]
    assert loop_of([(["A"], ["B"])], [(["C"], ["D"]), (["D"], ["C"])]) == []  # of others, before


@pytest.mark.parametrize("url", URLS)
def test_a_loop_of_subscribers_without_names_ends(url: str | None, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(PING) as one, fl.subscribe(PONG) as two:
                eaters = [asyncio.create_task(eaten(each)) for each in (one, two)]
                with caplog.at_level(logging.WARNING, "fairlead"):
                    await fl.publish("A", k=1, wait=True)
                    await until(lambda: has_ended(caplog))
                await ended(*eaters)
                await more(one)
                await more(two)
            assert len(await rows_of(fl, "B")) == HOPS_MAX // 2
            assert len(await rows_of(fl, "A")) == 1 + HOPS_MAX // 2
            async with fl.subscribe(PONG, start="earliest", name="late") as late:  # what it finds is stored already
                assert len(await more(late)) == HOPS_MAX // 2
            assert len(await rows_of(fl, "A")) == 1 + HOPS_MAX // 2

    async def eaten(sub: LiveSubscription) -> None:
        async for _ in sub:
            pass

    async def has_ended(said: pytest.LogCaptureFixture) -> bool:
        return any("S145" in each.getMessage() for each in said.records)

    run(work)
