"""Tables: what is vectorised, what is refused, and that the row is named."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

from fairlead.errors import DataError
from fairlead.model.events.types import Catalogue, DataType, EventType, Kind
from fairlead.transport import LastSequences, Rejected, is_table, read_events, read_table
from tests.transport.samples import ALL_TYPES, CATALOGUE, ONE_TYPE, attributes, events, login, majors, quote

WIDE = pa.schema(
    {
        "type": pa.string(),
        "symbol": pa.string(),
        "value": pa.float64(),
        "at": pa.timestamp("us", "UTC"),
        "user": pa.string(),
        "attempts": pa.int32(),
    }
)
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
BEAT = {"type": "Heartbeat", "at": NOON}
MIXED = pa.Table.from_pylist([quote(at=NOON), login(), {"type": "Tick"}, BEAT, quote(at=NOON)], WIDE)


def one(kind: Kind | DataType, column: pa.Array, **options: Any) -> list[Any]:
    """The canonical values of one column declared as `kind`."""
    catalogue = Catalogue((EventType("One", attributes(x=kind)),))
    return [event.row[0] for event in events(read_table(pa.table({"x": column}), catalogue, **options), catalogue)]


def refused(kind: Kind | DataType, column: pa.Array, **options: Any) -> DataError:
    with pytest.raises(DataError) as error:
        one(kind, column, **options)
    return error.value


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_a_wide_table_gives_events_in_the_order_of_its_rows(batch_rows: int) -> None:
    found = events(read_table(MIXED, CATALOGUE, batch_rows=batch_rows, start=5))
    assert [event.type for event in found] == ["StockQuote", "Login", "Tick", "Heartbeat", "StockQuote"]
    assert majors(found) == [5, 6, 7, 8, 9]
    assert found[1].row == ("ann", 1)


def test_every_kind_of_table_is_read() -> None:
    wanted = [event.row for event in events(read_table(MIXED, CATALOGUE))]
    dictionary = MIXED.set_column(0, "type", MIXED.column("type").dictionary_encode())
    reader = pa.RecordBatchReader.from_batches(WIDE, MIXED.to_batches(max_chunksize=2))
    pandas_frame = MIXED.to_pandas()  # attempts are floats here, since a cell is missing
    polars_frame: Any = polars.from_arrow(MIXED)
    categorical = polars_frame.with_columns(polars.col("type").cast(polars.Categorical))
    assert str(pandas_frame["attempts"].dtype) == "float64"
    for each in (MIXED, MIXED.to_batches()[0], dictionary, reader, pandas_frame, polars_frame, categorical):
        assert is_table(each)
        assert [event.row for event in events(read_events(each, CATALOGUE))] == wanted


def test_an_empty_table_has_no_events_whatever_its_columns() -> None:
    for each in (pa.table({}), MIXED.slice(0, 0), pandas.DataFrame(), polars.DataFrame()):
        assert list(read_table(each, CATALOGUE)) == []


def test_lists_and_series_are_no_tables() -> None:
    assert not any(map(is_table, ([], pandas.Series([1]), polars.Series([1]), pa.array([1]), iter(()))))


def test_the_type_column_may_be_absent_where_only_one_type_can_be_published() -> None:
    table = pa.table({"symbol": ["a"], "value": [1], "at": [NOON]})
    assert events(read_table(table, ONE_TYPE), ONE_TYPE)[0]["value"] == 1.0


def test_a_value_in_a_column_of_another_type_is_refused_with_its_row() -> None:
    table = pa.Table.from_pylist([login(), quote(at=NOON), login(value=2.0)], WIDE)
    with pytest.raises(DataError) as error:
        list(read_table(table, CATALOGUE))
    assert (error.value.code, error.value.place) == ("D002", "row 2")
    assert "'Login' has no attribute 'value'" in error.value.problem


def test_a_column_that_no_type_has_is_refused() -> None:
    with pytest.raises(DataError) as error:
        list(read_table(MIXED.append_column("usr", pa.nulls(5)), CATALOGUE))
    assert (error.value.code, error.value.place, error.value.fix) == ("D002", "column 'usr'", "did you mean 'user'?")


def test_a_column_named_twice_is_refused() -> None:
    for table in (
        pa.table([["Tick"], ["Tick"]], ["type", "type"]),
        pandas.DataFrame([[1, 2]], columns=["user", "user"]),
    ):
        with pytest.raises(DataError, match="D015 "):
            list(read_table(table, CATALOGUE))


def test_a_missing_column_matters_only_where_its_type_occurs() -> None:
    table = MIXED.drop_columns(["attempts", "user"])
    assert len(events(read_table(table.filter(pa.array([True, False, True, True, True])), CATALOGUE))) == 4
    with pytest.raises(DataError, match="D003 row 1"):
        list(read_table(table, CATALOGUE))


@pytest.mark.parametrize(
    ("types", "code"),
    [(["Tick", None], "D027"), (["Tick", "Tock"], "D001"), (["Tick", "Market"], "D008"), ([1, 2], "D027")],
)
def test_a_bad_type_is_named_with_its_row(types: list[Any], code: str) -> None:
    with pytest.raises(DataError) as error:
        list(read_table(pa.table({"type": types}), CATALOGUE))
    assert (error.value.code, error.value.place) == (code, "row 1" if types[0] == "Tick" else "row 0")


def test_a_null_time_is_refused_with_its_row() -> None:
    table = pa.Table.from_pylist([quote(at=NOON), quote(at=None)], WIDE)
    with pytest.raises(DataError, match="D006 row 1"):
        list(read_table(table, CATALOGUE))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata"])
def test_timestamps_of_any_unit_and_zone_are_the_same_moment(unit: str, zone: str | None) -> None:
    column = pa.array([1_700_000_000, None], pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
    column = column.cast(pa.int64()).cast(pa.timestamp(unit, zone))
    assert one(Kind.TIMESTAMP, column) == [1_700_000_000_000_000, None]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1_700_000_000], pa.int32()),
        pa.array([1_700_000_000], pa.uint64()),
        pa.array([1_700_000_000.0]),
        pa.array(["2023-11-14T22:13:20Z"]),
        pa.array(["2023-11-14 22:13:20"], pa.large_string()),
        pa.array(["2023-11-14T23:13:20+01:00"]).dictionary_encode(),
    ],
)
def test_numbers_in_a_timestamp_column_are_seconds_and_texts_iso(column: pa.Array) -> None:
    assert one(Kind.TIMESTAMP, column) == [1_700_000_000_000_000]


@pytest.mark.parametrize(
    ("kind", "column", "row", "said"),
    [
        (Kind.TIMESTAMP, pa.array([0, 1001], pa.timestamp("ns")), 1, "1001 ns since 1970, finer than a microsecond"),
        (Kind.TIMESTAMP, pa.array([0, 10**12], pa.timestamp("s")), 1, "not in the years 1 to 9999"),
        (Kind.TIMESTAMP, pa.array([0, 1], pa.date32()), 0, "expected TIMESTAMP, got date"),
        (Kind.INT, pa.array([0, 2**31]), 1, "2147483648 is out of the range of INT"),
        (Kind.BIGINT, pa.array([0, 2**63], pa.uint64()), 1, "9223372036854775808 is out of the range of BIGINT"),
        (Kind.BIGINT, pa.array([0.0, 1.0]), 0, "expected BIGINT, got float 0.0"),
        (Kind.DOUBLE, pa.array(["0", "1"]), 0, "expected DOUBLE, got str '0'"),
        (Kind.BOOLEAN, pa.array([0, 1]), 0, "expected BOOLEAN, got int 0"),
        (Kind.STRING, pa.array([b"a", b"b"]), 0, "expected STRING, got bytes b'a'"),
        (Kind.STRING, pa.array([0, 1], pa.timestamp("ns")), 0, "expected STRING, got datetime"),
        (Kind.STRING, pa.array([None, [1]]), 1, "expected STRING, got list [1]"),
        (Kind.INT, pa.array([0, 1], pa.duration("ns")), 0, "expected INT"),
        (
            DataType(Kind.DECIMAL, 4, 1),
            pa.array([Decimal("1.00"), Decimal("1.25")]),
            1,
            "1.25 has more than 1 decimal places",
        ),
        (DataType(Kind.DECIMAL, 4, 1), pa.array([1, 1000]), 1, "1000 is out of the range of DECIMAL(4,1)"),
    ],
)
def test_what_would_lose_something_is_refused_with_value_and_row(kind: Any, column: pa.Array, row: int, said: str) -> None:
    error = refused(kind, column)
    assert (error.code, error.place) == ("D004", f"row {row}")
    assert said in error.problem


@pytest.mark.slow
def test_the_first_offending_row_of_many_is_named() -> None:
    values = list(range(200_000))
    values[150_001] = values[170_000] = 2**40
    error = refused(Kind.INT, pa.array(values))
    assert (error.place, "1099511627776" in error.problem) == ("row 150001", True)


def test_whole_numbers_of_any_width_fit_where_their_values_do() -> None:
    assert one(Kind.INT, pa.array([1, None], pa.uint64())) == [1, None]
    assert one(Kind.DOUBLE, pa.array([2**60 + 1])) == [float(2**60 + 1)]
    assert one(DataType(Kind.DECIMAL, 5, 2), pa.array([1, None])) == [Decimal("1.00"), None]
    assert one(DataType(Kind.DECIMAL, 5, 2), pa.array([Decimal("1.5")])) == [Decimal("1.50")]
    assert one(Kind.STRING, pa.array(["a", None]).cast(pa.string_view())) == ["a", None]
    assert one(Kind.BINARY, pa.array([b"ab"], pa.binary(2))) == [b"ab"]
    assert one(Kind.BINARY, pa.array(["YWI="])) == [b"ab"]


def test_text_that_is_not_utf8_is_refused_with_its_row() -> None:
    buffers = [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xff\xfe")]
    error = refused(Kind.STRING, pa.Array.from_buffers(pa.string(), 2, buffers))
    assert (error.code, error.place) == ("D016", "row 1")


def test_non_finite_numbers_are_refused_only_where_they_are_not_allowed() -> None:
    column = pa.array([1.0, float("inf")])
    assert one(Kind.DOUBLE, column) == [1.0, float("inf")]
    error = refused(Kind.DOUBLE, column, allow_nan=False)
    assert (error.code, error.place) == ("D005", "row 1")


def test_pandas_has_nan_for_null_but_a_fraction_is_no_integer() -> None:
    frame = pandas.DataFrame({"type": ["Login", "Login"], "user": ["a", "b"], "attempts": [1.0, None]})
    assert [event.row for event in events(read_table(frame, CATALOGUE))] == [("a", 1), ("b", None)]
    for values in ([1.5, None], [1.0, 2.0]):
        with pytest.raises(DataError, match="D004 row 0"):
            list(read_table(frame.assign(attempts=values), CATALOGUE))


def test_a_pandas_column_of_mixed_types_is_refused_by_name() -> None:
    frame = pandas.DataFrame({"type": ["Login", "Login"], "user": ["a", 5], "attempts": [1, 2]})
    with pytest.raises(DataError, match=r"D004 table.*column user"):
        list(read_table(frame, CATALOGUE))


def test_sources_and_sequences_drop_repeats() -> None:
    table = pa.table(
        {
            "type": ["Tick"] * 5,
            "_source": pa.array(["s", "s", None, "t", "s"]).dictionary_encode(),
            "_sequence": pa.array([1, 1, None, 1, 2], pa.int16()),
        }
    )
    seen = LastSequences()
    [columns] = read_table(table, CATALOGUE, last_sequences=seen)
    assert (list(columns.positions), columns.duplicates) == ([0, 2, 3, 4], 1)
    assert [event.source for event in columns.events(CATALOGUE)] == ["s", None, "t", "s"]
    assert seen.dump()["sources"] == {"s": 2, "t": 1}


def test_a_malformed_source_or_sequence_is_refused() -> None:
    for column in ({"_source": [1]}, {"_sequence": ["1"]}, {"_sequence": [1.0]}):
        with pytest.raises(DataError, match="D010 row 0"):
            list(read_table(pa.table({"type": ["Tick"], **column}), CATALOGUE))


def test_skipping_keeps_the_positions_of_rejected_rows() -> None:
    rejected: list[Rejected] = []
    table = pa.table({"type": ["Login"] * 3, "user": ["a", "b", "c"], "attempts": [1, 2**40, 3]})
    found = events(read_table(table, CATALOGUE, on_bad="skip", rejects=rejected.append))
    assert (majors(found), [event["user"] for event in found]) == ([0, 2], ["a", "c"])
    assert [(each.position, each.code) for each in rejected] == [(1, "D004")]
    assert rejected[0].record == '{"type": "Login", "user": "b", "attempts": 1099511627776}'


def test_all_data_types_may_be_null_in_a_column_without_a_type_of_its_own() -> None:
    names = [each.name for each in ALL_TYPES["Every"].attributes]
    table = pa.table({"type": ["Every"], **{name: pa.nulls(1) for name in names}})
    assert events(read_table(table, ALL_TYPES), ALL_TYPES)[0].row == (None,) * len(names)


@pytest.mark.parametrize("freq", ["D", "h", "us", "Y"])
def test_periods_are_refused_as_their_numbers_count_any_unit(freq: str) -> None:
    frame = pandas.DataFrame({"x": pandas.period_range("2026-01-01", periods=2, freq=freq)})
    for table in (frame, pa.Table.from_pandas(frame)):
        for kind in (Kind.TIMESTAMP, Kind.BIGINT):
            declared = EventType("T", attributes(x=DataType(kind)))
            with pytest.raises(DataError, match="D004 column 'x'"):
                list(read_table(table, Catalogue([declared])))
