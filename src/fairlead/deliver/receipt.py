"""Receipts: a subscriber's deliveries, as a rolling digest that two subscribers can compare.

Each delivery mixes the relation's id and its number into the digest, so equal digests after n deliveries mean: the same
relations, in the same order, from the first to the n-th (model/identity.py). A receipt also keeps samples of the digest along
the way. Their number is bounded: when there are too many, every second one is dropped. Two receipts are compared at the points
for which both have a digest; if both still hold their ids (as a result in memory does), the first relation that differs is
named exactly, otherwise it lies between two points. Deliveries after the last of these points cannot be compared: that is not a
difference.

Takes: relations in the order of delivery. Gives: `Receipt`, `compare`. Never: stores the relations themselves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.model.arguments import require_kind
from fairlead.model.identity import ID_BYTES, Words, from_hex, running, to_hex

SAMPLES_MAX = 4096
"""Samples kept: 4096 × 32 hex digits are 128 kB, whatever the number of deliveries; up to 4096 deliveries are exact."""


@dataclass(frozen=True)
class Receipt:
    """A rolling digest of the relations that were delivered: equal receipts mean the same relations in the same order.

    `samples[i]` is the digest after `(i + 1) * stride` deliveries.
    """

    plan: str
    count: int
    digest: str
    stride: int = 1
    samples: tuple[str, ...] = field(default=(), repr=False)
    ids: bytes | None = field(default=None, repr=False)
    """The words of all deliveries (model/identity.py), 16 bytes each, if the relations are in memory anyway: the id of each
    relation, or its complement where it is taken back."""

    def to_json(self) -> dict[str, Any]:
        """The receipt as a dict for JSON."""
        return {
            "plan": self.plan,
            "count": self.count,
            "digest": self.digest,
            "stride": self.stride,
            "samples": list(self.samples),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Receipt:
        """The inverse of `to_json`. Raises UsageError."""
        try:
            made = cls(content["plan"], content["count"], content["digest"], content["stride"], tuple(content["samples"]))
            if len(made.samples) == made.count // made.stride and all(isinstance(each, str) for each in made.samples):
                return made
        except (KeyError, TypeError, ArithmeticError):
            pass
        raise UsageError("A005", "this is not a receipt", fix="pass a file that `fairlead run --receipt` wrote")

    def __str__(self) -> str:
        return f"{self.digest} after {self.count} deliveries"

    def _repr_html_(self) -> str:
        return f"<code>{self.digest}</code> after {self.count:,} deliveries"


class ReceiptBook:
    """Builds a receipt, in bounded memory."""

    def __init__(self, plan_digest: str) -> None:
        self.plan = plan_digest
        self.count = 0
        self.total = np.zeros(2, dtype=np.uint64)
        self.stride = 1
        self.samples: list[str] = []

    @classmethod
    def after(cls, receipt: Receipt) -> ReceiptBook:
        """A book that continues after the deliveries of a receipt."""
        book = cls(receipt.plan)
        book.count, book.stride, book.samples = receipt.count, receipt.stride, list(receipt.samples)
        (book.total,) = from_hex([receipt.digest])
        return book

    def note(self, ids: Sequence[str] | Words) -> Words:
        """Records deliveries in order, by id as text, or by their words (model/identity.py). Returns the digest after each."""
        words = ids if isinstance(ids, np.ndarray) else from_hex(list(ids))
        sums = running(words, self.count, self.total)
        self.note_digests(sums)
        return sums

    def note_digests(self, sums: Words) -> None:
        """Records deliveries in order, by the digest after each, as another book with the same state has recorded them."""
        if not len(sums):
            return
        # 1. the stride after these deliveries, 2. the samples that remain, 3. the new ones: text only for those that stay
        before, end = self.stride, self.count + len(sums)
        while end // self.stride > SAMPLES_MAX:
            self.stride *= 2
        if self.stride > before:
            step = self.stride // before
            self.samples = self.samples[step - 1 :: step]
        sampled = sums[-(self.count + 1) % self.stride :: self.stride]
        if len(sampled):
            self.samples += to_hex(sampled)
        self.count, self.total = end, sums[-1]

    def receipt(self, ids: bytes | None = None) -> Receipt:
        (digest,) = to_hex(self.total[None, :])
        return Receipt(self.plan, self.count, digest, self.stride, tuple(self.samples), ids)


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`: whether two subscribers agree, and where they first differ."""

    equal: bool
    problem: str = ""
    agreed: int = 0
    """Deliveries on which both agree for certain."""
    first: tuple[str | None, str | None] | None = None
    """The ids of the first delivery that differs; None if one side had no more."""
    differs: bool = False
    """Some delivery differs for certain. False if one subscriber is only further ahead than the other."""

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        return f"equal: {self.agreed} deliveries, the same in the same order" if self.equal else self.problem


