"""A state that makes no sense is refused, by both matchers alike; what is accepted, both continue alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.matching.state.encoding import MAGIC, VERSION
from fairlead.model.plans.plan import Plan
from fairlead.transport.events import read_events
from tests.engine import everything

TYPES = """
TYPE A (k INT, x INT, s STRING, y DOUBLE, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, s STRING, y DOUBLE, at TIMESTAMP) TIME at
TYPE C (k INT, x INT, s STRING, y DOUBLE, at TIMESTAMP) TIME at
EVENT UNION U = A + B
"""
CONDITIONS = {  # on one event; the value with which it no longer holds
    "{}.x > 0": {"x": 0},
    "{}.x IN (1, 2, 3, 4, 5, 6, 7, 8)": {"x": None},
    "{}.s LIKE 'a%'": {"s": "b"},
    "{}.s IS NOT NULL": {"s": None},
    "{}.x > {}.y": {"y": 1e300},
    "({}.x > 0 OR {}.y < 0)": {"x": 0},
    "coalesce({}.s, '') = 'a'": {"s": None},
}
PLACES = {  # {p}, {n}: the condition on one event, which is of this type
    "A": [
        "MATCH A p AND C q WHERE {p}",
        "MATCH A p AND C q WHERE {p} PER k",
        "MATCH A p AND C q WHERE {p} AND p.x = q.x WITHIN 1 DAY",
        "MATCH U p AND C q WHERE {p}",
        "MATCH A p AND C q WHERE {p} MATCHING RECENT CONTIGUOUS DISPOSAL INFIX",
        "MATCH A p WHERE {p} WITHOUT C q WITHIN 1 DAY OF p",  # a member that waits
    ],
    "B": [
        "MATCH A p THEN C q WITHOUT B n BETWEEN p AND q WHERE {n}",  # a noted event
        "MATCH A p AND C q WITHOUT B n WITHIN 1 DAY OF p WHERE {n} AND n.x != q.x",
        "MATCH A p AND C q WITHOUT B n BEFORE q WITHIN 1 DAY WHERE {n}",
        "MATCH A p AND C q WITHOUT B n BEFORE q WHERE {n} AND n.x != q.x",
    ],
}
EVENTS: list[dict[str, Any]] = [
    {"type": "AB"[n % 2], "k": n % 2, "x": n + 1, "s": "a", "y": 0.5, "at": f"2026-01-01T00:00:{n:02}Z"} for n in range(6)
]
LATER: list[dict[str, Any]] = [
    {"type": "ABC"[n % 3], "k": n % 2, "x": n % 4, "s": "a", "y": 0.5, "at": f"2026-01-0{1 + n // 6}T00:01:0{n % 10}Z"}
    for n in range(12)
]


def cases() -> Iterator[tuple[str, str, str, int]]:
    """Every place, and every condition."""
    first = next(iter(CONDITIONS))
    yield from ((name, text, first, alike) for name, texts in PLACES.items() for text in texts for alike in (1, 2))
    yield from (("A", PLACES["A"][0], condition, 2) for condition in CONDITIONS)


def rules(text: str, condition: str, alike: int) -> str:
    """`alike`: as many subscriptions that differ in a condition on this event, which kernels run as one family."""
    made = [TYPES]
    for number in range(alike):
        said = {alias: condition.replace("{}", alias) + (f" AND {alias}.x > -{number}" if number else "") for alias in "pn"}
        clause = text.replace("{p}", said["p"]).replace("{n}", said["n"])
        made.append(f"SUBSCRIPTION S{number} {clause}")
    return "\n".join(made)


def fed(plan: Plan, events: list[dict[str, Any]], engine: Engine) -> list[str]:
    start = engine.last.major + 1
    return [str(each) for columns in read_events(events, plan.catalogue, start=start) for each in engine.feed(columns)]


def dumped_after(plan: Plan, events: list[dict[str, Any]]) -> bytes:
    engine = Engine(plan, kernels_from=None)
    fed(plan, events, engine)
    return engine.dump()


def columns_of(dumped: bytes) -> dict[str, pa.Array]:
    batch = pa.ipc.open_stream(dumped.partition(b"\n")[2]).read_next_batch()
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def signed(columns: dict[str, pa.Array]) -> bytes:
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    body = sink.getvalue().to_pybytes()
    return b"%s %d %s\n%s" % (MAGIC, VERSION, hashlib.sha256(body).hexdigest().encode(), body)


def with_field(column: pa.Array, name: str, values: pa.Array) -> pa.Array:
    """A table with another column."""
    rows = column.values
    fields = {rows.type.field(at).name: rows.field(at) for at in range(rows.type.num_fields)} | {name: values}
    made = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    return pa.ListArray.from_arrays(pa.array([0, len(made)], pa.int32()), made)


def field_of(column: pa.Array, name: str) -> pa.Array:
    return column.values.field(column.values.type.get_field_index(name))


def on_both(plan: Plan, dumped: bytes, later: list[dict[str, Any]]) -> str:
    """The code with which both matchers refuse; empty if they continue, and then alike."""
    codes, said = set(), []
    for kernels_from in (None, 0):
        try:
            engine = Engine.load(plan, dumped, kernels_from=kernels_from)
        except StateError as error:
            codes.add(error.code)
            continue
        codes.add("")
        said.append((fed(plan, later, engine), engine.dump()))
    (code,) = codes
    assert len({str(each) for each in said}) < 2
    return code


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "text", "condition", "alike"), list(dict.fromkeys(cases())))
def test_an_event_is_refused_where_the_conditions_on_it_do_not_hold(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, condition: str, alike: int
) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    plan = fairlead.compile(rules(text, condition, alike))
    dumped = dumped_after(plan, EVENTS)
    assert on_both(plan, dumped, LATER) == ""
    columns = columns_of(dumped)
    types = columns["types 0"].values.to_pylist()
    table = f"rows 0 {types.index(name)}"
    ((attribute, wrong),) = CONDITIONS[condition].items()
    for value, code in ((field_of(columns[table], attribute)[0].as_py(), ""), (wrong, "S005")):
        column = field_of(columns[table], attribute)
        other = pa.concat_arrays([pa.array([value], column.type), column.slice(1)])
        assert on_both(plan, signed(columns | {table: with_field(columns[table], attribute, other)}), LATER) == code


def test_an_event_may_fit_one_of_several_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    plan = fairlead.compile(f"{TYPES} SUBSCRIPTION S MATCH A a[2] AND C c WHERE a[1].x > 0 AND a[2].y < 1")
    columns = columns_of(dumped_after(plan, EVENTS))
    for x, y, code in ((0, 0.5, ""), (1, 2.0, ""), (0, 2.0, "S005")):
        table = columns["rows 0 0"]
        for attribute, value in (("x", x), ("y", y)):
            column = field_of(table, attribute)
            table = with_field(table, attribute, pa.concat_arrays([pa.array([value], column.type), column.slice(1)]))
        assert on_both(plan, signed(columns | {"rows 0 0": table}), LATER) == code


@pytest.mark.parametrize(("second", "code"), [(9, ""), (8, "S005"), (1, "S005")])
def test_noted_events_of_which_the_last_decides_rise_in_time(monkeypatch: pytest.MonkeyPatch, second: int, code: str) -> None:
    """Kernels look at the last one before a member alone."""
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    plan = fairlead.compile(f"{TYPES} SUBSCRIPTION S MATCH C c[2] WITHOUT B n BEFORE c[1] WITHIN 1 HOUR")
    events = [EVENTS[0] | {"type": name, "at": f"2026-01-01T00:00:0{at}Z"} for name, at in (("C", 0), ("B", 8), ("B", 9))]
    columns = columns_of(dumped_after(plan, events))
    assert columns["types 0"].values.to_pylist() == ["B", "C"]
    table = columns["rows 0 0"]
    moments = field_of(table, "at")
    other = pa.array([moments[0].as_py(), moments[0].as_py().replace(second=second)], moments.type)
    assert on_both(plan, signed(columns | {"rows 0 0": with_field(table, "at", other)}), LATER) == code


def test_subscriptions_that_have_seen_different_times_go_on_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stream leads there, if they read the same types: but each has its own time."""
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    waits = "MATCH A a WITHOUT B b WITHIN {} SECONDS OF a WHERE b.x = a.x"
    texts = [f"SUBSCRIPTION S{number} {waits.format(10 + number)}" for number in range(3)]
    plan = fairlead.compile("\n".join([TYPES, *texts]))
    columns = columns_of(dumped_after(plan, EVENTS))
    table, whole = columns["subscriptions"], field_of(columns["subscriptions"], "seen").to_pylist()
    assert len(set(whole)) == 1
    for at in range(len(whole)):
        for other in (None, whole[0] - 1, whole[0] + 60_000_000, whole[0] * 2):
            seen = pa.array([*whole[:at], other, *whole[at + 1 :]], pa.int64())
            assert on_both(plan, signed(columns | {"subscriptions": with_field(table, "seen", seen)}), LATER) == ""


