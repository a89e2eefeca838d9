"""Engines that are given the same columns share what they compute of them, and find what each would find alone; and relations
that are made one by one are those that are made together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine, compile
from fairlead.errors import UnsupportedError
from fairlead.matching.compiled.running.batch import KernelBatch, Prepared
from fairlead.matching.results import relations
from fairlead.model.relations.relation import Relation
from fairlead.transport.events import read_events
from tests.matching.generators.generated import Case, cases

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")


def engine_of(rules: str) -> Engine | None:
    try:
        return Engine(compile(rules), kernels_from=0)
    except UnsupportedError:
        return None


def shown(found: Iterable[Relation]) -> list[str]:
    """As text: NaN does not equal itself."""
    return [repr(each) for each in found]


def test_the_rows_of_several_types_are_numbered_as_those_of_one() -> None:
    types = "TYPE A (x INT) TYPE B (x INT) TYPE C (x INT) "
    plan = compile(f"{types} SUBSCRIPTION S MATCH A a AND B b AND C c")
    (columns,) = read_events([{"type": name, "x": 1} for name in "BACABCA"], plan.catalogue)
    batch = KernelBatch(columns, plan.catalogue)
    assert [each.tolist() for each in batch.together(["A", "B", "C"])] == [[1, 3, 6], [0, 4], [2, 5]]
    assert [each.tolist() for each in batch.together(["A", "C"])] == [[0, 2, 4], [1, 3]]
    assert batch.together(["C", "A"])[1].tolist() == [0, 2, 4]


RULES = """
TYPE A (k INT, x INT, s STRING)
TYPE B (k INT, x INT, s STRING)
SUBSCRIPTION One MATCH A a AND B b WHERE a.k = b.k AND a.x < b.x
SUBSCRIPTION Either MATCH A a[2] OR B b AND A c OR B d WHERE b.s = c.s AND d.x > 2
SUBSCRIPTION Texts MATCH A a AND B b WHERE a.s < b.s AND a.x IN (0, 1)
"""
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from("AB"),
            "k": st.none() | st.integers(0, 2),
            "x": st.none() | st.integers(0, 4),
            "s": st.sampled_from(["", "one", "two"]),
        }
    ),
    min_size=20,
    max_size=60,
)
ANYHOW = settings(suppress_health_check=[*SLOW, HealthCheck.function_scoped_fixture], deadline=None)


def compared(rules: Sequence[str], events: Any, size: int) -> None:
    sharing, alone = [engine_of(each) for each in rules], [engine_of(each) for each in rules]
    pairs = [(one, other) for one, other in zip(sharing, alone, strict=True) if one is not None and other is not None]
    catalogue = compile(rules[0]).catalogue
    for columns in read_events(events, catalogue, batch_rows=size):
        prepared = Prepared(columns, catalogue)
        for one, other in pairs:
            assert shown(one.feed(prepared.columns, prepared)) == shown(other.feed(columns))
    for one, other in pairs:
        assert one.dump() == other.dump()


@pytest.mark.slow
@ANYHOW
@given(first=cases(), second=cases(), size=st.integers(1, 6))
def test_engines_of_any_rules_that_share_find_what_each_finds_alone(first: Case, second: Case, size: int) -> None:
    compared([first.rules, second.rules, first.rules], first.events, size)


@pytest.mark.slow
@ANYHOW
@given(events=EVENTS, size=st.integers(5, 30))
def test_engines_that_share_find_what_each_finds_alone(events: Any, size: int) -> None:
    head, *subscriptions = RULES.split("SUBSCRIPTION")
    compared([RULES, *(f"{head}SUBSCRIPTION{each}" for each in subscriptions), RULES], events, size)


@pytest.mark.slow
@ANYHOW
@given(events=EVENTS, size=st.integers(5, 30), step=st.integers(1, 5))
def test_relations_one_by_one_are_those_made_together(events: Any, size: int, step: int) -> None:
    single, together = engine_of(RULES), engine_of(RULES)
    assert single is not None
    assert together is not None
    for columns in read_events(events, single.plan.catalogue, batch_rows=size):
        one, many = single.feed(columns), together.feed(columns)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(relations, "FEW", 0)
            expected = shown(many)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(relations, "FEW", 1 << 30)
            assert shown(one[1::step]) == expected[1::step]
            assert shown(one) == expected
