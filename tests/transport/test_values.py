"""Raw values that Python would bend silently: found while reading input, kept out by model/events/values.py."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy
import pandas
import pytest

from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import canonical

DECIMAL = DataType(Kind.DECIMAL, 6, 2)


@pytest.mark.parametrize(
    ("value", "wanted", "said"),
    [
        (Decimal("1e60"), DECIMAL, "out of the range of DECIMAL"),
        ("1e999999", DECIMAL, "out of the range of DECIMAL"),
        (Decimal("99999.99"), DECIMAL, "out of the range of DECIMAL"),
        (Decimal("0." + "0" * 60 + "1"), DECIMAL, "more than 2 decimal places"),
        ("1_000", DECIMAL, "expected DECIMAL"),
        (1e304, DataType(Kind.TIMESTAMP), "TIMESTAMP has no 1e+304"),
        ("2024-01-01T00:00:00.1234567", DataType(Kind.TIMESTAMP), "finer than a microsecond"),
        (pandas.Timestamp(1, unit="ns"), DataType(Kind.TIMESTAMP), "finer than a microsecond"),
        (pandas.NaT, DataType(Kind.TIMESTAMP), "expected TIMESTAMP, got NaTType NaT"),
        ("x" * 200, DataType(Kind.INT), "xxx..."),
    ],
)
def test_a_value_that_would_lose_something_is_refused(value: Any, wanted: DataType, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("+", "[+]")):
        canonical(value, wanted)


@pytest.mark.parametrize("kind", [Kind.INT, Kind.BIGINT, Kind.DOUBLE])
def test_underscores_are_no_part_of_a_number_in_text(kind: Kind) -> None:
    with pytest.raises(ValueError, match=f"expected {kind}"):
        canonical("1_000", DataType(kind), text=True)


@pytest.mark.parametrize(
    ("value", "wanted", "result"),
    [
        ("2024-01-01T00:00:00.123456000Z", DataType(Kind.TIMESTAMP), 1_704_067_200_123_456),
        (pandas.Timestamp(2000, unit="ns"), DataType(Kind.TIMESTAMP), 2),
        (numpy.int64(3), DataType(Kind.TIMESTAMP), 3_000_000),
        (numpy.int64(3), DataType(Kind.INT), 3),
        ("9999.99", DECIMAL, Decimal("9999.99")),
        ("-9999.990", DECIMAL, Decimal("-9999.99")),
        (0, DECIMAL, Decimal("0.00")),
    ],
)
def test_a_value_that_loses_nothing_is_taken(value: Any, wanted: DataType, result: Any) -> None:
    assert canonical(value, wanted) == result
