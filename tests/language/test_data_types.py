"""Data types of Spark that have a wider one of their own here."""

from datetime import UTC, date, datetime

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


@pytest.mark.parametrize(
    ("condition", "said", "fix"),
    [
        ("a.d > '2024-01-01'", "L040", "write DATE '2024-01-01'"),
        ("a.d > a.at", "L040", "write cast(… AS DATE) for the day of the TIMESTAMP"),
        ("a.d > DATE '2024-13-01'", "L008", "write ISO 8601, for example DATE '2024-05-01'"),
        ("a.d > DATE '20240101'", "L008", "write ISO 8601"),
        ("a.d + 1 DAY > a.d", "L043", "write cast(… AS TIMESTAMP) + 5 DAYS"),
        ("a.d + DATE '2024-01-01' > 1 DAY", "DATE . DATE is not defined", "DATE - DATE is a duration"),
        ("cast(a.d AS INT) > 1", "L045", "docs/language.md lists the conversions"),
        ("sum(a.d) > 1", "L046", "min and max accept numbers, STRING, TIMESTAMP and DATE"),
    ],
)
def test_what_a_date_is_not_is_told(condition: str, said: str, fix: str) -> None:
    rules = f"TYPE A (d DATE, at TIMESTAMP) TIME at SUBSCRIPTION S MATCH A a WHERE {condition}"
    with pytest.raises(fairlead.LanguageError, match=said) as raised:
        fairlead.compile(rules)
    assert fix in str(raised.value)


def test_a_date_is_a_date_of_python_of_arrow_and_of_pandas() -> None:
    plan = fairlead.compile("TYPE A (d DATE) SUBSCRIPTION S MATCH A a WHERE a.d >= DATE '2024-02-29' EMIT E(d = a.d)")
    days = [date(2024, 2, 28), date(2024, 2, 29), None]
    table = pa.table({"d": pa.array(days, pa.date32())})
    millis = pa.table({"d": pa.array(days, pa.date64())})
    for events in ([{"type": "A", "d": each} for each in days], table, millis, table.to_pandas()):
        assert [each.emitted for each in fairlead.match(plan, events)] == [{"d": date(2024, 2, 29)}]
    assert fairlead.match(plan, table).to_arrow().schema.field("emitted").type.field("d").type == pa.date32()


def test_a_moment_is_no_date() -> None:
    plan = fairlead.compile("TYPE A (d DATE) SUBSCRIPTION S MATCH A a")
    for value in (datetime(2024, 1, 1, tzinfo=UTC), 19_000, "2024-1-1", "2024-W01-1", "10000-01-01", "2023-02-29"):
        with pytest.raises(fairlead.DataError, match="D004"):
            fairlead.match(plan, [{"type": "A", "d": value}])
    for column in (pa.array([2**31 - 1], pa.int32()).cast(pa.date32()), pa.array([0], pa.timestamp("us")), pa.array([0])):
        with pytest.raises(fairlead.DataError, match="D004"):
            fairlead.match(plan, pa.table({"d": column}))
