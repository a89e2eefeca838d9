"""Tables and bounds of queues on both lanes, cut into batches and loaded anywhere, are what the definition says."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from tests.matching.generators.generated import Case
from tests.matching.generators.tables import table_cases


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
        reloads = {rng.randrange(len(batches)) for _ in range(2)}
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
