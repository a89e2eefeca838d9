"""Arrivals of a log, without anything around them: where rows are put, and what the frontier of the rows before says of each.

By definition: row by row, in the one order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random

import pyarrow as pa
import pytest

from fairlead.model.events.types import HEARTBEAT
from fairlead.model.events.values import TIMESTAMP_RANGE
from fairlead.order.frontier import NOWHERE
from fairlead.order.holdback import Frontier, ReleasedRows
from fairlead.order.log_holdback import BLOCK, OFFSET, PLACE, STORED, TOPIC, LogHoldBack, LogOrder
from fairlead.order.total import SOURCE, order_column

BEAT, SILENT = HEARTBEAT.name, TIMESTAMP_RANGE[0]
BITS = 2
STREAMS = {"a": "S3", "b": "S1", "c": "S2"}
"""Streams are not sorted as their topics are."""


@dataclass(frozen=True)
class StoredRow:
    number: int
    topic: str
    offset: int
    stored: int


@dataclass(frozen=True)
class PlacedRow:
    number: int
    name: str
    value: int
    block: int
    source: str | None = None


def log(random: Random, size: int) -> list[StoredRow]:
    """Blocks of a few rows, in the one order: a topic's clock may be set back, and several blocks have equal times."""
    time, found = dict.fromkeys(STREAMS, 0), list[tuple[tuple[int, str, int], str, int]]()
    for topic in STREAMS:
        for block in range(random.randrange(1, 6)):
            stored = random.randrange(size)
            time[topic] = max(time[topic], stored)
            for at in range(random.randrange(1, 4)):
                found.append(((time[topic], STREAMS[topic], (block << BITS) + at), topic, stored))
    return [StoredRow(number, topic, key[2], stored) for number, (key, topic, stored) in enumerate(sorted(found))]


def arrived(rows: Sequence[StoredRow]) -> pa.Table:
    columns = {
        "n": [each.number for each in rows],
        OFFSET: [each.offset for each in rows],
        STORED: [each.stored for each in rows],
    }
    return pa.table({TOPIC: pa.array([each.topic for each in rows], pa.string())} | columns)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_rows_are_put_into_the_order_of_the_log(size: int) -> None:
    for seed in range(15):
        random = Random(seed)
        rows, order, low = log(random, size), LogOrder(STREAMS.__getitem__, BITS), 0
        while low < len(rows):
            some = rows[low : low + random.choice((1, 2, 5, 40))]
            low += len(some)
            shuffled = random.sample(some, len(some))
            cut = random.randrange(len(some) + 1)
            made = order.placed({"A": arrived(shuffled[:cut]), "B": arrived(shuffled[cut:])})
            found = sorted((each[PLACE], each["n"], each[BLOCK]) for table in made.values() for each in table.to_pylist())
            assert [each[:2] for each in found] == [(at, row.number) for at, row in enumerate(some)]
            blocks = [(each.topic, each.offset >> BITS) for each in some]
            begins = [0, *(blocks[at] != blocks[at - 1] for at in range(1, len(blocks)))]
            assert [each[2] for each in found] == [sum(begins[: at + 1]) for at in range(len(begins))]


def test_a_topic_is_never_before_its_last_row_also_of_an_earlier_micro_batch() -> None:
    order = LogOrder(STREAMS.__getitem__, BITS)
    order.placed({"A": arrived([StoredRow(0, "a", 0, 9)])})
    (made,) = order.placed({"A": arrived([StoredRow(1, "a", 4, 3), StoredRow(2, "b", 0, 8), StoredRow(3, "b", 4, 9)])}).values()
    assert made.column(PLACE).to_pylist() == [2, 0, 1]
    assert order.times == {"a": 9, "b": 9}


@dataclass
class Round:
    """Numbers of rows: those released, with their values; late ones; those that revise."""

    released: list[tuple[int, int]] = field(default_factory=list)
    late: set[int] = field(default_factory=set)
    revising: set[int] = field(default_factory=set)


@dataclass
class ByDefinition:
    """One row after the other."""

    frontier: Frontier
    at: int = NOWHERE
    floor: int = NOWHERE
    ends: dict[str | None, int] = field(default_factory=dict)
    held: list[PlacedRow] = field(default_factory=list)

    def batch(self, rows: Sequence[PlacedRow]) -> list[Round]:
        rounds, now = [], Round()
        for place, row in enumerate(rows):
            self.judge(row, now)
            is_last = place + 1 == len(rows)
            if is_last or (now.revising and rows[place + 1].block != row.block):
                rounds.append(self.ended(now))
                now = Round()
        return rounds or [self.ended(now)]

    def judge(self, row: PlacedRow, now: Round) -> None:
        beat = row.name == BEAT
        if beat and row.value == SILENT:
            return
        if row.value >= self.at:
            self.held.append(row)
        elif self.frontier.revise is not None and not beat and row.value >= max(self.at - self.frontier.revise, self.floor):
            now.revising.add(row.number)
        else:
            now.late.add(row.number)
        bound = row.value - max(self.frontier.delay.values(), default=0) + beat
        source = row.source if self.frontier.idle is not None else None
        self.ends[source] = max(self.ends.get(source, bound), bound)
        least, most = min(self.ends.values()), max(self.ends.values())
        self.at = max(self.at, least if self.frontier.idle is None else max(least, most - self.frontier.idle))

    def ended(self, now: Round) -> Round:
        now.released = sorted((each.value, each.number) for each in self.held if each.value < self.at)
        self.held = [each for each in self.held if each.value >= self.at]
        return now


