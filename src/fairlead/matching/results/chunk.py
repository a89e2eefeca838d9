"""A batch of events in the store, found by position word.

Takes: Columns, and position words if minors matter. Gives: rows for words. Never: reads a row before it is accessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fairlead.model.events.columns import Columns, arrow_array, arrow_schema, canonical_row, record_batch
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.relations.identity import MINOR_BITS, majors_of, position_of, position_word, words_of

Words = npt.NDArray[np.int64]
"""Position words (model/relations/identity.py): they increase along the order, and each is the identity of one event."""
Numbers = npt.NDArray[np.int64]
Times = Mapping[str, Numbers]
"""By type, the time of each row of its table, if that is not an attribute (derived events)."""


class Chunk:
    """Rows whose words increase; row i is row `inner[i]` of the table of its type."""

    def __init__(self, columns: Columns, words: Words | None = None, times: Times | None = None) -> None:
        self.columns, self._words, self.times = columns, words, times or {}
        ends = (columns.positions[0], columns.positions[-1]) if words is None else (words[0], words[-1])
        low, high = (position_word(Position(int(each))) if words is None else int(each) for each in ends)
        self.first, self.last = low, high
        self.dense = words is None and high - low == (len(columns) - 1) << MINOR_BITS

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def words(self) -> Words:
        return words_of(self.columns.position_array) if self._words is None else self._words

    @cached_property
    def inner(self) -> Numbers:
        made = np.empty(len(self), dtype=np.int64)
        for mine in self.columns.places.values():
            made[mine] = np.arange(len(mine))
        return made

    def rows(self, words: Words) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """The row of each word, and whether it is here at all."""
        if self.dense:
            shifted = words - self.first
            rows = shifted >> MINOR_BITS
            return rows, (words >= self.first) & (words <= self.last) & (rows << MINOR_BITS == shifted)
        rows = np.minimum(np.searchsorted(self.words, words), len(self) - 1)
        return rows, self.words[rows] == words

    def row(self, word: int) -> int | None:
        """The row of one word; None if it is not here."""
        if not self.first <= word <= self.last:
            return None
        if self.dense:
            row, rest = divmod(word - self.first, 1 << MINOR_BITS)
            return None if rest else row
        row = int(self.words.searchsorted(word))
        return row if self.words[row] == word else None

    def event(self, row: int, catalogue: Catalogue) -> Event:
        columns = self.columns
        name = columns.types[int(columns.codes[row])]
        schema, table, given = catalogue[name], columns.tables[name], self.times.get(name)
        inner = row if len(columns.tables) == 1 else int(columns.places[name].searchsorted(row))
        values = canonical_row(table, schema, inner)
        time = None if schema.time_index is None else values[schema.time_index]
        return Event(
            schema,
            values,
            position_of(int(self.words[row])),
            time if given is None else int(given[inner]),
            None if columns.sources is None else columns.sources[row],
            None if columns.sequences is None else columns.sequences[row],
            None if columns.identities is None else tuple(columns.identities[row].tolist()),
        )


def _are_identified(events: Sequence[Event]) -> bool:
    return any(event.identity is not None for event in events)


def chunk_of_events(events: Sequence[Event]) -> Chunk:
    """The chunk of events that are objects already; their positions increase."""
    types = tuple(dict.fromkeys(event.type for event in events))
    numbers = {name: at for at, name in enumerate(types)}
    mine: dict[str, list[Event]] = {name: [] for name in types}
    for event in events:
        mine[event.type].append(event)
    tables, times = {}, {}
    for name, found in mine.items():
        schema = found[0].schema
        values = zip(*(event.row for event in found), strict=True)
        arrays = [arrow_array(column, each.type) for column, each in zip(values, schema.attributes, strict=False)]
        tables[name] = record_batch(arrays, arrow_schema(schema), len(found))
        if schema.derived and all(event.time is not None for event in found):
            times[name] = np.array([event.time for event in found], dtype=np.int64)
    words = np.array([position_word(event.position) for event in events], dtype=np.int64)
    given = any(event.source is not None or event.sequence is not None for event in events)
    columns = Columns(
        types,
        np.array([numbers[event.type] for event in events], dtype=np.int64),
        majors_of(words),  # type: ignore[arg-type]
        tables,
        [event.source for event in events] if given else None,
        [event.sequence for event in events] if given else None,
        identities=np.array([event.identity for event in events], dtype=np.uint64) if _are_identified(events) else None,
    )
    return Chunk(columns, words, times)
