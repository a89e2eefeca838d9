"""Retention that is killed between any two of its requests: whoever publishes, resumes and reads afterwards finds what they
would have found, and the next call completes it."""

from __future__ import annotations

import random

import pytest

from fairlead.runtime.live.client import Client
from tests.marks import sample_size
from tests.runtime.live.reading import ids, more
from tests.runtime.live.test_sweeps import REQUESTS, SteppedLog, SteppedPlace
from tests.transport.log.logs import run

TYPES = "TOPIC a (A) KEEP {} TOPIC b (B) TYPE A (k INT) TYPE B (k INT)"
RULES = "SUBSCRIPTION S MATCH A a AND B b PER k"
RETAINING = {*REQUESTS, "trim", "state", "before", "last", "count", "sources"}
Found = tuple[list[list[str]], list[int], list[str]]


class Killed(Exception): ...


class RetainedLog(SteppedLog):
    requests = RETAINING


def client(log: SteppedLog, source: str) -> Client:
    return Client(SteppedPlace(log), source, 0.0, 5.0, None)


async def pair(log: SteppedLog, k: int) -> None:
    async with client(log, "p") as fl:
        for name in "BA":
            await fl.publish(name, k=k, wait=True)


async def resumed(log: SteppedLog) -> list[str]:
    async with client(log, "s") as fl, fl.subscribe(RULES, name="s", start="earliest") as sub:
        found = ids(await more(sub))
        await sub.ack()
        return found


async def left(log: SteppedLog) -> list[str]:
    """What a reader finds that begins with the first events that are left."""
    async with client(log, "q") as fl, fl.subscribe(RULES, start="earliest") as sub:
        return ids(await more(sub))


async def found_after(turn: int | None, *, read: bool) -> tuple[bool, Found]:
    """Whether retention came to its end before this request of it, and what is found after it was repeated."""
    log, delivered = RetainedLog(), list[list[str]]()

    async def killed() -> None:
        raise Killed

    async with client(log, "p") as fl:
        await fl.declare(TYPES.format("ALL" if read else "1 B"))
    for k in range(3):
        await pair(log, k)
    delivered.append(await resumed(log))
    log.turn, log.meanwhile = -1 if turn is None else turn, None if turn is None else killed
    ended = True
    async with client(log, "r") as fl:
        try:
            await fl.retain(apply=True, read=read)
        except Killed:
            ended = False
        log.meanwhile = None
    assert {*await left(log)} <= {*delivered[0]}
    for k in (3, 4):
        await pair(log, k)
        delivered.append(await resumed(log))
        async with client(log, "r") as fl:
            await fl.retain(apply=True, read=read)
    states = [await log.state(await log.open_topics([each])) for each in "ab"]
    return ended, (delivered, [each.first for each in states], await left(log))


@pytest.mark.slow
@pytest.mark.parametrize("read", [False, True], ids=["by policy", "what was read"])
def test_retention_that_was_killed_anywhere_is_completed_by_the_next(read: bool) -> None:
    async def work() -> None:
        ended, due = await found_after(None, read=read)
        assert ended
        assert [len(each) for each in due[0]] == [3, 1, 1]
        assert max(due[1]) > 3
        turns = list(range(120))
        for turn in sorted(random.Random(1).sample(turns, sample_size(40))):
            ended, found = await found_after(turn, read=read)
            assert found == due, f"before request {turn}"
            if ended:
                return

    run(work)
