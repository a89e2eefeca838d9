"""Files: formats, order, positions, skipping, progress, and a pass that only validates."""

from __future__ import annotations

import gzip
import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairlead import compile
from fairlead.errors import DataError
from fairlead.transport import LastSequences, Rejected, Validation, bytes_of, read_files, resolve, validate_files
from tests.transport.samples import CATALOGUE, events, login, majors, quote, write


def jsonl(path: Path, *users: str) -> Path:
    return write(path, *(json.dumps(login(user)) for user in users))


def users(*paths: Path, batch_rows: int = 8192) -> list[str]:
    return [event["user"] for event in events(read_files(paths, CATALOGUE, batch_rows=batch_rows))]


def test_files_are_read_one_after_the_other_and_positions_go_on(tmp_path: Path) -> None:
    first = jsonl(tmp_path / "z.jsonl", "a", "b")
    second = write(tmp_path / "y.csv", "type,user,attempts", "Login,c,1", "Login,d,2")
    third = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist([login("e"), login("f")]), third)
    fourth = tmp_path / "w.ndjson.gz"
    fourth.write_bytes(gzip.compress(json.dumps(login("g")).encode()))
    for batch_rows in (1, 8192):
        found = events(read_files([first, second, third, fourth], CATALOGUE, batch_rows=batch_rows, start=3))
        assert [event["user"] for event in found] == list("abcdefg")
        assert majors(found) == list(range(3, 10))


