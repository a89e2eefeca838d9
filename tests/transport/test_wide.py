"""The fast way for wide tables: it is taken where nothing is wrong, and agrees with the judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairlead.errors import DataError
from fairlead.model.events.columns import SEPARATE_SCANS_MAX, Columns, code_type, rows_by_code
from fairlead.model.events.types import Catalogue, EventType, Kind
from fairlead.transport import read_files, read_records, read_table
from fairlead.transport.admission.gate import Intake
from fairlead.transport.tables.table_reader import examined
from fairlead.transport.tables.wide_tables import DICTIONARY_MAX
from tests.transport.samples import CATALOGUE, attributes, events, login, quote

FEW = 3
MANY = SEPARATE_SCANS_MAX + 4


def types(count: int) -> Catalogue:
    """T0 to Tn, which share `key` and have a `vn` of their own."""
    return Catalogue(tuple(EventType(f"T{n}", attributes(key=Kind.INT, **{f"v{n}": Kind.DOUBLE})) for n in range(count)))


def records(count: int, rows: int = 200) -> list[dict[str, Any]]:
    drawn = np.random.default_rng(5).integers(0, count, rows).tolist()
    return [{"type": f"T{n}", "key": at, f"v{n}": None if at % 7 == 0 else at / 4} for at, n in enumerate(drawn)]


def wide(count: int) -> pa.Table:
    schema = pa.schema([("type", pa.string()), ("key", pa.int32()), *((f"v{n}", pa.float64()) for n in range(count))])
    return pa.Table.from_pylist(records(count), schema)


def wide_samples(*records: dict[str, Any]) -> pa.Table:
    names = dict.fromkeys(name for each in records for name in ("type", "user", "attempts", *each))
    return pa.Table.from_pylist([dict.fromkeys(names) | each for each in records])


def with_types(table: pa.Table, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(0, "type", column)


@pytest.mark.sampled
@pytest.mark.parametrize("count", [1, FEW, MANY, 200])
@pytest.mark.parametrize("batch_rows", [1, 64, 1000])
def test_tables_and_records_give_the_same_events(count: int, batch_rows: int) -> None:
    catalogue = types(count)
    wanted = events(read_records(records(count), catalogue), catalogue)
    assert events(read_table(wide(count), catalogue, batch_rows=batch_rows), catalogue) == wanted


@pytest.mark.parametrize("count", [1, FEW, MANY, 200])
def test_good_rows_need_no_judge(count: int) -> None:
    table, shapes = wide(count), Intake(types(count)).typed
    dictionary = with_types(table, table.column("type").dictionary_encode())
    bytewise = with_types(table, table.column("type").cast(pa.dictionary(pa.uint8(), pa.string())))
    for each in (table, dictionary, bytewise, table.slice(33, 77)):
        (batch,) = each.combine_chunks().to_batches()
        assert examined(batch, shapes).grouped is not None


@pytest.mark.parametrize("count", [FEW, MANY, 200])
def test_the_jth_row_of_a_type_stands_at_its_jth_place(count: int) -> None:
    catalogue = types(count)
    for columns in (*read_table(wide(count), catalogue), *read_records(records(count), catalogue)):
        fresh = Columns(columns.types, columns.codes, columns.positions, columns.tables)
        assert list(columns.places) == list(fresh.places) == list(columns.tables)
        for name, rows in columns.places.items():
            assert rows.tolist() == fresh.places[name].tolist()
            assert columns.tables[name].column("key").to_pylist() == rows.tolist()
            assert {columns.types[code] for code in np.asarray(columns.codes)[rows].tolist()} == {name}


def test_codes_are_as_narrow_as_the_types_are_few() -> None:
    (columns,) = read_table(wide(FEW), types(FEW))
    assert columns.code_array is columns.codes
    assert columns.code_array.dtype == np.int8
    assert [code_type(count) for count in (1, 128, 129, 2**15, 2**15 + 1)] == [np.int8, np.int8, np.int16, np.int16, np.int32]
    (columns,) = read_table(wide(200), types(200))
    assert columns.code_array.dtype == np.int16


def test_rows_by_code_has_an_entry_for_every_code_that_occurs() -> None:
    assert rows_by_code(np.zeros(0, dtype=np.int8), 3) == {}
    for count in (FEW, MANY):
        codes = np.array([count - 1, 0, count - 1, *range(1, count - 1)], dtype=np.int8)
        found = {code: rows.tolist() for code, rows in rows_by_code(codes, count + 5).items()}
        assert found == {0: [1], **{code: [code + 2] for code in range(1, count - 1)}, count - 1: [0, 2]}


def test_positions_that_are_a_range_are_not_looked_through() -> None:
    beyond_memory = Columns((), [], range(5, 10**15), {})
    assert beyond_memory.follow(4)
    assert not beyond_memory.follow(5)
    assert beyond_memory.last_after(4) == 10**15 - 1
    assert not Columns((), [], range(9, 5, -1), {}).follow(4)
    assert not Columns((), [], [5, 7, 7], {}).follow(4)
    assert Columns((), [], [5, 7, 8], {}, last_position=11).last_after(4) == 11


def test_names_of_a_dictionary_that_no_row_has_do_no_harm() -> None:
    unused = pa.DictionaryArray.from_arrays(pa.array([1, 3, 1]), pa.array(["Tock", "Login", None, "StockQuote"]))
    rows = wide_samples(login(), quote(), login())
    good = rows.set_column(0, "type", unused)
    assert [event.type for event in events(read_table(good, CATALOGUE))] == ["Login", "StockQuote", "Login"]
    for index, code in ((0, "D001"), (2, "D027"), (None, "D027")):
        bad = pa.DictionaryArray.from_arrays(pa.array([1, 3, index]), unused.dictionary)
        with pytest.raises(DataError, match=f"{code} row 2"):
            list(read_table(rows.set_column(0, "type", bad), CATALOGUE))


def test_a_dictionary_with_more_names_than_are_looked_up_is_decoded() -> None:
    names = pa.array([*(f"no{number}" for number in range(DICTIONARY_MAX)), "Login"])
    types_of = pa.DictionaryArray.from_arrays(pa.array([DICTIONARY_MAX] * 2), names)
    table = pa.table({"type": types_of, "user": ["a", "b"], "attempts": [1, 2]})
    assert [event["user"] for event in events(read_table(table, CATALOGUE))] == ["a", "b"]


@pytest.mark.parametrize("count", [FEW, MANY])
def test_one_value_in_a_column_of_another_type_is_found(count: int) -> None:
    given = records(count)
    at = next(at for at, each in enumerate(given) if at > 100 and each["type"] == "T1")
    given[at]["v0"] = 1.0
    table = pa.Table.from_pylist(given, wide(count).schema)
    with pytest.raises(DataError, match=f"D002 row {at}"):
        list(read_table(table, types(count)))


@pytest.mark.parametrize(("row_group_size", "batches"), [(1_000, 1), (100, 1), (10, 1)])
def test_small_row_groups_do_not_make_small_batches(tmp_path: Path, row_group_size: int, batches: int) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(wide(FEW), path, row_group_size=row_group_size)
    found = list(read_files(path, types(FEW)))
    assert len(found) == batches
    assert events(found, types(FEW)) == events(read_table(wide(FEW), types(FEW)), types(FEW))


@pytest.mark.parametrize("repeat", [True, False])
def test_large_rows_of_parquet_make_small_batches(tmp_path: Path, repeat: bool) -> None:
    path = tmp_path / "in.parquet"
    rows = [login("x" * 5_000 if repeat else f"{number:05000}") for number in range(100)]
    pq.write_table(pa.Table.from_pylist(rows), path)
    found = list(read_files(path, CATALOGUE, batch_bytes_max=100_000))
    assert max(map(len, found)) <= 20
    assert [event["user"] for event in events(found)] == [each["user"] for each in rows]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["Tick", "Tick"], pa.large_string()),
        pa.array(["Tick", "Tick"], pa.string_view()),
        pa.array(["Tick", "Tick"]).dictionary_encode(),
    ],
)
def test_parquet_keeps_its_types_however_they_are_stored(tmp_path: Path, column: pa.Array) -> None:
    pq.write_table(pa.table({"type": column}), tmp_path / "in.parquet")
    assert [event.type for event in events(read_files(tmp_path / "in.parquet", CATALOGUE))] == ["Tick", "Tick"]


@pytest.mark.parametrize("column", [pa.array([1, 2]), pa.array([["Tick"]]), pa.array([{"a": "Tick"}]), pa.array([b"Tick"])])
def test_a_type_column_of_parquet_that_is_no_text_is_refused(tmp_path: Path, column: pa.Array) -> None:
    pq.write_table(pa.table({"type": column}), tmp_path / "in.parquet")
    with pytest.raises(DataError, match=r"D027 .*, row 0"):
        list(read_files(tmp_path / "in.parquet", CATALOGUE))
