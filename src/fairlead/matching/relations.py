"""The relations that kernels found in a batch: columns of position words, which become objects when somebody looks.

Takes: matches as words, a view of the store, and what other subscriptions found event by event. Gives: the relations in the
order of delivery; ids, counts and the result table make no object. Never: holds more of the store than `narrow` leaves it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.chunk import Numbers, Words
from fairlead.matching.outcome import Match
from fairlead.matching.store import View, distinct, joined_view
from fairlead.matching.table import Rows, table_of_blocks, table_of_objects
from fairlead.model.identity import Words as Ids
from fairlead.model.identity import from_hex, position_of, position_word, relation_ids, to_hex
from fairlead.model.layout import Layout
from fairlead.model.plan import Subscription
from fairlead.model.position import Position
from fairlead.model.relation import Relation
from fairlead.model.types import Catalogue

Build = Callable[[str, Match, Position, str], Relation]
"""Makes a relation of a subscription from a match, the place of its completion and its id."""
PAGE = 1024
"""Relations that become objects together: looking at one makes its neighbours too."""
TOGETHER = 16 * PAGE
TABLE_ROWS = 131_072
"""Relations in one piece of the result table."""


@dataclass(frozen=True, eq=False)
class Block:
    """The matches of one branch in a batch, in order: the word of the place of completion, and the members' words by slot.
    Phase 0 is what an absence's deadline decided; it stands before what an event at the same place completes."""

    subscription: Subscription
    number: int
    branch: int
    at: Words
    refs: npt.NDArray[np.int64]
    phase: int = 1
    deadlines: Numbers | None = None

    def __len__(self) -> int:
        return len(self.at)


