"""A subscriber's deliveries of one group, and its acknowledgements: numbers, ids and the receipt.

Numbers are those of the lineage. A subscriber that joins an existing lineage counts its earlier relations too, but they are not
delivered here, and its receipt distinguishes them (deliver/receipt.py).

Takes: relations as they are found, by number and id. Gives: the relations to deliver, the number of a relation, receipts.
Never: forgets an id before it is acknowledged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlead.deliver.receipt import NOTHING, Receipt, ReceiptBook
from fairlead.errors import StateError, UsageError
from fairlead.model.identity import Words, from_hex
from fairlead.runtime.live.lineage import copied


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
        """The number of a relation, the ids starting with it, and the digest of the receipt after each."""
        self.handed = book.count
        self._check()

    @property
    def current(self) -> bool:
        """Whether everything that was acknowledged before is counted again."""
        return self.book.count >= self._until

    def found(self, first: int, ids: Words, digests: Words, *, silent: bool) -> int:
        """How many of these are not delivered, because they were acknowledged before or are from before the subscriber
        joined."""
        known = len(ids) if silent else min(len(ids), max(0, self._until - first + 1))
        if known:
            self.book.note_digests(digests[:known])
            if silent:
                self.book.join_now()
            self.handed = self.book.count
            self._check()
        if known < len(ids):
            self._pending.append((first + known, ids[known:], digests[known:]))
        return known

    def _check(self) -> None:
        """Replayed relations must equal those that were acknowledged."""
        if self.book.count == self._until and self._digest is not None and self.book.receipt().digest != self._digest:
            problem = f"the first {self._until} deliveries differ from those that were acknowledged"
            raise StateError("S133", problem, "this name belongs to another log: subscribe under another name")

    def number_of(self, relation_id: str) -> int:
        """The number of a relation that was delivered and is not acknowledged."""
        wanted = from_hex([relation_id])[0]
        for first, ids, _ in reversed(self._pending):
            (at,) = np.nonzero((ids == wanted).all(axis=1))
            if len(at):
                return first + int(at[-1])
        raise UsageError(
            "A249",
            "this relation was not delivered here, or is already acknowledged",
            "acknowledge a relation that this subscription delivered",
        )

    def acknowledge(self, number: int) -> None:
        """Acknowledge everything up to this number."""
        while self._pending and self._pending[0][0] <= number:
            first, ids, digests = self._pending.popleft()
            count = min(len(ids), number - first + 1)
            self.book.note_digests(digests[:count])
            if count < len(ids):
                self._pending.appendleft((first + count, ids[count:], digests[count:]))
        self.handed = max(self.handed, self.book.count)

    def acknowledged(self) -> dict[str, Any]:
        """What is acknowledged, and after how many deliveries of the lineage the subscriber joined, with the digests."""
        told = self.book.receipt()
        return {"count": told.count, "digest": told.digest, "joined": told.joined, "joined_digest": told.joined_digest}

    def receipt(self) -> Receipt:
        """The receipt of the subscriber's deliveries."""
        book = copied(self.book)
        for first, _, digests in self._pending:
            book.note_digests(digests[: max(0, self.handed - first + 1)])
        return book.receipt()
