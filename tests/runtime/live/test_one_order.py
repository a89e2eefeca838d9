"""All that a live subscriber is given is in one order, that of the embedded engine over the exported log: for those who are
there from the beginning, who join later, who come back behind what they acknowledged, and whose rules change meanwhile.

Random plans of several subscriptions (tests/runtime/live/given.py), a few of them; FAIRLEAD_ORDER_PLANS=200 asks for more. And
plans of conjunctions and disjunctions, which read several streams between them.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.errors import FairleadError
from fairlead.language import compile_text
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.event_table import only_group
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from tests.runtime.live.given import Given, usable
from tests.runtime.live.test_conformance import POLL_SECONDS, read
from tests.transport.log.logs import run

PLANS = int(os.environ.get("FAIRLEAD_ORDER_PLANS", "12"))
STREAMS = PLANS // 3
SESSIONS = 6
Delivered = list[tuple[str, str]]
"""Names of subscriptions and ids, in the order of delivery."""


def several_streams() -> Iterator[Given]:
    """Conjunctions of two or three types, some of them disjunctions, that have streams in common."""
    types = " ".join(f"TOPIC {name.lower()} ({name}); TYPE {name} (k INT, x INT);" for name in "ABC")
    for seed in range(10**9):
        rng = Random(seed)
        pairs = ["A a AND B b WHERE a.k = b.k", "B b AND C c", "A a AND B b AND C c WHERE a.k = c.k", "A a AND C c PER k"]
        sides = ["(A a AND B b)", "(B d AND C c)", "(A e AND C f)", "(C g[2])"]
        texts = [f"SUBSCRIPTION P{at} MATCH {each}" for at, each in enumerate(rng.sample(pairs, 2))]
        texts += [f"SUBSCRIPTION D{at} MATCH {' OR '.join(rng.sample(sides, 2))}" for at in range(rng.choice((1, 2)))]
        rng.shuffle(texts)
        text = "\n".join((types, *texts))
        events = tuple({"type": rng.choice("ABC"), "k": rng.randrange(3), "x": rng.randrange(9)} for _ in range(50))
        try:
            group = only_group(compile_text(text))
        except FairleadError:
            continue
        yield Given(seed, text, (types, *texts), events, group)


@pytest.mark.sampled
@pytest.mark.parametrize("given", list(islice(usable(), PLANS)), ids=str)
def test_one_stream(given: Given, tmp_path: Path) -> None:
    run(lambda: compared(given, tmp_path / "events.parquet"))


@pytest.mark.sampled
@pytest.mark.parametrize("given", list(islice(several_streams(), STREAMS)), ids=str)
def test_several_streams(given: Given, tmp_path: Path) -> None:
    assert len(given.group.parts) > 1
    run(lambda: compared(given, tmp_path / "events.parquet"))


TOPICS = "TOPIC a (A); TOPIC b (B); TOPIC c (C);"
TIMED = "TYPE A (k INT, at TIMESTAMP) TIME at; TYPE B (k INT, at TIMESTAMP) TIME at; TYPE C (k INT, at TIMESTAMP) TIME at;"
WAITING = "SUBSCRIPTION {} MATCH A a WITHOUT B b WITHIN {} SECONDS OF a WHERE a.k = b.k"


def second(at: int) -> str:
    return f"2026-01-01T00:00:{at:02}Z"


def test_what_one_event_decides_comes_by_deadline_and_then_in_the_order_of_the_text() -> None:
    async def work() -> None:
        rules = [WAITING.format("Later", 9), "SUBSCRIPTION Pair MATCH A a AND B b", *(WAITING.format(each, 5) for each in "XY")]
        async with (
            fairlead.connect("memory:") as fl,
            fl.subscribe(f"{TIMED} {' '.join(rules)}", start="earliest", emit=False) as sub,
        ):
            await fl.publish("A", k=1, at=second(1), wait=True)
            await fl.publish("B", k=2, at=second(20), wait=True)
            assert [each.subscription for each in await read(sub)] == ["X", "Y", "Later", "Pair"]

    run(work)


ALONE = {
    "Waiting": WAITING.format("Waiting", 5),
    "Pair": "SUBSCRIPTION Pair MATCH A a AND B b",
    "Either": "SUBSCRIPTION Either MATCH (A a AND B b) OR (B d AND C c)",
}


@pytest.mark.sampled
@pytest.mark.parametrize("topics", ["", TOPICS], ids=["one topic", "topics"])
@pytest.mark.parametrize("names", [("Either", "Waiting"), ("Pair", "Either"), tuple(ALONE)], ids=" ".join)
def test_who_reads_beside_a_disjunction_is_told_the_time_and_leaves_its_state_to_who_reads_alone(
    names: Sequence[str], topics: str
) -> None:
    """A disjunction merges streams, and those who wait for one of them store heartbeats."""
    alone = {name: ALONE[name] for name in names}
    together = " ".join(alone.values())

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(topics + TIMED)

            async def followed(rules: str, start: str = "earliest") -> Delivered:
                async with fl.subscribe(rules, start=start, emit=False) as sub:
                    return shown(await read(sub))

            async with fl.subscribe(together, start="earliest", emit=False) as both:
                found = Delivered()
                for at in range(0, 50, 2):
                    name = "ABC"[at * 7 % 3]
                    await fl.publish(name, k=at % 3, at=second(at), wait=True)
                    if at % 10 == 0:
                        await fl.publish("Heartbeat", at=second(at + 1), wait=True)
                    found += shown(await read(both))
            assert {name for name, _ in found} == {*alone}
            assert await followed(together) == found
            for rules in alone.values():
                assert await followed(rules, "snapshot") == []  # the state that was left has all of it
            await fl.publish("A", k=1, at=second(52), wait=True)
            await fl.publish("B", k=2, at=second(53), wait=True)
            await fl.publish("C", k=1, at=second(54), wait=True)
            await fl.publish("Heartbeat", at=second(59), wait=True)
            later = {name: await followed(rules, "snapshot") for name, rules in alone.items()}
            everything = await followed(together)
            assert everything[: len(found)] == found
            for name, mine in later.items():
                assert mine == [each for each in everything[len(found) :] if each[0] == name] != []
                assert await followed(alone[name]) == [each for each in everything if each[0] == name]

    run(work)


def test_what_is_acknowledged_stays_so_while_it_is_read_again() -> None:
    """The state from which one who comes back reads on is behind what it has acknowledged."""
    types, rules = "TYPE A (k INT); TYPE B (k INT);", "SUBSCRIPTION One MATCH A a AND B b"

    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(types)

            async def followed(most: int) -> Delivered:
                """All that comes, of which so many are acknowledged."""
                async with fl.subscribe(f"{types} {rules}", name="desk", start="earliest", emit=False) as sub:
                    await sub.ack()  # nothing, as nothing is given yet
                    found = await read(sub) if most else []
                    await sub.ack(found[most - 1] if most else None)
                return shown(found)

            for k in range(20):
                await fl.publish("AB"[k % 2], k=k, wait=True)
            first = await followed(10)  # all: a state is stored
            for k in range(20):
                await fl.publish("AB"[k % 2], k=k, wait=True)
            second = await followed(4)  # less than all: the state behind it is of no use
            assert await followed(0) == []
            third = await followed(1)
            assert len(first) == len(second) == 10
            assert third == second[4:]
            assert await followed(1) == third[1:]

    run(work)


@dataclass(frozen=True)
class Session:
    """What one who subscribed to some of the rules was given. `begun`: by name, how many deliveries it was past then; None
    where it began with a state. `whole`: all that was stored in the end was read."""

    who: str
    names: Sequence[str]
    begun: Mapping[str, int] | None
    delivered: Delivered
    whole: bool

    def check(self, expected: Delivered) -> None:
        mine, past = [each for each in expected if each[0] in self.names], self.begun
        if past is None:
            past = Counter(name for name, _ in mine) - Counter(name for name, _ in self.delivered)
        numbers, wanted = Counter[str](), Delivered()
        for name, each in mine:
            numbers[name] += 1
            wanted += [(name, each)] if numbers[name] > past.get(name, 0) else []
        assert self.delivered == (wanted if self.whole else wanted[: len(self.delivered)]), self.who


async def compared(given: Given, path: Path) -> None:
    async with fairlead.connect("memory:") as client:
        sessions = await lived(client, given)
        await client.export(given.text, path)
    stream = "stream" if len(given.group.parts) > 1 else None
    found = fairlead.match(compile_text(given.text), pq.read_table(path), position="position", stream=stream)
    expected = shown(found)
    assert len({name for name, _ in expected}) > 1
    for each in sessions:
        each.check(expected)


async def lived(client: Client, given: Given) -> list[Session]:
    """Somebody who is there all the time, a desk that comes and goes with other rules each time, and late joiners."""
    rolls = Random(given.seed)
    names = [text.split()[1] for text in given.texts[1:]]
    sessions, desk, events = list[Session](), dict[str, int](), list(given.events)
    async with client.subscribe(given.text, start="earliest", emit=False) as always:
        seen, late, joined = Delivered(), list[LiveSubscription](), list[tuple[str, Mapping[str, int] | None]]()
        for turn in range(SESSIONS):
            last = turn == SESSIONS - 1
            chosen = names if last else some_of(given, names, desk, rolls)
            start = rolls.choice(("earliest", "new"))
            known = Counter(name for name, _ in seen)
            desk = {name: desk[name] if name in desk else known[name] if start == "new" else 0 for name in chosen}
            text = "\n".join((given.texts[0], *(each for each in given.texts[1:] if each.split()[1] in chosen)))
            async with client.subscribe(text, name="desk", start=start, emit=False) as sub:
                if turn == SESSIONS // 2:
                    for begin, past in (("new", known), ("snapshot", None)):
                        late.append(await client.subscribe(given.text, start=begin, emit=False).__aenter__())
                        joined.append((begin, past))
                await publish(client, [events.pop(0) for _ in range(len(events) if last else len(events) // 3)], rolls)
                given_now = await taken(sub, rolls, None if last else rolls.choice((0, 3, 10, None)))
                sessions.append(Session(f"desk {turn}", chosen, dict(desk), shown(given_now), last))
                for name in await acknowledged(sub, given_now, rolls):
                    desk[name] += 1
            seen += shown(await read(always))
        sessions.append(Session("always", names, {}, seen, True))
        for (begin, past), sub in zip(joined, late, strict=True):
            sessions.append(Session(begin, names, past, shown(await read(sub)), True))
            await sub.__aexit__()
    return sessions


def shown(relations: Sequence[Relation] | fairlead.Result) -> Delivered:
    return [(each.subscription, each.id) for each in relations]


def some_of(given: Given, names: Sequence[str], before: Mapping[str, int], rolls: Random) -> list[str]:
    """One less, mostly, if that is a plan whose streams have one order, the others are what they were, and one goes on. Of
    equal subscriptions under several names the first goes on, whichever name is gone: these stay."""
    gone = rolls.choice([*names, ""])
    chosen = [name for name in names if name != gone]
    text = "\n".join((given.texts[0], *(each for each in given.texts[1:] if each.split()[1] != gone)))
    try:
        plan, whole = compile_text(text), compile_text(given.text)
        only_group(plan)
    except FairleadError:
        return list(names)
    same = all(each.digest == whole[each.name].digest for each in plan.subscriptions)
    same = same and whole[gone].digest not in {each.digest for each in plan.subscriptions} if gone else same
    return chosen if same and (not before or set(chosen) & set(before)) else list(names)


async def publish(client: Client, events: Sequence[Mapping[str, object]], rolls: Random) -> None:
    """In blocks of all sizes."""
    for event in events:
        values = {name: value for name, value in event.items() if name != "type"}
        await client.publish(str(event["type"]), values, wait=rolls.random() < 0.5)
    await client.flush()


async def taken(sub: LiveSubscription, rolls: Random, most: int | None) -> list[Relation]:
    """So many, or all that there are."""
    ends, found = await sub.ends(), list[Relation]()
    while most is None or len(found) < most:
        if rolls.random() < 0.3:
            try:
                found += await asyncio.wait_for(sub.next_batch(), POLL_SECONDS)
                continue
            except TimeoutError:
                pass
        relation = await sub.next_within(POLL_SECONDS)
        if relation is not None:
            found.append(relation)
        elif await sub.has_passed(ends):
            break
    return found


async def acknowledged(sub: LiveSubscription, found: Sequence[Relation], rolls: Random) -> list[str]:
    """The names of what is acknowledged: all, nothing, or everything up to one of them."""
    if found and rolls.random() < 0.6:
        at = rolls.randrange(len(found))
        await sub.ack(found[at])
        return [each.subscription for each in found[: at + 1]]
    if rolls.random() < 0.5:
        await sub.ack()
        return [each.subscription for each in found]
    return []
