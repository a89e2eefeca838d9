"""The result table made of whole columns is the one made of the relations as objects, value for value."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import fairlead
from fairlead.engine import Engine
from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.matching.results.delivery_order import LAZY
from fairlead.matching.results.relation_batches import relation_table
from fairlead.matching.results.result_table import table_of_objects
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.layout import layout_of, relation_schema
from fairlead.transport.events import read_events
from tests.matching.compiled.test_kernel import interpreted
from tests.matching.compiled.test_kernel_expressions import TYPES, atoms, numbers, rows
from tests.matching.generators.generated import TYPES as GENERATED_TYPES
from tests.matching.generators.generated import Case, cases

__all__ = ["interpreted"]


def shown(table: pa.Table) -> list[str]:
    """NaN equals itself as text."""
    table.validate(full=True)
    return [repr(row) for row in table.to_pylist()]


def compared(plan: Plan, events: list[dict[str, Any]], size: int) -> Counter[str]:
    """Both tables of every batch, on kernels where there are any."""
    engine, layout, seen = Engine(plan, kernels_from=0), layout_of(plan), Counter[str]()
    batches = []
    for columns in read_events(events, plan.catalogue, batch_rows=size):
        found = engine.feed(columns)
        whole = relation_table([found], layout)
        assert whole.schema == relation_schema(plan)
        assert shown(whole) == shown(table_of_objects(layout, list(found)))
        batches.append(found)
        seen["relations"] += len(found)
        if isinstance(found, LAZY):
            seen["on kernels"] += len(found)
            assert [found[at].id for at in range(len(found))] == found.ids()
            assert [each.id for each in found[1:3]] == found.ids()[1:3]
    together = relation_table(batches, layout)
    assert shown(together) == [row for batch in batches for row in shown(relation_table([batch], layout))]
    return seen


@given(cases(), st.integers(1, 13))
def test_every_shape_of_rules_gives_the_table_of_its_objects(case: Case, size: int) -> None:
    for each, count in compared(compile_text(case.rules), case.events, size).items():
        event(f"{each}: {min(count, 5)}")


TEXTS = st.sampled_from(
    (
        "lower(p[1].s)",
        "upper(coalesce(q.s, p[2].s, 'none'))",
        "coalesce(q.s, p[1].s)",
        "substring(q.s, 1, 1)",
        "min(p.s)",
        "length(q.s)",
        "p[1].m",
        "p[1].m + q.n",
        "p[1].m * q.m",
        "coalesce(p[2].m, q.n)",
        "max(p.n)",
        "sum(p.m)",
        "-q.n",
        "q.at",
        "q.at - p[1].at",
        "(q.at - p[1].at) * 1000",
        "p[2].at + 3 DAYS",
        "max(p.at)",
        "time(q)",
        "position(p[2])",
        "position(q) - position(p[1])",
        "q.f",
        "count(p)",
        "TIMESTAMP '2026-01-01T00:00:00Z'",
        "1.5",
    )
)
KINDS = st.sampled_from(("i", "b", "d", "ib", "bd", "ibd"))


@st.composite
def emitting(draw: st.DrawFn) -> str:
    values = [
        draw(st.one_of(TEXTS, KINDS.flatmap(numbers), KINDS.flatmap(numbers), atoms())) for _ in range(draw(st.integers(1, 3)))
    ]
    emit = ", ".join(f"v{at} = {value}" for at, value in enumerate(values))
    return f"{TYPES}\nSUBSCRIPTION S MATCH P p[2] AND Q q DISPOSAL INFIX EMIT E ({emit})"


def is_sensible(rules: str) -> bool:
    try:
        compile_text(rules)
    except LanguageError:
        return False
    return True


@pytest.mark.slow
def test_what_is_emitted_is_the_same_computed_for_columns_and_one_by_one() -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=max(300, settings.default.max_examples))
    @given(emitting().filter(is_sensible), rows(), st.integers(1, 13))
    def holds(rules: str, stream: list[dict[str, Any]], size: int) -> None:
        total.update(compared(compile_text(rules), stream, size))

    holds()
    assert total["on kernels"] > 200, total


@pytest.mark.parametrize("value", ["p.b + q.b", "p.b * q.b", "p.d / q.d", "p.b / q.i", "p.i + q.i", "p.d - q.d", "p.b < q.b"])
def test_every_pair_of_values_is_emitted_alike(value: str) -> None:
    from tests.matching.compiled.test_kernel_expressions import VALUES

    left, right = value[2], value[-1]
    blank = {"at": 0} | dict.fromkeys(VALUES)
    stream: list[dict[str, Any]] = []
    for one in VALUES[left]:
        for two in VALUES[right]:
            stream += [{"type": "P"} | blank | {left: one}, {"type": "Q"} | blank | {right: two}]
    plan = compile_text(f"{TYPES}\nSUBSCRIPTION S MATCH P p AND Q q DISPOSAL INFIX EMIT E (v = {value})")
    assert compared(plan, stream, 1000)["on kernels"] == len(stream) // 2


MIXED = f"""{GENERATED_TYPES}
TYPE Odd (x STRING, place INT, at TIMESTAMP) TIME at
SUBSCRIPTION Pair MATCH A a AND B b PER k EMIT Seen (x = a.x, y = b.y)
SUBSCRIPTION Any MATCH U u OR Odd o
SUBSCRIPTION Late MATCH A a WITHOUT B b WITHIN 2 SECONDS OF a EMIT Missed (x = 'none', at = a.at)
SUBSCRIPTION Above MATCH Missed m AND C c
"""


def mixed_events() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for at in range(60):
        name = "ABCDO"[at * 7 % 5]
        if name == "O":
            made.append({"type": "Odd", "x": f"t{at}", "place": at, "at": at})
        else:
            made.append({"type": name, "k": at % 3, "x": at, "y": at / 2, "at": at} | ({"z": 1} if name == "D" else {}))
    return made


def test_a_plan_on_kernels_and_event_by_event_has_one_table_in_the_order_of_delivery() -> None:
    plan = fairlead.compile(MIXED)
    seen = compared(plan, mixed_events(), 7)
    assert 0 < seen["on kernels"] == seen["relations"]
    fast, slow = Engine(plan, kernels_from=0), Engine(plan, kernels_from=None)
    layout = layout_of(plan)
    for columns in read_events(mixed_events(), plan.catalogue, batch_rows=13):
        found, expected = fast.feed(columns), slow.feed(columns)
        assert shown(relation_table([found], layout)) == shown(relation_table([expected], layout))
        assert isinstance(found, LAZY)
        assert found.counts() == Counter(each.subscription for each in expected)
        for name in ("Pair", "Any", "Late"):
            assert [each.id for each in found.only(name)] == [each.id for each in expected if each.subscription == name]


def test_attributes_share_a_column_unless_their_types_differ() -> None:
    schema = relation_schema(fairlead.compile(MIXED))
    members, emitted = schema.field("members").type.value_type, schema.field("emitted").type
    names = [each.name for each in members]
    assert names[:3] == ["type", "position", "place"]
    assert members.field("k").type == pa.int32()
    assert members.field("A.x").type == pa.int32()
    assert members.field("Odd.x").type == pa.string()
    assert "x" not in names
    assert members.field("Odd.place").type == pa.int32()
    assert {each.name: str(each.type) for each in emitted if each.name != "type"} == {
        "Seen.x": "int32",
        "Missed.x": "string",
        "y": "double",
        "at": "timestamp[us, tz=UTC]",
    }


def test_a_derived_member_stands_at_its_place_beside_the_logged_event() -> None:
    plan = fairlead.compile(MIXED)
    table = fairlead.match(plan, mixed_events()).to_arrow("Above")
    missed = [each for row in table["members"].to_pylist() for each in row if each["type"] == "Missed"]
    assert missed
    assert {each["place"] for each in missed} <= {-1, -2, -3}
    assert all(each["Missed.x"] == "none" and each["C.x"] is None for each in missed)
