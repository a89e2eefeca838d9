"""`match(position=…)`: the positions of a log are those of its relations, with gaps, in whatever form the events come."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fairlead
from fairlead.engine import KERNELS_FROM, Engine
from fairlead.model.relations.identity import POSITIONS_MAX
from fairlead.runtime.embedded import Run, until_microseconds
from fairlead.transport import read_events, read_files
from tests.matching.generators.generated import Case
from tests.matching.generators.plans import plan_cases

RULES = """
TYPE A (k INT, x DOUBLE, at TIMESTAMP) TIME at
TYPE B (k INT, x DOUBLE, at TIMESTAMP) TIME at
SUBSCRIPTION Pairs MATCH A a AND B b WHERE a.x <= b.x PER a.k, b.k EMIT Pair(k = a.k)
SUBSCRIPTION Alone MATCH A a WITHOUT B b WITHIN 3 SECONDS OF a PER k
SUBSCRIPTION Twice MATCH Pair p[2]
"""
UNTIL = "2030-01-01T00:00:00Z"


def table(rows: int) -> pa.Table:
    """Events with positions as a log of blocks has them."""
    chance = np.random.default_rng(3)
    blocks = np.cumsum(chance.integers(0, 3, rows) == 0) << 12
    return pa.table(
        {
            "position": blocks + np.arange(rows) % 4096,
            "type": chance.choice(["A", "B"], rows),
            "k": pa.array(chance.integers(0, 5, rows), pa.int32()),
            "x": chance.random(rows),
            "at": pa.array(np.arange(rows) * 400_000, pa.timestamp("us", tz="UTC")),
        }
    ).sort_by("position")


@pytest.mark.slow
@given(plan_cases(), st.data())
def test_relations_are_those_of_the_engine_at_these_positions(case: Case, data: st.DataObject) -> None:
    try:
        plan = fairlead.compile(case.rules)
    except fairlead.LanguageError:
        assume(False)
        raise
    count = len(case.events)
    positions = sorted(data.draw(st.lists(st.integers(0, 60), min_size=count, max_size=count, unique=True)))
    engine, wanted = Engine(plan), []
    for columns in read_events(case.events, plan.catalogue):
        wanted += engine.feed(replace(columns, positions=positions, last_position=None))
    wanted += engine.finish(until_microseconds(case.until))
    numbered = [event | {"_at": position} for event, position in zip(case.events, positions, strict=True)]
    found = fairlead.match(plan, numbered, position="_at", until=case.until)
    assert [(each.id, each.positions) for each in found] == [(each.id, each.positions) for each in wanted]


@pytest.mark.parametrize("rows", [300, 3 * KERNELS_FROM])
def test_records_tables_and_files_give_the_same_relations(tmp_path: Path, rows: int) -> None:
    plan, events = fairlead.compile(RULES), table(rows)
    wanted = fairlead.match(plan, events, position="position", until=UNTIL)
    assert set(wanted[0].positions) <= set(events.column("position").to_pylist())
    assert len(wanted) > rows // 10
    assert fairlead.match(plan, events.to_pylist(), position="position", until=UNTIL).receipt == wanted.receipt
    pq.write_table(events, tmp_path / "events.parquet")
    running = Run(plan)
    for columns in read_files(tmp_path / "events.parquet", plan.catalogue, position="position", batch_rows=1000):
        running.feed(columns)
    running.finish(until_microseconds(UNTIL))
    assert running.receipt.digest == wanted.receipt.digest


@pytest.mark.parametrize("rows", [50, KERNELS_FROM + 50])
def test_positions_without_gaps_from_0_change_nothing(rows: int) -> None:
    plan, events = fairlead.compile(RULES), table(rows)
    counted = events.set_column(0, "position", pa.array(np.arange(rows)))
    plain = fairlead.match(plan, events.drop_columns("position"), until=UNTIL)
    assert fairlead.match(plan, counted, position="position", until=UNTIL).receipt == plain.receipt


@pytest.mark.parametrize("rows", [50, KERNELS_FROM + 50])
def test_the_last_positions_have_places_beside_them_too(rows: int) -> None:
    plan, events = fairlead.compile(RULES), table(rows)
    last = events.set_column(0, "position", pa.array(POSITIONS_MAX - rows + np.arange(rows)))
    found = fairlead.match(plan, last, position="position", until=UNTIL)
    plain = fairlead.match(plan, events.drop_columns("position"), until=UNTIL)
    assert len(found) == len(plain)
    assert str(found[-1].completed_at).startswith(str(POSITIONS_MAX))
    assert len({each.id for each in found}) == len(found)


def test_both_an_order_and_positions_are_refused() -> None:
    with pytest.raises(fairlead.UsageError, match="A210"):
        fairlead.match(fairlead.compile(RULES), [], order_by="at", position="position")