def test_a_directory_stands_for_its_files_of_known_formats_by_name(tmp_path: Path) -> None:
    jsonl(tmp_path / "b.jsonl", "b")
    jsonl(tmp_path / "a.JSONL", "a")
    write(tmp_path / "_SUCCESS", "")
    jsonl(tmp_path / ".c.jsonl", "hidden")
    write(tmp_path / "notes.txt", "no events")
    (tmp_path / "d.jsonl").mkdir()
    assert [path.name for path in resolve(tmp_path)] == ["a.JSONL", "b.jsonl"]
    assert users(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("in.jsonl", None),
        ("in.json.gz", None),
        ("in.json", None),
        ("in.csv", "D033"),
        ("in.csv.gz", "D033"),
        ("in.parquet", "D012"),
    ],
)
@pytest.mark.parametrize("mode", ["stop", "skip"])
def test_an_empty_file_has_no_events_if_its_format_needs_nothing(name: str, code: str, mode: Any, tmp_path: Path) -> None:
    """CSV needs a header and Parquet a footer: without them, something went wrong on the way."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    if code is None:
        assert list(read_files(path, CATALOGUE, on_bad=mode)) == []
    else:
        with pytest.raises(DataError, match=f"{code} {path}"):
            list(read_files(path, CATALOGUE, on_bad=mode))


def test_blank_lines_a_byte_order_mark_and_windows_newlines_are_no_records(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(login("a")).encode() + b"\r\n\r\n  \n" + json.dumps(login("b")).encode())
    assert users(path) == ["a", "b"]
    path = tmp_path / "in.csv"
    path.write_bytes(b"\xef\xbb\xbftype,user,attempts\r\n\r\nLogin,a,1\r\n")
    assert users(path) == ["a"]
    path.write_bytes(b"\xef\xbb\xbftype,user,attempts")
    assert users(path) == []


def test_an_empty_cell_is_null_and_a_quoted_empty_cell_is_empty_text(tmp_path: Path) -> None:
    path = write(tmp_path / "in.csv", "type,user,attempts,value", "Login,,,", 'Login,"",1,', '"Login","NULL","2",""')
    rejected: list[Rejected] = []
    found = events(read_files(path, CATALOGUE, on_bad="skip", rejects=rejected.append))
    assert [event.row for event in found] == [(None, None), ("", 1)]
    assert [(each.line, each.code) for each in rejected] == [(4, "D002")]  # "" is a value, and Login has no `value`


def test_quoted_cells_hold_commas_quotes_and_newlines(tmp_path: Path) -> None:
    path = write(tmp_path / "in.csv", "type,user,attempts", 'Login,"a,""b""\r', "", 'c",1', 'Login,5" disk,2', "Login,d,3")
    found = events(read_files(path, CATALOGUE))
    assert [event["user"] for event in found] == ['a,"b"\r\n\nc', '5" disk', "d"]


def test_one_csv_file_holds_several_types(tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.csv",
        "type,_source,_sequence,symbol,value,at,user,attempts",
        "StockQuote,s,1,ACME,1.5,2024-01-01T00:00:00Z,,",
        "Login,s,2,,,,ann,3",
        "Login,s,2,,,,again,3",
        "Tick,,,,,,,",
    )
    found = events(read_files(path, CATALOGUE))
    assert [(event.type, event.source, event.sequence) for event in found] == [
        ("StockQuote", "s", 1),
        ("Login", "s", 2),
        ("Tick", None, None),
    ]
    assert majors(found) == [0, 1, 3]


def test_non_finite_numbers_are_read_where_they_are_allowed(tmp_path: Path) -> None:
    lines = write(tmp_path / "in.jsonl", json.dumps(quote(value=float("nan"))))
    cells = write(tmp_path / "in.csv", "type,symbol,value,at", "StockQuote,a,-inf,0")
    found = events(read_files([lines, cells], CATALOGUE, allow_nan=True))
    assert [str(event["value"]) for event in found] == ["nan", "-inf"]


def test_skipping_goes_on_over_files_and_keeps_every_position(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", json.dumps(login("a")), "{", json.dumps(login("b")), '{"type', end=b"")
    second = write(tmp_path / "b.csv", "type,user,attempts", "Login,c,x", "Login,d,1")
    rejected: list[Rejected] = []
    for batch_rows in (1, 3, 100):
        rejected.clear()
        options = {"on_bad": "skip", "rejects": rejected.append, "batch_rows": batch_rows}
        assert majors(events(read_files([first, second], CATALOGUE, **options))) == [0, 2, 5]  # type: ignore[arg-type]
        assert [(Path(each.file or "").name, each.line, each.position, each.code, each.record) for each in rejected] == [
            ("a.jsonl", 2, 1, "D011", "{"),
            ("a.jsonl", 4, 3, "D012", '{"type'),
            ("b.csv", 2, 4, "D004", "Login,c,x"),
        ]


def test_skipping_never_hides_a_header_or_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    header = write(tmp_path / "in.csv", "type,usr", "Login,a")
    cut = write(tmp_path / "in.parquet", "PAR1 and no more")
    for path, code in ((header, "D002"), (cut, "D012")):
        with pytest.raises(DataError, match=code):
            list(read_files(path, CATALOGUE, on_bad="skip"))


def test_validating_counts_everything_and_changes_nothing(tmp_path: Path) -> None:
    records = [login(_source="s", _sequence=i) for i in (1, 2, 2, 3)]
    path = write(tmp_path / "in.jsonl", *map(json.dumps, records), "{}")
    seen = LastSequences()
    with pytest.raises(DataError, match=r"D027 .*in.jsonl, line 5"):
        validate_files(path, CATALOGUE, last_sequences=seen)
    assert validate_files(path, CATALOGUE, on_bad="skip", last_sequences=seen) == Validation(5, 3, 1, 1)
    assert seen.dump() == LastSequences().dump()


def test_progress_tells_every_byte_of_every_file(tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", *map(str, range(50)))
    write(tmp_path / "b.csv", "type,user,attempts", *["Login,x,1"] * 50)
    pq.write_table(pa.Table.from_pylist([login()] * 50), tmp_path / "c.parquet", row_group_size=20)
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress((json.dumps(login()) + "\n").encode() * 50))
    told: list[int] = []
    count = sum(map(len, read_files(tmp_path, CATALOGUE, batch_rows=7, progress=told.append)))
    assert (count, sum(told)) == (200, bytes_of(tmp_path))
    assert min(told) >= 0


def test_large_records_make_small_batches(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "in.jsonl", *["x" * 400] * 7)
    assert [len(columns) for columns in read_files(path, CATALOGUE, batch_bytes_max=1000)] == [3, 3, 1]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.cloudevents.jsonl"])
@pytest.mark.parametrize("end", ["", "\n"], ids=["cut", "whole"])
@pytest.mark.parametrize("mode", ["stop", "skip"])
def test_text_of_another_width_is_named(tmp_path: Path, encoding: str, name: str, end: str, mode: Any) -> None:
    text = "type,user,attempts\nLogin,a,1" if name.endswith("csv") else json.dumps(login("a"))
    (tmp_path / name).write_bytes((text + end).encode(encoding))
    with pytest.raises(DataError, match=r"D016 .*the file is UTF-16 or UTF-32"):
        list(read_files(tmp_path / name, CATALOGUE, on_bad=mode))


@pytest.mark.parametrize(
    ("content", "code"), [(b'{"type": "caf\xe9"}', "D016"), (b'{"type": "caf\xc3', "D012"), (b'{"type": ', "D012")]
)
@pytest.mark.parametrize("name", ["in.jsonl", "in.cloudevents.jsonl"])
def test_a_last_line_that_is_no_text_is_told_from_one_that_is_cut(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=code):
        list(read_files(tmp_path / name, CATALOGUE))


def test_a_number_of_absurd_length_is_named_in_words_for_people(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", '{"type": "Login", "user": "a", "attempts": ' + "9" * 5_000 + "}")
    with pytest.raises(DataError, match=r"D011 .*a number has more than 4,300 digits") as caught:
        list(read_files(path, CATALOGUE))
    assert "sys." not in str(caught.value)


NUMBERS = ["INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)"]
DIGITS = ["１", "1２", "١", "१", "1\u00a0", "\u30001", "𝟏", "1_0"]


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("text", DIGITS)
@pytest.mark.parametrize("rows", [1, 3], ids=["alone", "among others"])
def test_digits_of_other_scripts_are_no_numbers(tmp_path: Path, kind: str, text: str, rows: int) -> None:
    """As on Spark, and as in JSON."""
    catalogue = compile(f"TYPE N (v {kind})").catalogue
    path = write(tmp_path / "in.csv", "v", *["7"] * (rows - 1), text)
    with pytest.raises(DataError, match="D004"):
        list(read_files(path, catalogue))
    named = write(tmp_path / "named.csv", "v,_source,_sequence,p", f"7,a,{text},1")
    with pytest.raises(DataError, match="D010"):
        list(read_files(named, catalogue, position="p"))
    named = write(tmp_path / "named.csv", "v,p", f"7,{text}")
    with pytest.raises(DataError, match="D023"):
        list(read_files(named, catalogue, position="p"))


@pytest.mark.parametrize(
    ("unit", "value", "shown"), [("ns", 1, "1 ns since 1970, finer than"), ("s", 10**12, "not in the years 1 to")]
)
def test_times_that_cannot_be_are_shown_as_what_they_are(tmp_path: Path, unit: str, value: int, shown: str) -> None:
    catalogue = compile("TYPE N (v TIMESTAMP)").catalogue
    pq.write_table(pa.table({"v": pa.array([value], pa.timestamp(unit))}), tmp_path / "in.parquet")
    with pytest.raises(DataError, match=f"D004 .*{shown}") as caught:
        list(read_files(tmp_path / "in.parquet", catalogue))
    assert "Opaque" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.cloudevents.jsonl"])
@pytest.mark.parametrize("head", [b"", b"type,symbol,value,at\n"])
def test_a_line_without_end_is_refused_without_reading_on(name: str, head: bytes, tmp_path: Path) -> None:
    """A pipe that nobody ends: reading on would wait for ever."""
    path = tmp_path / name
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR)
    sent = head + b'{"' * 600_000

    def send() -> None:
        rest = sent
        while rest:
            rest = rest[os.write(pipe, rest) :]

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        with pytest.raises(DataError, match="D0"):
            list(read_files(path, CATALOGUE))
    finally:
        drain = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        while sender.is_alive():
            with suppress(BlockingIOError):
                os.read(drain, 65_536)
        os.close(drain)
        os.close(pipe)
