"""What kernels know between batches: the compiled matcher, from the first event on, gives what the reference gives, and the
state that matching event by event gives, whatever the batches are and wherever a state is dumped and loaded.

Generated cases run as plain Python that checks its indexes; the long streams run on the checked build of machine code.
`make equal CASES=20000` runs as many cases, each a plan with a stream; a plan has several.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, settings

from fairlead.engine import Engine
from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.matching.compiled.planning.eligibility import without_kernels
from fairlead.model.events.columns import Columns
from fairlead.model.events.event import Event
from fairlead.model.plans.plan import Plan
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.admission.records import RecordReader
from tests.matching.equality.test_lanes import shown
from tests.matching.generators.keyed import TYPES, KeyedCase, Thresholds, keyed_cases, long_stream, timed

pytestmark = pytest.mark.xdist_group("compiled kernels")
NO_ROWS = Columns((), np.zeros(0, dtype=np.int8), range(0), {})


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("FAIRLEAD_KERNELS", "checked")


def columns_of(batches: Sequence[list[dict[str, Any]]], plan: Plan) -> Iterator[Columns]:
    reader = RecordReader(plan.catalogue)
    for batch in batches:
        made = list(reader.read(batch))
        yield from made or [NO_ROWS]


def run(
    plan: Plan,
    batches: Sequence[list[dict[str, Any]]],
    reloads: frozenset[int] = frozenset(),
    compared: frozenset[int] | None = None,
) -> tuple[list[Any], list[Event]]:
    """What kernels deliver; after every batch, or those that are named and the last, their state is that of matching event by
    event."""
    plain, fast = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    found: list[Any] = []
    seen: list[Event] = []
    given = list(columns_of(batches, plan))
    for at, columns in enumerate(given):
        expected = shown(plain.feed(columns))
        assert shown(fast.feed(columns)) == expected
        if compared is None or at in compared or at in reloads or at == len(given) - 1:
            dumped = plain.dump()
            assert fast.dump() == dumped
            if at in reloads:
                fast = Engine.load(plan, dumped, kernels_from=0)
                assert fast.lane is not None
                assert fast.dump() == dumped
        found += expected
        seen += columns.events(plan.catalogue)
    return found, seen


def compiled(rules: str) -> Plan:
    """What compiles at all: a generated condition may be one that compares nothing."""
    try:
        plan = compile_text(rules)
    except LanguageError:
        assume(False)
        raise
    assume(not without_kernels(plan))
    return plan


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")


STREAMS, PLANS_MIN = 8, 20


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_kernels_know_between_batches_what_the_reference_knows() -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=max(PLANS_MIN, settings.default.max_examples // STREAMS))
    @given(keyed_cases(STREAMS))
    def holds(case: KeyedCase) -> None:
        plan = compiled(case.rules)
        for stream in case.streams:
            with pytest.MonkeyPatch.context() as patch:
                stream.thresholds.set(patch)
                found, seen = run(plan, stream.batches, stream.reloads, stream.compared)
            assert found == shown(ReferenceMatcher(plan).run(seen, None))
            event(f"relations: {min(len(found), 5)}")
            total.update(relations=len(found), cases=1, keyed=("PER" in case.rules) * len(found))

    holds()
    assert total["keyed"] > total["cases"] // 10, total


PLANS = {
    "whole keys": "SUBSCRIPTION S MATCH A a THEN B b PER k",
    "whole keys, together": "SUBSCRIPTION S MATCH A a THEN B b PER k SUBSCRIPTION T MATCH B b AND C c PER j",
    "texts": "SUBSCRIPTION S MATCH A a AND B b PER s DISPOSAL INFIX",
    "floats": "SUBSCRIPTION S MATCH A a AND B b PER d DISPOSAL INFIX",
    "two attributes": "SUBSCRIPTION S MATCH A a AND B b PER k, s DISPOSAL INFIX",
    "three attributes in a window": "SUBSCRIPTION S MATCH A a AND B b PER s, k, f WITHIN 9 SECONDS",
    "a window": "SUBSCRIPTION S MATCH A a AND B b PER k WITHIN 9 SECONDS",
    "a family": "SUBSCRIPTION S MATCH A a AND B b WHERE a.x > 2 PER k SUBSCRIPTION T MATCH A a AND B b WHERE a.x > 4 PER k",
    "equal floats": "SUBSCRIPTION S MATCH A a[2] AND B b WHERE a[1].d = a[2].d AND a[2].d = b.d WITHIN 9 SECONDS",
    "equal values of a key": "SUBSCRIPTION S MATCH A a AND B b WHERE a.s = b.s PER j DISPOSAL INFIX",
    "unlike values of overlapping types": "SUBSCRIPTION S MATCH A a AND D b WHERE a.s = lower(b.s) WITHIN 9 SECONDS",
    "six members": "SUBSCRIPTION S MATCH A a[3] AND B b[3] WHERE a[1].x = b[1].x PER j",
    "ordered texts": "SUBSCRIPTION S MATCH A a AND B b WHERE a.s <= b.s PER j",
    "an absence": "SUBSCRIPTION S MATCH A a WITHOUT B b WITHIN 2 SECONDS OF a WHERE b.d = a.d PER k",
}
SIZES = (0, 1, 40, 0, 350, 1, 150, 1, 0, 125)


@pytest.mark.sampled
@pytest.mark.parametrize("spread", ["close", "far", "turning"])
@pytest.mark.parametrize("name", PLANS)
def test_batches_of_no_row_of_one_and_of_hundreds_with_other_types_between(name: str, spread: str) -> None:
    plan, events = compile_text(TYPES + PLANS[name]), long_stream(sum(SIZES), spread, seed=11)
    batches: list[list[dict[str, Any]]] = []
    for at, size in enumerate(SIZES):
        batches += [events[:size], [{"type": "N", "x": at}] * 3]
        del events[:size]
    with pytest.MonkeyPatch.context() as patch:
        Thresholds(small=64, spread=8, few=64, table=64, packing=16).set(patch)
        found, _ = run(plan, batches, frozenset({6, 13}))
    assert len(found) > 5


CIRCLES = (
    "MATCH B b[2] THEN V u[2] THEN A a THEN V v WHERE time(u[1]) > time(u[2]) WITHIN 6 SECONDS MATCHING RECENT",
    "MATCH B b THEN A a THEN V v THEN A z THEN V w WHERE time(a) > time(v) WITHIN 5 SECONDS",
    "MATCH C c THEN U u[2] THEN B b THEN U v THEN B z WHERE time(u[1]) > time(u[2]) WITHIN 4 SECONDS DISPOSAL INFIX",
)


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("pattern", CIRCLES)
def test_what_then_makes_impossible_leaves_on_both_lanes_where_types_stand_in_a_circle(pattern: str) -> None:
    plan = compile_text(f"{TYPES} SUBSCRIPTION S {pattern}")
    for seed in range(25):
        draw = random.Random(seed)
        blank = dict.fromkeys(("k", "j", "s", "d", "t", "f", "x", "y"))
        records = [{"type": draw.choice("AABBC"), "step": draw.choice((0, 1, 1, 2, 3, -1, -1))} | blank for _ in range(40)]
        run(plan, [[each] for each in timed(records)], frozenset())
