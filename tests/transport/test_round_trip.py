"""Whatever the way in, the same records give the same events: dicts, Arrow, pandas, polars, JSON Lines, CSV, Parquet."""

from __future__ import annotations

import base64
import json
import math
import tempfile
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import DataError
from fairlead.model.events.columns import arrow_schema
from fairlead.model.events.event import Event
from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import TIMESTAMP_RANGE, canonical, jsonable
from fairlead.transport import read_files, read_records, read_table
from fairlead.transport.admission.converters import DOUBTS, column
from tests.transport.samples import ALL_TYPES, EVERY, PAIR, events

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
ZONES: Any = st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=11))])
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)  # noqa: DTZ001
RAW: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INT: st.integers(-(2**31), 2**31 - 1),
    Kind.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Kind.DOUBLE: st.floats() | st.integers(-(2**70), 2**70),
    Kind.DECIMAL: st.decimals("-999999999.999", "999999999.999", places=3),
    Kind.STRING: TEXT,
    Kind.TIMESTAMP: MOMENTS
    | MOMENTS.map(datetime.isoformat)
    | st.integers(-(10**10), 10**11)
    | st.floats(-1e10, 1e11, allow_nan=False),
    Kind.DATE: st.dates() | st.dates().map(date.isoformat),
    Kind.BINARY: st.binary(max_size=6) | st.binary(max_size=6).map(lambda raw: base64.b64encode(raw).decode()),
}


