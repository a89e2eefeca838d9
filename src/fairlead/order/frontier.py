"""How far an order by value is complete: the frontier, before which no event is expected any more.

A frontier is a value of the first order key; everything before it is complete. It never moves back.

    together        the latest value of all, less the delay
    by source       of every source its latest value, less the delay; of these the least, but not further behind the largest
                    than `idle`: a source that has been silent for longer does not stop the others
    heartbeats      count as events do, and include their own value: they say that it is so late, not that nothing is under way

Where the arrivals are a sequence (a log, a file), every event has its own frontier: that of the events before it. So what is
late is a function of the sequence, whatever the batches in which it is read.

Takes: values, sources and heartbeats in the order of arrival. Gives: the frontier before each. Never: reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.model.events.origin_columns import SourceColumn

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NOWHERE = int(np.iinfo(np.int64).min)
"""The frontier before the first event."""


@dataclass
class SequenceFrontier:
    """The frontier of a sequence. `ends`: how far each source is complete, if they are distinguished (`idle` is not None)."""

    delay: int
    idle: int | None
    at: int
    ends: dict[str | None, int]

    def follow(self, values: Numbers, heartbeats: Mask, sources: Sequence[str | None] | None) -> Numbers:
        """The next events: the frontier before each of them."""
        if not len(values):
            return values
        bounds = values - self.delay + heartbeats
        if self.idle is None:
            after = np.maximum(np.maximum.accumulate(bounds), self.at)
        else:
            after = self._by_source(bounds, SourceColumn.of(sources, len(values)), self.idle)
        before = np.concatenate([[self.at], after[:-1]])
        self.at = int(after[-1])
        return before

    def follow_some(
        self, values: Numbers, heartbeats: Mask, sources: SourceColumn | None, counted: Mask
    ) -> tuple[Numbers, Numbers]:
        """The next events: the frontier before and after each of them. Those that do not count leave it where it is."""
        at = self.at
        if counted.all():
            before = self.follow(values, heartbeats, sources)
            return before, np.append(before[1:], self.at) if len(before) else before
        rows = np.flatnonzero(counted)
        followed = self.follow(values[rows], heartbeats[rows], None if sources is None else sources.taken(rows))
        frontiers = np.concatenate([[at], followed[1:], [self.at]]) if len(rows) else np.array([at])
        passed = np.cumsum(counted)
        return frontiers[passed - counted], frontiers[passed]

    def _by_source(self, bounds: Numbers, sources: SourceColumn, idle: int) -> Numbers:
        after, at = np.empty_like(bounds), self.at
        for low, high in sources.runs():
            source = sources[low]
            others = [end for name, end in self.ends.items() if name != source]
            mine = np.maximum(np.maximum.accumulate(bounds[low:high]), self.ends.get(source, NOWHERE))
            least = np.minimum(mine, min(others, default=np.iinfo(np.int64).max))
            most = np.maximum(mine, max(others, default=NOWHERE))
            after[low:high] = np.maximum(np.maximum.accumulate(np.maximum(least, most - idle)), at)
            at, self.ends[source] = int(after[high - 1]), int(mine[-1])
        return after
