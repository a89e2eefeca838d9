"""Which condition becomes a route, and which blocks it leaves out: exactly those of which the matcher accepts no event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine import Engine, compile
from fairlead.matching.compiled.running.vector import is_columnwise
from fairlead.model.events.columns import arrow_schema
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.routes import condition_of, is_within, route_letters, routes_of, text_of
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.transport.admission.records import read_records
from fairlead.transport.log.blocks.block_filter import ROUTES, Standing, is_marks, letters_of
from tests.runtime.live.routing import ATOMS, EVENTS, TYPES


def routes(rules: str) -> dict[str, str]:
    plan = compile(TYPES + rules)
    types = sorted({name for group in groups_of(plan) for name in group.types})
    return {name: text_of(each) for name, each in routes_of(plan, types).items()}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("MATCH A a WHERE a.s = 'x'", {"A": "(e.s = 'x')"}),
        ("MATCH A a AND B b WHERE a.s = 'x' AND a.k > 1 AND a.k = b.k", {"A": "(e.k > 1) AND (e.s = 'x')"}),
        ("MATCH A a WHERE a.k > 1 AND a.s = 'x'", {"A": "(e.k > 1) AND (e.s = 'x')"}),
        ("MATCH A a AND A c WHERE a.k = 1 AND c.k = 2", {"A": "(e.k = 1) OR (e.k = 2)"}),
        ("MATCH A a AND A c WHERE a.k = 1 AND c.k = 1 AND c.s = 'x'", {"A": "(e.k = 1)"}),
        ("MATCH A a WHERE (a.k = 1 OR a.s = 'x') AND a.b", {"A": "(e.k = 1) AND e.b OR (e.s = 'x') AND e.b"}),
        ("MATCH A a[2] WHERE a[1].k = 1", {}),
        ("MATCH A a[2] WHERE a[1].k = 1 AND a[2].k = 1", {"A": "(e.k = 1)"}),
        ("MATCH A a AND A c WHERE a.k = 1", {}),
        ("MATCH A a WHERE position(a) > 3", {}),
        ("MATCH A a WHERE position(a) > 3 AND a.k = 1", {"A": "(e.k = 1)"}),
        ("MATCH A a WHERE time(a) > TIMESTAMP '2026-01-01T00:00:00Z'", {"A": "(time(e) > TIMESTAMP '2026-01-01T00:00:00Z')"}),
        ("MATCH B b WHERE b.k = 1", {"B": "(e.k = 1)", "C": "(e.k = 1)"}),
        ("MATCH B b AND C c WHERE b.k = 1 AND c.z = 2", {"B": "(e.k = 1)", "C": "(e.k = 1) OR (e.z = 2)"}),
        ("MATCH AB e AND A a WHERE e.k = 1", {"B": "(e.k = 1)", "C": "(e.k = 1)"}),
        ("MATCH A a OR B b WHERE a.k = 1", {"A": "(e.k = 1)"}),
        ("MATCH A a PER k WHERE a.k = 1", {"A": "(e.k = 1)"}),
        (
            "MATCH A a AND B b WHERE a.k = 1 AND b.k = 1 WITHOUT C c BETWEEN a AND b WHERE c.z = 1",
            {"A": "(e.k = 1)", "B": "(e.k = 1)"},
        ),
        (
            "MATCH A a AND B b WHERE a.k = 1 AND b.k = 1 WITHOUT A n BETWEEN a AND b WHERE n.k = 1",
            {"B": "(e.k = 1)", "C": "(e.k = 1)"},
        ),
        ("MATCH A a WHERE a.k = 1 WITHOUT B b WITHIN 1 MINUTE OF a WHERE b.k = 1", {}),
        ("MATCH A a WHERE a.k = 1 SUBSCRIPTION T MATCH A a WHERE a.k = 2", {"A": "(e.k = 1) OR (e.k = 2)"}),
        ("MATCH A a WHERE a.k = 1 SUBSCRIPTION T MATCH A a", {}),
        ("MATCH A a WHERE a.k = 1 EMIT D(k = a.k) SUBSCRIPTION T MATCH D d WHERE d.k = 1", {}),
        ("MATCH A a WHERE a.k = 1 EMIT D(k = a.k)", {"A": "(e.k = 1)"}),
        ("MATCH A a WHERE a.k = 1 RETAIN a 1 EVENT", {"A": "(e.k = 1)"}),
        ("MATCH A a AND L b WHERE a.k = 1 AND b.k = 1 TABLE L KEY (k) FROM B", {"A": "(e.k = 1)"}),
    ],
)
def test_what_is_pushed_and_what_is_not(rules: str, expected: dict[str, str]) -> None:
    assert routes(f"SUBSCRIPTION S {rules}") == expected


def test_a_condition_with_too_many_alternatives_is_not_pushed() -> None:
    many = " AND ".join(f"(a.k = {n} OR a.x > {n})" for n in range(12))
    assert routes(f"SUBSCRIPTION S MATCH A a WHERE {many}") == {}


def test_a_condition_within_another_is_seen_by_its_form() -> None:
    def condition(text: str) -> Any:
        return condition_of(text, compile(TYPES).catalogue["A"])

    narrow, wide = condition("e.k = 1 AND e.s = 'x'"), condition("e.k = 1 OR e.b")
    assert is_within(narrow, wide)
    assert not is_within(wide, narrow)
    assert is_within(wide, wide)
    assert condition("e.unknown = 1") is None
    assert condition("nonsense (") is None
    assert condition("e.k = 1 SUBSCRIPTION T MATCH A a") is None


def test_marks_go_there_and_back_and_follow_what_is_stored() -> None:
    standing = Standing()
    assert standing.marks("uuuu", 0) == ""
    standing.passed("", 0)
    told = standing.marks("ynuu", 1)
    assert (told, letters_of(told), is_marks(told)) == ("y0 n0 u0 u0", "ynuu", True)
    standing.passed(told, 1)
    assert standing.marks("uuuu", 2) == "u1 u0 u1 u1"  # not the same as no marks: on the second route, block 1 was not sent
    standing.passed("u1 u0 u1 u1", 2)
    assert standing.marks("uuuu", 3) == ""
    assert not is_marks("y0 n0 u0")
    assert not is_marks("x0 n0 u0 u0")


@given(st.lists(ATOMS, min_size=1, max_size=3), st.lists(EVENTS, max_size=6))
def test_a_block_is_left_out_exactly_where_the_matcher_accepts_none_of_its_events(
    atoms: list[str], events: list[dict[str, Any]]
) -> None:
    where = " AND ".join(f"({each.format('a')})" for each in atoms)
    plan = compile(f"{TYPES} SUBSCRIPTION S MATCH A a WHERE {where}")
    condition = routes_of(plan, ["A"])["A"]
    known = condition_of(text_of(condition), plan.catalogue["A"])
    assert known == condition
    relations = [
        each for columns in read_records(events, plan.catalogue, allow_nan=True) for each in Engine(plan).feed(columns)
    ]
    batch = batch_of(plan, events)
    assert route_letters(batch, plan.catalogue["A"], [known, None]) == ("y" if relations else "n") + "u" * (ROUTES - 1)


@given(st.lists(ATOMS, min_size=1, max_size=2), st.lists(EVENTS, min_size=1, max_size=4))
def test_of_a_large_block_only_what_takes_long_is_not_told(atoms: list[str], events: list[dict[str, Any]]) -> None:
    where = " AND ".join(f"({each.format('a')})" for each in atoms)
    plan = compile(f"{TYPES} SUBSCRIPTION S MATCH A a WHERE {where}")
    condition = routes_of(plan, ["A"])["A"]
    small = batch_of(plan, events)
    large = pa.Table.from_batches([small] * 600).combine_chunks().to_batches()[0]
    (few, *_), (many, *_) = (route_letters(each, plan.catalogue["A"], [condition]) for each in (small, large))
    assert many == (few if is_columnwise(condition) else "u")


@pytest.mark.parametrize(
    ("where", "by_columns"),
    [
        ("a.s = 'x' AND a.k > 1 AND a.x + 1 < a.k", True),
        ("a.s IN ('x', 'y') OR a.b OR a.s IS NULL", True),
        ("a.s IN ('x', NULL)", False),
        ("a.s LIKE 'x%'", False),
        ("a.s != 'x'", False),
        ("a.k % 2 = 0", False),
        ("isnan(a.x)", False),
        ("a.b AND upper(a.s) = 'X'", False),
    ],
)
def test_what_takes_long_on_a_large_block(where: str, by_columns: bool) -> None:
    plan = compile(f"{TYPES} SUBSCRIPTION S MATCH A a WHERE {where}")
    assert is_columnwise(routes_of(plan, ["A"])["A"]) == by_columns


def batch_of(plan: Plan, events: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    schema = arrow_schema(plan.catalogue["A"])
    if not events:
        return pa.RecordBatch.from_pylist([], schema=schema)
    (columns,) = read_records(events, plan.catalogue, allow_nan=True)
    return columns.tables["A"]
