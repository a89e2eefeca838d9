"""`fairlead compare`: receipts and outputs, equal or with the first difference."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import match
from fairlead.deliver.receipt import ReceiptBook, dumps
from fairlead.language import compile_text
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.matching.results.result_table import table_of_objects
from fairlead.matching.unit import KERNELS_FROM
from fairlead.model.relations.identity import from_hex, signed
from fairlead.model.relations.layout import layout_of
from tests.cli.shop import fairlead, write_lines

EACH = "TYPE A (v INT)\nSUBSCRIPTION Each MATCH A a EMIT Seen(v = a.v)\n"


def run(folder: Path, name: str, values: Iterable[int], ending: str = "jsonl", rules: str = EACH) -> tuple[Path, Path]:
    """A run's output and receipt."""
    (folder / "each.fl").write_text(rules)
    events = write_lines(folder / f"{name}.events.jsonl", [{"type": "A", "v": value} for value in values])
    out, receipt = folder / f"{name}.{ending}", folder / f"{name}.receipt.json"
    result = fairlead("run", folder / "each.fl", "--events", events, "--out", out, "--receipt", receipt, "--quiet")
    assert result.exit_code == 0, result.output
    return out, receipt


@pytest.mark.parametrize("endings", [("jsonl", "jsonl"), ("jsonl", "parquet"), ("parquet", "parquet")])
def test_equal_outputs_in_either_format(tmp_path: Path, endings: tuple[str, str]) -> None:
    first, _ = run(tmp_path, "one", range(5), endings[0])
    second, _ = run(tmp_path, "two", range(5), endings[1])
    result = fairlead("compare", first, second)
    assert (result.exit_code, result.stdout) == (0, "equal: 5 relations, the same in the same order\n")


def test_equal_receipts(tmp_path: Path) -> None:
    _, first = run(tmp_path, "one", range(5))
    _, second = run(tmp_path, "two", range(5))
    result = fairlead("compare", first, second)
    assert (result.exit_code, result.stdout) == (0, "equal: 5 relations, the same in the same order\n")


def test_a_receipt_and_an_output(tmp_path: Path) -> None:
    out, receipt = run(tmp_path, "one", range(5))
    shorter, _ = run(tmp_path, "two", range(4))
    assert fairlead("compare", out, receipt).exit_code == 0
    result = fairlead("compare", receipt, shorter)
    assert result.exit_code == 3
    assert result.stdout == "4 deliveries agree; the first has 1 more\n"


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_first_relation_that_differs_is_named(tmp_path: Path, ending: str) -> None:
    first, _ = run(tmp_path, "one", range(5), ending)
    rules = EACH.replace("MATCH A a", "MATCH A a WHERE a.v <> 2")
    second, _ = run(tmp_path, "two", range(5), ending, rules)
    same_rules, _ = run(tmp_path, "three", [0, 1, 7], ending)
    result = fairlead("compare", first, second)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "relation 1 differs; 0 before it agree"
    assert lines[1].startswith("  A: Each ")
    assert lines[1].endswith("at positions [0]")
    result = fairlead("compare", first, same_rules)
    assert result.stdout.splitlines()[0] == "relation 3 differs; 2 before it agree"
    assert '  emitted: {"v": 2} and {"v": 7}' in result.stdout


