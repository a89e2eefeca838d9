"""Late copies of blocks, on a log that is trimmed meanwhile: each block counts once, for every reader, whenever it looks."""

from __future__ import annotations

import random
from contextlib import closing, suppress
from dataclasses import replace
from typing import NamedTuple

import pytest

from fairlead.runtime.live.retention import _note_heads
from fairlead.testing.simulator.live.event_loop import SimulatedLoop
from fairlead.testing.simulator.live.servers import SimulatedServers
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.blocks.block_store import Tails, stored_once
from fairlead.transport.log.blocks.repeats import repeats, without_repeats
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Conflict, Log, Stored, Stream, Unavailable
from fairlead.transport.log.trims import TrimmedHead, TrimRecord, note_record
from tests.marks import sample_size
from tests.transport.log.logs import a_log, run
from tests.transport.log.test_logs import block, taken

SOURCES = ("s", "t", "s-0123456789abcdef0123456789abcdef")


class Attempt(NamedTuple):
    block: Block
    after: int


async def trimmed(log: Log, stream: Stream, cut: int) -> None:
    """As retention does it."""
    await _note_heads(log, stream, (await log.state(stream)).first, cut)
    await note_record(log, stream.name, TrimRecord(cut))
    await log.trim(stream, cut)


class Publishing:
    """Appends blocks of some sources as publishers do, which may end and return; `attempts` may be executed again, at any
    time. `known`: what each source has stored."""

    def __init__(self, log: PatientLog, rolls: random.Random) -> None:
        self._log, self._rolls = log, rolls
        self.attempts: list[Attempt] = []
        self.known: set[tuple[str, str, int]] = set()

    async def publish(self) -> None:
        source, type = self._rolls.choice(SOURCES), self._rolls.choice(("A", MIXED))
        last, of_lane = await self._log.last_block_of("A", source), await self._log.last_block_of("A", source, type)
        tail = await self._log.last_of("A", source)
        made = Block(
            type,
            source,
            0 if of_lane is None else of_lane.block.number + 1,
            0 if last is None else last.block.sequence + last.block.count,
            self._rolls.randrange(1, 4),
            "",
            self._rolls.randbytes(8),
            topic="A",
            types=("A", "B") if type == MIXED else (),
        )
        attempt = Attempt(made, 0 if tail is None else tail.sequence)
        self.attempts.append(attempt)
        if self._rolls.random() < 0.8:  # otherwise it is lost, or arrives later
            await self._log.append(*attempt)
            self.known.add((source, made.lane, made.number))

    async def again(self) -> None:
        """A late copy of any block, or one that was not stored and is not the only one of its number."""
        late = self._rolls.choice(self.attempts)
        if (late.block.source, late.block.lane, late.block.number) in self.known:
            try:
                await self._log.append(*late)
            except Conflict:
                return


async def everything(log: Log, stream: Stream, after: int) -> list[Stored]:
    last = await log.last(stream)
    return [] if last <= after else await taken(log, stream, last - after, after=after)


@pytest.mark.parametrize("kind", ["simulated", pytest.param("server", marks=pytest.mark.server)])
@pytest.mark.parametrize("seed", range(sample_size(12)))
def test_a_block_counts_once_however_late_it_comes_again(kind: str, seed: int) -> None:
    async def with_log(raw: Log) -> None:
        rolls = random.Random(f"{kind} {seed}")
        log = PatientLog(raw, 10.0)
        stream = await log.open_topics(["A"])
        publishing, seen = Publishing(log, rolls), list[Stored]()
        for _ in range(60):
            step = rolls.random()
            if step < 0.5 or not publishing.attempts:
                await publishing.publish()
            elif step < 0.8:
                await publishing.again()
            else:
                seen += await everything(raw, stream, len(seen))
                if seen:
                    await trimmed(log, stream, rolls.randrange(max(1, len(seen) - 3), len(seen) + 2))
        seen += await everything(raw, stream, len(seen))
        counted = [(each.block.source, each.block.lane, each.block.number) for each in seen if not each.block.rejected]
        assert sorted(counted) == sorted(publishing.known)
        assert {each.block.rejected for each in seen} <= {"", "D038"}
        left = (await log.state(stream)).first
        heads = [each async for some in log.heads(stream, left - 1, len(seen)) for each in some]
        assert [each.block.rejected for each in heads] == [each.block.rejected for each in seen[left - 1 :]]
        merged = await log.open_topics(["A", "Z"])  # begins with what is left
        if kind == "server" and left <= len(seen):
            copies = await taken(raw, merged, len(seen) - left + 1)
            assert [each.block.rejected for each in copies] == [each.block.rejected for each in seen[left - 1 :]]
        for source in SOURCES:
            last = await log.last_block_of("A", source)
            mine = [each for each in seen if each.block.source == source and not each.block.rejected]
            assert (last and last.block.number) == (mine[-1].block.number if mine else None)
        if isinstance(raw, SimulatedServers):  # whoever asks later finds the same, also of what is trimmed
            ever = raw._ever[stream.name]
            assert [each.block.rejected for each in await without_repeats(raw, ever)] == [each.block.rejected for each in seen]

    async def work() -> None:
        if kind == "simulated":
            with closing(SimulatedLoop(seed)) as loop:
                await with_log(SimulatedServers(loop, seed))
            return
        async with a_log(kind) as log:
            await with_log(log)

    run(work)


