"""The relations that kernels found in a batch: index columns, which become objects when somebody looks.

Takes: matches as rows and member references, with the members' columns, and what other subscriptions found event by event.
Gives: the relations in the order of delivery. `id_words` and `subscriptions` make no object; looking at one makes all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from fairlead.matching.outcome import Match
from fairlead.matching.store import Chunk, Refs
from fairlead.model.identity import Words, from_hex, relation_ids, to_hex
from fairlead.model.plan import Subscription
from fairlead.model.position import Position
from fairlead.model.relation import Relation
from fairlead.model.types import Catalogue

Build = Callable[[str, Match, Position, str], Relation]
"""Makes a relation of a subscription from a match, the place of its completion and its id."""


@dataclass(frozen=True)
class Block:
    """The matches of one branch in a batch: completing rows, and member references by slot."""

    subscription: Subscription
    number: int
    branch: int
    rows: npt.NDArray[np.int64]
    refs: Refs


class Relations(Sequence[Relation]):
    """The relations of a batch in the order of delivery. `ids` costs no events; looking at a relation makes them all."""

    def __init__(
        self,
        blocks: list[Block],
        members: Chunk,
        majors: npt.NDArray[np.int64],
        others: Sequence[tuple[int, Relation]],
        numbers: Mapping[str, int],
        catalogue: Catalogue,
        build: Build,
    ) -> None:
        self.blocks, self.members, self.majors, self.others = blocks, members, majors, others
        self.catalogue, self.build = catalogue, build
        self.order = _order(blocks, others, numbers)
        self._words: Words | None = None
        self._made: list[Relation] | None = None

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, at: int) -> Relation: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Relation]: ...
    def __getitem__(self, at: int | slice) -> Relation | Sequence[Relation]:
        return self._relations()[at]

    def __iter__(self) -> Iterator[Relation]:
        return iter(self._relations())

    def subscriptions(self) -> list[str]:
        """The subscription of each relation."""
        names = [name for block in self.blocks for name in [block.subscription.name] * len(block.rows)]
        return self._in_order(names, [relation.subscription for _, relation in self.others])

    def id_words(self) -> Words:
        """The ids as pairs of 64-bit numbers."""
        if self._words is None:
            self._words = self._id_words()
        return self._words

    def _id_words(self) -> Words:
        made = [from_hex([relation.id for _, relation in self.others])]
        for block in reversed(self.blocks):
            majors = self.members.majors[np.searchsorted(self.members.refs, block.refs)]
            made.insert(0, relation_ids(block.subscription.digest, block.branch, majors))
        return np.concatenate(made)[self.order]

    def ids(self) -> list[str]:
        return to_hex(self.id_words())

    def _relations(self) -> list[Relation]:
        if self._made is None:
            ids = iter(self._in_blocks(self.ids()))
            events = self.members.events(self.catalogue)
            made: list[Relation] = []
            for block in self.blocks:
                inner = np.searchsorted(self.members.refs, block.refs).tolist()
                for row, members in zip(block.rows.tolist(), inner, strict=True):
                    match = Match(block.branch, tuple([events[at] for at in members]))
                    made.append(self.build(block.subscription.name, match, Position(int(self.majors[row])), next(ids)))
            self._made = self._in_order(made, [relation for _, relation in self.others])
        return self._made

    def _in_order(self, found: list[Any], others: list[Any]) -> list[Any]:
        both = found + others
        return [both[at] for at in self.order.tolist()]

    def _in_blocks(self, ordered: list[Any]) -> list[Any]:
        """The inverse of `_in_order`, for the part of the blocks."""
        both: list[Any] = [None] * len(ordered)
        for value, at in zip(ordered, self.order.tolist(), strict=True):
            both[at] = value
        return both


def _order(blocks: list[Block], others: Sequence[tuple[int, Relation]], numbers: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """The order of delivery: by row; there, what absences fired before the event, then what it completed, subscription by
    subscription and branch by branch, then what was derived."""
    row = [block.rows for block in blocks] + [np.array([row for row, _ in others], dtype=np.int64)]
    minor = [relation.completed_at.minor for _, relation in others]
    phase = [np.ones(len(block.rows), dtype=np.int64) for block in blocks]
    phase += [np.array([0 if m < 0 else 1 if m == 0 else 2 for m in minor], dtype=np.int64)]
    number = [np.full(len(block.rows), block.number) for block in blocks]
    number += [
        np.array([numbers[r.subscription] if m == 0 else 0 for m, (_, r) in zip(minor, others, strict=True)], dtype=np.int64)
    ]
    branch = [np.full(len(block.rows), block.branch) for block in blocks]
    branch += [np.array([r.branch if m == 0 else 0 for m, (_, r) in zip(minor, others, strict=True)], dtype=np.int64)]
    rows = np.concatenate(row)
    return np.lexsort((np.arange(len(rows)), np.concatenate(branch), np.concatenate(number), np.concatenate(phase), rows))
