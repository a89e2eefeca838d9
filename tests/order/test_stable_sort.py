"""The order by digits is NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.order.stable_sort import FEW, stable_order

SPANS = (1, 2**10, 2**16, 2**17, 2**33, 2**49, 2**63)


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("count", [0, 1, 2, FEW - 1, FEW, 1_000])
def test_rows_are_sorted_by_the_first_column_then_the_next_and_stay_put_otherwise(span: int, count: int) -> None:
    random = np.random.default_rng(span % 1_009 + count)
    first = random.integers(-(span // 2), span - span // 2, count)
    second = random.integers(0, 3, count).astype(np.int32)
    assert stable_order([first]).tolist() == np.argsort(first, kind="stable").tolist()
    assert stable_order([second, first]).tolist() == np.lexsort((first, second)).tolist()
    assert stable_order([second]).tolist() == np.argsort(second, kind="stable").tolist()


def test_the_ends_of_the_range_are_sorted() -> None:
    ends = np.array([2**63 - 1, -(2**63), 0] * FEW)
    assert stable_order([ends]).tolist() == np.argsort(ends, kind="stable").tolist()
