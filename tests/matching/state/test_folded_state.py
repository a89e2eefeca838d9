"""A folded run takes the same room however long it is, in memory and in a state; numbers that none can have are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.language import compile_text
from fairlead.matching.state.encoding import encode
from fairlead.model.plans.plan import Plan
from fairlead.transport.events import read_events

RULES = """
TYPE Q (k INT, x INT, y DOUBLE, s STRING, at TIMESTAMP) TIME at
SUBSCRIPTION S MATCH Q q+ HAVING count(q) >= 2000000 PER k FOLD q
EMIT E (n = count(q), total = sum(q.x), mean = avg(q.y), low = min(q.x), text = max(q.s), different = count(DISTINCT q.x))
"""


def events(count: int) -> pa.Table:
    at = np.arange(count)
    columns = {
        "type": pa.array(["Q"] * count),
        "k": pa.array((at % 3).astype(np.int32)),
        "x": pa.array((at * 7919 % 1000).astype(np.int32)),
        "y": pa.array(at * 0.1),
        "s": pa.array((at % 5).astype(str)),
        "at": pa.array(at * 1000, pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


def fed(engine: Engine, count: int, size: int) -> Iterator[int]:
    """How many events were fed, after each batch."""
    for at, columns in enumerate(read_events(events(count), engine.plan.catalogue, batch_rows=size)):
        engine.feed(columns)
        yield (at + 1) * size


def test_a_state_does_not_grow_with_the_run() -> None:
    """All values have been met after 1,000 events of each key; of a million more nothing is left but larger numbers."""
    engine = Engine(compile_text(RULES), kernels_from=0)
    dumps = []
    for count in fed(engine, 1_000_000, 4_000):
        if count in (4_000, 1_000_000):
            dumps.append(engine.dump())
        assert engine.units[0].lane is not None
        engine.units[0].lane.store.slack_bytes_max = 1 << 20  # batches go as soon as they have a megabyte more than is needed
    early, late = dumps
    assert len(late) <= 1.25 * len(early)
    assert len(engine.units[0].lane.store.view()) < 60_000
    assert Engine.load(engine.plan, late, kernels_from=None).dump() == late


@pytest.mark.parametrize("lane", [None, 0])
def test_a_state_without_different_values_has_a_few_events_for_each_key(lane: int | None) -> None:
    plan = compile_text(RULES.replace(", different = count(DISTINCT q.x)", ""))
    engine = Engine(plan, kernels_from=lane)
    sizes = [len(engine.dump()) for _ in fed(engine, 6_000, 1_000)]
    assert max(sizes) < 5_500
    assert max(sizes) - min(sizes) < 200


def damaged(engine: Engine, **changed: Any) -> bytes:
    (unit,), (part,) = engine.units, engine.parts
    content = unit.content()
    ((form, group),) = content.groups.items()
    return encode(engine.last, [(part, replace(content, groups={form: replace(group, **changed)}))])


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        (0, 1, "a run has no such length"),
        (0, 1 << 40, "a run has no such length"),
        (3, -1, "more or fewer values than events"),
        (3, 1 << 40, "more or fewer values than events"),
        (6, 1 << 62, "a sum is larger than its values can be"),
        (7, -1, "a sum is larger than its values can be"),
    ],
)
def test_numbers_that_no_run_has_are_refused(column: int, value: int, said: str) -> None:
    engine = small(["avg(q.y)", "sum(q.x)"])
    numbers = engine.units[0].content().groups
    ((_, group),) = numbers.items()
    changed = group.folded.copy()
    changed[0, column] = value
    with pytest.raises(StateError, match=said):
        Engine.load(engine.plan, damaged(engine, folded=changed))


def test_an_event_that_stands_for_no_other_is_refused() -> None:
    wanted, engine = small(["min(q.x)"]), small(["first(q.x)"])
    (group,) = wanted.units[0].content().groups.values()
    (mine,) = engine.units[0].content().groups.values()
    assert mine.lengths.sum() < group.lengths.sum()
    changed = {"lengths": group.lengths, "words": group.words}
    with pytest.raises(StateError):
        Engine.load(engine.plan, damaged(engine, **changed))


def small(read: Sequence[str]) -> Engine:
    fields = ", ".join(f"e{at} = {each}" for at, each in enumerate(read))
    plan: Plan = compile_text(RULES[: RULES.index("EMIT")] + f"EMIT E ({fields})")
    engine = Engine(plan, kernels_from=None)
    list(fed(engine, 90, 90))
    return engine