class LossyServers(SimulatedServers):
    """Servers whose answers to an append are lost now and then. Before the next request, everything may be trimmed, and a copy
    of the first block of a source, or a message that is no block, may be stored."""

    def begin(self, rolls: random.Random, stream: Stream) -> None:
        self._lots, self._of = rolls, stream
        self._firsts = list[Block]()

    async def append(self, block: Block, after: int) -> int:
        if after == 0:
            self._firsts.append(block)
        sequence = await super().append(block, after)
        if self._lots.random() < 0.5:
            return sequence
        if self._lots.random() < 0.6:
            end = (await self.state(self._of)).last
            await trimmed(PatientLog(self, 10.0), self._of, self._lots.randrange(max(1, end - 2), end + 2))
        if self._lots.random() < 0.7:
            with suppress(Conflict):
                await super().append(self._lots.choice(self._firsts), 0)
        raise Unavailable("no answer")


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(sample_size(40)))
def test_a_block_is_stored_once_though_it_is_trimmed_before_that_is_known(
    seed: int, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own copy is gone, and the last message of its source is a copy of its first block. Seed 9001413 of the simulator."""

    monkeypatch.setattr(Patience, "_taken", lambda self: 0.0)

    async def work(raw: LossyServers, rolls: random.Random) -> None:
        log = PatientLog(raw, 10.0)
        stream = await log.open_topics(["A"])
        raw.begin(rolls, stream)
        after, numbers, published = 0, {"A": 0, "B": 0}, list[tuple[str, int]]()
        for sequence in range(12):
            type = "A" if shared else rolls.choice("AB")
            made = replace(block(type, "s", numbers[type]), topic="A", sequence=sequence, payload=rolls.randbytes(8))
            after = (await stored_once(log, made, after, 10.0, alone=not shared, shared=shared)).sequence
            numbers[type] += 1
            published.append((made.type, made.number))
        found = [each.block for each in raw.stored(stream.name)]
        assert [(each.type, each.number) for each in found] == published

    with closing(SimulatedLoop(seed)) as loop:
        run(lambda: work(LossyServers(loop, seed), random.Random(f"{seed} {shared}")))


class TrimmingServers(LossyServers):
    """They may be trimmed before an append, too."""

    async def append(self, block: Block, after: int) -> int:
        end = (await self.state(self._of)).last
        if end and self._lots.random() < 0.3:
            await trimmed(PatientLog(self, 10.0), self._of, self._lots.randrange(max(1, end - 1), end + 2))
        return await super().append(block, after)


@pytest.mark.parametrize("seed", range(sample_size(60)))
def test_equal_writers_store_each_block_once_though_one_is_far_behind(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it stores was stored and trimmed long ago. Seed 9002825 of the simulator."""

    monkeypatch.setattr(Patience, "_taken", lambda self: 0.0)

    async def work(raw: TrimmingServers, rolls: random.Random) -> None:
        log = PatientLog(raw, 10.0)
        stream = await log.open_topics(["A"])
        raw.begin(rolls, stream)
        blocks = [replace(block("A", "s", number), payload=rolls.randbytes(8)) for number in range(10)]
        writers = [(Tails(log, 10.0, ""), list(blocks)) for _ in range(3)]
        while any(left for _, left in writers):
            tails, left = rolls.choice([each for each in writers if each[1]])
            for _ in range(rolls.randrange(1, 6)):
                if left:
                    await tails.store(left.pop(0))
        assert [each.block.number for each in raw.stored(stream.name)] == [*range(10)]

    with closing(SimulatedLoop(seed)) as loop:
        run(lambda: work(TrimmingServers(loop, seed), random.Random(f"equal {seed}")))


def test_repeats_are_known_by_number_and_sequence() -> None:
    heads = {
        "A": TrimmedHead("A", 4, 10, 3, "", 20, 0, ()),
        f"{MIXED} of A": TrimmedHead(MIXED, 1, 13, 2, "", 21, 0, ()),
    }
    first = replace(block("A", "s", 5), sequence=15)
    assert not repeats(first, heads)
    assert not repeats(first, {})
    assert repeats(replace(first, number=4), heads)
    assert repeats(replace(first, sequence=14), heads)
    assert not repeats(replace(first, type="B", number=0), heads)  # its first block of another type
    assert repeats(replace(first, type="B", number=0, sequence=3), heads)  # of a process that ended before it was stored
    assert not repeats(replace(first, type="B", number=0, sequence=3, numbers="…"), heads)  # each type has its own numbers
    forged = {"A": replace(heads["A"], number=(1 << 62) - 1)}
    assert not repeats(replace(first, number=0), forged)  # nothing can follow it
