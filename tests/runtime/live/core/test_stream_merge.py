"""Several streams are one order: by the times at which blocks were stored, whatever arrives first."""

from __future__ import annotations

import random

import pytest

from fairlead.model.events.types import HEARTBEAT
from fairlead.runtime.live.core.stream_merge import NEVER_US, PULSE, Reached, StreamMerge, pulse_after
from fairlead.transport.log.blocks.block import Block, decode
from fairlead.transport.log.protocol import Stored, Stream

STREAMS = [Stream(f"FL_TOPIC_{name}", "1") for name in "abc"]


def stored(sequence: int, time: int, *, type: str = "A", source: str = "s") -> Stored:
    return Stored(sequence, time, Block(type, source, sequence - 1, sequence - 1, 1, "", b""))


def merged(rolls: random.Random, blocks: list[list[Stored]], beats: dict[int, bool] | None = None) -> list[tuple[int, int]]:
    """The order in which blocks are released that arrive at random."""
    merge, left, found = StreamMerge(STREAMS, [Reached(0)] * 3, beats), [list(each) for each in blocks], []
    while any(left):
        part = rolls.choice([at for at, each in enumerate(left) if each])
        count = rolls.randint(1, len(left[part]))
        for each in merge.stretches(merge.push(part, left[part][:count])):
            found += [(each.part, block.sequence) for block in each.blocks]
        del left[part][:count]
    assert merge.has_given([len(each) for each in blocks]) == (not merge.waits_for())
    return found


@pytest.mark.parametrize("seed", range(20))
def test_arrival_does_not_matter(seed: int) -> None:
    """Times rise, or are set back: then the largest one so far counts."""
    rolls = random.Random(seed)
    blocks = [[stored(at + 1, rolls.randrange(30)) for at in range(rolls.randint(1, 12))] for _ in STREAMS]
    blocks = [[*each, stored(len(each) + 1, 99)] for each in blocks]
    time = [[max(one.time for one in each[: at + 1]) for at in range(len(each))] for each in blocks]
    wanted = sorted((time[part][at], part, at + 1) for part, each in enumerate(blocks) for at in range(len(each)))
    found = merged(rolls, blocks)
    assert found == [(part, at) for _, part, at in wanted][: len(found)]
    assert len(found) >= len(wanted) - 2  # all but what the last ones wait for


def test_heartbeats_are_released_where_somebody_reads_them_and_those_of_readers_are_never_waited_for() -> None:
    beats = [stored(1, 1, type=HEARTBEAT.name), stored(2, 2, type=HEARTBEAT.name, source=PULSE), stored(3, 9)]
    others = [[stored(1, 5)], [stored(1, 6)]]
    rolls = random.Random(1)
    assert merged(rolls, [beats, *others]) == [(1, 1)]
    assert merged(rolls, [beats, *others], {0: True}) == [(0, 1), (0, 2), (1, 1)]
    merge = StreamMerge(STREAMS, [Reached(0)] * 3, {0: True})
    merge.push(0, beats[1:2])
    assert not merge.holds
    merge.push(0, [stored(3, 3, type=HEARTBEAT.name)])
    assert merge.holds
    assert merge.waits_for() == [1, 2]


def test_a_pulse_follows_the_last_one_and_tells_no_time() -> None:
    first = pulse_after(None, "a")
    second = pulse_after(Stored(7, 1, first), "a")
    assert (first.number, second.number, first.sequence, second.sequence) == (0, 1, 0, 1)
    assert decode(first, HEARTBEAT).column(0).cast("int64").to_pylist() == [NEVER_US]
