"""Columns that several engines are given, and what each of them computes of these that is the same for all.

Live subscribers of one process read the same blocks. What a kernel needs of them beside its own state (values, truths, places,
and the events as they are kept) is computed by the first, and serves the others.

Takes: Columns, and the types as all of these engines know them. Gives: the batch for kernels and the chunk for stores. Never:
outlives the round in which the columns are given out: a store keeps the chunk alone.
"""

from __future__ import annotations

from functools import cached_property

from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.results.chunk import Chunk
from fairlead.model.columns import Columns
from fairlead.model.types import Catalogue


class Prepared:
    def __init__(self, columns: Columns, catalogue: Catalogue) -> None:
        self.columns, self._catalogue = columns, catalogue

    @cached_property
    def chunk(self) -> Chunk:
        return Chunk(self.columns)

    @cached_property
    def batch(self) -> KernelBatch:
        return KernelBatch(self.columns, self._catalogue)
