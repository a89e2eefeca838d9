"""Receipts: a subscriber's deliveries, as a rolling digest that two subscribers can compare.

Each delivery mixes the relation's id and its number into the digest, so equal digests after n deliveries mean: the same
relations, in the same order, from the first to the n-th (model/relations/identity.py). A receipt also keeps samples of the
digest along the way. Their number is bounded: when there are too many, every second one is dropped.

A subscriber that joins later continues the numbers of the others, and so has a digest of deliveries that it did not get itself:
`count` has all deliveries of the lineage, `joined` how many of them were before the subscriber joined, `delivered` the rest.

    numbers        1   2   3   4   5   6   7   8   9
    one            +   +   +   +   +   +   +               joined 0, count 7: delivered 7
    another                        +   +   +   +   +       joined 4, count 9: delivered 5, of which both have 5, 6 and 7

Two receipts are compared at the numbers for which both have a digest. The difference between the two digests stays the same
from one of these numbers to the next exactly if all deliveries between them are the same. So deliveries that differ are found
wherever they are, between two such numbers; if both receipts still hold their ids (as a result in memory does), exactly.
Deliveries after the last such number cannot be compared: that is not a difference, and neither is a subscriber that has more.

Takes: relations in the order of delivery. Gives: `Receipt`, `compare`. Never: stores the relations themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.model.arguments import require_kind
from fairlead.model.relations.identity import ID_BYTES, Words, from_hex, running, to_hex

SAMPLES_MAX = 4096
"""Samples kept: 4096 × 32 hex digits are 128 kB, whatever the number of deliveries; up to 4096 deliveries are exact."""
NOTHING = "0" * 32
"""The digest after no delivery."""


@dataclass(frozen=True)
class Receipt:
    """A rolling digest of the relations that were delivered: equal receipts mean the same relations in the same order.

    `count`: the deliveries of the lineage; `delivered`: those that this subscriber got. `samples[i]` is the digest after
    `(i + 1) * stride` deliveries of the lineage.
    """

    plan: str
    count: int
    digest: str
    stride: int = 1
    samples: tuple[str, ...] = field(default=(), repr=False)
    ids: bytes | None = field(default=None, repr=False)
    """The words of what was delivered here (model/relations/identity.py), 16 bytes each, if the relations are in memory anyway:
    the id of each relation, or its complement where it is taken back."""
    joined: int = 0
    """The deliveries of the lineage before this subscriber joined. They are part of the digest, and were not delivered here."""
    joined_digest: str = field(default=NOTHING, repr=False)
    """The digest after these."""

    @property
    def delivered(self) -> int:
        """The number of deliveries that this subscriber got."""
        return self.count - self.joined

    def to_json(self) -> dict[str, Any]:
        """The receipt as a dict for JSON."""
        return {
            "plan": self.plan,
            "count": self.count,
            "joined": self.joined,
            "delivered": self.delivered,
            "digest": self.digest,
            "joined_digest": self.joined_digest,
            "stride": self.stride,
            "samples": list(self.samples),
        }

    def thinned(self, samples_max: int) -> Receipt:
        """With at most so many samples, at larger distances."""
        stride = self.stride
        while self.count // stride > samples_max:
            stride *= 2
        return (
            self
            if stride == self.stride
            else replace(self, stride=stride, samples=self.samples[stride // self.stride - 1 :: stride // self.stride])
        )

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Receipt:
        """The inverse of `to_json`. A receipt of an earlier release does not say when its subscriber joined: it is read as one
        that joined at the beginning. Raises UsageError."""
        try:
            plan, count, digest, stride = (content[name] for name in ("plan", "count", "digest", "stride"))
            samples, joined = tuple(content["samples"]), content.get("joined", 0)
            made = cls(plan, count, digest, stride, samples, None, joined, content.get("joined_digest", NOTHING))
            if made._is_whole() and content.get("delivered", made.delivered) == made.delivered:
                return made
        except (KeyError, TypeError, AttributeError, ArithmeticError, ValueError):
            pass
        raise UsageError("A005", "this is not a receipt", fix="pass a file that `fairlead run --receipt` wrote")

    def _is_whole(self) -> bool:
        numbers, digests = (self.count, self.joined, self.stride), (self.digest, self.joined_digest, *self.samples)
        return (
            isinstance(self.plan, str)
            and all(type(each) is int for each in numbers)
            and 0 <= self.joined <= self.count
            and self.stride > 0
            and len(self.samples) == self.count // self.stride
            and all(isinstance(each, str) and len(each) == len(NOTHING) for each in digests)
            and len(from_hex(digests)) == len(digests)
            and (self.joined > 0 or self.joined_digest == NOTHING)
        )

    def __str__(self) -> str:
        here = f", {self.delivered:,} of them here" if self.joined else ""
        return f"{self.digest} after {number_of(self.count)}{here}"

    def _repr_html_(self) -> str:
        here = f", {self.delivered:,} of them here" if self.joined else ""
        return f"<code>{self.digest}</code> after {number_of(self.count)}{here}"


class ReceiptBook:
    """Builds a receipt, in bounded memory."""

    def __init__(self, plan_digest: str) -> None:
        self.plan = plan_digest
        self.count = 0
        self.total = np.zeros(2, dtype=np.uint64)
        self.stride = 1
        self.samples: list[str] = []
        self.joined, self.joined_total = 0, self.total

    @classmethod
    def after(cls, receipt: Receipt) -> ReceiptBook:
        """A book that continues after the deliveries of a receipt."""
        book = cls(receipt.plan)
        book.count, book.stride, book.samples = receipt.count, receipt.stride, list(receipt.samples)
        (book.total,) = from_hex([receipt.digest])
        book.join(receipt.joined, receipt.joined_digest)
        return book

    def copy(self) -> ReceiptBook:
        made = ReceiptBook(self.plan)
        made.count, made.total, made.stride, made.samples = self.count, self.total.copy(), self.stride, list(self.samples)
        made.joined, made.joined_total = self.joined, self.joined_total
        return made

    def join(self, count: int, digest: str) -> None:
        """The subscriber joined after this many deliveries, with this digest after them."""
        self.joined, (self.joined_total,) = count, from_hex([digest])

    def join_now(self) -> None:
        """Nothing that is noted so far was delivered here."""
        self.joined, self.joined_total = self.count, self.total

    def note(self, ids: Sequence[str] | Words) -> Words:
        """Records deliveries in order, by id as text, or by their words (model/relations/identity.py). Returns the digest after
        each."""
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
        digest, joined = to_hex(np.stack([self.total, self.joined_total]))
        return Receipt(self.plan, self.count, digest, self.stride, tuple(self.samples), ids, self.joined, joined)


def number_of(count: int) -> str:
    """`1 delivery`, `5,000 deliveries`."""
    return f"{count:,} {'delivery' if count == 1 else 'deliveries'}"


OUTCOMES = ("differ", "unrelated", "agree", "equal")
"""Of comparisons, from bad to good."""


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`: whether two subscribers agree, and where they first differ."""

    equal: bool
    """Both delivered the same, from the same number to the same number."""
    problem: str = ""
    agreed: int = 0
    """Deliveries that both delivered and on which both agree for certain."""
    first: tuple[str | None, str | None] | None = None
    """The ids of the first delivery that differs; None if one side had no more."""
    differs: bool = False
    """Some delivery differs for certain. False if one subscriber is only further than the other, or joined later."""
    start: int = 1
    """The number of the first delivery after both had joined: the deliveries on which both agree begin here."""
    related: bool = True
    """False for receipts of different subscriptions, which need not agree."""

    @property
    def outcome(self) -> str:
        """`equal`; `agree`: what both delivered is the same, and one delivered more; `differ`; or `unrelated`."""
        return "equal" if self.equal else "differ" if self.differs else "agree" if self.related else "unrelated"

    def to_json(self) -> dict[str, Any]:
        """The comparison as a dict for JSON."""
        told = {"outcome": self.outcome, "equal": self.equal, "agreed": self.agreed, "start": self.start}
        return told | {"problem": self.problem or None}

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        joined = f"; both joined after delivery {self.start - 1:,}" if self.start > 1 else ""
        return f"equal: {number_of(self.agreed)}, the same in the same order{joined}" if self.equal else self.problem


