"""The members of matches as position words: for each match a run of one or more events in each slot.

    A a THEN B b[3]       every match has four members, a run of one and a run of three: a row of four words, no offsets
    runs of any length    all words one after the other, and for each slot of each match where its run begins

Every column of members is read through this class: ids, tables, objects, emitted attributes and the order of deadlines need not
know how many events a slot holds. Kernels return rows, of patterns with runs words and lengths.

Takes: words, and offsets if runs differ in length. Gives: rows, columns and lengths. Never: looks at an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.errors import require
from fairlead.matching.results.chunk import Numbers, Words
from fairlead.matching.results.folded_words import FoldedWords, joined_folds
from fairlead.model.relations.identity import Words as Ids
from fairlead.model.relations.identity import relation_ids


class MemberWords:
    """`words`: one row per match; or with offsets all of them one after the other. `offsets`: match after match and slot after
    slot the place where a run begins, and at the end that of the last word; `slots` to a match. `folds`: what is kept of a
    folded run, which has no members."""

    __slots__ = ("folds", "offsets", "slots", "words")

    def __init__(self, words: Words, offsets: Numbers | None = None, slots: int = 0, folds: FoldedWords | None = None) -> None:
        self.words, self.offsets, self.slots, self.folds = words, offsets, slots, folds

    @classmethod
    def of_folds(cls, folds: FoldedWords) -> MemberWords:
        """Of relations that have nothing but a folded run."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(len(folds) + 1, dtype=np.int64), 1, folds)

    @classmethod
    def of_runs(cls, matches: Sequence[Sequence[Sequence[int]]], slots: int) -> MemberWords:
        """By match and slot, the words of a run."""
        runs = [run for match in matches for run in match]
        words = np.array([word for run in runs for word in run], dtype=np.int64)
        return cls(words, _offsets([len(run) for run in runs]), slots)

    @classmethod
    def of_lengths(cls, words: Words, lengths: Numbers) -> MemberWords:
        """`lengths`: by match and slot, how many of the words it has."""
        return cls(words, _offsets(lengths.reshape(-1)), lengths.shape[1])

    def __len__(self) -> int:
        return len(self.words) if self.offsets is None else (len(self.offsets) - 1) // self.slots

    def __getitem__(self, rows: Numbers | npt.NDArray[np.bool_] | slice) -> MemberWords:
        """Those of some matches."""
        if self.offsets is None:
            return MemberWords(self.words[rows])
        lengths = self.lengths[rows]
        starts, widths = self.starts[:-1][rows], lengths.sum(axis=1)
        within = np.arange(int(widths.sum())) - np.repeat(np.cumsum(widths) - widths, widths)
        folds = None if self.folds is None else self.folds[rows]
        return MemberWords(self.words[np.repeat(starts, widths) + within], _offsets(lengths.reshape(-1)), self.slots, folds)

    @property
    def flat(self) -> Words:
        """All words, match after match."""
        return np.ascontiguousarray(self.words).reshape(-1) if self.offsets is None else self.words

    @property
    def needed(self) -> Words:
        """The events that are referred to: the members, and those that stand for folded runs."""
        return self.flat if self.folds is None else np.concatenate([self.flat, self.folds.needed])

    @property
    def run_lengths(self) -> Numbers:
        """By match and slot, how many events a run has, whether or not they are members."""
        return self.lengths if self.folds is None else self.folds.counts.reshape(-1, 1)

    @property
    def lengths(self) -> Numbers:
        """By match and slot, how many members a run has. A row has a slot of its own for each of its members."""
        if self.offsets is None:
            return np.ones(self.words.shape, dtype=np.int64)
        return np.diff(self.offsets).reshape(-1, self.slots)

    @property
    def starts(self) -> Numbers:
        """Where the members of each match begin among all words, and the end of the last."""
        return np.arange(len(self) + 1) * self.words.shape[1] if self.offsets is None else self.offsets[:: self.slots]

    @property
    def widths(self) -> int | Numbers:
        """How many members a match has: one number if all have the same."""
        return int(self.words.shape[1]) if self.offsets is None else np.diff(self.starts)

    @property
    def form(self) -> tuple[int, ...]:
        """Equal for blocks whose members can stand one after the other."""
        if self.folds is not None:
            return -2, id(self.folds)
        return self.words.shape[1:] if self.offsets is None else (-1, self.slots)

    def column(self, slot: int) -> Words:
        """The member of each match at a slot that holds one event."""
        if self.offsets is None:
            return np.ascontiguousarray(self.words[:, slot])
        require(bool((self.lengths[:, slot] == 1).all()), "this slot holds one event", slot=slot)
        return self.words[self.offsets[:-1].reshape(-1, self.slots)[:, slot]]

    def run(self, slot: int) -> tuple[Words, Numbers]:
        """The members at a slot, match after match, and how many each match has there."""
        lengths = self.lengths[:, slot]
        starts = self.starts[:-1] + slot if self.offsets is None else self.offsets[:-1].reshape(-1, self.slots)[:, slot]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self.flat[np.repeat(starts, lengths) + within], lengths

    def rows(self) -> list[list[int]]:
        """The members of each match."""
        if self.offsets is None:
            return self.words.tolist()  # type: ignore[no-any-return]
        return [part.tolist() for part in np.split(self.words, self.starts[1:-1])][: len(self)]

    def row(self, match: int) -> list[int]:
        """The members of one match."""
        if self.offsets is None:
            return self.words[match].tolist()  # type: ignore[no-any-return]
        return self.words[self.offsets[match * self.slots] : self.offsets[(match + 1) * self.slots]].tolist()  # type: ignore[no-any-return]

    def runs(self, match: int) -> tuple[int, ...] | None:
        """The lengths of the runs of one match; None if the pattern tells them."""
        return None if self.offsets is None else tuple(self.run_lengths[match].tolist())

    def mapped(self, function: Callable[[Words], Words]) -> MemberWords:
        """With another number for each word."""
        return MemberWords(function(self.words), self.offsets, self.slots, self.folds)

    def largest(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The largest of numbers that are given for each member, by match."""
        if self.offsets is None:
            made: npt.NDArray[Any] = values.reshape(self.words.shape).max(axis=1)
            return made
        return np.maximum.reduceat(values, self.starts[:-1]) if len(self) else values

    def padded(self, width: int) -> Words:
        """One row per match, filled with -1: rows compare as the matches do, member by member."""
        if self.offsets is None:
            return np.pad(self.words, ((0, 0), (0, width - self.words.shape[1])), constant_values=-1)
        made = np.full((len(self), width), -1, dtype=np.int64)
        made[np.arange(width) < np.diff(self.starts)[:, None]] = self.words
        return made

    def ids(self, asked: Sequence[tuple[str, int, int]], identities: Ids | None = None) -> Ids:
        """The ids of relations; `asked` as for `relation_ids`. If the pattern does not tell the lengths of runs, each run is
        followed by its length (model/relations/identity.py). `identities`: of each member, two words in place of its
        position."""
        if self.folds is not None:
            return self.folds.ids()
        if self.offsets is None:
            return relation_ids(asked, self.words if identities is None else identities.reshape(len(self), -1))
        words, each = (self.words, 1) if identities is None else (identities.reshape(-1), 2)
        followed = np.insert(words, each * self.offsets[1:], np.diff(self.offsets))
        widths = each * np.diff(self.starts) + self.slots
        starts = np.cumsum(widths) - widths
        seeds = np.repeat(np.arange(len(asked)), [rows for _, _, rows in asked])
        made = np.empty((len(self), 2), dtype=np.uint64)
        for width in np.unique(widths).tolist():  # matches of one width are computed together
            mine = np.flatnonzero(widths == width)
            counts = np.bincount(seeds[mine], minlength=len(asked)).tolist()
            some = [(digest, branch, count) for (digest, branch, _), count in zip(asked, counts, strict=True) if count]
            made[mine] = relation_ids(some, followed[starts[mine][:, None] + np.arange(width)])
        return made


def joined_members(parts: Sequence[MemberWords]) -> MemberWords:
    """Those of several blocks of one branch, one after the other."""
    words = np.concatenate([each.words for each in parts])
    if parts[0].offsets is None:
        return MemberWords(words)
    folds = [each.folds for each in parts if each.folds is not None]
    offsets = _offsets(np.concatenate([each.lengths.reshape(-1) for each in parts]))
    return MemberWords(words, offsets, parts[0].slots, joined_folds(folds) if folds else None)


def _offsets(lengths: Iterable[int] | npt.NDArray[np.int64]) -> Numbers:
    return np.concatenate(([0], np.cumsum(np.asarray(lengths, dtype=np.int64))))
