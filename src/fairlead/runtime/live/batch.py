"""Relations as a live subscriber receives them: many at a time, without an object for each.

Takes: relations of groups that are followed together, and the number of the first relation of each group. Gives: a sequence of
relations, each with its number, or a table. Never: copies them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.model.layout import layout_of
from fairlead.model.plan import Plan
from fairlead.model.relation import Relation
from fairlead.runtime.embedded import only
from fairlead.transport.output.relation_files import relation_table


@dataclass(frozen=True, eq=False)
class DeliveryNumbers:
    """The numbers of relations that are delivered one after the other. `keys`: the groups of these relations. `firsts`: the
    number of the first relation of each group; numbers start at 1. `owner`: for each relation, the index of its group; None if
    there is only one group."""

    count: int
    keys: tuple[str, ...]
    firsts: tuple[int, ...]
    owner: npt.NDArray[np.int32] | None = None

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """For each relation, the key of its group and its number there."""
        numbers = list(self.firsts)
        for owner in repeat(0, self.count) if self.owner is None else self.owner.tolist():
            yield self.keys[owner], numbers[owner]
            numbers[owner] += 1

    @cached_property
    def lasts(self) -> dict[str, int]:
        """By group, the number of the last relation."""
        return self.lasts_of(self.count)

    def lasts_of(self, count: int) -> dict[str, int]:
        """By group, the number of its last relation among the first `count`; if it has none, one less than its first number."""
        if self.owner is None:
            return {self.keys[0]: self.firsts[0] + count - 1}
        counts = np.bincount(self.owner[:count], minlength=len(self.keys)).tolist()
        return {key: first + each - 1 for key, first, each in zip(self.keys, self.firsts, counts, strict=True)}

    @property
    def last(self) -> tuple[str, int]:
        """The group of the last relation, and its number there."""
        key = self.keys[0 if self.owner is None else int(self.owner[-1])]
        return key, self.lasts[key]

    def place_of(self, key: str, number: int) -> int:
        """The index of a relation in this batch; negative if the relation is before the batch. It must not be after the
        batch."""
        mine = self.keys.index(key)
        place = number - self.firsts[mine]
        return place if self.owner is None or place < 0 else int(np.flatnonzero(self.owner == mine)[place])

    def behind(self, count: int) -> DeliveryNumbers:
        """The numbers without the first `count`."""
        firsts = tuple(each + 1 for each in self.lasts_of(count).values())
        return DeliveryNumbers(self.count - count, self.keys, firsts, None if self.owner is None else self.owner[count:])


@dataclass(frozen=True, eq=False)
class Batch(Sequence[Relation]):
    """Relations that were completed close together, in the order of delivery. Relations found by kernels become objects when
    accessed."""

    plan: Plan
    relations: Sequence[Relation]
    numbering: DeliveryNumbers

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

    def numbered(self) -> Iterator[tuple[str, int, Relation]]:
        """Each relation with the key of its group (one of `receipts`) and its number there."""
        for (key, number), relation in zip(self.numbering, self.relations, strict=True):
            yield key, number, relation

    @property
    def lasts(self) -> dict[str, int]:
        """By group, the number of the last relation."""
        return self.numbering.lasts

    def behind(self, count: int) -> Batch:
        """The batch without the first `count` relations."""
        return Batch(self.plan, self.relations[count:], self.numbering.behind(count)) if count else self

    def to_arrow(self, subscription: str | None = None) -> pa.Table:
        """A table (model/layout.py) of all relations, or of those of one subscription."""
        chosen = self.relations if subscription is None else only(self.relations, subscription)
        return relation_table([chosen], layout_of(self.plan, subscription))