def compare(a: Receipt, b: Receipt) -> Comparison:
    """Compare two receipts: equal, the first relation that differs, or which one has more.

    Two receipts of the same lineage never differ, whenever their subscribers joined, and however far they are.
    """
    for argument, receipt in (("a", a), ("b", b)):
        require_kind("compare", argument, receipt, (Receipt,), "a Receipt", "compare(one.receipt, other.receipt)")
    start = max(a.joined, b.joined) + 1
    if a.plan != b.plan:
        return Comparison(False, _unrelated(a.plan, b.plan), start=start, related=False)
    if all(getattr(a, name) == getattr(b, name) for name in ("count", "digest", "joined", "joined_digest")):
        return Comparison(True, agreed=a.delivered, start=start)
    (left, ours), (right, theirs) = digests_of(a), digests_of(b)
    points, mine, its = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    apart = ours[mine] - theirs[its]
    changed = np.flatnonzero((apart[1:] != apart[:-1]).any(axis=1))
    if len(changed):
        at = int(changed[0])
        return _difference(a, b, int(points[at]), int(points[at + 1]))
    return _agreement(a, b, int(points[-1]))


def combined(found: Mapping[str, Comparison]) -> Comparison:
    """The comparisons of several subscriptions, by name, as one: equal if all are; otherwise the problem of each that is not,
    a line for each. What agrees is counted over all of them."""
    if not found:
        return Comparison(False, "the receipts are of different subscriptions, so they need not agree", related=False)
    if len(found) == 1:
        return next(iter(found.values()))
    worst = min(found.values(), key=lambda each: OUTCOMES.index(each.outcome))
    problem = "\n".join(f"{name}: {each.problem}" for name, each in found.items() if not each.equal)
    return replace(worst, problem=problem, agreed=sum(each.agreed for each in found.values()), start=1)


