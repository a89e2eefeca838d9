"""Relations and rejected records are written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairlead.errors import DataError, UsageError
from fairlead.model.position import Position
from fairlead.model.relation import Relation
from fairlead.model.types import Kind
from fairlead.transport import RejectWriter, open_relations, read_files, read_records
from fairlead.transport.write import RELATION_SCHEMA, relation_table
from tests.transport.samples import CATALOGUE, events, login, quote, write

MEMBERS = tuple(events(read_records([login("é"), quote(value=float("inf"))], CATALOGUE)))
RELATION = Relation(
    "Rally", 0, "abc", MEMBERS, Position(1, 1), "Seen", (("gain", Kind.DOUBLE, 2.5), ("at", Kind.TIMESTAMP, 1_000_000))
)
PLAIN = Relation("Other", 1, "def", MEMBERS[:1], Position(7))


def test_json_lines_hold_one_relation_a_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with open_relations(path) as writer:
        writer.write([RELATION])
        writer.write([PLAIN])
        assert not path.exists()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [RELATION.to_json(), PLAIN.to_json()]
    assert "é" in lines[0]
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]


def test_parquet_holds_one_relation_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.transport.write.BATCH_RELATIONS", 2)
    path = tmp_path / "out.parquet"
    with open_relations(path) as writer:
        writer.write([RELATION, PLAIN, PLAIN])
    table = pq.read_table(path)
    assert table.schema == RELATION_SCHEMA
    assert pq.read_metadata(path).num_row_groups == 2
    first = table.to_pylist()[0]
    assert (first["positions"], first["completed_at"], first["branch"]) == ([0, 1], "1+1", 0)
    assert json.loads(first["emitted"]) == RELATION.to_json()["emitted"]
    event = json.dumps(MEMBERS[0].to_json(), ensure_ascii=False)
    assert first["members"][0] == {"type": "Login", "position": "0", "event": event}
    assert table == relation_table([RELATION, PLAIN, PLAIN])


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_no_relations_are_a_whole_file_too(name: str, tmp_path: Path) -> None:
    with open_relations(tmp_path / name):
        pass
    path = tmp_path / name
    assert path.read_bytes() == b"" if name.endswith("jsonl") else pq.read_table(path) == relation_table([])


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_a_failure_leaves_the_old_file_and_nothing_else(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("old", encoding="utf-8")

    def half_way() -> None:
        with open_relations(tmp_path / name) as writer:
            writer.write([RELATION])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half_way()
    assert [(each.name, each.read_text(encoding="utf-8")) for each in tmp_path.iterdir()] == [(name, "old")]


def test_a_failure_while_closing_leaves_the_old_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = write(tmp_path / "out.jsonl", "old")
    writer = open_relations(path)
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
    with open_relations(link) as writer:
        writer.write([PLAIN])
    assert link.is_symlink()
    assert json.loads(target.read_text(encoding="utf-8")) == PLAIN.to_json()
    (tmp_path / "null.jsonl").symlink_to("/dev/null")
    with open_relations(tmp_path / "null.jsonl") as writer:
        writer.write([PLAIN])
    assert Path("/dev/null").is_char_device()


def test_a_dash_is_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with open_relations("-") as writer:
        writer.write([PLAIN])
    assert json.loads(capsys.readouterr().out) == PLAIN.to_json()


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="A103"):
        open_relations(tmp_path / "out.xml")


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


def test_the_schema_is_what_the_documentation_says() -> None:
    members = pa.list_(pa.struct({"type": pa.string(), "position": pa.string(), "event": pa.string()}))
    assert RELATION_SCHEMA.field("members").type == members
