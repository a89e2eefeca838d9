"""A state is alive exactly if the matcher would drop nothing from its queues."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import fairlead
from fairlead.matching.interpreted.dead_events import is_circular, needs_in_front
from fairlead.matching.interpreted.disposal import drop_dead
from fairlead.matching.state.dead_entries import are_alive

TYPES = "TYPE A (x INT) TYPE B (x INT) TYPE C (x INT)"
PATTERNS = (
    "A a AND B b",
    "A a THEN B b",
    "A a[3] THEN B b",
    "A a THEN B b[2] THEN C c",
    "A a THEN (B b AND C c)",
    "(A a AND B b) THEN C c[2]",
    "A a THEN B b THEN A d",
    "((C p THEN A q) THEN (B r THEN C s))",
    "A a THEN B b THEN C c THEN B d THEN A e",
)
INSTANCES = 3


@pytest.mark.parametrize("pattern", PATTERNS)
def test_alive_means_that_nothing_would_be_dropped(pattern: str) -> None:
    (branch,) = fairlead.compile(f"{TYPES} SUBSCRIPTION S MATCH {pattern}").subscriptions[0].branches
    needs, rng, seen = needs_in_front(branch), Random(pattern), set()
    for _ in range(300):
        drawn = [[_queue(rng) for _ in branch.queue_types] for _ in range(INSTANCES)]
        dropped = [bool(drop_dead(_events(queues), needs, is_circular(needs))) for queues in drawn]
        lengths = np.array([[len(queue) for queue in queues] for queues in drawn])
        words = np.array([word for queues in drawn for queue in queues for word in queue], dtype=np.int64)
        group: Any = SimpleNamespace(lengths=lengths, words=words)
        chosen = np.array(sorted(rng.sample(range(INSTANCES), rng.randrange(1, INSTANCES + 1))))
        assert are_alive(group, chosen, needs) == (not any(dropped[at] for at in chosen))
        seen.update(dropped)
    assert seen == ({True, False} if needs else {False})


def _queue(rng: Random) -> list[int]:
    return sorted(rng.sample(range(12), rng.choice((0, 0, 1, 2, 4))))


def _events(queues: list[list[int]]) -> Any:
    return [[cast(Any, SimpleNamespace(position=word)) for word in queue] for queue in queues]
