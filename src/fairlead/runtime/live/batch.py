"""Relations as a live subscriber is given them: many at a time, without an object for each.

Takes: relations of one group, and the number of the first. Gives: a sequence of relations, or a table. Never: copies them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.model.layout import layout_of
from fairlead.model.plan import Plan
from fairlead.model.relation import Relation
from fairlead.runtime.embedded import only
from fairlead.transport.write import relation_table


@dataclass(frozen=True, eq=False)
class Batch(Sequence[Relation]):
    """Relations that were completed close together, in the order of delivery; `first` is the number of the first one, from 1.
    Those that kernels found become objects when looked at."""

    plan: Plan
    key: str
    first: int
    relations: Sequence[Relation]

    @property
    def last(self) -> int:
        return self.first + len(self.relations) - 1

    def __len__(self) -> int:
        return len(self.relations)

    def __iter__(self) -> Iterator[Relation]:
        return iter(self.relations)

    @overload
    def __getitem__(self, at: int) -> Relation: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Relation]: ...
    def __getitem__(self, at: int | slice) -> Relation | Sequence[Relation]:
        return self.relations[at]

    def behind(self, count: int) -> Batch:
        """Without the first ones."""
        return Batch(self.plan, self.key, self.first + count, self.relations[count:])

    def to_arrow(self, subscription: str | None = None) -> pa.Table:
        """As a table (model/layout.py), of all relations or those of one subscription."""
        chosen = self.relations if subscription is None else only(self.relations, subscription)
        return relation_table([chosen], layout_of(self.plan, subscription))
