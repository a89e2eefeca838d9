"""What is kept for WITHOUT … BEFORE: no more than can forbid a relation to come, on both lanes; no answer depends on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.model.plans.plan import Plan
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.matching.state.test_soundness import columns_of

TYPES = "".join(f"TYPE {name} (k INT, v INT, at TIMESTAMP) TIME at\n" for name in "ABN")
START = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = 3


def records(count: int, seed: int, falls: int) -> list[dict[str, Any]]:
    """Times that rise, and fall back by up to `falls` seconds."""
    chance = Random(seed)
    return [
        {
            "type": chance.choice("AABNNN"),
            "k": chance.randrange(KEYS),
            "v": chance.randrange(4),
            "at": START + timedelta(seconds=at - chance.choice((0, 0, 0, falls))),
        }
        for at in range(count)
    ]


def kept(engine: Engine) -> int:
    """Entries of queues and of noted events."""
    columns = columns_of(engine.dump())
    return sum(len(each.values) for name, each in columns.items() if name.startswith("queued"))


def run(plan: Plan, events: list[dict[str, Any]], kernels_from: int | None) -> tuple[list[str], list[int]]:
    engine, found, sizes = Engine(plan, kernels_from=kernels_from), [], []
    for columns in read_events(events, plan.catalogue, batch_rows=50):
        found += [each.id for each in engine.feed(columns)]
        sizes.append(kept(engine))
    return found, sizes


BOUNDED = {
    "MATCH A a WITHOUT N n BEFORE a PER k": KEYS,
    "MATCH A a WITHOUT N n BEFORE a WHERE n.v > 1 PER k": KEYS,
    "MATCH A a WITHOUT N n BEFORE a WITHIN 3 SECONDS PER k": KEYS,
    "MATCH A a WITHOUT A n BEFORE a WITHIN 3 SECONDS PER k": KEYS,
    "MATCH A a WITHOUT N n BEFORE a WITHIN 3 SECONDS": 1,
    "MATCH A a AND B b WITHIN 5 SECONDS WITHOUT N n BEFORE a WITHIN 3 SECONDS WHERE n.v = b.v PER k": 60,
    "MATCH A a[2] WITHIN 5 SECONDS WITHOUT N n BEFORE a[1] WITHIN 3 SECONDS PER k": 60,
    "MATCH A a AND B b WITHIN 5 SECONDS WITHOUT B n BEFORE a WITHIN 3 SECONDS PER k": 60,
}
"""With the most that may be kept: of one event a key, or of some seconds."""


@pytest.mark.parametrize("falls", [0, 7])
@pytest.mark.parametrize("kernels_from", [None, 0], ids=["event by event", "kernels"])
@pytest.mark.parametrize("rule", BOUNDED)
def test_what_is_kept_does_not_grow_with_the_stream(
    monkeypatch: pytest.MonkeyPatch, rule: str, kernels_from: int | None, falls: int
) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S {rule}")
    _, sizes = run(plan, records(600, 1, falls), kernels_from)
    assert max(sizes) <= BOUNDED[rule]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rule", BOUNDED)
def test_what_is_forgotten_changes_no_answer(monkeypatch: pytest.MonkeyPatch, rule: str, seed: int) -> None:
    """The reference keeps everything."""
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S {rule}")
    stream = records(150, seed, 9)
    events = [event for columns in read_events(stream, plan.catalogue) for event in columns.events(plan.catalogue)]
    expected = [each.id for each in ReferenceMatcher(plan).run(events)]
    assert len(expected) > 0 or "BEFORE a PER" in rule
    assert run(plan, stream, None)[0] == run(plan, stream, 0)[0] == expected
