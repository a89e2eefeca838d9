"""Durations and times at the ends of their ranges: a deadline is never out of 64 bits, in no matcher and no state."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.engine import Engine
from fairlead.errors import LanguageError, UsageError
from fairlead.language import compile_text
from fairlead.model.events.values import TIMESTAMP_RANGE
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.admission.records import RecordReader

TYPES = """
TYPE A (k INT, at TIMESTAMP) TIME at
TYPE B (k INT, at TIMESTAMP) TIME at
"""
RULES = {
    "a window": "SUBSCRIPTION S MATCH A a THEN B b WITHIN {} PER k",
    "an absence": "SUBSCRIPTION S MATCH A a WITHOUT B b WITHIN {} OF a PER k EMIT M (k = a.k, t = time(a) + {}) "
    "SUBSCRIPTION R MATCH M m[2]",
}
FIRST, LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"
LONGEST = "3652500 DAYS"
TOO_LONG = ("3652500.000001 DAYS", "315576000000001 MILLISECONDS", "521786 WEEKS", "15000000 WEEKS")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")


def shown(relations: Any) -> list[Any]:
    return [(r.subscription, r.positions, str(r.completed_at), str(r.emitted_row), r.id) for r in relations]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("duration", [LONGEST, "1000000 DAYS", "1 MICROSECOND"])
def test_all_matchers_agree_about_times_at_both_ends(rule: str, duration: str) -> None:
    plan = compile_text(TYPES + RULES[rule].format(duration, duration))
    records = [
        {"type": name, "k": key, "at": at}
        for key, order in enumerate(((FIRST, LAST, FIRST), (LAST, FIRST, LAST), (FIRST, FIRST, LAST)))
        for name, at in zip("AAB", order, strict=True)
    ]
    literal, plain, fast = ReferenceMatcher(plan), Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    for columns in RecordReader(plan.catalogue).read(records):
        expected = shown(each for event in columns.events(plan.catalogue) for each in literal.arrive(event))
        assert shown(plain.feed(columns)) == expected
        assert shown(fast.feed(columns)) == expected
    for until in TIMESTAMP_RANGE:
        expected = shown(literal.finish(until))
        assert shown(plain.finish(until)) == expected
        assert shown(fast.finish(until)) == expected
    assert fast.dump() == plain.dump()
    assert Engine.load(plan, plain.dump()).dump() == plain.dump()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("duration", TOO_LONG)
def test_a_clause_of_more_than_all_time_is_refused(rule: str, duration: str) -> None:
    with pytest.raises(LanguageError, match="L007"):
        compile_text(TYPES + RULES[rule].format(duration, duration))


@pytest.mark.parametrize("until", [TIMESTAMP_RANGE[0] - 1, TIMESTAMP_RANGE[1] + 1, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("kernels_from", [None, 0])
def test_an_end_that_is_no_timestamp_is_refused_and_the_engine_goes_on(until: int, kernels_from: int | None) -> None:
    engine = Engine(compile_text(TYPES + RULES["an absence"].format("1 DAY", "1 DAY")), kernels_from=kernels_from)
    with pytest.raises(UsageError, match="A010"):
        engine.finish(until)
    assert list(engine.finish(TIMESTAMP_RANGE[1])) == []
