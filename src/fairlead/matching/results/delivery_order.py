"""The relations of several engines in one order, without copying them from their engine.

Positions of one engine mean nothing to another, whose events are numbered by another stream; so everything that is computed
from members is computed engine by engine, and sorted afterwards.

Takes: the relations of each engine, and for each place of the one order its engine. Gives: a sequence of relations, ids,
tables. Never: makes an object before it is accessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.results.chunk import Numbers, Words
from fairlead.matching.results.relations import NOT_DUE, PAGE, Relations
from fairlead.matching.results.result_table import table_of_objects
from fairlead.matching.results.transferred import TransferredRelations
from fairlead.model.relations.identity import Signs, from_hex, position_word, signed, to_hex
from fairlead.model.relations.identity import Words as Ids
from fairlead.model.relations.layout import ResultLayout
from fairlead.model.relations.relation import PLUS, Relation

__all__ = ["LAZY", "NOT_DUE", "Interleaved", "Objects", "by_turn", "completed", "in_one_order", "interleaved"]


class Objects(list[Relation]):
    """Relations that were found event by event. `due`: for each, the deadline that decided it (`NOT_DUE` if an event did)."""

    due: Sequence[int] = ()

    @classmethod
    def of(cls, delivered: Sequence[tuple[Relation, int]]) -> Objects:
        made = cls([relation for relation, _ in delivered])
        made.due = [due for _, due in delivered]
        return made


class Interleaved(Sequence[Relation]):
    """`parts`: the relations of each engine. `owner` and `place`: for each relation, the number of its part, and its place
    there."""

    def __init__(self, parts: Sequence[Sequence[Relation]], owner: npt.NDArray[np.int32], place: Numbers) -> None:
        self.parts, self.owner, self.place = parts, owner, place
        self._pages: dict[int, list[Relation]] = {}

    def __len__(self) -> int:
        return len(self.owner)

    @overload
    def __getitem__(self, at: int) -> Relation: ...
    @overload
    def __getitem__(self, at: slice) -> Interleaved: ...
    def __getitem__(self, at: int | slice) -> Relation | Interleaved:
        if isinstance(at, slice):
            return Interleaved(self.parts, self.owner[at], self.place[at])
        wanted = range(len(self))[at]
        return self._page(wanted // PAGE)[wanted % PAGE]

    def __iter__(self) -> Iterator[Relation]:
        for number in range(-(-len(self) // PAGE)):
            yield from self._page(number)

    def _page(self, number: int) -> list[Relation]:
        if number not in self._pages:
            self._pages[number] = self[number * PAGE : (number + 1) * PAGE]._made()
        return self._pages[number]

    def _made(self) -> list[Relation]:
        made: list[Relation | None] = [None] * len(self)
        for part, mine in self._by_part():
            for at, relation in zip(mine.tolist(), taken(part, self.place[mine]), strict=True):
                made[at] = relation
        return made  # type: ignore[return-value]

    def _by_part(self) -> Iterator[tuple[Sequence[Relation], Numbers]]:
        """The parts that have some of these relations, and which."""
        for number, part in enumerate(self.parts):
            mine = np.flatnonzero(self.owner == number)
            if len(mine):
                yield part, mine

    def id_words(self) -> Ids:
        made = np.empty((len(self), 2), dtype=np.uint64)
        for part, mine in self._by_part():
            made[mine] = ids_of(part)[self.place[mine]]
        return made

    def ids(self) -> list[str]:
        return to_hex(self.id_words())

    def signs(self) -> Signs | None:
        """The sign of each delivery; None if no relation is taken back."""
        found = [(mine, signs_of(part)) for part, mine in self._by_part()]
        if all(signs is None for _, signs in found):
            return None
        made = np.full(len(self), PLUS, dtype=np.int8)
        for mine, signs in found:
            if signs is not None:
                made[mine] = signs[self.place[mine]]
        return made

    def counts(self) -> Mapping[str, int]:
        """How many relations each subscription has."""
        found: Counter[str] = Counter()
        for part, mine in self._by_part():
            found.update(names_of(part, self.place[mine]))
        return found

    def only(self, subscription: str) -> Interleaved:
        """The relations of one subscription."""
        wanted = np.zeros(len(self), dtype=bool)
        for part, mine in self._by_part():
            wanted[mine] = [name == subscription for name in names_of(part, self.place[mine])]
        return Interleaved(self.parts, self.owner[wanted], self.place[wanted])

    def taken(self, places: Numbers) -> list[Relation]:
        """The relations at some places of the delivery."""
        return Interleaved(self.parts, self.owner[places], self.place[places])._made()

    def completed(self) -> Words:
        """The word of the place at which each was completed."""
        made = np.empty(len(self), dtype=np.int64)
        for part, mine in self._by_part():
            made[mine] = completed(part)[self.place[mine]]
        return made

    def due(self) -> Words:
        """The deadline that decided each, or `NOT_DUE`."""
        made = np.empty(len(self), dtype=np.int64)
        for part, mine in self._by_part():
            made[mine] = due_of(part)[self.place[mine]]
        return made

    def names(self, places: Numbers) -> list[str]:
        """The subscriptions of those at some places of the delivery."""
        made = np.empty(len(self), dtype=object)
        for part, mine in self._by_part():
            made[mine] = names_of(part, self.place[mine])
        found: list[str] = made[places].tolist()
        return found

    @property
    def members(self) -> int:
        """The number of events that they refer to, counted with repetition."""
        return sum(each.members if isinstance(each, LAZY) else sum(len(one.members) for one in each) for each in self.parts)

    def narrow(self) -> None:
        """Hold a copy of the needed events, instead of all that the matchers held."""
        for each in self.parts:
            if isinstance(each, LAZY):
                each.narrow()

    def to_arrow(self, layout: ResultLayout) -> pa.Table:
        """The result table (model/relations/layout.py)."""
        return self.table_of(layout, np.arange(len(self)))

    def table_of(self, layout: ResultLayout, places: Numbers) -> pa.Table:
        """The result table of those at some places of the delivery."""
        chosen = Interleaved(self.parts, self.owner[places], self.place[places])
        tables, order = [layout.schema.empty_table()], [np.zeros(0, dtype=np.int64)]
        for part, mine in chosen._by_part():
            there = chosen.place[mine]
            if isinstance(part, LAZY):
                tables.append(part.table_of(layout, there))
            else:
                tables.append(table_of_objects(layout, taken(part, there)))
            order.append(mine)
        return pa.concat_tables(tables).take(pa.array(np.argsort(np.concatenate(order))))


LAZY = (Relations, Interleaved, TransferredRelations)
"""Sequences whose items become objects on access."""


def in_one_order(
    found: Sequence[Relations | Sequence[tuple[Relation, int]]], numbers: Sequence[Sequence[int]], of_name: Mapping[str, int]
) -> Sequence[Relation]:
    """The relations of several units (with the deadlines that decided some), in the one order of delivery: by place; at one
    place those that deadlines decided first, by deadline; then by subscription. `numbers`: by unit, the numbers of its
    subscriptions in the whole plan; `of_name`: these by name."""
    if not any(isinstance(each, Relations) for each in found):
        together = [each for some in found if not isinstance(some, Relations) for each in some]
        together.sort(key=lambda each: (each[0].completed_at, each[1], of_name[each[0].subscription]))
        return Objects.of(together)
    parts: list[Sequence[Relation]] = []
    turns: list[tuple[Words, Words, Numbers]] = []
    for some, mine in zip(found, numbers, strict=True):
        if not len(some):
            continue
        if isinstance(some, Relations):
            at, due, number = some.turns()
            parts.append(some)
            turns.append((at, due, np.array(mine, dtype=np.int64)[number]))
        else:
            parts.append(Objects.of(some))
            places = [(position_word(each.completed_at), due, of_name[each.subscription]) for each, due in some]
            at, due, number = np.array(places, dtype=np.int64).T
            turns.append((at, due, number))
    if not parts:
        return Interleaved((), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))
    at, due, number = (np.concatenate(each) for each in zip(*turns, strict=True))
    order = np.lexsort((number, due, at))
    if len(parts) == 1 and (order[1:] > order[:-1]).all():
        return parts[0]
    owner = np.repeat(np.arange(len(parts), dtype=np.int32), [len(each) for each in parts])
    place = np.concatenate([np.arange(len(each)) for each in parts])
    return Interleaved(parts, owner[order], place[order])


def interleaved(parts: Sequence[Sequence[Relation]], turns: Sequence[Numbers]) -> Interleaved:
    """Relations in the order of their turns, by part; at one turn they are of one part, in its order."""
    owner = np.repeat(np.arange(len(parts), dtype=np.int32), [len(each) for each in parts])
    place = np.concatenate([np.arange(len(each)) for each in parts])
    order = np.argsort(np.concatenate(turns), kind="stable")
    return Interleaved(parts, owner[order], place[order])


def by_turn(
    found: Sequence[Sequence[Relation]],
    turns: Sequence[Numbers],
    known: Sequence[int],
    released: Sequence[Numbers | None] = (),
) -> Interleaved:
    """The relations of several engines with the same input, in one order: by turn, then as in `in_one_order`, with the first
    engine's subscriptions before those of the second. `turns`: of each relation; `known`: by engine, how many of its relations
    to omit. `released`: of each relation, where in the common input its events were released, if the engines number them by
    themselves; then each engine's own order follows."""
    owner = np.repeat(
        np.arange(len(found), dtype=np.int32), [len(some) - left for some, left in zip(found, known, strict=True)]
    )
    place = np.concatenate([np.arange(left, len(some)) for some, left in zip(found, known, strict=True)])
    if any(each is not None for each in released):
        since = [
            (turn[left:], each[left:]) for turn, each, left in zip(turns, released, known, strict=True) if each is not None
        ]
        turn, at = (np.concatenate(each) for each in zip(*since, strict=True))
        order = np.lexsort((place, owner, at, turn))
        return Interleaved(found, owner[order], place[order])
    places = [
        (turn[left:], completed(some)[left:], due_of(some)[left:]) for some, turn, left in zip(found, turns, known, strict=True)
    ]
    turn, at, due = (np.concatenate(each) for each in zip(*places, strict=True))
    order = np.lexsort((owner, due, at, turn))
    return Interleaved(found, owner[order], place[order])