def rows_of(random: Random, size: int) -> list[PlacedRow]:
    found, block, now = list[PlacedRow](), 0, random.choice((-15, 10))
    for number in range(size):
        block += random.random() < 0.5
        now += random.choice((0, 0, 1, 2))
        name = random.choice(("A", "A", "B", "B", BEAT))
        value = now - random.choice((0, 0, 0, 1, 2, 3, 4, 6))
        if name == BEAT and random.random() < 0.4:
            value = SILENT
        found.append(PlacedRow(number, name, value, block, random.choice(("p", "q", None))))
    return found


def tables(rows: Sequence[PlacedRow], random: Random) -> dict[str, pa.Table]:
    """As a micro-batch has them: by type, in any order. Of a type without rows there may be a table."""
    found = {}
    for name in random.sample(("A", "B", BEAT), 3):
        mine = [(place, each) for place, each in enumerate(rows) if each.name == name]
        random.shuffle(mine)
        if mine or random.random() < 0.5:
            found[name] = pa.table(
                {
                    "n": pa.array([each.number for _, each in mine], pa.int64()),
                    order_column(0): pa.array([each.value for _, each in mine], pa.int64()),
                    SOURCE: pa.array([each.source for _, each in mine], pa.string()),
                    PLACE: pa.array([place for place, _ in mine], pa.int64()),
                    BLOCK: pa.array([each.block for _, each in mine], pa.int64()),
                }
            )
    return found


def shown(given: ReleasedRows) -> Round:
    released = [
        (row[order_column(0)], row["n"])
        for name in given.order.types
        for row in given.tables[name].take(pa.array(given.order.rows_of(name))).to_pylist()
    ]
    late, revising = (
        {number for table in some.values() for number in table.column("n").to_pylist()} for some in (given.late, given.revising)
    )
    return Round(sorted(released), late, revising)


FRONTIERS = [
    Frontier(("A", "B"), True, {"A": delay, "B": 0}, idle=idle, revise=revise)
    for delay, idle, revise in product((0, 2), (None, 2), (None, 0, 3))
]


@pytest.mark.parametrize("frontier", FRONTIERS, ids=lambda each: f"{each.delay['A']}-{each.idle}-{each.revise}")
def test_rows_are_judged_by_the_frontier_of_those_before_them(frontier: Frontier) -> None:
    """In micro-batches that end anywhere; saved, loaded, and with other rules, after some."""
    for seed in range(12):
        random = Random(seed)
        rows, low = rows_of(random, random.randrange(40)), 0
        back, wanted = LogHoldBack(frontier, 1), ByDefinition(frontier)
        while low < len(rows) or random.random() < 0.3:
            some = rows[low : low + random.choice((0, 1, 2, 5, 40))]
            low += len(some)
            found, said = [shown(each) for each in back.steps(tables(some, random))], wanted.batch(some)
            assert found == said
            assert back.lag() == len(wanted.held)
            if random.random() < 0.3:
                kept, back = back.dump(), LogHoldBack(frontier, 1)
                back.load(kept)
                assert back.dump() == kept
            if random.random() < 0.15:
                back.forget()
                wanted.floor = wanted.at


@pytest.mark.parametrize("shift", [0, 8, 9])
@pytest.mark.parametrize(("floor", "accepted"), [(None, [7, 8, 9]), (6, [7, 8, 9]), (8, [8, 9]), (9, [9]), (10, [])])
def test_late_rows_are_accepted_from_the_floor_on(floor: int | None, accepted: list[int], shift: int) -> None:
    """Also if it is 0."""
    back = LogHoldBack(Frontier(("A",), True, {"A": 0}, revise=3), 1)
    random = Random(0)
    list(back.steps(tables([PlacedRow(10, "A", 10 - shift, 0)], random)))
    back.floor = None if floor is None else floor - shift
    (found,) = back.steps(tables([PlacedRow(value, "A", value - shift, 1) for value in range(5, 11)], random))
    late = {5, 6, 7, 8, 9} - set(accepted)
    assert (shown(found).late, shown(found).revising) == (late, set(accepted))


@pytest.mark.parametrize("revise", [3, 2**62])
def test_before_the_least_frontier_nothing_is_too_old(revise: int) -> None:
    """A delay of many years: what is before the first event is still accepted."""
    back = LogHoldBack(Frontier(("A",), True, {"A": 0}, revise=revise), 1)
    low = NOWHERE + 2
    rows = [PlacedRow(0, "A", low, 0), PlacedRow(1, "A", low - 1, 0), PlacedRow(2, "A", low - 2, 0)]
    (found,) = back.steps(tables(rows, Random(0)))
    assert (shown(found).late, shown(found).revising) == (set(), {1, 2})
