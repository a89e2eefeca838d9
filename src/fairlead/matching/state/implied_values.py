"""What the queued events of an instance say about it, and a state need not: its key, and a time that its clock has reached.

An event is queued under the key that it has, and the clock of a window is at least its time; mostly it is that of the newest
queued event. So only a key without queued events has its key and its clock in a state.

Takes: instances and the events that they refer to. Gives: arrays by instance. Never: trusts that events have the attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.matching.results.chunk import Numbers
from fairlead.matching.state.body import unsound
from fairlead.matching.state.content import NEVER, Events, InstanceTable, Mask
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.key_parts import key_column
from fairlead.model.plans.plan import Branch
from fairlead.model.relations.identity import MINOR_BITS


def has_events(group: InstanceTable) -> Mask:
    found: Mask = group.lengths.sum(axis=1) > 0
    return found


def newest_times(group: InstanceTable, rows: Numbers, events: Events, catalogue: Catalogue) -> Numbers:
    """Of the queued events of each instance; 0 if there is none, or none has a time. `rows`: of all queued, which events they
    are."""
    made = np.zeros(len(group), dtype=np.int64)
    totals = group.lengths.sum(axis=1)
    used = np.flatnonzero(totals)
    if len(used):
        totals = totals[used]
        newest = np.maximum.reduceat(_times(events, catalogue)[rows], np.cumsum(totals) - totals)
        made[used] = np.where(newest == NEVER, 0, newest)
    return made


def _times(events: Events, catalogue: Catalogue) -> Numbers:
    times = np.where(events.timed, events.times, NEVER)
    for code, name in enumerate(events.types):
        schema = catalogue[name]
        if schema.time_index is not None and not schema.derived:
            times[events.codes == code] = events.tables[name].column(schema.time_index).cast(pa.int64()).fill_null(0).to_numpy()
    return times


def rows_of(words: Numbers, events: Events) -> Numbers:
    """Which events have these words."""
    if not len(words):
        return np.zeros(0, dtype=np.int64)
    if not len(events):
        raise unsound("an event is missing")
    found = _by_position(words, events.words) if len(words) > FEW else None
    if found is None:
        found = np.minimum(np.searchsorted(events.words, words), len(events) - 1)
    if not (events.words[found] == words).all():
        raise unsound("an event is missing")
    return found


FEW = 256
SPREAD = 8
"""Positions for each event, up to which a table of them is faster than a search for each word."""


def _by_position(words: Numbers, known: Numbers) -> Numbers | None:
    """By a table, if no two events have one position and positions are close together."""
    places, low = known >> MINOR_BITS, int(known[0]) >> MINOR_BITS
    span = (int(known[-1]) >> MINOR_BITS) - low + 1
    if span > SPREAD * len(known) or not (places[1:] > places[:-1]).all():
        return None
    table = np.zeros(span, dtype=np.int64)
    table[places - low] = np.arange(len(known))
    found: Numbers = table[np.clip((words >> MINOR_BITS) - low, 0, span - 1)]
    return found


def keys_of_events(
    group: InstanceTable, queued: Numbers, branches: Sequence[Branch], events: Events
) -> list[tuple[Numbers, tuple[pa.Array, ...]]]:
    """The keys of the instances that have a queued event, in parts: which rows they are of, and columns. `queued`: of all
    queued, which events they are; `branches`: those of the subscription, to which all belong."""
    lengths = group.lengths
    totals = lengths.sum(axis=1)
    rows = np.flatnonzero(totals)
    first = queued[(np.cumsum(totals) - totals)[rows]]
    queue, branch, code = (lengths[rows] > 0).argmax(axis=1), group.branch[rows], events.codes[first]
    inner = np.empty(len(events), dtype=np.int64)
    for each in range(len(events.types)):
        mine = np.flatnonzero(events.codes == each)
        inner[mine] = np.arange(len(mine))
    made = []
    for b, q, c in sorted(set(zip(branch.tolist(), queue.tolist(), code.tolist(), strict=True))):
        mine = np.flatnonzero((branch == b) & (queue == q) & (code == c))
        names = [*branches[b].queue_types, *(each.type for each in branches[b].noting)]
        table = events.tables[events.types[c]]
        taken = pa.array(inner[first[mine]])
        columns = zip(dict(branches[b].keys).get(names[q], ()), group.form.keys, strict=True)
        made.append((rows[mine], tuple(_key(table, attribute, kind).take(taken) for attribute, kind in columns)))
    return made


def _key(table: pa.RecordBatch, attribute: str, kind: pa.DataType) -> pa.Array:
    found = key_column(table, attribute)
    if found is None:
        raise unsound("an event is queued under a type that it does not have")
    column = found.cast(kind)
    if not pa.types.is_floating(kind):
        return column
    return pa.array(column.to_numpy(zero_copy_only=False) + 0.0)  # -0.0 and 0.0 are one key


def put_together(parts: Sequence[tuple[Numbers, tuple[pa.Array, ...]]]) -> tuple[pa.Array, ...]:
    """Columns of keys, of parts that have all rows between them."""
    order: Any = pa.array(np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable"))
    return tuple(pa.concat_arrays(each).take(order) for each in zip(*(keys for _, keys in parts), strict=True))
