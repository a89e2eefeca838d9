"""The relations that kernels found in a batch: columns of position words, which become objects on access.

Takes: matches as words, a view of the store, and the relations that other subscriptions found event by event. Gives: the
relations in the order of delivery; ids, counts and the result table make no object. Never: holds more of the store than
`narrow` leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.outcome import Match
from fairlead.matching.results.chunk import Numbers, Words
from fairlead.matching.results.event_store import View, distinct, joined_view
from fairlead.matching.results.member_words import MemberWords, joined_members
from fairlead.matching.results.result_table import BlockRows, table_of_blocks
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.plan import Subscription
from fairlead.model.relations.identity import Signs, position_of, to_hex
from fairlead.model.relations.identity import Words as Ids
from fairlead.model.relations.layout import ResultLayout
from fairlead.model.relations.relation import PLUS, Relation

Build = Callable[[str, Match, Position, str], Relation]
"""Makes a relation of a subscription from a match, the place of its completion and its id."""
PAGE = 1024
"""Relations that become objects together: accessing one creates its neighbours too."""
TOGETHER = 16 * PAGE
NOT_DUE = np.iinfo(np.int64).max
"""Instead of the deadline of a relation that an event completed."""
FEW = 8
"""Relations that are created one by one."""
TABLE_ROWS = 131_072
"""Relations in one piece of the result table."""


@dataclass(eq=False, slots=True)
class MatchBlock:
    """The matches of one branch in a batch, in order: the word of the place of completion, and the members' words by slot. It
    never changes; slots, since a batch can have one for each of ten thousand subscriptions.

    Phase 0 are those that an absence's deadline decided; they precede those that an event at the same place completes."""

    subscription: Subscription
    number: int
    branch: int
    at: Words
    refs: MemberWords
    phase: int = 1
    deadlines: Numbers | None = None
    ranks: Numbers | None = None
    """The place of each in the order of delivery of the batch, if that differs from the order of completion."""
    sign: int = PLUS
    """Of all its deliveries: -1 if they take back relations that were delivered before."""

    def __len__(self) -> int:
        return len(self.at)

    @property
    def branch_number(self) -> int:
        """As in the text."""
        return self.subscription.number(self.branch)

    @property
    def turn(self) -> tuple[int, int, int, int]:
        """What decides between blocks at one place; and blocks that agree in it can be one."""
        return self.phase, self.number, self.branch, self.sign

    def taken(self, mask: npt.NDArray[np.bool_]) -> MatchBlock:
        """Some of them, where places tell the order."""
        deadlines = None if self.deadlines is None else self.deadlines[mask]
        return replace(self, at=self.at[mask], refs=self.refs[mask], deadlines=deadlines)

    def moved(self, behind: int) -> MatchBlock:
        """The block after this many relations that are delivered before. Without ranks, places tell the order."""
        return self if self.ranks is None else replace(self, ranks=self.ranks + behind)


def united(blocks: Sequence[MatchBlock]) -> list[MatchBlock]:
    """The blocks of several parts of a batch, or of several batches, in order: one block for each turn."""
    groups: dict[tuple[int, int, int, int], list[MatchBlock]] = {}
    for each in blocks:
        groups.setdefault(each.turn, []).append(each)
    return [_united(group) for group in groups.values()]


def _united(group: Sequence[MatchBlock]) -> MatchBlock:
    def joined(parts: Sequence[Numbers | None]) -> Numbers | None:
        there = [each for each in parts if each is not None]
        return np.concatenate(there) if there else None

    at, refs = np.concatenate([each.at for each in group]), joined_members([each.refs for each in group])
    deadlines, ranks = joined([each.deadlines for each in group]), joined([each.ranks for each in group])
    return replace(group[0], at=at, refs=refs, deadlines=deadlines, ranks=ranks)


