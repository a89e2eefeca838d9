"""Numbers at the edges of every kind, through every way in: the value given, or a coded error (tests/fuzz/values.py)."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fairlead.errors import DataError
from fairlead.language import compile_text
from fairlead.model.events.columns import decimals_at
from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import canonical
from fairlead.transport.events import read_events
from tests.fuzz import values


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(6))
@pytest.mark.filterwarnings("ignore")  # NumPy's and pandas' about the values that they are given
def test_generated_values_of_every_kind_through_every_way_in(part: int) -> None:
    for seed in range(part * 30, part * 30 + 30):
        values.case(seed)


@pytest.mark.sampled
@pytest.mark.parametrize("precision", range(1, 39))
def test_a_decimal_holds_exactly_what_has_its_digits(precision: int) -> None:
    for scale in range(precision + 1):
        wanted = DataType(Kind.DECIMAL, precision, scale)
        for before in {0, precision - scale - 1, precision - scale, precision - scale + 1}:
            for after in {0, scale - 1, scale, scale + 1}:
                for last in "0159":
                    text = f"-{'9' * max(before, 0) or '0'}.{'9' * max(after, 0)}{last}"
                    number = Fraction(text) * 10**scale
                    fits = number.denominator == 1 and abs(number) < 10**precision
                    try:
                        found = canonical(text, wanted)
                        assert fits, (wanted, text)
                        assert Fraction(found) == Fraction(text), (wanted, text)
                        assert -found.as_tuple().exponent == scale
                    except ValueError:
                        assert not fits, (wanted, text)


DECIMALS = [
    (1, 0),
    (1, 1),
    (9, 2),
    (18, 18),
    (19, 0),
    (20, 15),
    (38, 0),
    (38, 19),
    (38, 35),
    (38, 38),
    (76, 0),
    (76, 38),
    (76, 76),
]


@pytest.mark.parametrize("given", DECIMALS)
@pytest.mark.parametrize("wanted", [each for each in DECIMALS if each[0] <= 38])
def test_a_column_of_decimals_is_never_wrapped_around(given: tuple[int, int], wanted: tuple[int, int]) -> None:
    """Arrow's own cast makes -958.67… of -14569.96… in DECIMAL(38,35)."""
    kind = pa.decimal128(*given) if given[0] <= 38 else pa.decimal256(*given)
    for whole in (
        0,
        1,
        14569967027076938573,
        2**63,
        2**64,
        2**127,
        *(10**each for each in range(0, 76, 5)),
        10 ** given[0] - 1,
    ):
        number = Decimal(f"-{whole % 10 ** given[0]}e-{given[1]}")
        fits = Fraction(number) * 10 ** wanted[1]
        try:
            found = decimals_at(pa.array([number, None], kind), pa.decimal128(*wanted)).to_pylist()
            assert Fraction(found[0]) == Fraction(number)
        except pa.ArrowInvalid:
            assert fits.denominator > 1 or abs(fits) >= 10 ** wanted[0] or given[0] - given[1] + max(given[1], wanted[1]) > 76


@pytest.mark.parametrize(
    "column",
    [
        [pd.Timestamp("2024-01-01", tz="UTC"), Decimal("1E+999999")],
        [np.datetime64(5, "us"), np.int8(1)],
        [10**5000, "x"],
        [np.timedelta64(1, "us"), np.bool_(True), None],
    ],
)
def test_a_frame_that_arrow_does_not_survive_is_refused(column: list[object]) -> None:
    plan = compile_text("TYPE A (v BIGINT)")
    frame = pd.DataFrame({"v": pd.Series(column, dtype=object)})
    with pytest.raises(DataError, match="D004"):
        list(read_events(frame, plan.catalogue))
