"""Identities of events without a sequence: their content is what they say, not what their type could say."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import fairlead
from fairlead.order.event_identity import event_identities
from fairlead.runtime.sorting import in_total_order
from tests.runtime.event_time.sequences import read

ATTRIBUTES = {"k": "INT", "x": "DOUBLE", "name": "STRING", "price": "DECIMAL(10,2)", "raw": "BINARY", "on": "BOOLEAN"}
VALUES: dict[str, tuple[Any, ...]] = {
    "k": (None, 0, 1), "x": (None, 0.0, 1.5), "name": (None, "", "a"), "price": (None, "0.00", "1.50"),
    "raw": (None, b"", b"a"), "on": (None, False, True),
}  # fmt: skip


def plan_of(names: list[str]) -> fairlead.Plan:
    declared = ", ".join(f"{name} {ATTRIBUTES[name]}" for name in names)
    return fairlead.compile(f"TYPE A ({declared}, at TIMESTAMP) TIME at ORDER BY at SUBSCRIPTION S MATCH A a")


def identities(plan: fairlead.Plan, records: list[dict[str, Any]]) -> list[bytes]:
    assert plan.order is not None
    columns = in_total_order(read(plan, records), plan.order, plan.catalogue)
    assert columns.identities is not None
    return [each.tobytes() for each in columns.identities]


def records_of(random: Random, names: list[str], more: list[str], count: int) -> list[dict[str, Any]]:
    made = []
    for number in range(count):
        values = {name: random.choice(VALUES[name]) for name in names} | dict.fromkeys(more)
        made.append({"type": "A", "at": number // 3, **values})
    return made


@pytest.mark.parametrize("seed", range(6))
def test_attributes_that_are_added_anywhere_and_null_change_no_identity(seed: int) -> None:
    random = Random(seed)
    names = random.sample(sorted(ATTRIBUTES), 3)
    more = [name for name in ATTRIBUTES if name not in names]
    records = records_of(random, names, more, 40)
    before = [{name: value for name, value in each.items() if name not in more} for each in records]
    declared = random.sample([*names, *more], len(names) + len(more))
    wanted = identities(plan_of(names), before)
    assert sorted(identities(plan_of(declared), records)) == sorted(wanted)
    assert len(set(wanted)) == len(records)  # equal events are numbered


def test_other_contents_have_other_identities_and_batches_do_not_matter() -> None:
    plan = plan_of(sorted(ATTRIBUTES))
    names = sorted(ATTRIBUTES)
    records = [{"type": "A", "at": 0, **dict(zip(names, each, strict=True))} for each in product(*(VALUES[n] for n in names))]
    assert plan.order is not None
    (columns,) = read(plan, records)
    table = pa.Table.from_batches([columns.tables["A"]])
    schema = plan.catalogue["A"]
    whole = event_identities(schema, table, plan.order)
    assert len({each.tobytes() for each in whole}) == len(records) == 3 ** len(names)
    for row in Random(1).sample(range(len(records)), 60):  # a column of one row has nulls, or none
        assert event_identities(schema, table.slice(row, 1), plan.order).tobytes() == whole[row].tobytes()
