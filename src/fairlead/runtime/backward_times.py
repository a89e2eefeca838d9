"""Counts events whose time is before that of an earlier event in the input.

Rules that depend on the order of events then depend on the order of the records, which is perhaps not meant.

Takes: batches in the order of the input. Gives: a count. Never: changes anything.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue

BEFORE_ALL = np.iinfo(np.int64).min


class BackwardTimes:
    """`count`: how many there were."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue, self.count, self.latest = catalogue, 0, int(BEFORE_ALL)

    def note(self, columns: Columns) -> None:
        times = np.full(len(columns), BEFORE_ALL, dtype=np.int64)
        for name, table in columns.tables.items():
            at = self.catalogue[name].time_index
            if at is not None and table.num_rows:
                times[columns.places[name]] = table.column(at).cast(pa.int64()).fill_null(int(BEFORE_ALL)).to_numpy()
        known = times[times != BEFORE_ALL]
        if len(known):
            latest = np.maximum(np.maximum.accumulate(known), self.latest)
            self.count += int((known < latest).sum())
            self.latest = int(latest[-1])