class Relations(Sequence[Relation]):
    """The relations of a batch in the order of delivery. `due` has the deadline of each of `others` that an absence decided."""

    def __init__(
        self,
        blocks: Sequence[Block],
        view: View,
        others: Sequence[Relation],
        numbers: Mapping[str, int],
        catalogue: Catalogue,
        build: Build,
        due: Sequence[int | None] | None = None,
    ) -> None:
        self.blocks = sorted((each for each in blocks if len(each)), key=lambda each: (each.phase, each.number, each.branch))
        self.others, self.due = others, due if due is not None else [None] * len(others)
        self.view = view if self.blocks else View([])
        self.numbers, self.catalogue, self.build = numbers, catalogue, build
        self.starts = np.cumsum([0, *(len(each) for each in self.blocks)])
        self._pages: dict[int, list[Relation]] = {}

    def __len__(self) -> int:
        return int(self.starts[-1]) + len(self.others)

    @overload
    def __getitem__(self, at: int) -> Relation: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Relation]: ...
    def __getitem__(self, at: int | slice) -> Relation | Sequence[Relation]:
        wanted = range(len(self))[at]
        if isinstance(wanted, int):
            return self._page(wanted // PAGE)[wanted % PAGE]
        if len(wanted) < PAGE:
            return self._made(np.array(wanted, dtype=np.int64))
        return [self[each] for each in wanted]

    def __iter__(self) -> Iterator[Relation]:
        for low in range(0, len(self), TOGETHER):  # who goes through all of them gets many pages at once
            first, last = low // PAGE, -(-min(low + TOGETHER, len(self)) // PAGE)
            if any(page not in self._pages for page in range(first, last)):
                made = self._made(np.arange(low, min(low + TOGETHER, len(self))))
                self._pages |= {first + at: made[at * PAGE : (at + 1) * PAGE] for at in range(last - first)}
            for page in range(first, last):
                yield from self._pages[page]

    def counts(self) -> Mapping[str, int]:
        """How many relations each subscription has."""
        found = Counter(relation.subscription for relation in self.others)
        for block in self.blocks:
            found[block.subscription.name] += len(block)
        return found

    def only(self, subscription: str) -> Relations:
        """Those of one subscription."""
        chosen = [at for at, each in enumerate(self.others) if each.subscription == subscription]
        return Relations(
            [each for each in self.blocks if each.subscription.name == subscription],
            self.view,
            [self.others[at] for at in chosen],
            self.numbers,
            self.catalogue,
            self.build,
            [self.due[at] for at in chosen],
        )

    def id_words(self) -> Ids:
        """The ids as pairs of 64-bit numbers."""
        return self._ids

    def ids(self) -> list[str]:
        return to_hex(self.id_words())

    @property
    def members(self) -> int:
        """How many events they refer to, each as often as it is referred to."""
        return sum(block.refs.size for block in self.blocks)

    def narrow(self) -> None:
        """Hold a copy of the events they need, instead of all that the matcher held."""
        if self.blocks:
            self.view = self.view.narrowed(np.concatenate([block.refs.reshape(-1) for block in self.blocks]))

    def to_arrow(self, layout: Layout) -> pa.Table:
        """The result table (model/layout.py)."""
        pieces = [self._table(layout, low, min(low + TABLE_ROWS, len(self))) for low in range(0, len(self), TABLE_ROWS)]
        return pa.concat_tables(pieces) if pieces else layout.schema.empty_table()

    @cached_property
    def order(self) -> Numbers | None:
        """By place in the order of delivery, the number of the relation, counted through the blocks and then the others.
        None where they are in order as they stand."""
        return _order(self.blocks, self.others, self.due, self.numbers)

    @cached_property
    def _ids(self) -> Ids:
        made = [relation_ids(each.subscription.digest, each.branch, each.refs) for each in self.blocks]
        found = np.concatenate([*made, from_hex([relation.id for relation in self.others])])
        return found if self.order is None else found[self.order]

    def _rows(self, places: Numbers | slice) -> tuple[list[Rows], list[tuple[int, Relation]]]:
        """The relations at some places of the delivery: rows of blocks, and others with their place among those asked for."""
        if len(self.blocks) == 1 and self.order is None:
            return [Rows(self.blocks[0], slice(None), places)], []
        numbers = np.arange(len(self))[places] if self.order is None else self.order[places]
        owner = np.searchsorted(self.starts, numbers, side="right") - 1
        by_owner = np.argsort(owner, kind="stable")
        ends = np.cumsum(np.bincount(owner, minlength=len(self.blocks) + 1)).tolist()
        found = []
        for at, block in enumerate(self.blocks):
            mine = by_owner[ends[at - 1] if at else 0 : ends[at]]
            if len(mine):
                found.append(Rows(block, mine, numbers[mine] - self.starts[at]))
        rest = by_owner[ends[-2] if self.blocks else 0 :].tolist()
        return found, [(at, self.others[int(numbers[at] - self.starts[-1])]) for at in rest]

    def _table(self, layout: Layout, low: int, high: int) -> pa.Table:
        try:
            rows, others = self._rows(slice(low, high))
            ids = self.id_words()[low:high]
            if not others:
                return table_of_blocks(layout, rows, self.view, ids)
            objects = table_of_objects(layout, [relation for _, relation in others])
            taken = np.array([at for at, _ in others], dtype=np.int64)
            kept = np.delete(np.arange(high - low), taken)
            shrunk = [Rows(each.block, np.searchsorted(kept, each.at), each.rows) for each in rows]  # type: ignore[arg-type]
            blocks = table_of_blocks(layout, shrunk, self.view, ids[kept])
            return (
                pa.concat_tables([blocks, objects]).combine_chunks().take(pa.array(np.argsort(np.concatenate([kept, taken]))))
            )
        except (pa.ArrowInvalid, pa.ArrowCapacityError):  # more than 2 GB of text in one column
            if high - low < 2:
                raise
            middle = (low + high) // 2
            return pa.concat_tables([self._table(layout, low, middle), self._table(layout, middle, high)])

    def _page(self, number: int) -> list[Relation]:
        if number not in self._pages:
            self._pages[number] = self._made(np.arange(number * PAGE, min((number + 1) * PAGE, len(self))))
        return self._pages[number]

    def _made(self, places: Numbers) -> list[Relation]:
        rows, others = self._rows(places)
        made: list[Relation | None] = [None] * len(places)
        for place, relation in others:
            made[place] = relation
        if rows:
            ids, numbers = to_hex(self.id_words()[places]), np.arange(len(places))
            words = distinct(np.concatenate([each.refs.reshape(-1) for each in rows]))
            events = self.view.take(words).events(self.catalogue)
            for each in rows:
                members = np.searchsorted(words, each.refs).tolist()
                deadlines = [None] * len(members) if each.deadlines is None else each.deadlines.tolist()
                for place, word, mine, due in zip(
                    numbers[each.at].tolist(), each.words.tolist(), members, deadlines, strict=True
                ):
                    match = Match(each.block.branch, tuple([events[at] for at in mine]), due)
                    made[place] = self.build(each.block.subscription.name, match, position_of(word), ids[place])
        return made  # type: ignore[return-value]


def joined(batches: Sequence[Relations]) -> Relations:
    """The relations of consecutive batches of one engine as those of one batch: fewer, longer columns."""
    first = batches[0]
    if len(batches) == 1:
        return first
    mine: dict[tuple[int, int, int], list[Block]] = {}
    for block in (block for batch in batches for block in batch.blocks):
        mine.setdefault((block.phase, block.number, block.branch), []).append(block)
    made = Relations(
        [_joined_block(each) for each in mine.values()],
        joined_view([batch.view for batch in batches]),
        [relation for batch in batches for relation in batch.others],
        first.numbers,
        first.catalogue,
        first.build,
        [due for batch in batches for due in batch.due],
    )
    made.__dict__["_ids"] = np.concatenate([batch.id_words() for batch in batches])  # what they are already known to be
    return made


def _joined_block(blocks: Sequence[Block]) -> Block:
    deadlines = [block.deadlines for block in blocks if block.deadlines is not None]
    return replace(
        blocks[0],
        at=np.concatenate([block.at for block in blocks]),
        refs=np.concatenate([block.refs for block in blocks]),
        deadlines=np.concatenate(deadlines) if deadlines else None,
    )


def _order(
    blocks: Sequence[Block], others: Sequence[Relation], due: Sequence[int | None], numbers: Mapping[str, int]
) -> Numbers | None:
    """By place of completion. At one place: what absences decided, by deadline, subscription, members' positions and branch;
    then what the event there completed, subscription by subscription and branch by branch."""
    at = np.concatenate([*(block.at for block in blocks), np.array([_word(each) for each in others], dtype=np.int64)])
    if all(block.phase for block in blocks) and not others:  # the blocks stand by subscription and branch already
        return None if len(blocks) < 2 else np.argsort(at, kind="stable")
    columns = [_block_keys(block) for block in blocks]
    columns += [_other_keys(each, limit, numbers) for each, limit in zip(others, due, strict=True)]
    width = max(each.shape[1] for each in columns)
    keys = np.concatenate([np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=-1) for each in columns])
    # the branch stands before the members in phase 1, where there are none in the key, and after them in phase 0
    phase, deadline, number, first_branch, last_branch, *members = keys.T
    return np.lexsort((last_branch, *reversed(members), first_branch, number, deadline, phase, at))


def _block_keys(block: Block) -> npt.NDArray[np.int64]:
    """phase, deadline, subscription, branch (phase 1), branch (phase 0), members (phase 0)."""
    made = np.zeros((len(block), 5), dtype=np.int64)
    made[:, 0], made[:, 2] = block.phase, block.number
    made[:, 3 if block.phase else 4] = block.branch
    if block.deadlines is not None and not block.phase:
        made[:, 1] = block.deadlines
    return made if block.phase else np.concatenate([made, block.refs], axis=1)


def _other_keys(relation: Relation, due: int | None, numbers: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """The same for a relation that is an object. What was found event by event is in order already: only what an event of the
    log completed can meet a block at the same place, so elsewhere its key is left the same for all."""
    minor, number = relation.completed_at.minor, numbers[relation.subscription]
    if due is not None:
        members = [position_word(each.position) for each in relation.members]
        return np.array([[0, due, number, 0, relation.branch, *members]], dtype=np.int64)
    if minor:
        return np.array([[0 if minor < 0 else 1, 0, 0, 0, 0]], dtype=np.int64)
    return np.array([[1, 0, number, relation.branch, 0]], dtype=np.int64)


def _word(relation: Relation) -> int:
    return position_word(relation.completed_at)
