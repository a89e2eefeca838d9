"""Every code of bad input: what it says, and where."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.errors import DataError, Place
from fairlead.model.events.types import Attribute, Catalogue, DataType, EventType, Kind
from fairlead.model.limits import LIMITS
from fairlead.model.plans.plan import Plan
from fairlead.transport import Rejected, open_relations, read_files, read_records, read_table
from tests.transport.samples import CATALOGUE, EVERY, ONE_TYPE, login, quote, write

BIG = "x" * (LIMITS.event_bytes_max + 1)
BAD_RECORDS: list[tuple[str, Any, str]] = [
    ("D001", {"type": "StokQuote"}, "did you mean 'StockQuote'?"),
    ("D001", {"type": "login", "user": "a", "attempts": 1}, "did you mean 'Login'?"),
    ("D001", {"type": "Zebra"}, "declare it with TYPE, or use one of the declared types: StockQuote, Login, Tick, Heartbeat"),
    ("D002", {"type": "Login", "usr": "a", "attempts": 1}, "did you mean 'user'?"),
    ("D002", login(colour="red"), "event type 'Login' has no attribute 'colour'"),
    ("D002", {"type": "Tick", "value": None}, "event type 'Tick' has no attribute 'value'"),
    ("D003", {"type": "Login", "user": "a"}, "attribute 'attempts' of 'Login' is missing"),
    ("D004", login(attempts="7"), "attribute 'attempts' of 'Login': expected INT, got str '7'"),
    ("D004", login(attempts=7.0), "expected INT, got float 7.0"),
    ("D004", login(attempts=True), "expected INT, got bool True"),
    ("D004", login(attempts=2**31), "2147483648 is out of the range of INT"),
    ("D004", login(user=7), "expected STRING, got int 7"),
    ("D004", login(user=["a"]), "expected STRING, got list ['a']"),
    ("D004", quote(value=True), "expected DOUBLE, got bool True"),
    ("D004", quote(at="yesterday"), "expected TIMESTAMP (ISO 8601), got str 'yesterday'"),
    ("D004", quote(at="2024-01-01T00:00:00.1234567Z"), "finer than a microsecond"),
    ("D004", quote(at=10**13), "10000000000000 seconds since 1970 is out of the range of TIMESTAMP"),
    ("D005", quote(value=float("nan")), "attribute 'value' of 'StockQuote' is nan, not a finite number"),
    ("D005", quote(value=float("-inf")), "is -inf, not a finite number"),
    ("D005", quote(at=float("nan")), "TIMESTAMP does not support nan"),
    ("D006", quote(at=None), "the event time 'at' of 'StockQuote' is null"),
    ("D006", {"type": "Heartbeat", "at": None}, "the event time 'at' of 'Heartbeat' is null"),
    ("D008", {"type": "Market"}, "publish StockQuote or Login"),
    ("D008", {"type": "RallySeen", "symbol": "a"}, "'RallySeen' is derived"),
    ("D009", [1, 2], "expected an object, got [1, 2]"),
    ("D009", "text", "expected an object, got 'text'"),
    ("D009", None, "expected an object, got None"),
    ("D027", {"user": "a", "attempts": 1}, "the record has no `type`"),
    ("D027", {"Type": "Login", "user": "a", "attempts": 1}, "write `type`, not 'Type'"),
    ("D003", {"type": "StockQuote", "symbol": "A", "value": 1.5}, "a type with TIME a time"),
    ("D003", {"type": "Login", "user": "a"}, "null is a value"),
    ("D004", quote(at=1767603600000), "divide milliseconds by 1000"),
    ("D027", {"type": 7}, "expected text in `type`, got 7"),
    ("D027", {"type": None}, "expected text in `type`, got None"),
    ("D010", login(_source=7), "expected text in `_source`, got 7"),
    ("D010", login(_source="s", _sequence="7"), "expected a 64-bit integer in `_sequence`, got '7'"),
    ("D010", login(_sequence=True), "expected a 64-bit integer in `_sequence`, got True"),
    ("D010", login(_sequence=2**63), "expected a 64-bit integer in `_sequence`"),
    ("D016", login(user="\ud800"), "'\\ud800' is not valid Unicode text"),
]


def caught(given: Any) -> DataError:
    with pytest.raises(DataError) as error:
        list(given)
    return error.value


@pytest.mark.parametrize(("code", "record", "said"), BAD_RECORDS)
def test_a_bad_record_is_named_by_its_number(code: str, record: Any, said: str) -> None:
    error = caught(read_records([login(), quote(), record, login()], CATALOGUE, allow_nan=False))
    assert (error.code, error.place) == (code, "record 2")
    assert said in str(error)


@pytest.mark.parametrize(("code", "record", "said"), BAD_RECORDS)
def test_a_bad_line_of_json_is_named_by_file_and_line(code: str, record: Any, said: str, tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", json.dumps(login()), "", json.dumps(record), json.dumps(quote()))
    error = caught(read_files(path, CATALOGUE))
    assert (error.code, error.place) == (code, Place(line=3, file=str(path)))
    assert said in str(error)


BAD_LINES: list[tuple[str, bytes, str]] = [
    ("D005", json.dumps(quote()).encode().replace(b"1.5", b"1e999"), "is inf, not a finite number"),
    ("D007", json.dumps(login(BIG)).encode(), "the line is larger than 1,000,000 bytes"),
    ("D011", b'{"type": "Login",}', "not valid JSON"),
    ("D011", b"{} {}", "not valid JSON: Extra data"),
    ("D011", b"[" * 100_000, "not valid JSON"),
    ("D011", b'{"type": "Login", "user": "a", "attempts": ' + b"9" * 5000 + b"}", "not valid JSON"),
    ("D015", b'{"type": "Login", "user": "a", "user": "b", "attempts": 1}', "the key 'user' occurs twice"),
    ("D016", b'{"type": "Login", "user": "\xff", "attempts": 1}', "not UTF-8 (0xff)"),
]


@pytest.mark.parametrize(("code", "line", "said"), BAD_LINES, ids=[f"{code} {said[:20]}" for code, _, said in BAD_LINES])
def test_a_line_that_is_no_record_is_named_and_can_be_skipped(code: str, line: bytes, said: str, tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", json.dumps(login()), line, json.dumps(login("bob")))
    error = caught(read_files(path, CATALOGUE))
    assert error.code == code
    assert isinstance(error.place, Place)
    assert (error.place.file, error.place.line) == (str(path), 2)
    assert said in str(error)
    rejected: list[Rejected] = []
    batches = read_files(path, CATALOGUE, on_bad="skip", rejects=rejected.append)
    assert [position for columns in batches for position in columns.positions] == [0, 2]
    assert [(each.file, each.line, each.position, each.code) for each in rejected] == [(str(path), 2, 1, code)]
    json.dumps(rejected[0].to_json()).encode()


def test_invalid_json_has_a_caret_under_the_place(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", '{"type": Login}')
    error = caught(read_files(path, CATALOGUE))
    assert str(error).splitlines()[1:3] == ['    {"type": Login}', "             ^"]


def test_an_oversized_record_of_the_api_is_refused_and_the_largest_is_not() -> None:
    largest = "é" * (LIMITS.event_bytes_max // 2)
    assert len(list(read_records([login(largest)], CATALOGUE))) == 1
    assert caught(read_records([login(largest + "x")], CATALOGUE)).code == "D007"


def test_a_line_of_the_largest_size_is_read_whatever_its_newline(tmp_path: Path) -> None:
    frame = json.dumps(login(""))
    line = json.dumps(login("x" * (LIMITS.event_bytes_max - len(frame))))
    assert len(line) == LIMITS.event_bytes_max
    for end in (b"\n", b"\r\n", b""):
        path = write(tmp_path / "in.jsonl", "\ufeff" + line, end=end)
        assert sum(map(len, read_files(path, CATALOGUE))) == 1
    assert caught(read_files(write(tmp_path / "in.jsonl", line + " "), CATALOGUE)).code == "D007"


@pytest.mark.parametrize("end", [b'{"type": "Login", "us', b'{"type": "Login", "user": "\xc3'])
def test_a_json_file_that_ends_in_the_middle_of_a_line_is_named(end: bytes, tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", json.dumps(login()), end, end=b"")
    error = caught(read_files(path, CATALOGUE))
    assert (error.code, error.place) == ("D012", Place(line=2, file=str(path)))


def test_a_last_line_without_newline_that_is_whole_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", json.dumps(login()), end=b"")
    assert sum(map(len, read_files(path, CATALOGUE))) == 1


def test_a_compressed_file_that_ends_too_early_is_named(tmp_path: Path) -> None:
    whole = gzip.compress("".join(json.dumps(login(str(i) * 9)) + "\n" for i in range(5000)).encode())
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    error = caught(read_files(path, CATALOGUE))
    assert error.code == "D012"
    assert isinstance(error.place, Place)
    assert error.place.file == str(path)
    path.write_bytes(b"this is not gzip")
    assert caught(read_files(path, CATALOGUE)).code == "D032"


@pytest.mark.parametrize("size", [3, 100, -1, -20])
def test_a_parquet_file_that_is_cut_short_is_named(size: int, tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pylist([login()]), path)
    path.write_bytes(path.read_bytes()[:size])
    error = caught(read_files(path, CATALOGUE))
    assert (error.code, error.place) == ("D012", f"{path}, row 0")


def test_a_parquet_row_is_named_by_file_and_row(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pylist([login(attempts=i) for i in (1, 2, 2**40, 3)]), path)
    error = caught(read_files(path, CATALOGUE, batch_rows=2))
    assert (error.code, error.place) == ("D004", f"{path}, row 2")
    rejected: list[Rejected] = []
    found = list(read_files(path, CATALOGUE, on_bad="skip", rejects=rejected.append))
    assert [position for columns in found for position in columns.positions] == [0, 1, 3]
    assert [(each.line, each.position, each.code) for each in rejected] == [(2, 2, "D004")]


def test_a_file_that_is_not_there_is_named_before_anything_is_read(tmp_path: Path) -> None:
    there = write(tmp_path / "events.jsonl", "not json at all")
    with pytest.raises(DataError) as error:
        read_files([there, tmp_path / "event.jsonl"], CATALOGUE)
    assert (error.value.code, error.value.place) == ("D013", str(tmp_path / "event.jsonl"))
    assert "did you mean 'events.jsonl'?" in str(error.value)


def test_an_unknown_format_and_an_empty_directory_are_named(tmp_path: Path) -> None:
    for path in (write(tmp_path / "events.xml", ""), tmp_path):
        with pytest.raises(DataError, match="D029") as error:
            read_files(path, CATALOGUE)
        assert ".parquet" in str(error.value)


def test_a_table_without_types_is_refused() -> None:
    table = pa.table({"user": ["a"], "attempts": [1]})
    error = caught(read_table(table, CATALOGUE))
    assert (error.code, error.place) == ("D014", "table")
    assert caught(read_table(table, ONE_TYPE)).code == "D002"


BAD_CSV: list[tuple[str, list[str], int, str]] = [
    ("D001", ["type,user,attempts", "Login,a,1", "Lgin,a,1"], 3, "did you mean 'Login'?"),
    ("D002", ["type,usr,attempts"], 1, "did you mean 'user'?"),
    ("D002", ["type,user,attempts,value", "Login,a,1,2.5"], 2, "'Login' has no attribute 'value'"),
    ("D002", ["Login,a,1"], 1, "name the columns in the first line"),
    ("D002", ["type,user,attempts,position"], 1, "--position position"),
    ("D003", ["type,user", "Login,a"], 2, "attribute 'attempts' of 'Login' is missing"),
    ("D003", ["type,symbol,value", "StockQuote,a,1"], 2, "a type with TIME a time"),
    ("D004", ["type,symbol,value,at", "StockQuote,a,1,1767603600000"], 2, "divide milliseconds by 1000"),
    ("D004", ["type,user,attempts", 'Login,"a', 'b",1', "Login,a,1_0"], 4, "expected INT, got str '1_0'"),
    ("D004", ["type,user,attempts", "Login,a,1.0"], 2, "expected INT, got str '1.0'"),
    ("D005", ["type,symbol,value,at", "StockQuote,a,NaN,2024-01-01"], 2, "is nan"),
    ("D006", ["type,symbol,value,at", "StockQuote,a,1,"], 2, "is null"),
    ("D007", ["type,user,attempts", f'Login,"{BIG}",1'], 2, "the line is larger"),
    ("D007", ["type,user,attempts", 'Login,"', *["x" * 100] * 11_000], 2, "whose quoted cell never ends"),
    ("D027", ["type,user,attempts", ",a,1"], 2, "the record has no `type`"),
    ("D010", ["type,_sequence", "Tick,1.5"], 2, "'1.5'"),
    ("D012", ["type,user,attempts", 'Login,"a'], 2, "the file ends inside a quoted cell"),
    ("D014", ["user,attempts", "a,1"], 1, "the header has no `type` column"),
    ("D015", ["type,user,user"], 1, "the column 'user' occurs twice"),
    ("D017", ["type,user,attempts", "Login,a"], 2, "the row has 2 cells, the header 3"),
    ("D017", ["type,user,attempts", "Login,a,1,2"], 2, "the row has 4 cells, the header 3"),
    ("D017", ["type,user,attempts", 'Login,"a"b,1'], 2, "text after the closing quote of cell 2"),
]


@pytest.mark.parametrize(("code", "lines", "line", "said"), BAD_CSV, ids=[f"{code} {said}" for code, _, _, said in BAD_CSV])
def test_a_bad_row_of_csv_is_named_by_file_and_line(code: str, lines: list[str], line: int, said: str, tmp_path: Path) -> None:
    path = write(tmp_path / "in.csv", *lines)
    error = caught(read_files(path, CATALOGUE))
    assert (error.code, error.place) == (code, Place(line=line, file=str(path)))
    assert said in str(error)


def test_a_csv_file_that_ends_in_the_middle_of_a_row_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "in.csv", "type,user,attempts", "Login,a,1", "Login,b", end=b"")
    error = caught(read_files(path, CATALOGUE))
    assert (error.code, error.place) == ("D012", Place(line=3, file=str(path)))


def test_a_csv_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "in.csv", "type,user,attempts", b"Login,\xe9,1")
    error = caught(read_files(path, CATALOGUE))
    assert (error.code, error.place) == ("D016", Place(line=2, file=str(path)))


def test_an_output_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "out.jsonl", tmp_path / "no" / "out.parquet"):
        with pytest.raises(DataError, match="D018 ") as error:
            open_relations(path, Plan(CATALOGUE, ()))
        assert (error.value.code, error.value.place) == ("D018", str(path))


def test_a_row_of_a_stream_that_the_rules_do_not_read_is_named() -> None:
    plan = fairlead.compile("TYPE A (k INT) TYPE B (k INT) TOPIC a (A) TOPIC b (B) SUBSCRIPTION S MATCH A a OR B b")
    rows = {"type": ["A", "B"], "k": [1, 2], "position": [0, 1], "stream": ["a", "c"]}
    with pytest.raises(DataError) as error:
        fairlead.match(plan, pa.table(rows), position="position", stream="stream")
    assert (error.value.code, error.value.place) == ("D025", "row 1, column 'stream'")


@pytest.mark.parametrize(
    ("attribute", "is_time"), [*((each, False) for each in EVERY.attributes), (Attribute("at", DataType(Kind.TIMESTAMP)), True)]
)
def test_the_fix_of_a_bad_value_says_what_a_value_looks_like(attribute: Attribute, is_time: bool) -> None:
    """An attribute of every kind. An event time cannot be null, and the fix does not offer it."""
    catalogue = Catalogue((EventType("T", (attribute,), time_attribute=attribute.name if is_time else None),))
    error = caught(read_records([{"type": "T", attribute.name: object()}], catalogue))
    assert error.code == "D004"
    assert error.fix.startswith("use ")
    assert error.fix.endswith(", or null") is not is_time
    assert str(attribute.type) not in error.fix
    for example in re.findall(r"\d{4}-\S+Z", error.fix):
        assert len(list(read_records([{"type": "T", attribute.name: example}], catalogue))) == 1


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("type;user;attempts", "separate the columns with commas, not ';'"),
        ("type\tuser\tattempts", "separate the columns with commas, not '\\t'"),
        ("type,user,attempts,colour", "remove it, or add it to a TYPE; known columns: "),
        ("type,user", "add a column 'attempts'; an empty cell is null"),
    ],
)
def test_the_fix_of_a_header_of_csv(header: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path / "in.csv", header, "Login,ann")
    assert said in str(caught(read_files(path, CATALOGUE)))
