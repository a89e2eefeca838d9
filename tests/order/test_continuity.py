"""A reader lets every block in once, drops what comes again, and stops where one is missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
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


@st.composite
def logs(draw: st.DrawFn) -> list[Block]:
    """Blocks of several types and sources, numbered from 0 on; any of those before may be stored again at any time."""
    stored: list[Block] = []
    numbers: dict[tuple[str, str], int] = {}
    for type, source in draw(st.lists(SOURCES, max_size=20)):
        number = numbers.get((type, source), 0)
        numbers[type, source] = number + 1
        stored.append((type, source, number))
        if draw(st.booleans()):
            stored.append(draw(st.sampled_from(stored)))
    return stored


@given(logs())
def test_every_block_is_let_in_once_and_in_its_order(log: list[Block]) -> None:
    reader = Continuity()
    assert read(reader, log) == list(dict.fromkeys(log))


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
    for _ in range(2):
        with pytest.raises(StateError, match="S120") as raised:
            reader.check(*left[at], 1)
        assert raised.value.fix


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


def test_what_no_log_has_is_a_bug() -> None:
    with pytest.raises(InvariantError):
        Continuity().check("A", "p", -1, 1)