def test_an_output_that_ends_early(tmp_path: Path) -> None:
    first, _ = run(tmp_path, "one", range(5))
    second, _ = run(tmp_path, "two", range(3))
    result = fairlead("compare", first, second, "--json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["outcome"] == "agree"
    assert (found["equal"], found["agreed"], found["first"]["b"]) == (False, 3, None)
    assert found["first"]["a"]["positions"] == ["3"]
    lines = fairlead("compare", first, second).stdout.splitlines()
    assert lines[0] == "3 relations agree; A has 2 more"
    assert lines[1].endswith("at positions [3]")
    assert lines[2] == "  B: has no more"


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder, and the lines of a run's output: each relation, and after some of them one that is taken back."""
    folder = tmp_path_factory.mktemp("delivered")
    out, _ = run(folder, "whole", range(20))
    lines, found = [], out.read_text().splitlines()
    for number, line in enumerate(found):
        lines.append(line)
        if number % 3 == 2:
            again = found[number // 2]
            lines += [json.dumps(json.loads(again) | {"sign": -1}), again]
    return folder, lines


def slices(most: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(0, most), st.integers(0, most)).map(lambda pair: (min(pair), max(pair)))


def receipt_file(path: Path, lines: list[str], joined: int, count: int) -> Path:
    """The receipt of a subscriber that joined after some of these deliveries."""
    read = [json.loads(line) for line in lines[:count]]
    words = signed(from_hex([each["id"] for each in read]), np.array([each.get("sign", 1) for each in read], dtype=np.int8))
    book = ReceiptBook("plan")
    book.note(words[:joined])
    book.join_now()
    book.note(words[joined:])
    path.write_text(dumps(book.receipt()))
    return path


@given(slices(32), slices(32), st.sampled_from(["outputs", "receipts", "receipt and output"]))
def test_parts_of_one_sequence_never_differ(
    delivered: tuple[Path, list[str]], one: tuple[int, int], other: tuple[int, int], kinds: str
) -> None:
    folder, lines = delivered
    sides = []
    for name, (low, high) in (("a", one), ("b", other)):
        if kinds == "receipts" or (kinds == "receipt and output" and name == "a"):
            sides.append(receipt_file(folder / f"{name}.json", lines, low, high))
        else:
            sides.append(folder / f"{name}.jsonl")
            sides[-1].write_text("".join(f"{line}\n" for line in lines[low:high]))
    result = fairlead("compare", *sides, "--json")
    found = json.loads(result.stdout)
    both = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    if kinds != "receipts" and not both:
        return  # nothing tells where an output begins of which the other side has nothing
    assert result.exit_code == (0 if found["equal"] else 3), result.stdout
    assert found["outcome"] == ("equal" if found["equal"] else "agree")
    if kinds == "receipts":
        assert found["equal"] == (one == other)
        assert (found["agreed"], found["start"]) == (both, max(one[0], other[0]) + 1)
    else:
        assert found["equal"] == (lines[slice(*one)] == lines[slice(*other)])
        assert found["agreed"] >= both


@given(slices(32), slices(32), st.data())
def test_a_difference_in_what_both_delivered_is_found(
    delivered: tuple[Path, list[str]], one: tuple[int, int], other: tuple[int, int], data: st.DataObject
) -> None:
    folder, lines = delivered
    low, high = max(one[0], other[0]), min(one[1], other[1])
    if high - low < 2:
        return
    at = data.draw(st.integers(low + 1, high - 1))
    a, b = folder / "a.jsonl", folder / "b.jsonl"
    changed = [*lines[:at], json.dumps(json.loads(lines[at]) | {"id": "d1ffe2e9" * 4}), *lines[at + 1 :]]
    a.write_text("".join(f"{line}\n" for line in lines[slice(*one)]))
    b.write_text("".join(f"{line}\n" for line in changed[slice(*other)]))
    result = fairlead("compare", a, b, "--json")
    assert result.exit_code == 1, result.stdout
    found = json.loads(result.stdout)
    assert found["outcome"] == "differ"
    assert found["agreed"] > at - low or found["first"]["b"]["id"] == "d1ffe2e9" * 4  # relations that repeat may agree longer
    for sides in ((receipt_file(folder / "a.json", lines, *one), b), (b, receipt_file(folder / "a.json", lines, *one))):
        assert fairlead("compare", *sides).exit_code == 1


def test_receipts_that_differ_say_how_many_agree(tmp_path: Path) -> None:
    rules = "TYPE A (v INT)\nSUBSCRIPTION Pair MATCH A a[2] WHERE a[1].v < a[2].v\n"
    _, first = run(tmp_path, "one", [1, 2, 3, 4, 5, 6], rules=rules)
    _, second = run(tmp_path, "two", [1, 2, 9, 4, 5, 6], rules=rules)
    result = fairlead("compare", first, second)
    assert result.exit_code == 1
    assert "1 delivery agrees; delivery 2 differs" in result.stdout


def test_receipts_of_different_rules(tmp_path: Path) -> None:
    _, first = run(tmp_path, "one", range(5))
    _, second = run(tmp_path, "two", range(5), rules=EACH.replace("MATCH A a", "MATCH A a WHERE a.v > 2"))
    result = fairlead("compare", first, second)
    assert result.exit_code == 1
    assert "different subscriptions" in result.stdout


EVERYTHING = """\
TYPE Every (flag BOOLEAN, small INT, large BIGINT, ratio DOUBLE, price DECIMAL(12,3), text STRING, raw BINARY, at TIMESTAMP)
TIME at
TYPE Other (text INT, price DECIMAL(9,2), at TIMESTAMP) TIME at
TYPE Blank ()
SUBSCRIPTION Pair MATCH Every e THEN Other o DISPOSAL INFIX
EMIT Seen(took = o.at - e.at, price = coalesce(o.price, e.price), sum = e.price + o.price, raw = e.raw, ratio = e.ratio / 3,
at = o.at)
SUBSCRIPTION Missing MATCH Every e WITHOUT Other o WITHIN 1 SECOND OF e EMIT Missed(text = e.text, again = e.flag)
SUBSCRIPTION Above MATCH Missed m AND Blank b
"""
ROWS: list[dict[str, Any]] = [
    {"flag": True, "small": -1, "large": 2**62, "ratio": "NaN", "price": "1.500", "text": "é", "raw": "AAE=", "at": 0},
    {"flag": None, "small": None, "large": None, "ratio": None, "price": None, "text": None, "raw": None, "at": 1.000001},
    {"flag": False, "small": 7, "large": -5, "ratio": "-Infinity", "price": "-0.001", "text": "", "raw": "", "at": 2},
    {"flag": False, "small": 7, "large": -5, "ratio": -0.0, "price": "0.000", "text": "null", "raw": "AA==", "at": 5.5},
]


@pytest.mark.parametrize("repeats", [1, KERNELS_FROM // 10])
def test_every_kind_of_value_is_equal_in_both_formats(tmp_path: Path, repeats: int) -> None:
    """Event by event, and on kernels."""
    rules = tmp_path / "every.fl"
    rules.write_text(EVERYTHING)
    number, lines = {"NaN": float("nan"), "-Infinity": float("-inf")}, []
    for at in range(repeats):
        for each in ROWS:
            moved = each | {"at": each["at"] + 10 * at, "ratio": number.get(each["ratio"], each["ratio"])}
            lines += [{"type": "Every"} | moved, {"type": "Blank"}]
            if each is not ROWS[0]:
                lines += [{"type": "Other", "text": at, "price": None if at % 2 else "1.25", "at": moved["at"] + 0.5}]
    events = write_lines(tmp_path / "events.jsonl", lines)
    for ending in ("jsonl", "parquet"):
        options = ("--events", events, "--out", tmp_path / f"out.{ending}", "--allow-nan", "--quiet")
        result = fairlead("run", rules, *options)
        assert result.exit_code == 0, result.output
    result = fairlead("compare", tmp_path / "out.jsonl", tmp_path / "out.parquet")
    assert result.stdout.startswith("equal: "), result.stdout
    text = (tmp_path / "out.jsonl").read_text()
    assert all(each in text for each in ('"nan"', '"-inf"', "-0.0", '"1.500"', '"AAE="', '"took": 1.500001', "01.500001Z", "é"))
    assert '"completed_at": "' in text


def test_a_file_of_the_older_form_is_refused(tmp_path: Path) -> None:
    member = {"type": "A", "position": "0", "event": "{}"}
    row = {"subscription": "Each", "id": "00", "branch": 0, "completed_at": "0", "positions": [0], "members": [member]}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "old.parquet")
    out, _ = run(tmp_path, "one", range(5))
    result = fairlead("compare", tmp_path / "old.parquet", out)
    assert result.exit_code == 1
    assert "D035" in result.stderr
    assert "the form of an older version" in result.stderr


def test_empty_outputs_are_equal(tmp_path: Path) -> None:
    first, _ = run(tmp_path, "one", [])
    second, _ = run(tmp_path, "two", [], "parquet")
    assert fairlead("compare", first, second).stdout == "equal: 0 relations, the same in the same order\n"


@pytest.mark.parametrize(
    ("name", "content", "code", "exit_code"),
    [
        ("none.jsonl", None, "D013", 1),
        ("none.parquet", None, "D013", 1),
        ("text.jsonl", "hello\n", "D035", 1),
        ("other.json", '{"some": "thing"}', "A005", 2),
        ("other.parquet", "PAR", "D035", 1),
    ],
)
def test_files_that_cannot_be_compared(tmp_path: Path, name: str, content: Any, code: str, exit_code: int) -> None:
    out, _ = run(tmp_path, "one", range(5))
    if content is not None:
        (tmp_path / name).write_text(content)
    result = fairlead("compare", tmp_path / name, out)
    assert result.exit_code == exit_code, result.output
    assert code in result.stderr
    assert "Traceback" not in result.stderr


DEEP = "[" * 100_000
NEARLY = '{"a": ' * 900 + "1" + "}" * 900


@pytest.mark.parametrize("content", [DEEP, NEARLY, "9" * 5_000, "[]", '{"plan": ' + DEEP, "\x00", "{}\n{}"], ids=range(7))
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_what_is_neither_a_receipt_nor_relations(tmp_path: Path, content: str, name: str) -> None:
    (tmp_path / name).write_text(content)
    result = fairlead("compare", tmp_path / name, tmp_path / name)
    assert result.exit_code in (1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stderr[:4] in ("D035", "D011", "A005")


def test_what_has_no_end_is_not_compared(tmp_path: Path) -> None:
    result = fairlead("compare", "/dev/zero", "/dev/zero")
    assert (result.exit_code, result.stderr[:4]) == (1, "D013")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_relation_that_is_taken_back_is_another_delivery(tmp_path: Path, ending: str) -> None:
    """No run writes one yet; the files are made of relations with signs."""
    plan = compile_text(EACH)
    first, second = match(plan, [{"type": "A", "v": v} for v in range(2)])
    made = {"plus": [first, second, first], "minus": [first, second, first.taken_back()]}
    paths = {name: tmp_path / f"{name}.{ending}" for name in made}
    for name, relations in made.items():
        if ending == "jsonl":
            write_lines(paths[name], [each.to_json() for each in relations])
        else:
            pq.write_table(table_of_objects(replace(layout_of(plan), signed=True), relations), paths[name])
        book = ReceiptBook(plan.digest)
        book.note(delivery_words(relations))
        (tmp_path / f"{name}.receipt.json").write_text(dumps(book.receipt()))
    differing = fairlead("compare", paths["plus"], paths["minus"])
    assert "relation 3 differs; 2 before it agree" in differing.stdout
    assert f"B: taken back: Each {first.id}" in differing.stdout
    assert "sign: 1 and -1" in differing.stdout
    assert fairlead("compare", paths["minus"], tmp_path / "minus.receipt.json").exit_code == 0
    assert fairlead("compare", paths["minus"], tmp_path / "plus.receipt.json").exit_code == 1


@pytest.mark.parametrize("sign", ["0", "2", '"-"', "null", "[]"])
def test_other_signs_are_refused(tmp_path: Path, sign: str) -> None:
    out, _ = run(tmp_path, "one", range(1))
    out.write_text(out.read_text().rstrip()[:-1] + f', "sign": {sign}}}\n')
    assert "D035" in fairlead("compare", out, out).stderr


def test_a_missing_file_is_no_subscriber(tmp_path: Path) -> None:
    """With the address of a log, a name that no file has may be that of a subscriber, if a subscriber can have it."""
    missing = fairlead("compare", tmp_path / "a.jsonl", "desk-1", "--url", "nats://127.0.0.1:1")
    assert missing.exit_code == 1
    assert missing.stderr.startswith("D013")
