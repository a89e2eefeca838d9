"""Columns of sources and sequences hold what a list would."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.events.origin_columns import SOURCE_TYPE, SequenceColumn, SourceColumn

NAMES = st.lists(st.sampled_from((None, "", "a", "b", "é")), max_size=12)
NUMBERS = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=12)


@given(NAMES, st.data())
def test_sources_are_those_of_a_list(names: list[str | None], data: st.DataObject) -> None:
    column = SourceColumn.of(names, len(names))
    assert [*column] == names == [column[at] for at in range(len(names))]
    assert pa.array(column, pa.string()).to_pylist() == names
    assert column.to_arrow().type == SOURCE_TYPE
    assert column.is_empty == all(name is None for name in names)
    for arrow in (column.to_arrow(), pa.chunked_array([column.to_arrow()[:2], column.to_arrow()[2:]], SOURCE_TYPE)):
        assert [*SourceColumn.of(arrow, len(names))] == names
    low, high = sorted((data.draw(st.integers(0, len(names))), data.draw(st.integers(0, len(names)))))
    assert [*column[low:high]] == names[low:high]
    assert [names[low:high] for low, high in column.runs()] == [[*column[low:high]] for low, high in column.runs()]
    assert all(len({*names[low:high]}) == 1 for low, high in column.runs())
    assert [high for _, high in column.runs()][-1:] == [len(names)][: len(names)]
    by_rank = [names[at] for at in np.argsort(column.ranks(), kind="stable")]
    assert by_rank == sorted(names, key=lambda name: (name is None, name or ""))


@given(NUMBERS)
def test_sequences_are_those_of_a_list(numbers: list[int | None]) -> None:
    column = SequenceColumn.of(numbers, len(numbers))
    assert [*column] == numbers == [column[at] for at in range(len(numbers))]
    assert pa.array(column, pa.int64()).to_pylist() == numbers
    assert [*SequenceColumn.of(column.to_arrow(), len(numbers))] == numbers
    assert [*column[1:]] == numbers[1:]
    assert column.is_empty == all(number is None for number in numbers)
    order = np.lexsort(column.keys()[::-1])
    assert [numbers[at] for at in order] == sorted(numbers, key=lambda number: (number is None, number or 0))


@given(NAMES, NUMBERS, st.randoms())
def test_parts_that_are_spread_and_joined_are_the_whole(
    names: list[str | None], numbers: list[int | None], random: object
) -> None:
    count = min(len(names), len(numbers))
    owner = np.array([random.randrange(3) for _ in range(count)], dtype=np.int64)
    places = [np.flatnonzero(owner == part) for part in range(3)]
    sources = SourceColumn.of(names[:count], count)
    sequences = SequenceColumn.of(numbers[:count], count)
    assert [*SourceColumn.joined([sources.taken(at) for at in places], places)] == names[:count]
    assert [*SequenceColumn.joined([sequences.taken(at) for at in places], places)] == numbers[:count]


def test_runs_of_sources_are_written_out() -> None:
    assert [*SourceColumn.of_runs([("a", 2), (None, 1), ("b", 0), ("a", 1)])] == ["a", "a", None, "a"]
    assert [*SourceColumn.of_runs([])] == []
