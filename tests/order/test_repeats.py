"""Repeats found by columns, part by part, are those that are found record by record."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fairlead.order.repeats import behind, later, repeated
from fairlead.transport.admission.sequences import LastSequences

ROWS = st.lists(
    st.tuples(st.sampled_from(("a", "b", "", None)), st.sampled_from((None, -(2**63), -1, 0, 1, 2, 3, 2**63 - 1))), max_size=40
)


@given(ROWS, st.lists(st.integers(0, 40), max_size=4))
def test_repeats_by_parts_are_those_of_the_records(rows: list[tuple[str | None, int | None]], cuts: list[int]) -> None:
    sources, sequences = [source for source, _ in rows], [sequence for _, sequence in rows]
    judge = LastSequences()
    fresh = judge.fresh(sources, sequences) or [True] * len(rows)
    ends = sorted(min(cut, len(rows)) for cut in cuts)
    found: list[bool] = []
    lasts: dict[str | None, int] = {}
    for low, high in zip([0, *ends], [*ends, len(rows)], strict=True):
        part = pa.array(sources[low:high], pa.string()), pa.array(sequences[low:high], pa.int64())
        here, more = repeated(*part)
        found += (here | behind(*part, lasts)).tolist()
        lasts = later(lasts, more)
    assert found == [not each for each in fresh]
    state = judge.dump()
    assert lasts == state["sources"] | ({} if state["unnamed"] is None else {None: state["unnamed"]})
