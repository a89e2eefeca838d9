"""Positions that records bring along: the same by every way in, and what is no position is said with its place."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import DataError
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue, EventType, Kind
from fairlead.model.relations.identity import POSITIONS_MAX
from fairlead.transport import Rejected, Validation, read_events, read_files, read_table, validate_files
from fairlead.transport.admission.bulk_check import columnwise
from fairlead.transport.admission.gate import Intake
from fairlead.transport.tables.table_reader import examined
from tests.transport.samples import CATALOGUE, attributes, events, login, majors, quote, write

Options = dict[str, Any]
NUMBERED = Catalogue(
    (EventType("Numbered", attributes(offset=Kind.BIGINT, x=Kind.INT)), EventType("Other", attributes(x=Kind.INT)))
)
POSITIONS = st.lists(st.integers(0, POSITIONS_MAX - 1) | st.integers(0, 40), max_size=12, unique=True).map(sorted)


def records(positions: Iterable[Any]) -> list[dict[str, Any]]:
    """Quotes and logins in turn, with these positions."""
    return [(login(), quote())[at % 2] | {"position": position} for at, position in enumerate(positions)]


def wide(given: list[dict[str, Any]]) -> pa.Table:
    names = dict.fromkeys(["type", *(name for each in given for name in each)])
    return pa.Table.from_pylist([dict.fromkeys(names) | each for each in given])


def files(folder: Path, given: list[dict[str, Any]]) -> list[Path]:
    """The records as JSON Lines, CSV and Parquet."""
    table = wide(given)
    lines = write(folder / "in.jsonl", *(json.dumps(each) for each in given))
    pq.write_table(table, folder / "in.parquet")
    with (folder / "in.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, table.column_names)
        writer.writeheader()
        writer.writerows(given)
    return [lines, folder / "in.csv", folder / "in.parquet"]


def ways(folder: Path, given: list[dict[str, Any]], options: Options) -> dict[str, Iterable[Columns]]:
    """Every way in."""
    table = wide(given)
    frames = {"records": given, "arrow": table, "pandas": table.to_pandas(), "polars": polars.from_arrow(table)}
    found = {name: read_events(each, CATALOGUE, **options) for name, each in frames.items()}
    return found | {path.suffix: read_files(path, CATALOGUE, **options) for path in files(folder, given)}


@given(POSITIONS, st.integers(1, 5))
def test_every_way_in_takes_the_positions_as_they_are(positions: list[int], batch_rows: int) -> None:
    given = records(positions)
    if not given:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, read in ways(Path(folder), given, {"position": "position", "batch_rows": batch_rows}).items():
            batches = list(read)
            found = events(batches)
            assert (majors(found), [each.type for each in found]) == (positions, [each["type"] for each in given]), name
            assert batches[-1].last_position == positions[-1]


@given(
    st.lists(st.none() | st.integers(-1, 12) | st.sampled_from([POSITIONS_MAX - 1, POSITIONS_MAX]), max_size=12),
    st.integers(1, 5),
)
def test_in_any_cut_into_batches_what_is_not_above_all_before_is_set_aside(
    positions: list[int | None], batch_rows: int
) -> None:
    wanted: list[int] = []
    for each in positions:
        if each is not None and (wanted[-1] if wanted else -1) < each < POSITIONS_MAX:
            wanted.append(each)
    given = records(positions)
    if not given:
        return
    with tempfile.TemporaryDirectory() as folder:
        options: Options = {"position": "position", "batch_rows": batch_rows, "on_bad": "skip"}
        for name, read in ways(Path(folder), given, options).items():
            assert majors(events(read)) == wanted, name


def test_the_fast_ways_are_taken() -> None:
    given = records([3, 5, 2**40])
    intake = Intake(CATALOGUE, position_field="position")
    fast = columnwise(given, intake.typed)
    assert fast is not None
    assert fast.positions is not None
    part = examined(wide(given).to_batches()[0], intake.typed)
    assert part.grouped is not None
    column = wide(given).column("position").combine_chunks()
    assert part.grouped.positions is not None
    assert part.grouped.positions.tolist() == fast.positions.tolist() == column.to_pylist()


def test_columns_of_positions_are_not_copied() -> None:
    batch = pa.record_batch({"type": ["Tick"] * 3, "position": np.array([1, 5, 9])})
    grouped = examined(batch, Intake(CATALOGUE, position_field="position").typed).grouped
    assert grouped is not None
    assert grouped.positions is not None
    assert grouped.positions.ctypes.data == batch.column("position").buffers()[1].address


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint16(), pa.uint64()])
def test_whole_numbers_of_any_width_are_positions(kind: pa.DataType) -> None:
    table = pa.table({"type": ["Tick", "Tick"], "position": pa.array([1, 100], kind)})
    assert majors(events(read_table(table, CATALOGUE, position="position"))) == [1, 100]


def test_a_position_may_be_an_attribute_too() -> None:
    given = [{"type": "Numbered", "offset": 7, "x": 1}, {"type": "Other", "offset": 9, "x": 2}]
    for each in (given, wide(given)):
        found = events(read_events(each, NUMBERED, position="offset"), NUMBERED)
        assert [(event.position.major, event.row) for event in found] == [(7, (7, 1)), (9, (2,))]


def test_a_sequence_may_be_the_position() -> None:
    given = [login(_sequence=4), login(_sequence=4), login(_sequence=6)]
    with pytest.raises(DataError, match="D034 record 1: '_sequence' is 4, not greater than the position before it, 4"):
        list(read_events(given, CATALOGUE, position="_sequence"))
    found = list(read_events([given[0], given[2]], CATALOGUE, position="_sequence"))
    assert (majors(events(found)), found[0].sequences) == ([4, 6], [4, 6])


BAD: dict[str, tuple[Any, str, str]] = {
    "null": (None, "D019", "has no value in the position field 'position'"),
    "negative": (-1, "D023", f"is -1, not a position from 0 to {POSITIONS_MAX - 1:,}"),
    "beyond the limit": (POSITIONS_MAX, "D023", "not a position from 0 to"),
    "beyond 64 bits": (2**63, "D023", "not a position from 0 to"),
    "repeated": (5, "D034", "is 5, not greater than the position before it, 5"),
    "falling": (4, "D034", "is 4, not greater than the position before it, 5"),
}
NO_NUMBERS: dict[str, tuple[Any, str]] = {
    "a fraction": (7.5, "is not a whole number but 7.5"),
    "a float": (7.0, "is not a whole number but 7.0"),
    "a text": ("7", "is not a whole number but '7'"),
    "a truth value": (True, "is not a whole number but True"),
}
PLACES = {"records": "record 2", "arrow": "row 2", ".jsonl": "line 3", ".csv": "line 4", ".parquet": "row 2"}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_what_is_no_position_is_said_with_its_place(tmp_path: Path, kind: str, batch_rows: int) -> None:
    value, code, problem = BAD[kind]
    given = records([3, 5, value, 9])
    typed = pa.uint64() if value == 2**63 else None
    for name, read in ways_of_one(tmp_path, given, typed, {"position": "position", "batch_rows": batch_rows}).items():
        with pytest.raises(DataError) as raised:
            list(read)
        error = raised.value
        assert (error.code, problem in error.problem, PLACES[name] in str(error.place)) == (code, True, True), (
            name,
            str(error),
        )
        assert error.fix


def ways_of_one(folder: Path, given: list[dict[str, Any]], kind: Any, options: Options) -> dict[str, Iterable[Columns]]:
    if kind is None:
        found = ways(folder, given, options)
        return {name: each for name, each in found.items() if name not in ("pandas", "polars")}
    table = wide([each | {"position": 0} for each in given])
    at = table.column_names.index("position")
    table = table.set_column(at, "position", pa.array([each["position"] for each in given], kind))
    return {
        "records": read_events(given, CATALOGUE, **options),
        "arrow": read_table(table, CATALOGUE, **options),
        ".jsonl": read_files(write(folder / "in.jsonl", *map(json.dumps, given)), CATALOGUE, **options),
    }


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_whole_number_is_no_position(tmp_path: Path, kind: str) -> None:
    value, problem = NO_NUMBERS[kind]
    path = write(tmp_path / "in.jsonl", *map(json.dumps, records([3, value])))
    for read in (
        read_events(records([3, value]), CATALOGUE, position="position"),
        read_files(path, CATALOGUE, position="position"),
        read_table(pa.table({"type": ["Tick"], "position": [value]}), CATALOGUE, position="position"),
    ):
        with pytest.raises(DataError) as raised:
            list(read)
        assert (raised.value.code, problem in raised.value.problem) == ("D023", True)


@pytest.mark.parametrize("cell", ["1.0", "x", "1_0", "true"])
def test_cells_of_text_are_read_as_numbers_and_nothing_else(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path / "in.csv", "type,position", f"Tick,{cell}")
    with pytest.raises(DataError, match=f"D023 .*in.csv, line 2, column 1: 'position' is not a whole number but '{cell}'"):
        list(read_files(path, CATALOGUE, position="position"))


def test_a_table_or_header_without_the_column_stops_also_when_skipping(tmp_path: Path) -> None:
    options: Options = {"position": "positon", "on_bad": "skip"}
    _, cells, parquet = files(tmp_path, records([1, 2]))
    for path in (cells, parquet):
        with pytest.raises(DataError) as raised:
            list(read_files(path, CATALOGUE, **options))
        assert (raised.value.code, raised.value.fix) == ("D020", "did you mean 'position'?")
    table = pa.table({"type": ["Tick"]})
    with pytest.raises(DataError, match=r"D020 table: the position column 'typ' is missing\n  fix: did you mean 'type'\?"):
        list(read_table(table, CATALOGUE, position="typ"))
    path = write(tmp_path / "ticks.csv", "type", "Tick")
    with pytest.raises(DataError, match=r"D020 .*ticks.csv, line 1, column 1: the position column 'position' is missing"):
        list(read_files(path, CATALOGUE, position="position"))


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
def test_bad_positions_are_set_aside_and_move_nothing(tmp_path: Path, batch_rows: int) -> None:
    """A record that is bad for another reason keeps its position: the next one has to be above it."""
    given = records([3, 3, 5, None, 8, 7, 9, 2])
    given[4]["attempts"] = "many"  # bad, at 8
    lines = write(tmp_path / "in.jsonl", *map(json.dumps, given))
    options: Options = {"position": "position", "on_bad": "skip", "batch_rows": batch_rows}
    for read in (read_events(given, CATALOGUE, **options), read_files(lines, CATALOGUE, **options)):
        assert majors(events(read)) == [3, 5, 9]
    refused: list[Rejected] = []
    list(read_files(lines, CATALOGUE, rejects=refused.append, **options))
    assert [(each.line, each.position, each.code) for each in refused] == [
        (2, None, "D034"),
        (4, None, "D019"),
        (5, 8, "D004"),
        (6, None, "D034"),
        (8, None, "D034"),
    ]
    assert validate_files(lines, CATALOGUE, **options) == Validation(8, 3, 0, 5)


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_rows_of_a_table_whose_positions_do_not_go_on_are_set_aside(batch_rows: int) -> None:
    table = wide(records([3, 7, 5, 6, 8, 8]))
    refused: list[Rejected] = []
    read = read_table(table, CATALOGUE, position="position", batch_rows=batch_rows, on_bad="skip", rejects=refused.append)
    assert majors(events(read)) == [3, 7, 8]
    assert [(each.position, json.loads(each.record)["position"]) for each in refused] == [(None, 5), (None, 6), (None, 8)]


def test_a_line_that_is_no_record_has_no_position(tmp_path: Path) -> None:
    refused: list[Rejected] = []
    path = write(tmp_path / "in.jsonl", json.dumps(records([4])[0]), "{", "[1]", json.dumps(records([5])[0]))
    found = events(read_files(path, CATALOGUE, position="position", on_bad="skip", rejects=refused.append))
    assert majors(found) == [4, 5]
    assert [(each.position, each.code) for each in refused] == [(None, "D011"), (None, "D009")]


def test_positions_rise_over_all_files(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", *map(json.dumps, records([3, 9])))
    second = tmp_path / "b.parquet"
    pq.write_table(wide(records([10, 12])), second)
    assert majors(events(read_files([first, second], CATALOGUE, position="position"))) == [3, 9, 10, 12]
    with pytest.raises(DataError, match=r"D034 .*a.jsonl, line 1, column 1: 'position' is 3, .* before it, 12") as raised:
        list(read_files([second, first], CATALOGUE, position="position"))
    assert "files are read in the order in which they are named" in str(raised.value.fix)


def test_repeats_of_a_sequence_are_dropped_with_their_positions() -> None:
    given = [login(_source="p", _sequence=at, position=position) for at, position in ((1, 4), (1, 6), (2, 9))]
    for each in (given, wide(given)):
        (columns,) = read_events(each, CATALOGUE, position="position")
        assert (majors(events([columns])), columns.duplicates, columns.last_position) == ([4, 9], 1, 9)


def test_integers_that_pandas_made_floats_are_positions_again() -> None:
    frame = pandas.DataFrame({"type": ["Tick", "Tick"], "position": [1.0, None]})
    with pytest.raises(DataError, match="D019 row 1"):
        list(read_table(frame, CATALOGUE, position="position"))
