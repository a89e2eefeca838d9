"""Tables on both lanes, cut into batches and loaded anywhere, are what the definition says; and buckets in an order by time,
which forget, find what buckets find that do not."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.engine import Engine
from fairlead.errors import UnsupportedError
from fairlead.language import compile_text
from fairlead.matching.compiled.planning.eligibility import require_kernels
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.embedded import until_microseconds
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.equality.test_equal_to_reference import shown
from tests.matching.generators.generated import START, Case
from tests.matching.generators.tables import TYPES, table_cases


def has_kernels(plan: Plan) -> bool:
    try:
        require_kernels(plan)
    except UnsupportedError:
        return False
    return True


def check(case: Case, rng: Random) -> None:
    plan = compile_text(case.rules)
    until = until_microseconds(case.until)
    batches = list(read_events(case.events, plan.catalogue, batch_rows=rng.choice((1, 3, 100))))
    events = [event for columns in batches for event in columns.events(plan.catalogue)]
    expected = shown(ReferenceMatcher(plan).run(events, until))
    lanes = (None, -1) if has_kernels(plan) else (None,)
    dumps = []
    lane: int | None
    for lane in lanes:
        engine, found = Engine(plan, kernels_from=lane), list[Relation]()
        reloads = {rng.randrange(len(batches) + 1) for _ in range(2)}
        for at, columns in enumerate(batches):
            found += engine.feed(columns)
            if at in reloads:
                dumped = engine.dump()
                engine = Engine.load(plan, dumped, kernels_from=rng.choice(lanes))
                assert engine.dump() == dumped
        dumps.append(engine.dump())
        assert shown([*found, *engine.finish(until)]) == expected
    assert len(set(dumps)) == 1


@pytest.mark.slow
@given(table_cases(), st.integers(0, 1 << 30))
def test_subscriptions_that_read_tables_equal_the_reference(case: Case, seed: int) -> None:
    check(case, Random(seed))


BUCKETS = ("bucket(at, 60 SECONDS)", "k, bucket(at, 1 MINUTE)", "bucket(at, 20 SECONDS), k")
PATTERNS = ("A a AND B b", "A a[2]", "A a THEN B b", "A a[2] AND B b WHERE a[1].x < b.x", "A a OR B b[2]")
OPTIONS = (
    "",
    "DISPOSAL INFIX",
    "DISPOSAL NONE",
    "MATCHING FIRST CONTIGUOUS DISPOSAL FIRST PREFIX",
    "WITHIN 15 SECONDS",
    "LIMIT 3",
)


@pytest.mark.sampled
@pytest.mark.parametrize("per", BUCKETS)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("options", OPTIONS)
def test_buckets_find_the_same_where_an_order_by_time_ends_them(per: str, pattern: str, options: str) -> None:
    rng = Random(f"{per} {pattern} {options}")
    rules = f"{TYPES} SUBSCRIPTION S MATCH {pattern} PER {per} {options}"
    plain, ordered = compile_text(rules), compile_text(f"{rules} ORDER BY at")
    assert all("bucket" not in str(branch.keys) for branch in ordered["S"].branches)
    events = [_event(rng, at) for at in sorted(rng.sample(range(-90, 600), 60))]
    expected = [each.positions for each in fairlead.match(plain, events, event_by_event=True)]
    found = [fairlead.match(ordered, events, event_by_event=lane) for lane in (True, False)]
    assert [[each.positions for each in some] for some in found] == [expected, expected]
    by_argument = fairlead.match(plain, events, order_by="at")
    assert [each.id for each in by_argument] == [each.id for each in found[0]]


def _event(rng: Random, at: int) -> dict[str, object]:
    event = {"type": rng.choice("AB"), "k": rng.choice((0, 0, 1, None)), "x": rng.randint(0, 3)}
    return event | {"s": "a", "d": 0.0, "at": at}


ALONE = (
    "A a AND T t WHERE a.x > 9 + t.x",
    "B b AND T t WHERE b.x > 9 + t.x",
    "T t THEN U u WHERE u.x > 9 + t.x PER k MATCHING ALL",
    "A a AND T t[2] WHERE a.x > 9 + t[1].x WITHIN 4 SECONDS WITHOUT A n BEFORE a WITHIN 2 SECONDS WHERE n.x > a.x",
)


@pytest.mark.parametrize("lane", [None, 0])
@pytest.mark.parametrize("pattern", ALONE)
def test_what_reads_tables_alone_is_not_kept(pattern: str, lane: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in a relation when it arrives or never, whatever else it enters: so a state is as large as its tables."""
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    plan = compile_text(f"{TYPES}TABLE T KEY (x) FROM A SUBSCRIPTION S MATCH {pattern}")
    rows = [
        {"type": "AB"[n % 2], "k": 0, "x": n // 2 % 3, "s": "a", "d": 1.0, "at": START + timedelta(seconds=n)}
        for n in range(80)
    ]
    engine, sizes = Engine(plan, kernels_from=lane), list[int]()
    for columns in read_events(rows, plan.catalogue, batch_rows=20):
        engine.feed(columns)
        sizes.append(len(engine.dump()))
    assert sizes[-1] <= sizes[0] + 200
