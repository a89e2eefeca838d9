"""Engines that are given the same columns share what they compute of them, and find what each would find alone; and relations
that are made one by one are those that are made together."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine, compile
from fairlead.errors import UnsupportedError
from fairlead.matching import relations
from fairlead.matching.kernel.prepared import Prepared
from fairlead.model.relation import Relation
from fairlead.transport.events import read_events
from tests.match.generated import Case, cases

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


@settings(suppress_health_check=[*SLOW, HealthCheck.function_scoped_fixture], deadline=None)
@given(first=cases(), second=cases(), size=st.integers(1, 6))
def test_engines_that_share_find_what_each_finds_alone(first: Case, second: Case, size: int) -> None:
    rules = [first.rules, second.rules, first.rules]
    sharing, alone = [engine_of(each) for each in rules], [engine_of(each) for each in rules]
    catalogue = compile(first.rules).catalogue
    events = first.events
    for columns, own in zip(
        read_events(events, catalogue, batch_rows=size), read_events(events, catalogue, batch_rows=size), strict=True
    ):
        prepared = Prepared(columns)
        for one, other in zip(sharing, alone, strict=True):
            if one is not None and other is not None:
                assert shown(one.feed(prepared.columns, prepared)) == shown(other.feed(own))
    for one, other in zip(sharing, alone, strict=True):
        if one is not None and other is not None:
            assert one.dump() == other.dump()


@settings(suppress_health_check=[*SLOW, HealthCheck.function_scoped_fixture], deadline=None)
@given(case=cases(), size=st.integers(1, 12))
def test_relations_one_by_one_are_those_made_together(case: Case, size: int) -> None:
    single, together = engine_of(case.rules), engine_of(case.rules)
    if single is None or together is None:
        return
    for columns in read_events(case.events, single.plan.catalogue, batch_rows=size):
        one, many = single.feed(columns), together.feed(columns)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(relations, "FEW", 0)
            expected = shown(many)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(relations, "FEW", 1 << 30)
            assert shown(one) == expected
            assert shown(one[1::2]) == expected[1::2]