def _unrelated(a: str, b: str) -> str:
    if a.partition("@")[0] == b.partition("@")[0]:
        return "the receipts are of one subscription from different places in the log, so they need not agree"
    return "the receipts are of different subscriptions, so they need not agree"


def digests_of(receipt: Receipt) -> tuple[npt.NDArray[np.int64], Words]:
    """The numbers of deliveries for which the receipt has a digest, in order, starting with 0; and these digests."""
    sampled = np.arange(1, len(receipt.samples) + 1) * receipt.stride
    numbers = [np.array([0, receipt.joined, receipt.count]), sampled]
    digests = [from_hex([NOTHING, receipt.joined_digest, receipt.digest, *receipt.samples])]
    if receipt.ids is not None:
        words = np.frombuffer(receipt.ids, dtype=">u8").astype(np.uint64).reshape(-1, 2)
        sums = running(words, receipt.joined, digests[0][1])
        if len(words) != receipt.delivered or (len(words) and (sums[-1] != digests[0][2]).any()):
            fix = "compare receipts as they were written, without editing them"
            raise UsageError("A006", "the receipt's ids and digests contradict each other", fix)
        numbers.append(np.arange(receipt.joined + 1, receipt.count + 1))
        digests.append(sums)
    points, first = np.unique(np.concatenate(numbers), return_index=True)
    return points, np.concatenate(digests)[first]


def _difference(a: Receipt, b: Receipt, low: int, high: int) -> Comparison:
    """Of the deliveries `low + 1` to `high` some differ, and none before."""
    joined = max(a.joined, b.joined)
    agreed, ids = max(0, low - joined), (_id(a, high), _id(b, high))
    both = _agree(agreed, joined)
    before = f", before the {'first' if a.joined == joined else 'second'} joined" if high <= joined else ""
    if high - low > 1:
        problem = f"{both}; the first that differs is one of the deliveries {low + 1:,} to {high:,}{before}"
        return Comparison(False, problem, agreed, None, True, joined + 1)
    if None in ids:
        return Comparison(False, f"{both}; delivery {high:,} differs{before}", agreed, None, True, joined + 1)
    return Comparison(False, f"delivery {high:,} differs: {ids[0]} and {ids[1]}; {both}", agreed, ids, True, joined + 1)


def _agreement(a: Receipt, b: Receipt, last: int) -> Comparison:
    """No delivery differs, up to the last number for which both have a digest."""
    joined, shorter, stride = max(a.joined, b.joined), min(a.count, b.count), max(a.stride, b.stride)
    agreed, told = max(0, last - joined), list[str]()
    if shorter > joined:
        told.append(f"{_agree(agreed, joined)}{_range(joined, joined + agreed)}")
        if unknown := shorter - joined - agreed:
            told.append(f"the next {unknown:,} are not comparable, since samples are {stride:,} deliveries apart")
    else:
        told.append("no delivery was delivered by both")
        if last:
            told.append(f"up to delivery {last:,} their lineage is the same")
    for one, other, name, its in ((a, b, "first", "second"), (b, a, "second", "first")):
        if (earlier := min(one.count, other.joined) - one.joined) > 0:
            told.append(f"the {name} has {earlier:,} from before the {its} joined")
        if (later := one.count - max(other.count, one.joined)) > 0:
            told.append(f"the {name} has {later:,} more")
    ids = (_id(a, shorter + 1), _id(b, shorter + 1))
    ended = a.ids is not None and b.ids is not None and a.joined == b.joined
    return Comparison(False, "; ".join(told), agreed, ids if ended else None, start=joined + 1)


def _agree(agreed: int, joined: int) -> str:
    """`1 delivery agrees`, `5 deliveries that both delivered agree`."""
    return f"{number_of(agreed)}{' that both delivered' if joined else ''} agree{'s' if agreed == 1 else ''}"


def _range(joined: int, last: int) -> str:
    """`, numbers 5 to 9`: only where the numbers do not start with 1."""
    if not joined or last == joined:
        return ""
    return f", numbers {joined + 1:,} to {last:,}" if last > joined + 1 else f", number {last:,}"


def _id(receipt: Receipt, number: int) -> str | None:
    """The word of a delivery; None if the receipt does not hold it."""
    at = (number - receipt.joined - 1) * ID_BYTES
    return receipt.ids[at : at + ID_BYTES].hex() or None if receipt.ids is not None and at >= 0 else None


def dumps(receipt: Receipt) -> str:
    return json.dumps(receipt.to_json(), indent=1)


__all__ = ["Comparison", "Receipt", "ReceiptBook", "combined", "compare", "dumps"]
