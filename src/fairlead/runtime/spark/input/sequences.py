"""Sources and sequences of a part of the order, and which of its rows are repeats as far as the part itself shows.

Takes: an order and its arrivals. Gives: repeats within the part, the last sequence of each source for later parts, and the rows
that only earlier parts can decide. Never: drops a row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.order.repeats import doubled, repeated
from fairlead.order.total import SEQUENCE, SOURCE, Arrivals, RowOrder, order_column
from fairlead.runtime.spark.input.arrivals import REJECTED
from fairlead.runtime.spread.buckets import buckets_of

POSITION = "_position"


class Sequenced:
    """Sources and sequences of a slice's rows, by place. A rejected row has none: it does not advance the sequence. `by_value`:
    repeats are at the same place, so all of them are known here."""

    def __init__(self, order: RowOrder, arrivals: Arrivals, positioned: bool, by_value: bool = False) -> None:
        names = [name for name in order.types if name != REJECTED]
        self.places = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *(order.places[name] for name in names)]))
        self.sources = order.column(SOURCE, arrivals, names, pa.string())
        self.sequences = order.column(SEQUENCE, arrivals, names, pa.int64())
        self.here, lasts = repeated(self.sources, self.sequences)
        if by_value:
            group = np.cumsum(~order.doubles)[self.places]  # rejected rows are left out here
            alike = np.concatenate([[False], group[1:] == group[:-1]])[: len(group)]
            self.here = doubled(alike, self.sources, self.sequences)
        self.repeated = np.zeros(len(order), dtype=bool)
        self.repeated[self.places[self.here]] = True
        self.lasts = pa.table([pa.array(lasts.keys(), pa.string()), pa.array(lasts.values(), pa.int64())], [SOURCE, SEQUENCE])
        self.positions = self.places
        if positioned:
            self.positions = order.column(order_column(0), arrivals, names, pa.int64()).to_numpy()

    def beside(self, table: pa.Table, places: npt.NDArray[np.int64]) -> pa.Table:
        """The rows at these places with their sources and sequences: earlier slices may make repeats of them."""
        at = pa.array(np.searchsorted(self.places, places))
        return table.append_column(SOURCE, self.sources.take(at)).append_column(SEQUENCE, self.sequences.take(at))

    def by_owner(self, targets: int, is_known: bool) -> Iterator[tuple[int, pa.Table]]:
        """The rows that may be repeats. In the first slice that is known; later any row with a sequence may be."""
        chosen = np.flatnonzero(self.here if is_known else self.sequences.is_valid().to_numpy(zero_copy_only=False))
        sources = self.sources.take(pa.array(chosen))
        owners = np.maximum(buckets_of([sources], len(chosen), targets), 0)
        columns = [
            pa.array(self.positions[chosen]),
            sources,
            self.sequences.take(pa.array(chosen)),
            pa.array(self.here[chosen]),
        ]
        table = pa.table(columns, [POSITION, SOURCE, SEQUENCE, "repeated"])
        for owner in np.unique(owners).tolist():
            yield owner, table.filter(pa.array(owners == owner))


def lasts_in(table: pa.Table) -> dict[str | None, int]:
    """`Sequenced.lasts` as a dict."""
    return dict(zip(table.column(SOURCE).to_pylist(), table.column(SEQUENCE).to_pylist(), strict=True))
