"""How much is queued is counted as events enter and leave, whatever makes them leave, and after a state is loaded."""

from __future__ import annotations

from random import Random

import pytest

from fairlead.engine import Engine
from fairlead.errors import LanguageError, UnsupportedError
from fairlead.language import compile_text
from fairlead.matching.compiled.running.pool import COUNT
from fairlead.transport.admission.records import read_records
from tests.fuzz.plans import _loaded
from tests.fuzz.rules import rules
from tests.fuzz.streams import events
from tests.matching.compiled.test_kernel import interpreted

__all__ = ["interpreted"]

SEEDS = 30


def require_counted(engine: Engine) -> int:
    pools = [family.kernel.pool for unit in engine.units if unit.lane is not None for family in unit.lane.families]
    assert [pool.queued_count() for pool in pools] == [int(pool.queues[:, COUNT].sum()) for pool in pools]
    return sum(pool.queued_count() for pool in pools)


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_the_counter_is_the_sum_of_the_queues() -> None:
    most = falls = 0
    for seed in range(SEEDS):
        rng = Random(seed)
        made = rules(rng)
        try:
            plan = compile_text(str(made))
            engine = Engine(plan, kernels_from=0)
        except (LanguageError, UnsupportedError):
            continue
        before = 0
        for columns in read_records(events(rng, made.attributes, 30), plan.catalogue, batch_rows=3):
            engine.feed(columns)
            queued = require_counted(engine)
            most, falls, before = max(most, queued), falls + (queued < before), queued
            if rng.random() < 0.2:
                engine = _loaded(plan, engine.dump())
                assert require_counted(engine) == queued
    assert most > 10
    assert falls > 10