OTHERS = (pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.binary())
TABLES = ("subscriptions", "events 0", "instances 0 0", "waiting 1 0")


def test_a_column_of_another_type_is_refused_or_is_the_same() -> None:
    """Never read as something else: a float as a position, a text as a number."""
    plan, dumped = everything.plan(), everything.FIXTURE.read_bytes()
    columns, refused, read = columns_of(dumped), set(), set()
    for name, part in parts_of(columns):
        values = field_of(columns[name], part) if part else getattr(columns[name], "values", columns[name])
        for kind in OTHERS:
            try:
                other = values.cast(kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                continue
            if part:
                made = with_field(columns[name], part, other)
            elif pa.types.is_list(columns[name].type):
                made = pa.ListArray.from_arrays(pa.array([0, len(other)], pa.int32()), other)
            else:
                made = other
            found = loaded_or_code(plan, signed(columns | {name: made}))
            assert found in ("S005", dumped)
            (refused if found == "S005" else read).add((name, part, str(kind)))
    assert ("subscriptions", "since", "double") in refused
    assert ("events 0", "sequence", "string") in refused
    assert len(refused) > 60
    assert len(read) > 20


def loaded_or_code(plan: Plan, dumped: bytes) -> bytes | str:
    """What a loaded state dumps, or the code with which it is refused."""
    try:
        return Engine.load(plan, dumped, kernels_from=None).dump()
    except StateError as error:
        return error.code


def parts_of(columns: dict[str, pa.Array]) -> list[tuple[str, str]]:
    """Columns with their parts; none of the attributes of events: what is declared otherwise now is NULL."""
    tables = {name: columns[name].type.value_type for name in TABLES}
    found = [(name, kind.field(at).name) for name, kind in tables.items() for at in range(kind.num_fields)]
    return [*found, ("major", ""), ("minor", ""), ("types 0", ""), ("queued 0 0", "")]
