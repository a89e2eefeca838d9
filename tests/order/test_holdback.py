"""Whatever the order of arrival and the cut into rounds: one sequence is released, nothing is lost, nothing comes twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import StateError
from fairlead.order.holdback import Frontier, HoldBack, ReleasedRows, head_and_rest, with_head
from fairlead.order.total import order_column

TYPES = ("A", "B")
ROWS_REFUSED = ":rejected"
Row = tuple[str, int, int, int]
"""Type, first order value (as a number, see KINDS), second order value, content."""
KINDS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "whole numbers": (pa.int64(), lambda n: n - 5),
    "floats": (pa.float64(), lambda n: (n - 5) / 4),
    "texts": (pa.string(), lambda n: f"é{n:03}" if n < 8 else f"😀{n:03}"),
    "decimals": (pa.decimal128(20, 2), lambda n: Decimal(n - 5) / 4),
}


def tables(rows: Iterable[Row], kind: str = "whole numbers") -> dict[str, pa.Table]:
    arrow, made = KINDS[kind]
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return {
        name: pa.table(
            {
                "x": pa.array([row[3] for row in mine], pa.int64()),
                order_column(0): pa.array([made(row[1]) for row in mine], arrow),
                order_column(1): pa.array([row[2] for row in mine], pa.int64()),
            }
        )
        for name, mine in found.items()
    }


def shown(given: ReleasedRows, kind: str = "whole numbers") -> list[tuple[int, Row]]:
    """What a round released, each row with its position."""
    back = {KINDS[kind][1](n): n for n in range(100)}
    found: list[tuple[int, Row]] = []
    for name in given.order.types:
        rows = given.tables[name].take(pa.array(given.order.rows_of(name))).to_pylist()
        for place, row in zip(given.order.places[name].tolist(), rows, strict=True):
            found.append((given.first + place, (name, back[row["_order0"]], row["_order1"], row["x"])))
    return sorted(found)


def late_rows(given: ReleasedRows, kind: str = "whole numbers") -> list[Row]:
    back = {KINDS[kind][1](n): n for n in range(100)}
    return [
        (name, back[row["_order0"]], row["_order1"], row["x"])
        for name, table in given.late.items()
        for row in table.to_pylist()
    ]


def in_total_order(row: Row) -> tuple[Any, ...]:
    return row[1], row[2], row[0] == "Heartbeat", row[0], row[3]


@dataclass
class Feed:
    """A stream, as it arrives, cut into rounds."""

    frontier: Frontier
    arrivals: list[Row]
    rounds: list[list[Row]]
    kind: str


def cut(draw: st.DrawFn, arrivals: Sequence[Row]) -> list[list[Row]]:
    cuts = sorted(draw(st.lists(st.integers(0, len(arrivals)), max_size=8)))
    return [list(arrivals[low:high]) for low, high in zip([0, *cuts], [*cuts, len(arrivals)], strict=True)]


def rows_of(names: Sequence[str]) -> st.SearchStrategy[list[Row]]:
    row = st.tuples(st.sampled_from(names), st.integers(0, 15), st.integers(0, 1), st.integers(0, 2))
    return st.lists(row, max_size=30)


@st.composite
def allowed(draw: st.DrawFn) -> Feed:
    """Arrivals that the frontier allows: no type (or not the stream) lies further behind than its delay, no heartbeat comes
    before everything up to its time has, and none that says less than is known."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    delay = draw(st.sampled_from((0, 0, 3))) if kind == "whole numbers" else 0
    together = draw(st.booleans())
    rows = draw(rows_of(TYPES))
    jitter = {at: draw(st.integers(0, delay)) for at in range(len(rows))}
    by_time = [rows[at] for at in sorted(range(len(rows)), key=lambda at: rows[at][1] + jitter[at])]
    if together:
        arrivals = by_time
    else:
        queues = {name: [row for row in by_time if row[0] == name] for name in TYPES}
        arrivals = []
        while any(queues.values()):
            arrivals.append(queues[draw(st.sampled_from([name for name in TYPES if queues[name]]))].pop(0))
    frontier = Frontier((*TYPES, "Heartbeat"), together, dict.fromkeys(TYPES, delay))
    for at in sorted(draw(st.lists(st.integers(0, len(arrivals) + 2), max_size=3))):
        behind = complete(frontier, arrivals[:at])
        still = min((row[1] for row in arrivals[at:]), default=17)
        values = [value for value in range(still) if not behind(value)]
        if values:
            arrivals.insert(at, ("Heartbeat", draw(st.sampled_from(values)), 0, 0))
    return Feed(frontier, arrivals, cut(draw, arrivals), kind)


@st.composite
def anything(draw: st.DrawFn) -> Feed:
    """Arrivals in any order."""
    rows = draw(rows_of((*TYPES, "Heartbeat", ROWS_REFUSED)))
    delay = draw(st.sampled_from((0, 3)))
    frontier = Frontier((*TYPES, "Heartbeat"), draw(st.booleans()), dict.fromkeys(TYPES, delay))
    return Feed(frontier, rows, cut(draw, rows), "whole numbers")


def complete(frontier: Frontier, arrivals: Iterable[Row]) -> Callable[[int], bool]:
    """Which values lie before the frontier after these arrivals, by its definition."""
    bounds: dict[str, tuple[int, bool]] = {}
    for name, value, _, _ in arrivals:
        if name != ROWS_REFUSED:
            bound = (value, True) if name == "Heartbeat" else (value - frontier.delay[name], False)
            bounds[name] = max(bounds.get(name, bound), bound)
    never = (-100, False)
    beat = bounds.get("Heartbeat", never)
    if frontier.together:
        least = max(bounds.values(), default=never)
    else:
        least = min(max(bounds.get(name, never), beat) for name in TYPES)
    return lambda value: value < least[0] or (least[1] and value == least[0])