class Relations(Sequence[Relation]):
    """The relations of a batch in the order of delivery."""

    def __init__(self, blocks: Sequence[MatchBlock], view: View, catalogue: Catalogue, build: Build) -> None:
        self.blocks = sorted((each for each in blocks if len(each)), key=lambda each: each.turn)
        self.view = view if self.blocks else View([])
        self.catalogue, self.build = catalogue, build
        self.starts = np.cumsum([0, *(len(each) for each in self.blocks)])
        self._pages: dict[int, list[Relation]] = {}

    def __len__(self) -> int:
        return int(self.starts[-1])

    @overload
    def __getitem__(self, at: int) -> Relation: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Relation]: ...
    def __getitem__(self, at: int | slice) -> Relation | Sequence[Relation]:
        wanted = range(len(self))[at]
        if isinstance(wanted, int):
            return self._page(wanted // PAGE)[wanted % PAGE]
        if len(wanted) < PAGE:
            return self.taken(np.array(wanted, dtype=np.int64))
        return [self[each] for each in wanted]

    def __iter__(self) -> Iterator[Relation]:
        for low in range(0, len(self), TOGETHER):  # an iteration over all creates many pages at once
            first, last = low // PAGE, -(-min(low + TOGETHER, len(self)) // PAGE)
            if any(page not in self._pages for page in range(first, last)):
                made = self.taken(np.arange(low, min(low + TOGETHER, len(self))))
                self._pages |= {first + at: made[at * PAGE : (at + 1) * PAGE] for at in range(last - first)}
            for page in range(first, last):
                yield from self._pages[page]

    def ranked_blocks(self) -> list[MatchBlock]:
        """The blocks with the rank of each relation, for batches that take relations back: places do not rise there."""
        ranks = np.arange(len(self))
        if self.order is not None:
            ranks[self.order] = np.arange(len(self))
        return [replace(each, ranks=ranks[low : low + len(each)]) for each, low in zip(self.blocks, self.starts, strict=False)]

    def counts(self) -> Mapping[str, int]:
        """How many relations each subscription has."""
        found: Counter[str] = Counter()
        for block in self.blocks:
            found[block.subscription.name] += len(block)
        return found

    def only(self, subscription: str) -> Relations:
        """The relations of one subscription."""
        blocks = [each for each in self.blocks if each.subscription.name == subscription]
        return Relations(blocks, self.view, self.catalogue, self.build)

    def id_words(self) -> Ids:
        """The ids as pairs of 64-bit numbers."""
        return self._ids

    def ids(self) -> list[str]:
        return to_hex(self.id_words())

    def signs(self) -> Signs | None:
        """The sign of each delivery; None if no relation is taken back."""
        if all(block.sign == PLUS for block in self.blocks):
            return None
        found = np.repeat(np.array([block.sign for block in self.blocks], dtype=np.int8), [len(block) for block in self.blocks])
        return found if self.order is None else found[self.order]

    @property
    def members(self) -> int:
        """The number of events that they refer to, counted with repetition."""
        return sum(block.refs.words.size for block in self.blocks)

    def narrow(self) -> None:
        """Hold a copy of the needed events, instead of all that the matcher held."""
        if self.blocks:
            self.view = self.view.narrowed(np.concatenate([block.refs.needed for block in self.blocks]))

    def to_arrow(self, layout: ResultLayout) -> pa.Table:
        """The result table (model/relations/layout.py)."""
        pieces = [self._table(layout, low, min(low + TABLE_ROWS, len(self))) for low in range(0, len(self), TABLE_ROWS)]
        return pa.concat_tables(pieces) if pieces else layout.schema.empty_table()

    @cached_property
    def order(self) -> Numbers | None:
        """By place in the order of delivery, the number of the relation, counted through the blocks. None if they are already
        in order. At one place the blocks are already sorted by subscription and branch."""
        ranks = [block.at if block.ranks is None else block.ranks for block in self.blocks]
        return np.argsort(np.concatenate(ranks), kind="stable") if len(ranks) > 1 or self._is_ranked else None

    @property
    def _is_ranked(self) -> bool:
        return any(block.ranks is not None for block in self.blocks)

    @cached_property
    def _ids(self) -> Ids:
        found = ids_of_blocks(self.blocks, self.view)
        return found if self.order is None else found[self.order]

    def _rows(self, places: Numbers | slice) -> list[BlockRows]:
        """The relations at some places of the delivery, by block."""
        if len(self.blocks) == 1 and self.order is None:
            return [BlockRows(self.blocks[0], slice(None), places)]
        numbers = np.arange(len(self))[places] if self.order is None else self.order[places]
        owner = np.searchsorted(self.starts, numbers, side="right") - 1
        by_owner = np.argsort(owner, kind="stable")
        ends = np.cumsum(np.bincount(owner, minlength=len(self.blocks))).tolist()
        found = []
        for at, block in enumerate(self.blocks):
            mine = by_owner[ends[at - 1] if at else 0 : ends[at]]
            if len(mine):
                found.append(BlockRows(block, mine, numbers[mine] - self.starts[at]))
        return found

    def table_of(self, layout: ResultLayout, places: Numbers) -> pa.Table:
        """The result table of those at some places of the delivery."""
        return table_of_blocks(layout, self._rows(places), self.view, self.id_words()[places])

    def completed(self) -> Words:
        """The word of the place at which each was completed, in the order of delivery."""
        found = np.concatenate([block.at for block in self.blocks]) if self.blocks else np.zeros(0, dtype=np.int64)
        return found if self.order is None else found[self.order]

    def turns(self) -> tuple[Words, Words, Numbers]:
        """Of each relation, in the order of delivery: the place of its completion, the deadline that decided it (NOT_DUE if an
        event did), and the number of its subscription."""
        none = np.zeros(0, dtype=np.int64)
        dues = [b.deadlines if not b.phase and b.deadlines is not None else np.full(len(b), NOT_DUE) for b in self.blocks]
        due = np.concatenate([none, *dues])
        number = np.repeat([block.number for block in self.blocks] or none, [len(block) for block in self.blocks])
        order = slice(None) if self.order is None else self.order
        return self.completed(), due[order], number.astype(np.int64)[order]

    def names(self, places: Numbers) -> list[str]:
        """The subscriptions of those at some places of the delivery."""
        numbers = places if self.order is None else self.order[places]
        owners = np.searchsorted(self.starts, numbers, side="right") - 1
        return [self.blocks[at].subscription.name for at in owners.tolist()]

    def _table(self, layout: ResultLayout, low: int, high: int) -> pa.Table:
        try:
            return table_of_blocks(layout, self._rows(slice(low, high)), self.view, self.id_words()[low:high])
        except (pa.ArrowInvalid, pa.ArrowCapacityError):  # more than 2 GB of text in one column
            if high - low < 2:
                raise
            middle = (low + high) // 2
            return pa.concat_tables([self._table(layout, low, middle), self._table(layout, middle, high)])

    def _page(self, number: int) -> list[Relation]:
        if number not in self._pages:
            self._pages[number] = self.taken(np.arange(number * PAGE, min((number + 1) * PAGE, len(self))))
        return self._pages[number]

    def taken(self, places: Numbers) -> list[Relation]:
        """The relations at some places of the delivery."""
        if len(places) <= FEW and not any(each.refs.offsets is not None for each in self.blocks):  # runs can be long
            return [self._one(place) for place in places.tolist()]
        rows = self._rows(places)
        made: list[Relation | None] = [None] * len(places)
        if rows:
            ids, numbers = to_hex(self.id_words()[places]), np.arange(len(places))
            words = distinct(np.concatenate([each.refs.needed for each in rows]))
            events = self.view.take(words).events(self.catalogue)
            event_of = dict(zip(words.tolist(), events, strict=True)).__getitem__
            for each in rows:
                refs = each.refs
                members = refs.mapped(lambda mine: np.searchsorted(words, mine)).rows()
                deadlines = [None] * len(members) if each.deadlines is None else each.deadlines.tolist()
                found = zip(numbers[each.at].tolist(), each.words.tolist(), members, deadlines, strict=True)
                for row, (place, word, mine, due) in enumerate(found):
                    folded = () if refs.folds is None else (refs.folds.run(row, event_of),)
                    match = Match(each.block.branch, tuple([events[at] for at in mine]), due, refs.runs(row), folded)
                    made[place] = self._built(each.block, match, word, ids[place])
        return made  # type: ignore[return-value]

    def _one(self, place: int) -> Relation:
        """A single relation: extracting columns for all of them costs as much as some ten of these."""
        number = place if self.order is None else int(self.order[place])
        owner = int(self.starts.searchsorted(number, side="right")) - 1
        block, row = self.blocks[owner], number - int(self.starts[owner])
        members = tuple([self.view.event(word, self.catalogue) for word in block.refs.row(row)])
        due = None if block.deadlines is None else int(block.deadlines[row])
        match = Match(block.branch, members, due, block.refs.runs(row))
        (identity,) = to_hex(self.id_words()[place : place + 1])
        return self._built(block, match, int(block.at[row]), identity)

    def _built(self, block: MatchBlock, match: Match, at: int, identity: str) -> Relation:
        relation = self.build(block.subscription.name, match, position_of(at), identity)
        return relation if block.sign == PLUS else relation.taken_back()


def joined(batches: Sequence[Relations]) -> Relations:
    """The relations of consecutive batches of one engine as those of one batch: fewer, longer columns."""
    first = batches[0]
    if len(batches) == 1:
        return first
    signed = any(batch.signs() is not None for batch in batches)
    blocks: list[MatchBlock] = []
    before = 0
    for batch in batches:
        blocks += [block.moved(before) for block in (batch.ranked_blocks() if signed else batch.blocks)]
        before += len(batch)
    view = joined_view([batch.view for batch in batches])
    made = Relations(united(blocks), view, first.catalogue, first.build)
    made.__dict__["_ids"] = np.concatenate([batch.id_words() for batch in batches])  # reuse the known ids
    return made


def identities_of(refs: MemberWords, view: View) -> Ids:
    """The identities of the members, two words for each."""
    return view.take(refs.flat).identities()


def ids_of_blocks(blocks: Sequence[MatchBlock], view: View) -> Ids:
    """The ids of all relations, block after block; blocks of one form are computed together."""
    lengths = [len(block) for block in blocks]
    starts = np.cumsum([0, *lengths])
    found = np.empty((int(starts[-1]), 2), dtype=np.uint64)
    forms: dict[tuple[int, ...], list[int]] = {}
    for at, block in enumerate(blocks):
        forms.setdefault(block.refs.form, []).append(at)
    for mine in forms.values():
        asked = [(blocks[at].subscription.id_digest, blocks[at].branch_number, lengths[at]) for at in mine]
        refs = joined_members([blocks[at].refs for at in mine])
        by_value = blocks[mine[0]].subscription.order is not None
        made = refs.ids(asked, identities_of(refs, view) if by_value else None)
        start = 0
        for at in mine:
            found[starts[at] : starts[at + 1]] = made[start : start + lengths[at]]
            start += lengths[at]
    return found
