"""Fault injection: each injected fault is done and undone.

Takes: a world (cluster, workers), rolls. Gives: context managers, inside which something is broken. Never: breaks two servers
at the same time, except when all of them are restarted, or have no room.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from fairlead.errors import LogError
from fairlead.testing.live.actors.processes import Worker
from fairlead.testing.live.actors.setting import ORDERED, RULES
from fairlead.testing.live.cluster.links import Way
from fairlead.testing.live.cluster.servers import Cluster
from fairlead.transport.log.patience import Patience

LIMIT_SECONDS_MAX = 30.0
ROOM, DISK_ROOM = 2_000, 20_000
"""Bytes that a stream, or a server, may still accept when it is about to be full: a few blocks."""


class World(Protocol):
    cluster: Cluster
    publishers: list[Worker]
    subscribers: list[Worker]
    joiners: list[Worker]
    """Subscribers that join others in the middle of a run."""
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
    """Alone, it still receives what clients send, and must not acknowledge it."""
    at, stream = _leader(world, rolls)
    way: Way = rolls.choice(["refused", "silent"])
    world.cluster.turn(way, at)
    yield f"server {at}, which leads {stream}, is cut off ({way})"
    world.cluster.turn("open", at)


@contextmanager
def restarted_everything(world: World, rolls: random.Random) -> Iterator[str]:
    """All servers; sometimes publishers and subscribers as well."""
    every, workers = list(range(len(world.cluster.servers))), rolls.choice([[], [*world.publishers, *world.subscribers]])
    for each in workers:
        each.kill()
    world.cluster.kill(*every)
    yield f"all servers{' and all workers' if workers else ''} are killed"
    rolls.shuffle(every)
    world.cluster.start(*every)
    for each in workers:
        each.start()


@contextmanager
def killed_subscriber(world: World, rolls: random.Random) -> Iterator[str]:
    """One of those in the order of the log, one in event time, and one that has joined others."""
    there = [each for each in world.subscribers if each.started]
    some = [rolls.choice([each for each in there if (RULES[each.name] == ORDERED) is ordered]) for ordered in (False, True)]
    joined = [each for each in world.joiners if each.started]
    some += [rolls.choice(joined)] if joined else []
    for each in some:
        each.kill()
    yield f"subscribers {' and '.join(each.name for each in some)} are killed"
    for each in some:
        each.start()


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


@contextmanager
def full_disk(world: World, rolls: random.Random) -> Iterator[str]:
    """The disk of one server, without which the others continue, or of all."""
    at, _ = _leader(world, rolls)
    which = rolls.choice([[at], list(range(len(world.cluster.servers)))])
    world.cluster.restart_with(_used(world) + DISK_ROOM, *which)
    yield f"the disks of servers {', '.join(map(str, which))} are full"
    world.cluster.restart_with(None, *which)


@contextmanager
def unreachable_leader(world: World, rolls: random.Random) -> Iterator[str]:
    """Servers reach it, clients do not."""
    at, stream = _leader(world, rolls)
    way: Way = rolls.choice(["refused", "silent"])
    clients = [each.name for each in (*world.publishers, *world.subscribers)]
    world.cluster.turn_clients(way, clients, [at])
    yield f"server {at}, which leads {stream}, is out of reach for clients ({way})"
    world.cluster.turn_clients("open", clients, [at])


@contextmanager
def cut_client(world: World, rolls: random.Random) -> Iterator[str]:
    one = rolls.choice([*world.publishers, *world.subscribers])
    way: Way = rolls.choice(["refused", "silent"])
    every = range(len(world.cluster.servers))
    world.cluster.turn_clients(way, [one.name], every)
    yield f"{one.name} reaches no server ({way})"
    world.cluster.turn_clients("open", [one.name], every)


@contextmanager
def paused_worker(world: World, rolls: random.Random) -> Iterator[str]:
    one = rolls.choice([*world.publishers, *world.subscribers])
    one.pause()
    yield f"{one.name} stands still"
    one.go_on()


def _named(*faults: Fault) -> dict[str, Fault]:
    return {each.__name__: each for each in faults}


OF_SERVERS = _named(
    killed_leader, paused_leader, cut_link, cut_off_leader, restarted_everything, full_store, full_disk, unreachable_leader
)
OF_WORKERS = _named(killed_subscriber, killed_publisher, paused_worker, cut_client)
FAULTS = OF_SERVERS | OF_WORKERS


def _leader(world: World, rolls: random.Random) -> tuple[int, str]:
    """The leader of a random stream; any server, while there is none."""
    stream = rolls.choice(world.streams)
    at = world.cluster.leader(stream)
    return (rolls.randrange(len(world.cluster.servers)) if at is None else at), stream


def _used(world: World) -> int:
    patience = Patience(LIMIT_SECONDS_MAX)
    while (used := world.cluster.used()) is None:
        if patience.is_over:
            raise LogError("N040", "no server reports how much is stored", "see the logs of the servers")
        patience.wait()
    return used


def _limit(world: World, stream: str, room: int | None) -> None:
    patience = Patience(LIMIT_SECONDS_MAX)
    while not world.cluster.limit(stream, room):
        if patience.is_over:
            raise LogError("N040", f"the limit of {stream} did not change", "see the logs of the servers")
        patience.wait()
