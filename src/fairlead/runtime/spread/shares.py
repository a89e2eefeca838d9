"""What each worker gets of a batch: the events of its keys, for each group of subscriptions.

Takes: a batch in order. Gives: for each worker and group, its rows, at their positions. Never: reorders, or depends on how rows
are divided into batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fairlead.model.events.columns import Columns, record_batch, taken_rows
from fairlead.model.plans.key_parts import key_column
from fairlead.model.plans.partition import START
from fairlead.model.plans.plan import Plan
from fairlead.runtime.spread.buckets import buckets_of
from fairlead.runtime.spread.targets import TargetGroup, groups_of

Rows = npt.NDArray[np.int64]


def keyed_groups(plan: Plan) -> tuple[TargetGroup, ...]:
    """The groups of a plan that can be spread by key; none if a part of it has no keys."""
    if not all(each.per for each in plan.subscriptions):
        return ()
    groups = groups_of(plan)
    return groups if all(each.is_keyed for each in groups) else ()


def shares(columns: Columns, groups: Sequence[TargetGroup], workers: int) -> list[list[Columns]]:
    """By worker, then by group."""
    by_group = [_of_group(columns, group, workers) for group in groups]
    return [[each[worker] for each in by_group] for worker in range(workers)]


def _of_group(columns: Columns, group: TargetGroup, workers: int) -> list[Columns]:
    owners = {}
    for name in columns.places:
        if name in group.reads:
            table = columns.tables[name]
            owners[name] = buckets_of([key_column(table, each) for each in group.keys[name]], table.num_rows, workers)
    rows = [{name: np.flatnonzero(each == worker) for name, each in owners.items()} for worker in range(workers)]
    return [_share(columns, mine) for mine in rows]


def _share(columns: Columns, rows: dict[str, Rows]) -> Columns:
    """Some rows of each type as a batch of their own."""
    tables = {}
    for name, mine in rows.items():
        if len(mine):
            table = columns.tables[name]
            tables[name] = record_batch([taken_rows(each, mine) for each in table.columns], table.schema, len(mine))
    places = [columns.places[name][rows[name]] for name in tables]
    together = np.sort(np.concatenate(places)) if places else np.zeros(0, dtype=np.int64)
    last = columns.last_after(START)
    return Columns(
        columns.types,
        columns.code_array[together],
        columns.position_array[together],  # type: ignore[arg-type]
        tables,
        last_position=None if last == START else last,
    )