@given(allowed())
def test_what_comes_as_the_frontier_allows_is_released_in_the_total_order_whatever_the_rounds(feed: Feed) -> None:
    back = HoldBack(feed.frontier, 2)
    released: list[tuple[int, Row]] = []
    for round_ in feed.rounds:
        given = back.step(tables(round_, feed.kind))
        assert not given.late
        released += shown(given, feed.kind)
    is_complete = complete(feed.frontier, feed.arrivals)
    expected = sorted((row for row in feed.arrivals if is_complete(row[1])), key=in_total_order)
    assert released == list(enumerate(expected))
    assert back.lag() == len(feed.arrivals) - len(expected)


@given(anything())
def test_nothing_is_lost_nothing_doubled_and_late_is_exactly_what_lies_before_what_was_released(feed: Feed) -> None:
    back = HoldBack(feed.frontier, 2)
    positions: list[int] = []
    released: list[Row] = []
    late: Counter[Row] = Counter()
    for at, round_ in enumerate(feed.rounds):
        behind = complete(feed.frontier, [row for before in feed.rounds[:at] for row in before])
        given = back.step(tables(round_))
        assert Counter(late_rows(given)) == Counter(row for row in round_ if behind(row[1]))
        late += Counter(late_rows(given))
        positions += [position for position, _ in shown(given)]
        released += [row for _, row in shown(given)]
    assert positions == list(range(len(released)))
    assert released == sorted(released, key=in_total_order)
    held = [(name, row["_order0"] + 5, row["_order1"], row["x"]) for name in back.held for row in back.held[name].to_pylist()]
    assert Counter(released) + late + Counter(held) == Counter(feed.arrivals)
    assert back.late == late.total()


@given(anything() | allowed())
def test_a_state_that_is_dumped_and_loaded_goes_on_the_same_and_has_the_same_bytes(feed: Feed) -> None:
    straight, broken = HoldBack(feed.frontier, 2), HoldBack(feed.frontier, 2)
    for round_ in feed.rounds:
        given, again = straight.step(tables(round_, feed.kind)), broken.step(tables(round_, feed.kind))
        assert shown(given, feed.kind) == shown(again, feed.kind)
        assert late_rows(given, feed.kind) == late_rows(again, feed.kind)
        state = straight.dump()
        assert broken.dump() == state
        broken = HoldBack(feed.frontier, 2)
        broken.load(state)
        assert broken.dump() == state


@given(st.data())
def test_rows_with_positions_are_released_at_once_and_a_repeat_is_late(data: st.DataObject) -> None:
    rows = data.draw(rows_of((*TYPES, ROWS_REFUSED)))
    back = HoldBack(Frontier(TYPES, positioned=True), 1)
    last = -1
    for round_ in cut(data.draw, rows):
        given = back.step(tables(round_))
        fresh = [row[1] for _, row in shown(given)]
        assert fresh == sorted({row[1] for row in round_ if row[1] > last})
        assert Counter(late_rows(given)) + Counter(row for _, row in shown(given)) == Counter(round_)
        last = max([last, *fresh])
        assert back.lag() == 0


def test_of_two_rows_with_one_position_the_first_by_type_and_content_stays() -> None:
    back = HoldBack(Frontier(TYPES, positioned=True), 1)
    given = back.step(tables([("B", 7, 0, 1), ("A", 7, 0, 2), ("A", 7, 0, 1), ("B", 9, 0, 1)]))
    assert [row for _, row in shown(given)] == [("A", 7, 0, 1), ("B", 9, 0, 1)]
    assert sorted(late_rows(given)) == [("A", 7, 0, 2), ("B", 7, 0, 1)]


def test_rows_at_the_frontier_wait_for_those_that_may_tie_with_them() -> None:
    back = HoldBack(Frontier(TYPES, together=True), 2)
    assert shown(back.step(tables([("B", 3, 0, 0)]))) == []
    assert shown(back.step(tables([("A", 3, 0, 0)]))) == []
    assert shown(back.step(tables([("A", 4, 0, 0)]))) == [(0, ("A", 3, 0, 0)), (1, ("B", 3, 0, 0))]


def test_a_heartbeat_releases_what_lies_at_its_own_value_too_and_stands_last() -> None:
    back = HoldBack(Frontier((*TYPES, "Heartbeat"), delay={"A": 3, "B": 3}), 2)
    given = back.step(tables([("Heartbeat", 3, 0, 0), ("A", 3, 0, 0), ("B", 4, 0, 0)]))
    assert [row[0] for _, row in shown(given)] == ["A", "Heartbeat"]
    assert late_rows(back.step(tables([("A", 3, 0, 0)]))) == [("A", 3, 0, 0)]


def test_a_refused_row_has_a_place_and_bounds_nothing() -> None:
    back = HoldBack(Frontier(TYPES, together=True), 2)
    assert shown(back.step(tables([("A", 3, 0, 0), (ROWS_REFUSED, 9, 0, 0)]))) == []
    assert [row[0] for _, row in shown(back.step(tables([("A", 10, 0, 0)])))] == ["A", ROWS_REFUSED]


def test_a_state_of_another_version_is_refused() -> None:
    back = HoldBack(Frontier(TYPES), 1)
    head, rest = head_and_rest(back.dump())
    with pytest.raises(StateError, match="S110 the held-back rows were written in version 9, this release reads version 1"):
        back.load(with_head(head | {"version": 9}, bytes(rest)))
