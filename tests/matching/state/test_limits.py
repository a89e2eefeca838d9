"""What LIMIT has counted is part of the state, on both lanes; and what can no longer be delivered is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.matching.state.content import CountTable
from fairlead.matching.state.encoding import encode
from fairlead.transport.events import read_events

TYPES = """
TYPE A (k INT, y DOUBLE, d DECIMAL(6,2), s STRING, at TIMESTAMP) TIME at
TYPE B (k INT, y DOUBLE, d DECIMAL(9,4), s STRING, at TIMESTAMP) TIME at
"""
START = datetime(2026, 1, 1, tzinfo=UTC)
LANES = pytest.mark.parametrize("kernels_from", [None, 0], ids=["event by event", "kernels"])
KEYS = ("k", "y", "d", "s", "at", "k, s", "d, y, k")


def records(count: int, keys: int = 3) -> list[dict[str, Any]]:
    return [
        {
            "type": "AB"[at % 2],
            "k": at // 2 % keys,
            "y": (-0.0 if at % 4 else 0.0) if at // 2 % keys == 0 else float(at // 2 % keys),
            "d": f"{at // 2 % keys}.5",
            "s": f"s{at // 2 % keys}",
            "at": START + timedelta(seconds=at // 2 % keys),
        }
        for at in range(count)
    ]


def fed(engine: Engine, events: list[dict[str, Any]], first: int = 0) -> list[tuple[int, ...]]:
    columns = next(iter(read_events(events, engine.plan.catalogue)))
    return [relation.positions for relation in engine.feed(columns.part(first, len(events)))]


@LANES
@pytest.mark.parametrize("key", KEYS)
def test_counts_outlive_a_state_and_a_change_of_lanes(key: str, kernels_from: int | None) -> None:
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH A a AND B b OR A c PER {key} LIMIT 3 PER KEY")
    events = records(24)
    whole = fed(Engine(plan, kernels_from=kernels_from), events)
    assert len(whole) == 9
    for cut in (1, 6, 12, 13, 23):
        first = Engine(plan, kernels_from=kernels_from)
        found = fed(first, events[:cut])
        dumped = first.dump()
        for other in (None, 0):
            then = Engine.load(plan, dumped, kernels_from=other)
            assert then.dump() == dumped
            assert found + fed(then, events, cut) == whole


def test_a_batch_that_is_undone_counts_once() -> None:
    """A unit that gives up in the middle of a batch undoes it, and kernels get all of it."""
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH A a PER k LIMIT 40 PER KEY")
    events = records(400)
    moving = Engine(plan, kernels_from=5)
    found = fed(moving, events[:100]) + fed(moving, events, 100)
    assert moving.lane is not None
    assert found == fed(Engine(plan, kernels_from=None), events)


@LANES
@pytest.mark.parametrize(
    "pattern", ["A a THEN B b WHERE a.y < b.y", "A a WITHOUT B b WITHIN 1 HOUR OF a", "A a AND B b OR A c[7]"]
)
def test_nothing_is_kept_once_a_limit_over_all_is_reached(pattern: str, kernels_from: int | None) -> None:
    text = f"{TYPES}SUBSCRIPTION S MATCH {pattern} DISPOSAL INFIX LIMIT 1\nSUBSCRIPTION T MATCH A a LIMIT 2"
    plan = fairlead.compile(text)
    engine = Engine(plan, kernels_from=kernels_from)
    events = [*records(40), {**records(1)[0], "at": START + timedelta(days=1)}, *records(20)]
    found = fed(engine, events)
    assert len(found) == 3
    assert not any(len(unit.content()) for unit in engine.units)
    assert engine.waiting() == []
    assert len(engine.dump()) < 3000
    more = [*events, *records(50), {**records(1)[0], "at": START + timedelta(days=9)}]
    before = engine.dump()
    assert fed(engine, more, len(events)) == []
    assert abs(len(engine.dump()) - len(before)) < 100


def test_alike_subscriptions_share_a_kernel_and_count_apart() -> None:
    rules = TYPES + "\n".join(f"SUBSCRIPTION S{n} MATCH A a AND B b WHERE a.k >= {n} LIMIT {n + 1}" for n in range(3))
    plan = fairlead.compile(rules)
    engines = [Engine(plan, kernels_from=each) for each in (None, 0)]
    events = records(30)
    found = [fed(each, events) for each in engines]
    assert found[0] == found[1]
    assert engines[1].lane is not None
    assert len(engines[1].lane.families) == 1
    assert engines[0].dump() == engines[1].dump()


WRONG = {
    "more was delivered than a LIMIT allows": lambda table: CountTable(table.keys, table.counts + 9),
    "a LIMIT has counted nothing": lambda table: CountTable(table.keys, table.counts * 0),
    "not in order": lambda table: CountTable(tuple(each.take([1, 0]) for each in table.keys), table.counts),
    "a key is NULL": lambda table: CountTable(tuple(each.take([0, None]) for each in table.keys), table.counts),
}


@pytest.mark.parametrize("problem", WRONG)
def test_counts_that_no_matcher_has_are_refused(problem: str) -> None:
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH A a PER s LIMIT 2 PER KEY")
    engine = Engine(plan)
    fed(engine, records(4))
    (part,), content = engine.parts, engine.units[0].content()
    content.counts[0] = WRONG[problem](content.counts[0])  # type: ignore[index]
    with pytest.raises(StateError, match=problem) as refused:
        Engine.load(plan, encode(engine.last, [(part, content)]))
    assert refused.value.code == "S005"


def test_counts_of_a_subscription_without_a_limit_are_refused() -> None:
    plan = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH A a THEN B b")
    limited = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH A a THEN B b LIMIT 2")
    engine, other = Engine(plan), Engine(limited)
    fed(engine, records(3)), fed(other, records(3))
    content = engine.units[0].content()
    content.counts[0] = other.units[0].content().counts[0]  # type: ignore[index]
    with pytest.raises(StateError, match="has no LIMIT"):
        Engine.load(plan, encode(engine.last, [(engine.parts[0], content)]))
