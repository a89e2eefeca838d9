"""Columns that several engines are given, and what each of them computes of these that is the same for all.

Live subscribers of one process read the same blocks. What a kernel needs of them beside its own state (values, truths, places,
and the events as they are kept) is computed by the first, and serves the others.

Takes: Columns. Gives: their batch for kernels and their chunk for stores. Never: outlives the round in which the columns are
given out: a store keeps the chunk alone.
"""

from __future__ import annotations

from functools import cached_property

from fairlead.matching.chunk import Chunk
from fairlead.matching.kernel.batch import Batch
from fairlead.model.columns import Columns
from fairlead.model.types import Catalogue, EventType


class Prepared:
    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._batches: list[tuple[list[EventType], Batch]] = []

    @cached_property
    def chunk(self) -> Chunk:
        return Chunk(self.columns)

    def batch(self, catalogue: Catalogue) -> Batch:
        """As one sees them who knows the types like this."""
        types = [catalogue[name] for name in self.columns.types]
        for known, made in self._batches:
            if known == types:
                return made
        self._batches.append((types, Batch(self.columns, catalogue)))
        return self._batches[-1][1]
