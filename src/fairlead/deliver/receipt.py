"""Receipts: what a subscriber delivered, as a rolling digest that two subscribers can compare.

Each delivery mixes the relation's id and its number into the digest, so equal digests after n deliveries mean: the same
relations, in the same order, from the first to the n-th (model/identity.py). A receipt also keeps samples of the digest on
the way. Their number is bounded: when there are too many, every second one goes. Two receipts that differ are compared
sample by sample; if both still hold their ids (as a result in memory does), the first relation that differs is named exactly.

Takes: relations in the order of delivery. Gives: `Receipt`, `compare`. Never: stores the relations themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.model.identity import ID_BYTES, Words, from_hex, running, to_hex

SAMPLES_MAX = 4096
"""Samples kept: 4096 × 32 hex digits are 128 kB, whatever the number of deliveries; up to 4096 deliveries are exact."""


@dataclass(frozen=True)
class Receipt:
    """`samples[i]` is the digest after `(i + 1) * stride` deliveries."""

    plan: str
    count: int
    digest: str
    stride: int = 1
    samples: tuple[str, ...] = ()
    ids: bytes | None = None
    """All ids, 16 bytes each, where the relations are in memory anyway."""

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": self.plan,
            "count": self.count,
            "digest": self.digest,
            "stride": self.stride,
            "samples": list(self.samples),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Receipt:
        try:
            return cls(content["plan"], content["count"], content["digest"], content["stride"], tuple(content["samples"]))
        except (KeyError, TypeError):
            raise UsageError("A005", "this is not a receipt", fix="pass a file that `fairlead run --receipt` wrote") from None

    def __str__(self) -> str:
        return f"{self.digest} after {self.count} deliveries"

    def _repr_html_(self) -> str:
        return f"<code>{self.digest}</code> after {self.count:,} deliveries"


class ReceiptBook:
    """A receipt in the making, in bounded memory."""

    def __init__(self, plan_digest: str) -> None:
        self.plan = plan_digest
        self.count = 0
        self.total = np.zeros(2, dtype=np.uint64)
        self.stride = 1
        self.samples: list[str] = []

    def note(self, ids: Sequence[str] | Words) -> Words:
        """Deliveries in their order, by id: texts, or pairs of words as kernels give them. Gives the digest after each."""
        words = ids if isinstance(ids, np.ndarray) else from_hex(list(ids))
        sums = running(words, self.count, self.total)
        self.note_digests(sums)
        return sums

    def note_digests(self, sums: Words) -> None:
        """Deliveries in their order, by the digest after each, as a book that stands where this one does has noted them."""
        if not len(sums):
            return
        # 1. the stride after these deliveries, 2. which samples it leaves, 3. the new ones: text only for those that stay
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
    """Whether two subscribers agreed, and where they first did not."""

    equal: bool
    problem: str = ""
    agreed: int = 0
    """Deliveries on which both agree for certain."""
    first: tuple[str | None, str | None] | None = None
    """The ids of the first delivery that differs, None where one side had no more."""

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        return f"equal: {self.agreed} deliveries, the same in the same order" if self.equal else self.problem


def compare(a: Receipt, b: Receipt) -> Comparison:
    """Equal, or the first relation that differs."""
    if a.plan != b.plan:
        return Comparison(False, "the receipts are of different subscriptions, so they need not agree")
    if (a.count, a.digest) == (b.count, b.digest):
        return Comparison(True, agreed=a.count)
    if a.ids is not None and b.ids is not None:
        return _first_difference(a.ids, b.ids)
    return _between_samples(a, b)


def _first_difference(a: bytes, b: bytes) -> Comparison:
    for at in range(max(len(a), len(b)) // ID_BYTES):
        left, right = (each[at * ID_BYTES : (at + 1) * ID_BYTES].hex() or None for each in (a, b))
        if left != right:
            missing = " (the first has no more)" if left is None else " (the second has no more)" if right is None else ""
            shown = f"{left or 'nothing'} and {right or 'nothing'}"
            return Comparison(False, f"delivery {at + 1} differs: {shown}{missing}; {at} agree", at, (left, right))
    raise UsageError("A006", "the receipts' ids and digests contradict each other", fix="compare receipts as they were made")


def _between_samples(a: Receipt, b: Receipt) -> Comparison:
    """The strides are powers of two, so the coarser receipt's sample points are among the finer one's."""
    stride = max(a.stride, b.stride)
    agreed = 0
    for left, right in zip(_samples_at(a, stride), _samples_at(b, stride), strict=False):
        if left != right:
            return Comparison(False, f"{agreed} deliveries agree; the first that differs is one of the next {stride}", agreed)
        agreed += stride
    shorter, longer = sorted((a.count, b.count))
    if shorter == longer or agreed < shorter:
        return Comparison(False, f"{agreed} deliveries agree; the first that differs is one of the next {stride}", agreed)
    return Comparison(False, f"the {shorter} deliveries of one agree; the other has {longer - shorter} more", shorter)


def _samples_at(receipt: Receipt, stride: int) -> Iterator[str]:
    step = stride // receipt.stride
    return iter(receipt.samples[step - 1 :: step])


def dumps(receipt: Receipt) -> str:
    return json.dumps(receipt.to_json(), indent=1)


__all__ = ["Comparison", "Receipt", "ReceiptBook", "compare", "dumps"]
