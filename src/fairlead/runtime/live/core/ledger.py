"""The deliveries of one group to a subscriber: numbers, acknowledgements and the receipt.

A delivery is a relation, or one that is taken back; it has a word (model/relations/identity.py) and a number. Numbers are those
of the lineage: relations from before the subscriber joined are not delivered here, and the receipt says so
(deliver/receipt.py).

Takes: deliveries as they are found, by number and word. Gives: which of them to hand over, the number of a delivery, receipts.
Never: forgets a word before it is acknowledged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlead.deliver.receipt import NOTHING, Receipt, ReceiptBook
from fairlead.errors import StateError, UsageError
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.model.relations.identity import Words
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.core.stream_groups import Origin, StreamGroup


class Ledger:
    """`book` counts acknowledged relations, starting with those that the lineage already has. `saved`: what `acknowledged`
    returned when the name was last used; nothing if it is new."""

    def __init__(self, book: ReceiptBook, saved: Mapping[str, Any] | None) -> None:
        self.book = book
        if saved is None or saved["count"] is None:
            book.join_now()
            self._until, self._digest = 0, None
        else:
            book.join(saved.get("joined", 0), saved.get("joined_digest", NOTHING))
            self._until, self._digest = saved["count"], saved["digest"]
        self._pending: deque[tuple[int, Words, Words]] = deque()
        """The number of a delivery, the words starting with it, and the digest of the receipt after each."""
        self.handed = book.count
        self._check()

    @property
    def current(self) -> bool:
        """Whether everything that was acknowledged before is counted again."""
        return self.book.count >= self._until

    def found(self, first: int, words: Words, digests: Words, *, silent: bool) -> int:
        """How many of these are not delivered, because they were acknowledged before or are from before the subscriber
        joined."""
        known = len(words) if silent else min(len(words), max(0, self._until - first + 1))
        if known:
            self.book.note_digests(digests[:known])
            if silent:
                self.book.join_now()
            self.handed = self.book.count
            self._check()
        if known < len(words):
            self._pending.append((first + known, words[known:], digests[known:]))
        return known

    def _check(self) -> None:
        """Replayed relations must equal those that were acknowledged."""
        if self.book.count == self._until and self._digest is not None and self.book.receipt().digest != self._digest:
            problem = f"the first {self._until} deliveries differ from those that were acknowledged"
            raise StateError("S133", problem, "this name belongs to another log: subscribe under another name")

    def number_of(self, relation: Relation) -> int:
        """The number of a delivery that is not acknowledged: the last one of this relation that was handed over."""
        (wanted,) = delivery_words([relation])
        found = list[int]()
        for first, words, _ in self._pending:
            (at,) = np.nonzero((words == wanted).all(axis=1))
            found += (first + at).tolist()
        if not found:
            raise UsageError(
                "A249",
                "this relation was not delivered here, or is already acknowledged",
                "acknowledge a relation that this subscription delivered",
            )
        return max((each for each in found if each <= self.handed), default=found[0])

    def acknowledge(self, number: int) -> None:
        """Acknowledge everything up to this number."""
        while self._pending and self._pending[0][0] <= number:
            first, words, digests = self._pending.popleft()
            count = min(len(words), number - first + 1)
            self.book.note_digests(digests[:count])
            if count < len(words):
                self._pending.appendleft((first + count, words[count:], digests[count:]))
        self.handed = max(self.handed, self.book.count)

    def acknowledged(self) -> dict[str, Any]:
        """What is acknowledged, and after how many deliveries of the lineage the subscriber joined, with the digests."""
        told = self.book.receipt()
        return {"count": told.count, "digest": told.digest, "joined": told.joined, "joined_digest": told.joined_digest}

    def receipt(self) -> Receipt:
        """The receipt of the subscriber's deliveries."""
        book = self.book.copy()
        for first, _, digests in self._pending:
            book.note_digests(digests[: max(0, self.handed - first + 1)])
        return book.receipt()


def book_of(group: StreamGroup, origin: Origin) -> ReceiptBook:
    """Receipts of the same subscription from different origins need not agree, so the origin distinguishes them."""
    return ReceiptBook(f"{group.digest}@{'+'.join(map(str, origin))}" if any(origin) else group.digest)


def dump_book(book: ReceiptBook) -> dict[str, object]:
    total = [int(each) for each in book.total]
    return {"count": book.count, "total": total, "stride": book.stride, "samples": book.samples}


def load_book(book: ReceiptBook, told: dict[str, object]) -> None:
    book.count, book.stride, book.samples = told["count"], told["stride"], list(told["samples"])  # type: ignore[assignment,call-overload]
    book.total = np.array(told["total"], dtype=np.uint64)
