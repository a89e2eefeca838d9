"""Where a sequence of deliveries begins in another one, if nobody recorded it.

The output of a subscriber that joined later, or returned, begins in the middle of what others delivered. An output does not say
with which number it begins, so its deliveries are searched in the other sequence.

    whole      a   b   c   d   e   f
    part                   d   e   f   g         begins after 3

A relation can be delivered, taken back and delivered again, so a delivery can occur several times. Of several places the one
with the most deliveries in agreement counts, and of these the first: so a part that differs somewhere is still placed where it
belongs, and the difference is found there. But a relation is not delivered twice without being taken back in between: `x y` and
`y x` are not `x y x`, of which one has the beginning and the other the end. They differ.

Takes: the words of deliveries (model/relations/identity.py), or a receipt that knows each of its deliveries. Gives: after how
many deliveries the part begins, and the receipt that it has then. Never: decides whether the two agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from fairlead.deliver.receipt import Receipt, digests_of
from fairlead.model.relations.identity import Words, mix_all, running, to_bytes, to_hex, unmixed


def start_in(whole: Words, part: Words) -> int | None:
    """After how many deliveries of the whole the part begins; None if its first delivery is not there."""
    if not len(part):
        return None

    def agreeing(start: int) -> int:
        both = min(len(whole) - start, len(part))
        return _leading((whole[start : start + both] == part[:both]).all(axis=1))

    return _best(np.flatnonzero((whole == part[0]).all(axis=1)), agreeing)


def starts(a: Words, b: Words) -> tuple[int, int]:
    """How many deliveries of each to skip, so that most agree from there on: none, or some of one that begins earlier."""
    found = [(agreed, (start, 0)) for start, agreed in _beginning_later(a, b)]
    found += [(agreed, (0, start)) for start, agreed in _beginning_later(b, a)]
    return max(found, key=lambda each: each[0], default=(0, (0, 0)))[1]


def _beginning_later(whole: Words, part: Words) -> Iterator[tuple[int, int]]:
    """Where the part begins in the whole, with the number of deliveries in agreement; nothing if it does not."""
    start = start_in(whole, part)
    if start is not None and repeats(np.concatenate([whole[:start], part])) <= repeats(whole[:start]) + repeats(part):
        both = min(len(whole) - start, len(part))
        yield start, _leading((whole[start : start + both] == part[:both]).all(axis=1))


def repeats(words: Words) -> int:
    """How often a relation is delivered, or taken back, twice in a row."""
    taken = words[:, 0] >> np.uint64(63) == 1  # either a delivery or the one that takes it back has this bit
    pairs = np.where(taken[:, None], ~words, words)
    order = np.lexsort((np.arange(len(words)), pairs[:, 1], pairs[:, 0]))
    same = (pairs[order[1:]] == pairs[order[:-1]]).all(axis=1)
    return int((same & (taken[order[1:]] == taken[order[:-1]])).sum())


def words_in(receipt: Receipt) -> Words | None:
    """The deliveries of a receipt that has a digest after each of them; None if it has not. What a delivery adds to the digest
    is its words, mixed, and mixing can be undone."""
    numbers, digests = digests_of(receipt)
    if len(numbers) != receipt.count + 1:
        return None
    return unmixed(digests[1:] - digests[:-1]) - mix_all(numbers[1:].astype(np.uint64))[:, None]


def receipts_in(receipt: Receipt, part: Words) -> list[Receipt]:
    """The receipts that a part of the receipt's lineage may have, one for each number with which it may begin: the first, the
    one with which the receipt's own subscriber began, and the one that its deliveries tell."""
    numbers, digests = digests_of(receipt)
    made = []
    whole = words_in(receipt)
    told = [] if whole is None else [start for start, _ in _beginning_later(whole, part)]
    for start in dict.fromkeys((0, receipt.joined, *told)):
        before = digests[np.searchsorted(numbers, start)]
        sums = np.concatenate([before[None, :], running(part, start, before)])
        joined, digest = to_hex(sums[[0, -1]])
        made.append(Receipt(receipt.plan, start + len(part), digest, 1, (), to_bytes(part), start, joined))
    return made


def _leading(same: npt.NDArray[np.bool_]) -> int:
    """How many are true before the first that is not."""
    return len(same) if same.all() else int(np.argmin(same))


def _best(starts: npt.NDArray[np.int64], agreeing: Callable[[int], int]) -> int | None:
    return max(starts.tolist(), key=agreeing, default=None)