def compare(a: Receipt, b: Receipt) -> Comparison:
    """Compare two receipts: equal, the first relation that differs, or which one is further.

    Two receipts of the same sequence never differ.
    """
    for argument, receipt in (("a", a), ("b", b)):
        require_kind("compare", argument, receipt, (Receipt,), "a Receipt", "compare(one.receipt, other.receipt)")
    if a.plan != b.plan:
        return Comparison(False, "the receipts are of different subscriptions, so they need not agree")
    if (a.count, a.digest) == (b.count, b.digest):
        return Comparison(True, agreed=a.count)
    if a.ids is not None and b.ids is not None:
        return _by_ids(a.ids, b.ids)
    return _by_digests(a, b)


def _by_ids(a: bytes, b: bytes) -> Comparison:
    left, right = (np.frombuffer(each, dtype=f"S{ID_BYTES}") for each in (a, b))
    shorter = min(len(left), len(right))
    unlike = np.flatnonzero(left[:shorter] != right[:shorter])
    at = int(unlike[0]) if len(unlike) else shorter
    ids = tuple(each[at * ID_BYTES : (at + 1) * ID_BYTES].hex() or None for each in (a, b))
    first = (ids[0], ids[1])
    if at < shorter:
        return Comparison(False, f"delivery {at + 1} differs: {ids[0]} and {ids[1]}; {at} agree", at, first, differs=True)
    if len(left) == len(right):
        fix = "compare receipts as they were written, without editing them"
        raise UsageError("A006", "the receipts' ids and digests contradict each other", fix)
    ended = "the first has no more" if ids[0] is None else "the second has no more"
    return Comparison(False, f"{_further(len(left), len(right))} ({ended})", at, first)


def _by_digests(a: Receipt, b: Receipt) -> Comparison:
    """Compares at every number of deliveries for which both have a digest: they agree up to some such point, and never again
    from the next. Strides are powers of two, so the points of the coarser receipt are among those of the finer one; and each
    has its digest at its own end. If the longer one has none at the end of the shorter, the last deliveries there cannot be
    compared, which is not a difference."""
    shorter = min(a.count, b.count)
    stride = max((each.stride for each in (a, b) if each.ids is None), default=1)
    points = [*range(stride, shorter + 1, stride), *([shorter] if shorter % stride else [])]
    agreed = 0
    for at, left, right in zip(points, _digests(a, points), _digests(b, points), strict=True):
        if left is None or right is None:
            continue
        if left != right:
            apart = at - agreed
            where = f"delivery {at} differs" if apart == 1 else f"the first that differs is one of the next {apart}"
            return Comparison(False, f"{agreed} deliveries agree; {where}", agreed, differs=True)
        agreed = at
    if agreed == shorter:
        return Comparison(False, _further(a.count, b.count), agreed)
    unknown = f"the next {shorter - agreed} are not comparable, since samples are {stride} deliveries apart"
    return Comparison(False, f"{agreed} deliveries agree; {unknown}; one has {abs(a.count - b.count)} more", agreed)


def _further(a: int, b: int) -> str:
    return f"the {min(a, b)} deliveries of one agree; the other has {abs(a - b)} more"


def _digests(receipt: Receipt, points: Sequence[int]) -> list[str | None]:
    """The digest after each of these numbers of deliveries; None if the receipt does not have it."""
    if receipt.ids is not None:
        words = np.frombuffer(receipt.ids, dtype=">u8").astype(np.uint64).reshape(-1, 2)
        sums = running(words, 0, np.zeros(2, dtype=np.uint64))
        return list(to_hex(sums[np.array(points, dtype=np.int64) - 1]))
    known: list[str | None] = []
    for at in points:
        number, rest = divmod(at, receipt.stride)
        known.append(receipt.digest if at == receipt.count else None if rest else receipt.samples[number - 1])
    return known


def dumps(receipt: Receipt) -> str:
    return json.dumps(receipt.to_json(), indent=1)


__all__ = ["Comparison", "Receipt", "ReceiptBook", "compare", "dumps"]
