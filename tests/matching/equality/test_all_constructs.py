"""All constructs of the language, from all generators: the reference, the matcher that goes event by event and kernels deliver
the same, and keep the same, however the events are cut into batches and wherever a state changes lanes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.marks import sample_size
from tests.matching.equality.test_plans import compiled
from tests.matching.equality.test_tables import check
from tests.matching.generators.folds import fold_cases, session_cases
from tests.matching.generators.forbidding import forbidding_cases
from tests.matching.generators.generated import TYPES, Case, cases, events
from tests.matching.generators.plans import plan_cases
from tests.matching.generators.runs import run_cases, valued_run_cases
from tests.matching.generators.sequences import sequence_cases
from tests.matching.generators.tables import table_cases

EVERYTHING = st.one_of(
    *(cases(), run_cases(), valued_run_cases(), fold_cases(), session_cases(), table_cases(), sequence_cases(), plan_cases()),
    forbidding_cases(),
)
TABLE, RUN, BUCKET, ALL = r"\bT[0-9AUD] t", r" \w\w?(?:[+*?]|\{\d*,?\d*\})", r"bucket\(", "MATCHING ALL"
TOGETHER = (
    *((TABLE, other) for other in (RUN, ALL, "KEEP", "UPTO", "ADVANCE", "PER EVENT", "WITHOUT", "BEFORE", "RETAIN", BUCKET)),
    *((RUN, other) for other in ("HAVING", "DISTINCT", "RETAIN .*EVENTS BATCH", "RETAIN .*SECONDS", BUCKET, "PER KEY")),
    *((BUCKET, other) for other in ("PER KEY", ALL, "RETAIN", "WITHOUT", "KEEP", "EMIT")),
    *(("RETAIN", other) for other in ("KEEP", "UPTO", "BEFORE", "BETWEEN", "WITHIN . SECONDS OF", ALL, "CONTIGUOUS")),
    *(("FOLD", other) for other in ("HAVING", "OF PREVIOUS", "UNTIL", "BATCH", BUCKET, "OR", "LIMIT", "EMIT", "DISTINCT")),
    ("RETAIN", "NONE"), (RUN, "BEFORE"), (TABLE, "LIMIT"), (ALL, "CONTIGUOUS"),
    ("KEEP", "ADVANCE"), ("KEEP", "WITHIN"), ("KEEP", "LIMIT"), ("OR", "LIMIT"),
    *((each,) for each in ("NEXT", "ELSE", "UNTIL", r"prev\(", "STEPWISE", "SHORTEST", "LONGEST", "OF PREVIOUS")),
)  # fmt: skip
"""Parts of a subscription that some case has together."""


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    """The generated source runs as plain Python here: compiling hundreds of kernels would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLEAD_JIT", "0")
        yield


@given(EVERYTHING, st.integers(0, 1 << 30))
def test_all_matchers_give_what_the_reference_gives(case: Case, seed: int) -> None:
    compiled(case.rules)  # some keys are refused
    check(case, Random(seed))


FOUND = (
    "TABLE TA KEY (x) FROM A SUBSCRIPTION S MATCH A a{2,3} AND TA t",
    "TABLE TA KEY (x) FROM A SUBSCRIPTION S MATCH TA t AND B b+ HAVING sum(b.x) > 2 DISPOSAL INFIX",
    "TABLE TU KEY (k, x) FROM U SUBSCRIPTION S MATCH TU t THEN A a? HAVING avg(a.x) >= count(a.y) PER k",
    "SUBSCRIPTION S MATCH C c PER k, bucket(at, 2 SECONDS) DISPOSAL NONE LIMIT 2 PER KEY",
    "SUBSCRIPTION S MATCH A a{2,3} PER bucket(at, 3 SECONDS), k DISPOSAL FIRST PREFIX LIMIT 2 PER KEY",
    "SUBSCRIPTION S MATCH D d AND C c WITHOUT A n BEFORE d WITHIN 2 SECONDS RETAIN d 3 EVENTS DISPOSAL INFIX",
    "SUBSCRIPTION S MATCH D d WITHOUT A n BEFORE d WITHIN 2 SECONDS RETAIN d 3 EVENTS KEEP d",
)
"""Rules on which kernels differed once, or failed."""


@pytest.mark.parametrize("rules", FOUND)
def test_what_was_found_once_is_not_found_again(rules: str) -> None:
    @settings(max_examples=sample_size(20), derandomize=True)
    @given(events(16), st.integers(0, 1 << 30))
    def holds(records: list[dict[str, Any]], seed: int) -> None:
        check(Case(TYPES + rules, records), Random(seed))

    holds()


@pytest.mark.slow
def test_the_generators_draw_every_construct_and_those_that_meet() -> None:
    found: Counter[tuple[str, ...]] = Counter()

    @settings(max_examples=sample_size(3000), derandomize=True, suppress_health_check=list(HealthCheck))
    @given(EVERYTHING)
    def count(case: Case) -> None:
        for text in ("SUBSCRIPTION" + each for each in case.rules.split("SUBSCRIPTION")[1:]):
            found.update(words for words in TOGETHER if all(re.search(word, text) for word in words))

    count()
    assert sorted({*TOGETHER} - {*found}) == []