def records(**replaced: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Records of two types in any order. All strategies are nullable."""

    def of(schema: Any) -> st.SearchStrategy[dict[str, Any]]:
        values = {each.name: st.none() | replaced.get(each.name, RAW[each.type.kind]) for each in schema.attributes}
        return st.fixed_dictionaries({"type": st.just(schema.name), **values})

    return st.lists(of(EVERY) | of(PAIR), max_size=12)


def canonical_rows(given_records: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        tuple(same(canonical(record[each.name], each.type)) for each in ALL_TYPES[record["type"]].attributes)
        for record in given_records
    ]


def same(value: Any) -> Any:
    """NaN equals NaN here, and 0.0 differs from -0.0."""
    return str(value) if isinstance(value, float) else value


def rows(found: list[Event]) -> list[tuple[Any, ...]]:
    return [tuple(map(same, event.row)) for event in found]


@given(records(), st.integers(1, 5))
def test_records_keep_their_canonical_values(given_records: list[dict[str, Any]], batch_rows: int) -> None:
    found = events(read_records(given_records, ALL_TYPES, batch_rows=batch_rows), ALL_TYPES)
    assert rows(found) == canonical_rows(given_records)
    assert [event.type for event in found] == [record["type"] for record in given_records]


TYPED = {
    "seen": MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
    "raw": st.binary(max_size=6),
    "day": st.dates(),
    "ratio": st.floats(),
}


def wide(given_records: list[dict[str, Any]]) -> pa.Table:
    fields = {field.name: field.type for each in (EVERY, PAIR) for field in arrow_schema(each)}
    return pa.Table.from_pylist(given_records, pa.schema({"type": pa.string(), **fields}))


@given(records(**TYPED), st.integers(1, 5))
def test_tables_give_the_events_that_records_give(given_records: list[dict[str, Any]], batch_rows: int) -> None:
    wanted = events(read_records(given_records, ALL_TYPES), ALL_TYPES)
    table = wide(given_records)
    frame: Any = polars.from_arrow(table)
    for each in (table, frame, pa.RecordBatchReader.from_batches(table.schema, table.to_batches())):
        found = events(read_table(each, ALL_TYPES, batch_rows=batch_rows), ALL_TYPES)
        assert rows(found) == rows(wanted)
        assert [event.position for event in found] == [event.position for event in wanted]


FINITE = {**TYPED, "ratio": st.floats(allow_nan=False, allow_infinity=False)}
PANDAS_TIMES = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(records(**{**FINITE, "seen": PANDAS_TIMES}))
def test_pandas_gives_the_events_that_records_give(given_records: list[dict[str, Any]]) -> None:
    frame = wide(given_records).to_pandas(integer_object_nulls=True)
    assert rows(events(read_table(frame, ALL_TYPES), ALL_TYPES)) == canonical_rows(given_records)


@given(records(**FINITE))
def test_files_give_the_events_that_records_give(given_records: list[dict[str, Any]]) -> None:
    wanted = canonical_rows(given_records)
    shown = [
        {"type": record["type"]}
        | {
            each.name: jsonable(canonical(record[each.name], each.type), each.type.kind)
            for each in ALL_TYPES[record["type"]].attributes
        }
        for record in given_records
    ]
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "in.jsonl"
        lines.write_text("".join(json.dumps(each) + "\n" for each in shown), encoding="utf-8")
        assert rows(events(read_files(lines, ALL_TYPES, batch_rows=5), ALL_TYPES)) == wanted
        parquet = Path(folder) / "in.parquet"
        pq.write_table(wide(given_records), parquet, row_group_size=3)
        assert rows(events(read_files(parquet, ALL_TYPES, batch_rows=5), ALL_TYPES)) == wanted
        cells = Path(folder) / "in.csv"
        names = ["type", *dict.fromkeys(each.name for schema in (EVERY, PAIR) for each in schema.attributes)]
        text = "".join(",".join(cell(each.get(name)) for name in names) + "\n" for each in shown)
        cells.write_text(",".join(names) + "\n" + text, encoding="utf-8", newline="")
        assert rows(events(read_files(cells, ALL_TYPES, batch_rows=5), ALL_TYPES)) == wanted


def cell(value: Any) -> str:
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"' if not text or any(sign in text for sign in '",\r\n') or text.isspace() else text


ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.binary(max_size=4)
    | st.text(max_size=6)
    | st.text("0123456789-+:.TZ_ eE,", max_size=26)
    | st.datetimes(timezones=ZONES)
    | st.dates()
    | st.text("0123456789-", min_size=9, max_size=11)
)
DATA_TYPES = st.sampled_from([each.type for each in EVERY.attributes] + [DataType(Kind.DECIMAL, 38, 10)])


@given(st.lists(ODD, max_size=4), DATA_TYPES, st.booleans())
def test_the_fast_way_accepts_only_what_the_exact_way_accepts_with_the_same_values(
    values: list[Any], wanted: DataType, text: bool
) -> None:
    try:
        fast = column(values, wanted, allow_nan=True, text=text)
    except DOUBTS:
        return
    if wanted.kind is Kind.TIMESTAMP:
        fast = fast.cast(pa.int64())
    if wanted.kind is Kind.DATE:
        fast = fast.cast(pa.int32())
    assert list(map(same, fast.to_pylist())) == [same(canonical(value, wanted, text=text)) for value in values]


ISO_TEXTS = st.builds(
    "{}-{}-{}{}{}:{}{}{}{}".format,
    st.sampled_from(["2024", "0000", "0001", "9999", "24"]),
    st.sampled_from(["01", "02", "12", "13", "1"]),
    st.sampled_from(["01", "29", "30", "31", "32", "00"]),
    st.sampled_from(["T", " ", "t", "-"]),
    st.sampled_from(["00", "23", "24", "7"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(["", ":00", ":59", ":60"]),
    st.sampled_from(["", ".1", ".123456", ".1234560", ".1234567", ",5", "."]),
    st.sampled_from(["", "Z", "z", "+00:00", "-23:59", "+24:00", "+0530", "+05", "+05:30:10", " UTC"]),
)


@given(st.lists(ISO_TEXTS, min_size=1, max_size=2))
def test_arrow_reads_no_timestamp_text_that_python_reads_otherwise(texts: list[str]) -> None:
    wanted = DataType(Kind.TIMESTAMP)
    try:
        fast = column(texts, wanted, allow_nan=True, text=False).cast(pa.int64()).to_pylist()
    except DOUBTS:
        return
    assert fast == [canonical(text, wanted) for text in texts]
    assert all(TIMESTAMP_RANGE[0] <= value <= TIMESTAMP_RANGE[1] for value in fast)


@given(st.lists(ODD, min_size=1, max_size=3), st.sampled_from(EVERY.attributes))
def test_a_table_is_accepted_exactly_where_its_rows_as_records_are(values: list[Any], attribute: Any) -> None:
    try:
        array = pa.array(values)
        back = array.to_pylist()
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return  # Arrow has no type for such a mixture, or Python no value for what Arrow made of it
    given_records = [{"type": "Every", **dict.fromkeys(EVERY.index), attribute.name: value} for value in back]
    nulls = {each.name: pa.nulls(len(array)) for each in EVERY.attributes}
    table = pa.table({"type": ["Every"] * len(array), **nulls, attribute.name: array})
    assert outcome(read_table, table) == outcome(read_records, given_records)


def outcome(read: Any, data: Any) -> Any:
    try:
        return rows(events(read(data, ALL_TYPES), ALL_TYPES))
    except DataError as error:
        return error.code, str(error.place).split()[-1]


def test_a_decimal_in_json_is_read_as_its_digits_say(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    record = {"type": "Every", **{each.name: None for each in EVERY.attributes}, "ratio": 0.1, "price": "PRICE"}
    path.write_text(json.dumps(record).replace('"PRICE"', "123456789.123"), encoding="utf-8")
    [event] = events(read_files(path, ALL_TYPES), ALL_TYPES)
    assert event["price"] == Decimal("123456789.123")
    assert math.isclose(event["ratio"], 0.1, rel_tol=0)


@pytest.mark.parametrize(("text", "seconds"), [("1700000000", 1_700_000_000), ("-1.5", -1.5), ("20240101", 20_240_101)])
def test_a_number_in_a_timestamp_cell_of_csv_is_seconds(text: str, seconds: float, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(f"type,at\nHeartbeat,{text}\nHeartbeat,1970-01-01T00:00:00Z\n", encoding="utf-8")
    assert [event.time for event in events(read_files(path, ALL_TYPES), ALL_TYPES)] == [seconds * 1_000_000, 0]
