"""The events that queues and relations still refer to, by position word, as chunks of columns.

Kernels queue words, relations list them, and the store converts them back to columns and events. A chunk lives while a queue or
a relation needs it; when most of it is dead the live rows are copied, so memory follows the number of queued events, not of
past ones.

Takes: batches, and events of a loaded state. Gives: `View`, a snapshot. Never: does more for a batch than to keep it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

import numpy as np

from fairlead.errors import require
from fairlead.matching.results.chunk import Chunk, Numbers, Times, Words
from fairlead.matching.results.taken_rows import ChunkRows, Taken, parts_of
from fairlead.model.events.columns import Columns
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue

SLACK_BYTES = 64_000_000
"""Dead rows of this size are not worth packing."""
PEELED_MAX = 64
"""Chunks up to which words are assigned chunk by chunk, starting with the newest; beyond, by sorting."""
BISECTED = 10
"""Chunks that can be scanned in the time of one binary search among them."""
FIRST = attrgetter("first")
ROW_BYTES = 32
"""Bytes of a row beside its attributes: type, position, word and place in its table."""


class View:
    """Chunks in layers. The chunks of one layer follow one another. Derived events overlap the batch beside them, and loaded
    events may overlap anything, so they are in lower layers."""

    def __init__(self, layers: Sequence[Sequence[Chunk]]) -> None:
        self.layers = layers

    def __len__(self) -> int:
        return sum(len(chunk) for layer in self.layers for chunk in layer)

    def take(self, words: Words) -> Taken:
        """The rows of these words, in any order, repeated or not."""
        parts: list[ChunkRows] = []
        at, left = np.arange(len(words)), words
        for layer in self.layers:
            if not len(left):
                break
            missing = np.zeros(len(left), dtype=bool)
            for chunk, mine in _by_chunk(layer, left):
                rows, here = chunk.rows(left[mine])
                if here.all():
                    parts += parts_of(chunk, at[mine], rows)
                else:
                    parts += parts_of(chunk, at[mine][here], rows[here])
                    missing[mine] = ~here
            at, left = at[missing], left[missing]
        require(not len(left), "the store has let go of an event", word=left[:1].tolist())
        return Taken(words, parts)

    def event(self, word: int, catalogue: Catalogue) -> Event:
        """A single event."""
        near = [layer[bisect_right(layer, word, 1, key=FIRST) - 1] for layer in self.layers]
        found = [(chunk, row) for chunk in near if (row := chunk.row(word)) is not None]
        require(bool(found), "the store has let go of an event", word=word)
        chunk, row = found[0]
        return chunk.event(row, catalogue)

    def narrowed(self, words: Words) -> View:
        """A copy of the rows of these words alone."""
        return View([[self.take(distinct(words)).chunk()]] if len(words) else [])


def joined_view(views: Sequence[View]) -> View:
    """Everything that is in one of the views."""
    chunks = {id(chunk): chunk for view in views for layer in view.layers for chunk in layer}
    layers: list[list[Chunk]] = []
    for chunk in sorted(chunks.values(), key=lambda each: each.first):
        _placed(chunk, layers)
    return View(layers)


def _placed(chunk: Chunk, layers: list[list[Chunk]]) -> None:
    """At the end of the first layer that ends before it."""
    for layer in layers:
        if layer[-1].last < chunk.first:
            layer.append(chunk)
            return
    layers.append([chunk])


class Store:
    def __init__(self, slack_bytes_max: int = SLACK_BYTES) -> None:
        self.slack_bytes_max = slack_bytes_max
        self.layers: list[list[Chunk]] = []
        self.rows = 0
        self.bytes = 0

    def add(self, columns: Columns, words: Words | None = None, times: Times | None = None) -> None:
        """Add a batch. `words`: if the events are derived and not those of the log. `times`: by type, if the time of an event
        is not an attribute."""
        if len(columns):
            self.add_chunk(Chunk(columns, words, times))

    def add_chunk(self, chunk: Chunk) -> None:
        self.rows += len(chunk)
        self.bytes += len(chunk) * ROW_BYTES + sum(table.nbytes for table in chunk.columns.tables.values())
        _placed(chunk, self.layers)

    def view(self) -> View:
        return View([tuple(layer) for layer in self.layers])

    def pack(self, queued: int, words: Callable[[], Words]) -> None:
        """Drop events that no queue refers to, if that is worth the copying. `queued` is the number of queued nodes, `words`
        returns their words, in any order."""
        if self.rows > 2 * queued and self.bytes * (self.rows - queued) > self.slack_bytes_max * self.rows:
            live = distinct(words())
            packed = [self.view().take(live).chunk()] if len(live) else []
            self.layers, self.rows, self.bytes = [], 0, 0
            for chunk in packed:
                self.add_chunk(chunk)


def distinct(words: Words) -> Words:
    """Sorted, without repeats. (On these sizes sorting is five times faster than the hashing of numpy.unique.)"""
    ordered = np.sort(words)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def _by_chunk(layer: Sequence[Chunk], words: Words) -> Iterator[tuple[Chunk, slice | Numbers]]:
    """By chunk of a layer, the words that can only be in it."""
    if len(layer) == 1 or (len(words) and words.min() >= layer[-1].first):
        yield layer[-1], slice(None)
    elif len(layer) <= PEELED_MAX:  # most members are recent: the rest shrinks fast
        left = np.arange(len(words))
        for chunk in reversed(layer[1:]):
            if not len(left):
                return
            here = words[left] >= chunk.first
            if here.any():
                yield chunk, left[here]
                left = left[~here]
        yield layer[0], left
    else:
        number = _numbers(layer, words)
        order = np.argsort(number, kind="stable")
        ordered = number[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        for low, high in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            yield layer[int(ordered[low])], order[low:high]


def _numbers(layer: Sequence[Chunk], words: Words) -> Numbers:
    """The number of the last chunk that begins at or before each word. Small batches make thousands of chunks, of which a few
    words need a few."""
    if len(words) * BISECTED < len(layer):
        return np.array([bisect_right(layer, word, 1, key=FIRST) - 1 for word in words.tolist()], dtype=np.int64)
    return np.searchsorted([chunk.first for chunk in layer[1:]], words, side="right")