def due_of(relations: Sequence[Relation]) -> Words:
    """The deadline that decided each, or `NOT_DUE`."""
    if isinstance(relations, (Relations, TransferredRelations)):
        return relations.turns()[1]
    if isinstance(relations, Interleaved):
        return relations.due()
    if isinstance(relations, Objects):
        return np.array(relations.due, dtype=np.int64)
    return np.full(len(relations), NOT_DUE, dtype=np.int64)


def completed(relations: Sequence[Relation]) -> Words:
    """The word of the place at which each was completed."""
    if isinstance(relations, LAZY):
        return relations.completed()
    return np.array([position_word(each.completed_at) for each in relations], dtype=np.int64)


def taken(relations: Sequence[Relation], places: Numbers) -> Sequence[Relation]:
    return relations.taken(places) if isinstance(relations, LAZY) else [relations[at] for at in places.tolist()]


def ids_of(relations: Sequence[Relation]) -> Ids:
    return relations.id_words() if isinstance(relations, LAZY) else from_hex([each.id for each in relations])


def signs_of(relations: Sequence[Relation]) -> Signs | None:
    """The sign of each delivery; None if no relation is taken back."""
    if isinstance(relations, LAZY):
        return relations.signs()
    found = [each.sign for each in relations]
    return None if all(sign == PLUS for sign in found) else np.array(found, dtype=np.int8)


def delivery_words(relations: Sequence[Relation]) -> Ids:
    """The words of deliveries, which receipts are made of: an id, or its complement (model/relations/identity.py)."""
    return signed(ids_of(relations), signs_of(relations))


def names_of(relations: Sequence[Relation], places: Numbers) -> list[str]:
    """The subscription of each."""
    if isinstance(relations, LAZY):
        return relations.names(places)
    return [relations[at].subscription for at in places.tolist()]
