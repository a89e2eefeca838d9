"""Events that wait for the frontier, as sorted runs: what is before a frontier is found without a look at the rest.

Every arrival of events becomes a run, sorted by the first order key. What the frontier has passed is the beginning of some
runs, so releasing it cuts runs and copies nothing. Short runs are joined, so that there are never many.

    held events x arrivals      looked at per arrival: runs, one for RUN_EVENTS held events; not the events

Takes: tables of arrivals and the values of their first order key. Gives: what is before a frontier, and the rest. Never:
changes: adding and cutting return another value, so several readers of one sequence can share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.model.events.columns import taken_rows
from fairlead.order.stable_sort import stable_order

Numbers = npt.NDArray[np.int64]
RUN_EVENTS = 4_096
"""Shorter runs are joined with those before that are no longer: at 100,000 held events there are about 25 runs. An event is
copied at most twelve times on its way, and only if events arrive one by one."""


@dataclass(frozen=True, eq=False)
class SortedRun:
    """Events of one type. `values`: of the first order key, ascending."""

    values: Numbers
    table: pa.Table

    def __len__(self) -> int:
        return len(self.values)

    def cut(self, at: int) -> tuple[SortedRun, SortedRun]:
        return SortedRun(self.values[:at], self.table.slice(0, at)), SortedRun(self.values[at:], self.table.slice(at))


@dataclass(frozen=True, eq=False)
class HeldEvents:
    """By type its runs, in the order of arrival."""

    runs: Mapping[str, tuple[SortedRun, ...]]

    def with_arrivals(self, name: str, table: pa.Table, values: Numbers) -> HeldEvents:
        """`values`: of the first order key of each row."""
        if not len(table):
            return self
        before, size, short = self.runs.get(name, ()), len(table), 0
        while size < RUN_EVENTS and short < len(before) and len(before[-1 - short]) <= size:
            short += 1
            size += len(before[-short])
        if short:
            joined = before[-short:]
            before = before[:-short]
            values = np.concatenate([*(each.values for each in joined), values])
            table = pa.concat_tables([*(each.table for each in joined), table])
        run = _sorted_run(values, table)
        return HeldEvents({**self.runs, name: (*before, run)})

    def cut(self, frontier: int) -> tuple[dict[str, pa.Table], HeldEvents]:
        """The events before the frontier, by type, and those that stay."""
        passed, rest = dict[str, pa.Table](), dict[str, tuple[SortedRun, ...]]()
        for name, runs in sorted(self.runs.items()):
            ready, stay = list[pa.Table](), list[SortedRun]()
            for run in runs:
                if run.values[-1] < frontier:
                    ready.append(run.table)
                elif run.values[0] >= frontier:
                    stay.append(run)
                else:
                    mine, other = run.cut(int(np.searchsorted(run.values, frontier)))
                    ready.append(mine.table)
                    stay.append(other)
            if ready:
                passed[name] = pa.concat_tables(ready).combine_chunks() if len(ready) > 1 else ready[0]
            if stay:
                rest[name] = tuple(stay)
        return passed, HeldEvents(rest)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """All events, by type."""
        for name, runs in sorted(self.runs.items()):
            yield name, pa.concat_tables([each.table for each in runs])

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return sum(len(run) for runs in self.runs.values() for run in runs)


NOTHING_HELD = HeldEvents({})


def _sorted_run(values: Numbers, table: pa.Table) -> SortedRun:
    if (values[1:] >= values[:-1]).all():
        return SortedRun(values, table.combine_chunks())
    order = stable_order([values])
    return SortedRun(values.take(order), taken_table(table, order))


def taken_table(table: pa.Table, rows: Numbers) -> pa.Table:
    """Some rows of a table, in one chunk."""
    columns = [taken_rows(each.combine_chunks() if each.num_chunks != 1 else each.chunk(0), rows) for each in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)
