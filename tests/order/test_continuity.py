"""A reader lets every block in once, drops what comes again, and stops where one is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.errors import InvariantError, StateError
from fairlead.order.continuity import Continuity

Block = tuple[str, str, int]
SOURCES = st.tuples(st.sampled_from("AB"), st.sampled_from(("p", "q", "")))


def count_of(block: Block) -> int:
    """Some number of events; a block that is stored again has as many."""
    return 1 + (len(block[1]) + 7 * block[2]) % 5


def read(reader: Continuity, blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if reader.check(*block, count_of(block))]


def written(reader: Continuity) -> str:
    return json.dumps(reader.dump())


@st.composite
def logs(draw: st.DrawFn, first: int = 0) -> list[Block]:
    """Blocks of several types and sources, numbered from `first` on; any of those before may be stored again at any time."""
    stored: list[Block] = []
    numbers: dict[tuple[str, str], int] = {}
    for type, source in draw(st.lists(SOURCES, max_size=20)):
        number = numbers.get((type, source), first)
        numbers[type, source] = number + 1
        stored.append((type, source, number))
        if draw(st.booleans()):
            stored.append(draw(st.sampled_from(stored)))
    return stored


@given(logs())
def test_every_block_is_let_in_once_and_in_its_order(log: list[Block]) -> None:
    reader = Continuity()
    assert read(reader, log) == list(dict.fromkeys(log))
    assert reader.repeats == len(log) - len(set(log))


@given(logs(), st.data())
def test_a_lost_block_stops_the_reader_at_the_next_one_of_its_source(log: list[Block], data: st.DataObject) -> None:
    single = list(dict.fromkeys(log))
    followed = [block for block in single if (*block[:2], block[2] + 1) in single]
    if not followed:
        return
    lost = data.draw(st.sampled_from(followed))
    left = [block for block in single if block != lost]
    reader = Continuity()
    at = left.index((*lost[:2], lost[2] + 1))
    assert read(reader, left[:at]) == left[:at]
    before = written(reader)
    for _ in range(2):
        with pytest.raises(StateError, match="S120") as raised:
            reader.check(*left[at], 1)
        assert raised.value.fix
        assert written(reader) == before


@given(logs(first=3))
def test_only_a_reader_that_began_later_takes_a_source_up_in_the_middle(log: list[Block]) -> None:
    assert read(Continuity(from_beginning=False), log) == list(dict.fromkeys(log))
    if log:
        with pytest.raises(StateError, match=r"S120 .*start with block 3, not with block 0"):
            read(Continuity(), log)


@given(logs(), st.integers(0, 40))
def test_a_reader_goes_on_from_the_state_of_another(log: list[Block], cut: int) -> None:
    whole, first = Continuity(), Continuity()
    expected = read(whole, log)
    found = read(first, log[:cut])
    loaded = Continuity.load(json.loads(written(first)))
    assert written(loaded) == written(first)
    assert found + read(loaded, log[cut:]) == expected
    assert written(loaded) == written(whole)


@given(logs())
def test_the_state_is_the_same_bytes_however_sources_interleave(log: list[Block]) -> None:
    whole = Continuity()
    read(whole, log)
    by_source = sorted(log, key=lambda block: block[:2])  # stable: the order within a source stays
    other = Continuity()
    read(other, by_source)
    assert written(other) == written(whole)


@given(logs(), st.integers(0, 40))
def test_told_what_was_stored_before_a_late_reader_drops_the_same_repeats(log: list[Block], cut: int) -> None:
    early = Continuity()
    before = read(early, log[:cut])
    late = Continuity(from_beginning=False)
    for type, source in {block[:2] for block in before}:
        number = early.last(type, source)
        assert number is not None
        late.begin(type, source, number, count_of((type, source, number)))
    assert read(late, log[cut:]) == read(early, log[cut:])


def test_two_publishers_under_one_name_are_noticed() -> None:
    reader = Continuity()
    assert reader.check("A", "p", 0, 5)
    assert not reader.check("A", "p", 0, 5)
    with pytest.raises(
        StateError, match="S121 block 0 of 'A' from source 'p' is stored twice, once with 5 events, once with 6"
    ):
        reader.check("A", "p", 0, 6)


def test_types_and_sources_are_numbered_by_themselves() -> None:
    reader = Continuity()
    assert [reader.check(type, source, 0, 1) for type in "AB" for source in "pq"] == [True] * 4
    assert (reader.last("A", "p"), reader.last("A", "r")) == (0, None)


def test_a_state_of_another_version_is_refused() -> None:
    for state in ({}, {"version": 2, "blocks": {}}, {"version": 1, "blocks": None}):
        with pytest.raises(StateError, match="S122"):
            Continuity.load(state)


def test_what_no_log_has_is_a_bug() -> None:
    with pytest.raises(InvariantError):
        Continuity().check("A", "p", -1, 1)
    reader = Continuity(from_beginning=False)
    reader.begin("A", "p", 3, 1)
    with pytest.raises(InvariantError):
        reader.begin("A", "p", 4, 1)


Marked = tuple[str, str, int, str, tuple[int, ...]]
ROUTES = 2


@st.composite
def marked_logs(draw: st.DrawFn) -> list[Marked]:
    """Blocks with a letter for each route, and the number of the one before them there."""
    stored: list[Marked] = []
    numbers: dict[tuple[str, str], int] = {}
    standing: dict[tuple[str, str], list[int]] = {}
    for key in draw(st.lists(st.sampled_from((("A", "p"), ("A", "q"), ("B", "p"))), max_size=25)):
        number, before = numbers.get(key, 0), standing.setdefault(key, [-1] * ROUTES)
        letters = draw(st.text("ynu", min_size=ROUTES, max_size=ROUTES))
        stored.append((*key, number, letters, tuple(before)))
        numbers[key] = number + 1
        standing[key] = [number if letter != "n" else was for letter, was in zip(letters, before, strict=True)]
        if draw(st.booleans()):
            stored.append(draw(st.sampled_from(stored)))
    return stored


def wanted(block: Marked, routes: dict[str, int]) -> bool:
    return block[0] not in routes or block[3][routes[block[0]]] != "n"


def let_in(reader: Continuity, block: Marked) -> bool:
    return reader.check(*block[:3], count_of(block[:3]), block[4])


THROUGH = st.sampled_from(({}, {}, {"A": 0}, {"A": 1}, {"A": 0, "B": 1}))


@settings(max_examples=300)
@given(marked_logs(), st.lists(st.tuples(st.integers(0, 25), THROUGH), max_size=6), THROUGH)
def test_readers_of_routes_and_of_everything_go_on_with_the_states_of_each_other(
    log: list[Marked], turns: list[tuple[int, dict[str, int]]], first: dict[str, int]
) -> None:
    reader, routes, seen = Continuity(), first, set[Marked]()
    reader.read_through(routes)
    for at, block in enumerate(log):
        for place, others in turns:
            if place == at:
                reader, routes = Continuity.load(json.loads(written(reader))), others
                reader.read_through(routes)
        if wanted(block, routes):
            again = any(other[:2] == block[:2] and other[2] >= block[2] for other in seen)
            assert let_in(reader, block) == (not again)
            seen.add(block)


@given(marked_logs(), THROUGH, st.data())
def test_a_lost_block_of_its_route_stops_a_reader(log: list[Marked], routes: dict[str, int], data: st.DataObject) -> None:
    sent = [block for block in dict.fromkeys(log) if wanted(block, routes)]
    followed = [block for at, block in enumerate(sent) if any(other[:2] == block[:2] for other in sent[at + 1 :])]
    if not followed:
        return
    lost = data.draw(st.sampled_from(followed))
    reader = Continuity()
    reader.read_through(routes)
    left = [block for block in sent if block != lost]
    with pytest.raises(StateError, match="S120"):
        [let_in(reader, block) for block in left]


def test_a_reader_of_everything_goes_on_behind_one_of_a_route_that_was_sent_nothing() -> None:
    whole = Continuity()
    assert whole.check("A", "p", 0, 1)
    some = Continuity.load(whole.dump())
    some.read_through({"A": 0})  # it is not sent block 1, which is not of its route, nor those of source q
    again = Continuity.load(some.dump())
    assert again.check("A", "p", 2, 1, (0, 1))
    assert again.check("A", "q", 1, 1, (-1, 0))
    with pytest.raises(StateError, match="S120"):
        again.check("A", "p", 4, 1, (0, 1))
    other = Continuity.load(some.dump())
    with pytest.raises(StateError, match="S120"):
        other.check("A", "p", 3, 1, (1, 1))


def test_a_state_of_everything_looks_as_it_always_did() -> None:
    reader = Continuity()
    reader.read_through({})
    assert reader.check("A", "p", 0, 1, (-1, -1))
    assert reader.dump() == {"version": 1, "from_beginning": True, "blocks": {"A": {"p": [0, 1]}}}
