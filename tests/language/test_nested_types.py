"""ARRAY and STRUCT: how they are declared, what is said of wrong ones, and the forms that their values have outside."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairlead

RULES = """
TYPE A (id INT, s STRUCT<street: STRING, zip: INT, in: STRUCT<d: DATE>>,
        l ARRAY<STRUCT<n: DECIMAL(10,2), at: TIMESTAMP>>, t ARRAY<STRING>, v DOUBLE)
TYPE B (id INT, t ARRAY<INT>)
SUBSCRIPTION S MATCH A a {} AND B b WHERE {}
"""


def test_a_type_is_declared_as_spark_prints_it() -> None:
    printed = "id:string,tags:array<string>,lines:array<struct<sku:string,price:decimal(10,2),match:smallint>>,at:timestamp"
    own = "id STRING, tags ARRAY<STRING>, lines ARRAY<STRUCT<sku: STRING, price: DECIMAL(10,2), match: INT>>, at TIMESTAMP"
    for written in (printed, own, own.replace(": ", " ")):
        plan = fairlead.compile(f"TYPE A ({written}) TIME at SUBSCRIPTION S MATCH A a WHERE element_at(a.lines, 1).match > 1")
        assert str(plan.types["A"]) == f"TYPE A ({own}) TIME at"


@pytest.mark.parametrize(
    ("written", "code", "fix"),
    [
        ("x ARRAY", "L011", "write, for example, ARRAY<STRING>"),
        ("x STRUCT", "L011", "write, for example, STRUCT<street: STRING, zip: INT>"),
        ("x ARRAY<a: INT>", "L011", "ARRAY<STRING>"),
        ("x STRUCT<INT>", "L011", "STRUCT<street: STRING, zip: INT>"),
        ("x MAP<STRING>", "L011", "use ARRAY<STRING> or STRUCT"),
        ("x INT<STRING>", "L011", "remove what is in <>"),
        ("x ARRAY<TEXT>", "L011", "use STRING"),
        ("x STRUCT<a: INT, a: INT>", "L013", "give it another name"),
        ("x STRUCT<>", "L001", "write"),
        ("x ARRAY<BINARY", "L001", "write"),
        (f"x {'ARRAY<' * 8}INT{'>' * 8}", "L127", "a STRING"),
        (f"x STRUCT<{', '.join(f'f{at}: INT' for at in range(1001))}>", "L127", "leave out the fields"),
    ],
)
def test_what_is_no_data_type_is_told(written: str, code: str, fix: str) -> None:
    with pytest.raises(fairlead.LanguageError, match=code) as raised:
        fairlead.compile(f"TYPE A ({written}) SUBSCRIPTION S MATCH A a")
    assert fix in str(raised.value)


def test_eight_levels_are_a_data_type() -> None:
    plan = fairlead.compile(f"TYPE A (x {'ARRAY<' * 7}INT{'>' * 7}) SUBSCRIPTION S MATCH A a EMIT D (y = a.x)")
    value: Any = 1
    for _ in range(7):
        value = [value]
    assert [each.emitted for each in fairlead.match(plan, [{"type": "A", "x": value}])] == [{"y": value}]
    with pytest.raises(fairlead.LanguageError, match="L127"):
        fairlead.compile(f"TYPE A (x {'ARRAY<' * 7}INT{'>' * 7}) SUBSCRIPTION S MATCH A a[2] EMIT D (y = collect(a.x))")


@pytest.mark.parametrize(
    ("condition", "code", "fix"),
    [
        ("a.s.zipp = 1", "L012", "did you mean 'zip'?"),
        ("a.s.in.e IS NULL", "L012", "it has d"),
        ("a.id.x = 1", "L012", "remove what follows it"),
        ("a.l.n > 1", "L012", "write element_at(a.l, 1).n"),
        ("element_at(a.l, 1).m > 1", "L012", "it has n and at"),
        ("element_at(a.t, 1).m > 1", "L012", "remove what follows it"),
        ("a.l[1].n > 1", "L001", "write element_at(o.lines, 1)"),
        ("l[1].n > 1", "L030", "write element_at(l, 1)"),
        ("a.t = b.t", "L126", "size("),
        ("a.s IN (a.s)", "L126", "name one of its fields, such as .street"),
        ("coalesce(a.t, a.t) IS NULL", "L126", "size("),
        ("CASE WHEN a.id = 1 THEN a.s END IS NULL", "L126", ".street"),
        ("size(a.s) = 1", "L045", "name an ARRAY"),
        ("size('x') = 1", "L045", "length(…)"),
        ("array_contains(a.t, 1)", "L040", "compare values of one type"),
        ("array_contains(a.l, 1)", "L126", "a field"),
        ("element_at(a.t, 0) = 'x'", "L045", "1 is the first"),
        ("element_at(a.t, '1') = 'x'", "L045", "1 is the first"),
        ("array_size(a.t) > 1", "L044", "write size(array)"),
        ("cast(a.t AS STRING) = 'x'", "L045", "docs/language.md"),
        ("sum(b.t) > 1", "L046", "sum and avg accept numbers"),
        ("size(collect(b.id)) > 1", "L128", "use count"),
        ("collect_list(b.id) IS NULL", "L044", "write collect(q.x), in EMIT"),
        ("a.s || 'x' = 'y'", "L043", "cast"),
    ],
)
def test_what_arrays_and_structs_cannot_be_used_for_is_told(condition: str, code: str, fix: str) -> None:
    with pytest.raises(fairlead.LanguageError) as raised:
        fairlead.compile(RULES.format("", condition))
    assert raised.value.code == code, raised.value
    assert fix in str(raised.value)


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ("SUBSCRIPTION S MATCH A a[2] PER s", "L126"),
        ("SUBSCRIPTION S MATCH A a[2] PER s.zap", "L012"),
        ("SUBSCRIPTION S MATCH A a[2] PER a.t", "L126"),
        ("SUBSCRIPTION S MATCH A a[2] PER q.zip", "L030"),
        ("TABLE T KEY (t) FROM A SUBSCRIPTION S MATCH B b AND T t", "L126"),
        ("ORDER BY s SUBSCRIPTION S MATCH A a", "L126"),
        ("ORDER BY s.zip SUBSCRIPTION S MATCH A a", "L001"),
        ("TYPE D (x ARRAY<INT>) SUBSCRIPTION S MATCH A a EMIT D (x = a.t)", "L061"),
        ("SUBSCRIPTION S MATCH (A a) OR (B b) EMIT D (x = a.t) SUBSCRIPTION T MATCH B b EMIT D (x = b.t)", "L061"),
        ("SUBSCRIPTION S MATCH A a EMIT D (x = collect(a))", "L046"),
        ("SUBSCRIPTION S MATCH A a{2} HAVING count(DISTINCT a.t) > 1", "L126"),
        ("SUBSCRIPTION S MATCH A a NEXT A b WHERE prev(b.s) IS NULL", "L126"),
    ],
)
def test_what_clauses_need_single_values_for_is_told(rules: str, code: str) -> None:
    types = RULES.partition("SUBSCRIPTION")[0]
    with pytest.raises(fairlead.LanguageError) as raised:
        fairlead.compile(types + rules)
    assert raised.value.code == code, raised.value


def test_the_null_of_another_branch_has_no_fields() -> None:
    types = RULES.partition("SUBSCRIPTION")[0]
    plan = fairlead.compile(
        types
        + "SUBSCRIPTION S MATCH (A a) OR (B b)"
        + " EMIT D (t = b.t, n = element_at(b.t, 1), s = a.s, z = a.s.zip, c = collect(b.id))"
    )
    empty = dict.fromkeys(("s", "l", "t", "v"))
    found = fairlead.match(plan, [{"type": "A", "id": 1} | empty | {"s": {"zip": 5}}, {"type": "B", "id": 2, "t": [7]}])
    place = {"street": None, "zip": 5, "in": None}
    assert [each.emitted for each in found] == [
        {"t": None, "n": None, "s": place, "z": 5, "c": None},
        {"t": [7], "n": 7, "s": None, "z": None, "c": [2]},
    ]


@pytest.mark.parametrize(
    ("values", "code", "said"),
    [
        ({"t": ["a", 1]}, "D004", "attribute 't' of 'A': element 2: expected STRING, got int 1"),
        ({"t": "abc"}, "D004", "expected ARRAY<STRING>, got str"),
        ({"t": {"a": 1}}, "D004", "expected ARRAY<STRING>, got dict"),
        ({"s": ["x"]}, "D004", "expected STRUCT<"),
        ({"s": {"zipp": 1}}, "D004", "STRUCT has no field 'zipp': did you mean 'zip'?"),
        ({"s": {"in": {"d": "2024-13-01"}}}, "D004", "field 'in', field 'd': there is no DATE 2024-13-01"),
        ({"l": [{"n": "1.234"}]}, "D004", "element 1, field 'n': 1.234 has more than 2 decimal places"),
        ({"t": ["\ud800"]}, "D016", "not valid Unicode"),
        ({"t": ["x"] * 120_000}, "D007", ""),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_place_inside(values: dict[str, Any], code: str, said: str) -> None:
    plan = fairlead.compile(RULES.partition("SUBSCRIPTION")[0] + "SUBSCRIPTION S MATCH A a")
    record = {"type": "A", "id": 1, "s": None, "l": None, "t": None, "v": None} | values
    with pytest.raises(fairlead.DataError, match=code) as raised:
        fairlead.match(plan, [record])
    assert said in str(raised.value)


def typed(table: pa.Table) -> pa.Table:
    return table.append_column("type", [["A"] * len(table)])


ROWS: list[dict[str, Any]] = [
    {"id": 1, "s": {"street": "x", "zip": 2, "in": {"d": date(2024, 2, 29)}}, "t": ["a", None]},
    {"id": 2, "s": {"street": None, "zip": None, "in": None}, "t": []},
    {"id": 3, "s": None, "t": None},
]
LINES = [{"n": Decimal("1.50"), "at": datetime(2024, 1, 1, tzinfo=UTC)}, None, {"n": None, "at": None}]


def test_all_ways_in_and_out_have_the_same_values(tmp_path: Path) -> None:
    types = RULES.partition("SUBSCRIPTION")[0].replace(", v DOUBLE", "")
    plan = fairlead.compile(f"{types} SUBSCRIPTION S MATCH A a EMIT D (s = a.s, l = a.l, t = a.t)")
    rows = [row | {"l": LINES if row["id"] == 1 else []} for row in ROWS]
    schema = pa.schema(
        {
            "id": pa.int64(),
            "s": pa.struct({"zip": pa.int16(), "street": pa.large_string(), "in": pa.struct({"d": pa.date64()})}),
            "l": pa.large_list(pa.struct({"at": pa.timestamp("ns", "Europe/Vienna"), "n": pa.decimal128(20, 4)})),
            "t": pa.list_(pa.dictionary(pa.int8(), pa.string())),
        }
    )
    days = pa.struct({"zip": pa.int16(), "street": pa.large_string(), "in": pa.struct({"d": pa.date32()})})
    loose = pa.Table.from_pylist(rows, schema.set(3, pa.field("t", pa.list_(pa.string()))))
    dated = loose.schema.set(1, pa.field("s", days))
    wanted = [{name: value for name, value in row.items() if name != "id"} for row in rows]
    path, lines = tmp_path / "a.parquet", tmp_path / "a.jsonl"
    pq.write_table(typed(loose), path)
    shown = [{"type": "A", **row, "s": row["s"] and {**row["s"], "in": row["s"]["in"] and {"d": "2024-02-29"}}} for row in rows]
    lines.write_text("".join(json.dumps(each, default=str) + "\n" for each in shown))
    found = {
        "dicts": fairlead.match(plan, [{"type": "A", **row} for row in rows]),
        "arrow": fairlead.match(plan, typed(loose)),
        "a part of a table": fairlead.match(plan, typed(pa.concat_tables([loose, loose])).slice(3, 3)),
        "polars": fairlead.match(plan, polars.from_arrow(typed(loose.cast(dated)))),
        "pandas": fairlead.match(plan, typed(loose.cast(dated)).to_pandas(types_mapper=pandas.ArrowDtype)),
        "parquet": fairlead.match(plan, pq.read_table(path)),
    }
    from fairlead.transport import read_files

    for file in (path, lines):
        engine = fairlead.Engine(plan)
        found[file.suffix] = [each for batch in read_files(file, plan.catalogue) for each in engine.feed(batch)]
    for name, relations in found.items():
        assert [each.emitted for each in relations] == wanted, name
    assert found["arrow"].to_arrow().column("emitted").to_pylist() == [{"type": "D"} | each for each in wanted]


def test_numbers_of_numpy_and_nan_inside_are_values_of_their_types() -> None:
    plan = fairlead.compile("TYPE A (v ARRAY<DOUBLE>, n ARRAY<INT>) SUBSCRIPTION S MATCH A a EMIT D (v = a.v, n = a.n)")
    [one] = fairlead.match(plan, [{"type": "A", "v": np.array([1.5, math.nan]), "n": np.array([1, 2])}])
    assert str(one.emitted) == "{'v': [1.5, nan], 'n': [1, 2]}"
    assert one.to_json()["emitted"] == {"v": [1.5, "nan"], "n": [1, 2]}


def test_csv_has_no_arrays(tmp_path: Path) -> None:
    from fairlead.transport import read_files

    path = tmp_path / "a.csv"
    path.write_text('type,id,t\nB,1,"[1]"\n')
    plan = fairlead.compile(RULES.partition("SUBSCRIPTION")[0] + "SUBSCRIPTION S MATCH B b")
    with pytest.raises(fairlead.DataError, match="D043"):
        list(read_files(path, plan.catalogue))


def test_an_exact_number_inside_is_read_as_its_digits_say(tmp_path: Path) -> None:
    from fairlead.transport import read_files

    path = tmp_path / "a.jsonl"
    path.write_text('{"type": "A", "m": [{"x": 123456789.12, "y": 0.1}], "d": [0.1]}\n')
    plan = fairlead.compile("TYPE A (m ARRAY<STRUCT<x: DECIMAL(20,2), y: DOUBLE>>, d ARRAY<DOUBLE>) SUBSCRIPTION S MATCH A a")
    [event] = [event for batch in read_files(path, plan.catalogue) for event in batch.events(plan.catalogue)]
    assert event.values == {"m": [{"x": Decimal("123456789.12"), "y": 0.1}], "d": [0.1]}
    assert event["m"] == [{"x": Decimal("123456789.12"), "y": 0.1}]


@pytest.mark.parametrize("types", ["b BOOLEAN", "b STRUCT<k: INT>"])
def test_an_alias_of_another_branch_is_no_attribute(types: str) -> None:
    """`b.k` is about the element b, also in the branch that has none and whose event has an attribute of this name."""
    plan = fairlead.compile(
        f"TYPE A (k INT, {types}) TYPE B (k INT) TYPE N (k INT)\n"
        "SUBSCRIPTION S MATCH A a OR B b WHERE a.k = 1 AND b.k = 2 WITHOUT N n BEFORE b WHERE n.k = b.k"
    )
    branches = plan["S"].branches
    assert [[each.slots for each in branch.predicates] for branch in branches] == [[(0,)], [(0,)]]
    rows = [{"type": "A", "k": 2, "b": None}, {"type": "A", "k": 1, "b": None}, {"type": "B", "k": 1}, {"type": "B", "k": 2}]
    assert [each.positions for each in fairlead.match(plan, rows)] == [(1,), (3,)]
