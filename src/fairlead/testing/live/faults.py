"""What fails, and when: a seeded schedule of faults, each of which is done and undone.

Takes: a world (cluster, workers), rolls. Gives: context managers, inside which something is broken. Never: breaks two servers
at the same time, except where all of them are restarted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from fairlead.dataclass import dataclass
from fairlead.errors import LogError
from fairlead.testing.live.cluster import Cluster
from fairlead.testing.live.links import Way
from fairlead.testing.live.workers import Worker

HOLD_SECONDS = 0.5, 3.0
LONG, LONG_SECONDS = ("cut_off_leader", "paused_leader"), (6.0, 12.0)
"""Sometimes longer than a client waits for an answer, so that what is under way is sent again."""
LIMIT_SECONDS_MAX = 30.0
ROOM = 2_000
"""Bytes that a stream may still take when it is about to be full: a few blocks."""


class World(Protocol):
    cluster: Cluster
    publishers: list[Worker]
    subscribers: list[Worker]
    streams: list[str]


Fault = Callable[[World, random.Random], AbstractContextManager[str]]


@contextmanager
def killed_leader(world: World, rolls: random.Random) -> Iterator[str]:
    at, stream = _leader(world, rolls)
    world.cluster.kill(at)
    yield f"server {at}, which leads {stream}, is killed"
    world.cluster.start(at)


@contextmanager
def paused_leader(world: World, rolls: random.Random) -> Iterator[str]:
    at, stream = _leader(world, rolls)
    world.cluster.pause(at)
    yield f"server {at}, which leads {stream}, stands still"
    world.cluster.go_on(at)


@contextmanager
def cut_link(world: World, rolls: random.Random) -> Iterator[str]:
    one, other = sorted(rolls.sample(range(len(world.cluster.servers)), 2))
    way: Way = rolls.choice(["refused", "silent"])
    world.cluster.turn(way, one, other)
    yield f"the link of servers {one} and {other} is {way}"
    world.cluster.turn("open", one, other)


@contextmanager
def cut_off_leader(world: World, rolls: random.Random) -> Iterator[str]:
    """Alone, it still takes what clients send, and must not acknowledge it."""
    at, stream = _leader(world, rolls)
    way: Way = rolls.choice(["refused", "silent"])
    world.cluster.turn(way, at)
    yield f"server {at}, which leads {stream}, is cut off ({way})"
    world.cluster.turn("open", at)


@contextmanager
def restarted_everything(world: World, rolls: random.Random) -> Iterator[str]:
    every = list(range(len(world.cluster.servers)))
    world.cluster.kill(*every)
    yield "all servers are killed"
    rolls.shuffle(every)
    world.cluster.start(*every)


@contextmanager
def killed_subscriber(world: World, rolls: random.Random) -> Iterator[str]:
    one = rolls.choice(world.subscribers)
    one.kill()
    yield f"subscriber {one.name} is killed"
    one.start()


@contextmanager
def killed_publisher(world: World, rolls: random.Random) -> Iterator[str]:
    one = rolls.choice(world.publishers)
    one.kill()
    yield f"publisher {one.name} is killed"
    one.start()


@contextmanager
def full_store(world: World, rolls: random.Random) -> Iterator[str]:
    stream = rolls.choice(world.streams)
    _limit(world, stream, ROOM)
    yield f"{stream} is full"
    _limit(world, stream, None)


FAULTS: dict[str, Fault] = {
    each.__name__: each
    for each in (
        killed_leader,
        paused_leader,
        cut_link,
        cut_off_leader,
        restarted_everything,
        killed_subscriber,
        killed_publisher,
        full_store,
    )
}


@dataclass(frozen=True)
class Step:
    """`faults` happen together: what is done last is undone first."""

    faults: tuple[str, ...]
    hold: float
    seed: int


def schedule(seed: int, count: int) -> Iterator[Step]:
    """Every fault once before any comes again; of four steps, one has a worker die as well."""
    rolls, left = random.Random(seed), list[str]()
    for _ in range(count):
        if not left:
            left = rolls.sample(list(FAULTS), len(FAULTS))
        name = left.pop()
        dying = rolls.choice(["killed_subscriber", "killed_publisher"])
        together = (name, dying) if name != dying and rolls.random() < 0.25 else (name,)
        hold = LONG_SECONDS if name in LONG and rolls.random() < 0.5 else HOLD_SECONDS
        yield Step(together, rolls.uniform(*hold), rolls.randrange(2**32))


def until(seconds: float, steps: Iterable[Step]) -> Iterator[Step]:
    """Those that begin within so many seconds from the first."""
    end: float | None = None
    for each in steps:
        end = time.monotonic() + seconds if end is None else end
        if time.monotonic() > end:
            return
        yield each


def _leader(world: World, rolls: random.Random) -> tuple[int, str]:
    """Of a stream at random; any server, while there is none."""
    stream = rolls.choice(world.streams)
    at = world.cluster.leader(stream)
    return (rolls.randrange(len(world.cluster.servers)) if at is None else at), stream


def _limit(world: World, stream: str, room: int | None) -> None:
    end = time.monotonic() + LIMIT_SECONDS_MAX
    while not world.cluster.limit(stream, room):
        if time.monotonic() > end:
            raise LogError("N001", f"the limit of {stream} cannot be changed", "see the logs of the servers")
        time.sleep(0.2)
