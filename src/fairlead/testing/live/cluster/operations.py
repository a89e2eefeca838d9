"""What operators do while a log is in use, at any moment: streams without readers are swept, types get attributes.

Takes: a world (cluster, workers), rolls. Gives: context managers, like those of injected faults; afterwards all have to get
on. Never: undoes it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import fairlead
from fairlead.errors import LogError
from fairlead.runtime.live.client import Client
from fairlead.testing.live.actors.setting import ADDED, NAMES
from fairlead.testing.live.cluster.faults import Fault, World

Answer = TypeVar("Answer")
ATTEMPTS = 5
"""Servers may fail at the same time; each waits for as long as a client does."""


@contextmanager
def swept(world: World, rolls: random.Random) -> Iterator[str]:
    """All merged streams are in use, and so are their sources: none may go."""
    gone = _done(world, lambda fl: fl.sweep())
    if gone:
        raise LogError("N040", f"streams in use were swept: {', '.join(gone)}", "see the leases of their readers")
    yield "an operator sweeps"


@contextmanager
def evolved_type(world: World, rolls: random.Random) -> Iterator[str]:
    """A type gets one more attribute. Publishers omit it, subscribers that run do not know it, those that restart do."""
    name = rolls.choice(NAMES)

    async def declare(fl: Client) -> str:
        there = (await fl.types())[name].attributes
        more = f"{ADDED}{len(there)}"
        await fl.declare(f"TYPE {name} ({', '.join(map(str, there))}, {more} STRING) TIME at")
        return more

    yield f"type {name} gets the attribute {_done(world, declare)}"


def _done(world: World, work: Callable[[Client], Awaitable[Answer]]) -> Answer:
    async def attempt() -> Answer:
        async with fairlead.connect(world.cluster.url, replicas=3) as fl:
            return await work(fl)

    for left in reversed(range(ATTEMPTS)):
        try:
            return asyncio.run(attempt())
        except LogError as error:
            if not left or error.code != "N001":
                raise
    raise AssertionError("unreachable")


OPERATIONS: dict[str, Fault] = {each.__name__: each for each in (swept, evolved_type)}
