"""Counts events whose time is before that of an earlier event in the input.

Rules that depend on the order of events then depend on the order of the records, which is perhaps not meant.

Takes: batches in the order of the input. Gives: a count. Never: changes anything.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.model.events.columns import Columns, bits_of
from fairlead.model.events.types import Catalogue

BEFORE_ALL = np.iinfo(np.int64).min


class BackwardTimes:
    """`count`: how many there were."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue, self.count, self.latest = catalogue, 0, int(BEFORE_ALL)

    def note(self, columns: Columns) -> None:
        times = self._times(columns)
        if not len(times):
            return
        if int(times[0]) < self.latest or (times[1:] < times[:-1]).any():
            latest = np.maximum(np.maximum.accumulate(times), self.latest)
            self.count += int((times < latest).sum())
            self.latest = int(latest[-1])
        else:
            self.latest = int(times[-1])

    def _times(self, columns: Columns) -> npt.NDArray[np.int64]:
        """The times of the events whose type has one, which is never null; in order."""
        times = np.empty(len(columns), dtype=np.int64)
        known = 0
        for name, table in columns.tables.items():
            at = self.catalogue[name].time_index
            if at is not None and table.num_rows:
                times[columns.places[name]] = bits_of(table.column(at))
                known += table.num_rows
        if known == len(columns):
            return times
        timed = np.array([self.catalogue[name].time_index is not None for name in columns.types], dtype=bool)
        return times[timed[columns.code_array]]  # type: ignore[no-any-return]
