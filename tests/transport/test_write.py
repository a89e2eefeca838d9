"""Relations and rejected records are written whole or not at all."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fairlead.errors import DataError, UsageError
from fairlead.language import compile_text
from fairlead.matching.results.relation_batches import relation_table
from fairlead.model.events.position import Position
from fairlead.model.events.types import Kind
from fairlead.model.relations.layout import layout_of, relation_schema
from fairlead.model.relations.relation import Relation
from fairlead.transport import RejectWriter, open_relations, read_files, read_records
from tests.transport.samples import CATALOGUE, events, login, quote, write

PLAN = compile_text(
    "TYPE StockQuote (symbol STRING, value DOUBLE, at TIMESTAMP) TIME at\n"
    "TYPE Login (user STRING, attempts INT)\n"
    "SUBSCRIPTION Rally MATCH Login l AND StockQuote q EMIT Seen(gain = q.value, at = q.at)\n"
    "SUBSCRIPTION Other MATCH StockQuote q OR Login l"
)
LAYOUT = layout_of(PLAN)
MEMBERS = tuple(events(read_records([login("é"), quote(value=float("inf"))], PLAN.catalogue)))
RELATION = Relation(
    "Rally", 0, "0a" * 16, MEMBERS, Position(1, 1), "Seen", (("gain", Kind.DOUBLE, 2.5), ("at", Kind.TIMESTAMP, 1_000_000))
)
NOTHING = dict.fromkeys(("symbol", "value", "at", "user", "attempts")) | {"place": 0}
PLAIN = Relation("Other", 1, "0b" * 16, MEMBERS[:1], Position(7))


def test_json_lines_hold_one_relation_a_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with open_relations(path, PLAN) as writer:
        writer.write([RELATION])
        writer.write([PLAIN])
        assert not path.exists()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [RELATION.to_json(), PLAIN.to_json()]
    assert "é" in lines[0]
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]


def test_parquet_holds_one_relation_a_row(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    with open_relations(path, PLAN) as writer:
        writer.row_group_relations = 2  # type: ignore[attr-defined]
        writer.write([RELATION, PLAIN])
        writer.write([PLAIN])
    table = pq.read_table(path)
    assert table.schema == relation_schema(PLAN)
    assert pq.read_metadata(path).num_row_groups == 2
    first, second, _ = table.to_pylist()
    assert first == {
        "subscription": "Rally",
        "id": "0a" * 16,
        "branch": 0,
        "completed_at": 1,
        "place": 1,
        "positions": [0, 1],
        "members": [
            NOTHING | {"type": "Login", "position": 0, "user": "é", "attempts": 1},
            NOTHING | {"type": "StockQuote", "position": 1, "symbol": "ACME", "value": float("inf"), "at": MEMBERS[1]["at"]},
        ],
        "emitted": {"type": "Seen", "gain": 2.5, "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)},
    }
    assert (second["branch"], second["completed_at"], second["place"], second["emitted"]) == (1, 7, 0, None)
    assert table == relation_table([[RELATION, PLAIN], [PLAIN]], LAYOUT)


def test_a_row_group_that_cannot_be_written_fails_the_run_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)

    def run() -> None:
        with open_relations(tmp_path / "out.parquet", PLAN) as writer:
            writer.row_group_relations = 1  # type: ignore[attr-defined]
            for _ in range(10):
                writer.write([RELATION])

    with pytest.raises(DataError, match=r"D018 .*No space left"):
        run()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_no_relations_are_a_whole_file_too(name: str, tmp_path: Path) -> None:
    with open_relations(tmp_path / name, PLAN):
        pass
    path = tmp_path / name
    assert path.read_bytes() == b"" if name.endswith("jsonl") else pq.read_table(path) == relation_table([], LAYOUT)


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_a_failure_leaves_the_old_file_and_nothing_else(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("old", encoding="utf-8")

    def half_way() -> None:
        with open_relations(tmp_path / name, PLAN) as writer:
            writer.write([RELATION])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half_way()
    assert [(each.name, each.read_text(encoding="utf-8")) for each in tmp_path.iterdir()] == [(name, "old")]


def test_a_failure_while_closing_leaves_the_old_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = write(tmp_path / "out.jsonl", "old")
    writer = open_relations(path, PLAN)
    writer.write([RELATION])
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DataError, match=r"D018 .*No space left"):
        writer.close()
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]
    assert path.read_text(encoding="utf-8") == "old\n"


def test_a_link_stays_a_link_and_a_device_is_written_directly(tmp_path: Path) -> None:
    target = write(tmp_path / "real.jsonl", "old")
    link = tmp_path / "link.jsonl"
    link.symlink_to(target)
    with open_relations(link, PLAN) as writer:
        writer.write([PLAIN])
    assert link.is_symlink()
    assert json.loads(target.read_text(encoding="utf-8")) == PLAIN.to_json()
    (tmp_path / "null.jsonl").symlink_to("/dev/null")
    with open_relations(tmp_path / "null.jsonl", PLAN) as writer:
        writer.write([PLAIN])
    assert Path("/dev/null").is_char_device()


def test_a_dash_is_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with open_relations("-", PLAN) as writer:
        writer.write([PLAIN])
    assert json.loads(capsys.readouterr().out) == PLAIN.to_json()


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="A103"):
        open_relations(tmp_path / "out.xml", PLAN)


def test_rejected_records_are_written_with_their_reasons_and_counted(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", json.dumps(login()), "{", json.dumps(login(attempts="x")))
    with RejectWriter(tmp_path / "rejects.jsonl") as rejects:
        list(read_files(source, CATALOGUE, on_bad="skip", rejects=rejects))
    found = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rejects.count == 2
    assert [(each["file"], each["line"], each["position"], each["code"]) for each in found] == [
        (str(source), 2, 1, "D011"),
        (str(source), 3, 2, "D004"),
    ]
    assert found[1]["problem"] == "attribute 'attempts' of 'Login': expected INT, got str 'x'"
    assert json.loads(found[1]["record"]) == login(attempts="x")


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet"])
def test_a_link_of_the_guessed_name_is_not_followed(name: str, tmp_path: Path) -> None:
    """In a folder that others can write to, the name of the incomplete file may be taken: by a link to a file of the user."""
    precious = tmp_path / "precious"
    precious.write_text("keep")
    (tmp_path / f".{name}.{os.getpid()}.part").symlink_to(precious)
    with open_relations(tmp_path / name, compile_text("TYPE A (x INT) SUBSCRIPTION S MATCH A a")):
        pass
    assert precious.read_text() == "keep"
    assert (tmp_path / name).is_file()
    assert not (tmp_path / name).is_symlink()
