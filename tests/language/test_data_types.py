"""Data types of Spark that have a wider one of their own here."""

import pyarrow as pa
import pytest

import fairlead


@pytest.mark.parametrize(
    ("written", "is_kept_as"),
    [("SMALLINT", "INT"), ("tinyint", "INT"), ("INTEGER", "INT"), ("LONG", "BIGINT"), ("FLOAT", "DOUBLE"), ("Real", "DOUBLE")],
)
def test_a_synonym_is_the_type_that_keeps_its_values(written: str, is_kept_as: str) -> None:
    rules = "TYPE A (x {}) SUBSCRIPTION S MATCH A a WHERE a.x > 1"
    one, other = (fairlead.compile(rules.format(each)) for each in (written, is_kept_as))
    assert one.digest == other.digest
    assert str(one.types["A"].attributes[0]) == f"x {is_kept_as}"


def test_narrow_columns_are_widened_exactly() -> None:
    plan = fairlead.compile("TYPE A (s SMALLINT, f FLOAT) SUBSCRIPTION S MATCH A a EMIT E(s = a.s, f = a.f)")
    columns = {"type": ["A"] * 2, "s": pa.array([-32768, 32767], pa.int16()), "f": pa.array([0.1, 1.5], pa.float32())}
    found = [each.emitted for each in fairlead.match(plan, pa.table(columns))]
    assert found == [{"s": -32768, "f": 0.10000000149011612}, {"s": 32767, "f": 1.5}]
