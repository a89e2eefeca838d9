"""Whatever happens to a source around an append: its blocks count once, in order, and another writer is noticed.

A case is a sequence of steps around the first execution of an append, or without any: messages that are no blocks, blocks of
another process of the source, and trimming, which notes heads before it removes blocks. All of some length are tried.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from fairlead.runtime.live.retention import _note_heads
from fairlead.testing.simulator.live.event_loop import SimulatedLoop
from fairlead.testing.simulator.live.servers import SimulatedServers
from fairlead.transport.log.blocks.block import Block, rejected_block
from fairlead.transport.log.blocks.block_store import stored_once
from fairlead.transport.log.blocks.refused_append import is_same
from fairlead.transport.log.blocks.repeats import without_repeats
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Conflict, Stored, Unavailable
from fairlead.transport.log.trims import begin_trim
from tests.marks import sample_size

EXECUTED = "executed"
STEPS = ("stranger", "theirs", "theirs of another type", "noted", "trimmed")
LENGTH_MAX = 3


def a_block(type: str, number: int, sequence: int, writer: str) -> Block:
    return Block(type, "s", number, sequence, 1, "s", f"{writer} {type} {number} {sequence}".encode(), writer, topic="A")


class Servers(SimulatedServers):
    """The log of one topic, A, and of one source in it."""

    async def begin(self) -> PatientLog:
        self.stream = await self.open_topics(["A"])
        self.noted = 1
        return PatientLog(self, 10.0)

    async def last_block_of(self, topic: str, source: str, type: str | None = None) -> Stored | None:
        """Also before messages that are none."""
        held = [each for each in self._streams[self.stream.name] if type in (None, each.block.type)]
        return next((each for each in reversed(await without_repeats(self, held)) if not each.block.rejected), None)

    async def counted(self) -> list[Block]:
        """The blocks that readers take."""
        return [
            each.block for each in await without_repeats(self, self._ever.get(self.stream.name, [])) if not each.block.rejected
        ]

    async def execute(self, block: Block, after: int) -> int:
        return await SimulatedServers.append(self, block, after)

    def stranger(self) -> None:
        stored = self._take(self.stream.name, self._clock(), rejected_block("D037", "fl.e.A.A.s"))
        for type in (None, "A", "B"):
            self._tails["A", "s", type] = stored

    async def note(self, cut: int | None = None) -> None:
        """Of all that is there, or up to `cut`, the heads."""
        state = await self.state(self.stream)
        self.noted = max(self.noted, state.last + 1 if cut is None else cut)
        await _note_heads(PatientLog(self, 10.0), self.stream, state.first, self.noted)
        await begin_trim(self, self.stream.name, self.noted, planned=False)

    async def theirs(self, type: str) -> None:
        """What a process that resumes the source appends."""
        log = PatientLog(self, 10.0)
        tail = await SimulatedServers.last_of(self, "A", "s")
        last, same = await log.last_block_of("A", "s"), await log.last_block_of("A", "s", type)
        sequence = 0 if last is None else last.block.sequence + 1
        await self.execute(
            a_block(type, 0 if same is None else same.block.number + 1, sequence, "theirs"), tail.sequence if tail else 0
        )

    async def step(self, step: str) -> None:
        match step:
            case "stranger":
                self.stranger()
            case "noted":
                await self.note()
            case "trimmed":
                await self.note()
                await self.trim(self.stream, self.noted)
            case _:
                await self.theirs("A" if step == "theirs" else "B")


class ScriptedServers(Servers):
    """Around the first append, this happens. Its answer is lost unless the append itself is the last step."""

    script: Sequence[str] | None = None

    async def append(self, block: Block, after: int) -> int:
        script, self.script = self.script, None
        if script is None:
            return await self.execute(block, after)
        for step in script[:-1] if script[-1:] == (EXECUTED,) else script:
            if step == EXECUTED:
                with suppress(Conflict):
                    await self.execute(block, after)
            else:
                await self.step(step)
        if script[-1:] == (EXECUTED,):
            return await self.execute(block, after)
        raise Unavailable("no answer")


def scripts() -> Iterator[tuple[str, ...]]:
    for length in range(LENGTH_MAX + 1):
        for steps in product(STEPS, repeat=length):
            yield steps
            for at in range(length + 1):
                yield (*steps[:at], EXECUTED, *steps[at:])


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience, "_taken", lambda self: 0.0)


async def holds(raw: ScriptedServers, prior: str, begins: Sequence[str], script: tuple[str, ...]) -> None:
    """`prior`: the types of blocks that our process has stored before, after which the steps `begins` were taken."""
    log, sequence, after = await raw.begin(), 0, 0
    numbers = {"A": 0, "B": 0}

    async def ours(type: str) -> Stored:
        nonlocal sequence, after
        mine = a_block(type, numbers[type], sequence, "ours")
        found = await stored_once(log, mine, after, 10.0, alone=True)
        if is_same(found.block, mine):
            sequence, after = sequence + 1, found.sequence
            numbers[type] += 1
        return found

    for type in prior:
        await ours(type)
    for step in begins:
        await raw.step(step)
    before, raw.script = len(await raw.counted()), script
    found = await ours("A")
    blocks, is_ours = await raw.counted(), found.block.writer == "ours"
    others = [each for each in blocks if each.writer == "theirs"]
    mine = [each for each in blocks[before:] if each.writer == "ours"]
    if is_ours:
        assert [each.payload for each in mine] == [found.block.payload]
        assert not others or blocks.index(mine[0]) < blocks.index(others[0])
    else:
        assert others
        assert found.block.sequence >= others[0].sequence
    assert len({(each.type, each.number) for each in blocks}) == len(blocks)
    assert [each.sequence for each in blocks] == [*range(len(blocks))]
    if not others:  # it continues, without an error
        for type in "AB":
            assert (await ours(type)).block.writer == "ours"
        assert [each.sequence for each in await raw.counted()] == [*range(before + 3)]


@pytest.mark.sampled
@pytest.mark.parametrize("begins", [(), ("noted",), ("trimmed",), ("trimmed", "stranger")], ids=" and ".join)
@pytest.mark.parametrize("prior", ["", "A", "AB"])
def test_a_block_counts_once_or_another_writer_is_noticed(prior: str, begins: tuple[str, ...]) -> None:
    async def work(loop: SimulatedLoop) -> None:
        every = [*scripts()]
        for script in random.Random(f"{prior} {begins}").sample(every, sample_size(len(every))):
            try:
                await holds(ScriptedServers(loop, 1), prior, begins, script)
            except AssertionError as error:
                raise AssertionError(f"{prior=} {begins=} {script=}") from error

    with closing(SimulatedLoop(1)) as loop:
        asyncio.run(work(loop))


class Crash(Exception):
    """The process is killed."""


class AdverseServers(Servers):
    """Before and after each request, anything may happen. Appends are lost, or executed late, or again."""

    def adverse(self, rolls: random.Random) -> None:
        self.rolls, self.sent, self.quiet, self.crashes = rolls, list[tuple[Block, int]](), False, rolls.random() < 0.4

    async def happens(self) -> None:
        self.quiet = True
        while self.rolls.random() < 0.35:
            step = self.rolls.choice(("copy", "copy", "stranger", "noted", "some", "trimmed"))
            if step == "copy":
                with suppress(Conflict, IndexError):
                    await self.execute(*self.rolls.choice(self.sent))
            elif step == "some":
                state = await self.state(self.stream)
                await self.note(self.rolls.randrange(state.first, state.last + 2))
                await self.trim(self.stream, self.noted)
            else:
                await self.step(step)
        self.quiet = False

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("append", "last_of", "last_block_of", "get", "state") or self.__dict__.get("quiet", True):
            return found

        async def request(*given: Any) -> Any:
            await self.happens()
            if name == "append":
                self.sent.append(given)
                if self.rolls.random() < 0.25:
                    raise Unavailable("the request is lost, or late")
            self.quiet = True
            try:
                answer = await found(*given)
            finally:
                self.quiet = False
            await self.happens()
            if self.crashes and self.rolls.random() < 0.02:
                raise Crash
            if name == "append" and self.rolls.random() < 0.2:
                raise Unavailable("the answer is lost")
            return answer

        return request


async def published(log: PatientLog, writer: str, left: list[str], confirmed: list[str]) -> bool:
    """A process that resumes the source, as an outbox does, and takes what it publishes from `left`. False if it has noticed
    another process."""
    tail, last = await log.last_of("A", "s"), await log.last_block_of("A", "s")
    after, sequence = tail.sequence if tail else 0, last.block.sequence + 1 if last else 0
    numbers = dict[str, int]()
    while left:
        type = left[0][0]
        if type not in numbers:
            same = await log.last_block_of("A", "s", type)
            numbers[type] = same.block.number + 1 if same else 0
        made = replace(a_block(type, numbers[type], sequence, writer), payload=left[0].encode())
        found = await stored_once(log, made, after, 10.0, alone=True)
        if not is_same(found.block, made):
            return False
        confirmed.append(left.pop(0))
        after, sequence, numbers[type] = found.sequence, sequence + 1, numbers[type] + 1
    return True


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(sample_size(80)))
def test_what_is_confirmed_counts_once_whatever_happens_between_two_requests(seed: int) -> None:
    async def work(loop: SimulatedLoop) -> None:
        for case in range(5):
            rolls = random.Random(f"{seed} {case}")
            raw = AdverseServers(loop, seed)
            log = await raw.begin()
            raw.adverse(rolls)
            left, confirmed, processes = [f"{rolls.choice('AB')}{at}" for at in range(12)], list[str](), 1
            while left:
                try:
                    is_alone = await published(log, f"p{processes}", left, confirmed)
                    assert is_alone or processes > 1, "there is no other writer"
                except Crash:
                    del left[0]  # nobody knows whether it is stored
                    processes += 1
            raw.quiet = True
            payloads = [each.payload.decode() for each in await raw.counted()]
            assert len({*payloads}) == len(payloads), case
            assert [each for each in payloads if each in {*confirmed}] == confirmed, case

    with closing(SimulatedLoop(seed)) as loop:
        asyncio.run(work(loop))
