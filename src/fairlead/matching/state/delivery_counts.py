"""How many relations a LIMIT has counted, in a state: a row for each key that it counts apart, or one row.

Takes: a CountTable (content.py), or columns of a state. Gives: the other. Raises: StateError (S005) for counts that no matcher
can have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.matching.state.body import typed
from fairlead.matching.state.canonical_columns import large, small
from fairlead.matching.state.content import CountTable, canonical_order
from fairlead.matching.state.event_soundness import say
from fairlead.model.plans.plan import Subscription


def in_order_of_keys(table: CountTable) -> CountTable:
    if len(table) < 2:
        return table
    order = canonical_order(table.keys)
    return CountTable(tuple(column.take(pa.array(order)) for column in table.keys), table.counts[order])


def columns_of_counts(table: CountTable) -> dict[str, pa.Array]:
    keys = {f"key {at}": small_key(column) for at, column in enumerate(table.keys)}
    return {**keys, "count": small(table.counts)}


def counts_of_columns(found: Mapping[str, pa.Array], kinds: Sequence[pa.DataType]) -> CountTable:
    say(found.keys() == {"count", *(f"key {at}" for at in range(len(kinds)))}, "it counts relations of other keys")
    keys = tuple(typed(large_key(found[f"key {at}"], kind), kind) for at, kind in enumerate(kinds))
    return CountTable(keys, large(found["count"]))


def require_counts(table: CountTable, subscription: Subscription, rises: Callable[[Sequence[Any]], bool]) -> None:
    limit = subscription.limit
    if limit is None:
        say(False, f"'{subscription.name}' has no LIMIT, but counts relations")
        return
    say(len(table) > 0 and int(table.counts.min()) > 0, "a LIMIT has counted nothing")
    say(int(table.counts.max()) <= limit.count, "more was delivered than a LIMIT allows")
    for key in table.keys:
        say(len(key) == len(table) and key.null_count == 0, "a key is NULL")
        if pa.types.is_floating(key.type):
            values = key.to_numpy()
            say(not np.isnan(values).any() and not np.signbit(values[values == 0]).any(), "a key is NaN, or a negative zero")
    say(len(table) == 1 or (bool(table.keys) and rises(table.keys)), "counted keys are not in order, or one is there twice")


def small_key(column: pa.Array) -> pa.Array:
    return small(column.to_numpy()) if pa.types.is_int64(column.type) and len(column) else column


def large_key(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.array(large(column)) if pa.types.is_int64(kind) else column
