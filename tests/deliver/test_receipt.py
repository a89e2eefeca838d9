"""Two subscribers compare receipts: equal means equal in every delivery; different names the first that differs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.deliver.receipt import SAMPLES_MAX, Receipt, ReceiptBook, compare
from fairlead.errors import UsageError
from fairlead.model.relations.identity import Words, signed, to_bytes, to_hex

RULES = "TYPE A (x INT) TYPE B (x INT) SUBSCRIPTION S MATCH A a AND B b"
EVENTS = [{"type": name, "x": x} for x in range(4) for name in "AB"]


def book(ids: list[str]) -> ReceiptBook:
    made = ReceiptBook("plan")
    made.note([f"{each:0>32}" for each in ids])
    return made


def test_two_subscribers_over_the_same_order_agree() -> None:
    first, second = (fairlead.match(fairlead.compile(RULES), EVENTS).receipt for _ in range(2))
    comparison = fairlead.compare(first, second)
    assert comparison
    assert comparison.agreed == 4
    assert str(comparison) == "equal: 4 deliveries, the same in the same order"


def test_a_swapped_pair_of_events_is_named_by_the_first_relation_that_differs() -> None:
    plan = fairlead.compile(RULES)
    swapped = [EVENTS[0], EVENTS[1], EVENTS[3], EVENTS[2], *EVENTS[4:]]
    one, other = fairlead.match(plan, EVENTS), fairlead.match(plan, swapped)
    comparison = fairlead.compare(one.receipt, other.receipt)
    assert not comparison
    assert comparison.agreed == 1
    assert comparison.first == (one[1].id, other[1].id)
    assert "delivery 2 differs" in str(comparison)


def test_a_subscriber_that_stopped_early_is_named_as_having_no_more() -> None:
    plan = fairlead.compile(RULES)
    whole, part = fairlead.match(plan, EVENTS), fairlead.match(plan, EVENTS[:4])
    comparison = fairlead.compare(part.receipt, whole.receipt)
    assert comparison.first == (None, whole[2].id)
    assert str(comparison) == "2 deliveries agree; the second has 2 more"
    assert comparison.outcome == "agree"


def test_receipts_of_different_subscriptions_need_not_agree() -> None:
    other = fairlead.compile(RULES + " WHERE a.x < b.x")
    comparison = compare(fairlead.match(fairlead.compile(RULES), EVENTS).receipt, fairlead.match(other, EVENTS).receipt)
    assert not comparison
    assert "different subscriptions" in comparison.problem
    assert comparison.outcome == "unrelated"


@given(st.integers(0, 20_000), st.data())
def test_without_ids_the_samples_bracket_the_first_difference(count: int, data: st.DataObject) -> None:
    ids = [str(at) for at in range(count)]
    at = data.draw(st.integers(0, max(0, count - 1)))
    other = [*ids[:at], "d1ffe2e9", *ids[at + 1 :]]
    a, b = book(ids).receipt(), book(other).receipt()
    comparison = compare(a, b)
    assert not comparison
    assert comparison.agreed <= at < comparison.agreed + max(a.stride, b.stride)


EDGES = sorted({at for power in range(4) for at in range(SAMPLES_MAX * 2**power - 3, SAMPLES_MAX * 2**power + 4)})
"""Numbers of deliveries around every one at which a stride doubles."""
LENGTHS = st.one_of(st.integers(0, 5 * SAMPLES_MAX), st.integers(0, 40), st.sampled_from(EDGES))
RANDOM = np.random.default_rng(1)
LENGTH = 8 * SAMPLES_MAX + 8
WORDS = signed(
    RANDOM.integers(0, 2**63, (LENGTH, 2), dtype=np.uint64), np.where(RANDOM.random(LENGTH) < 0.2, -1, 1).astype(np.int8)
)
"""A sequence of deliveries, of which every fifth takes a relation back."""


@dataclass(frozen=True)
class Part:
    """A subscriber of the sequence, which joined after some deliveries and has some more; and whether its receipt holds ids."""

    joined: int
    count: int
    with_ids: bool

    def receipt(self, words: Words = WORDS) -> Receipt:
        book = ReceiptBook("plan")
        book.note(words[: self.joined])
        book.join_now()
        book.note(words[self.joined : self.count])
        return book.receipt(to_bytes(words[self.joined : self.count]) if self.with_ids else None)


@st.composite
def parts(draw: st.DrawFn) -> Part:
    joined, count = sorted((draw(st.one_of(st.just(0), LENGTHS)), draw(LENGTHS)))
    return Part(joined, count, draw(st.booleans()))


def known(part: Part, number: int, stride: int) -> bool:
    """Whether a receipt has a digest after this many deliveries."""
    own = part.joined <= number if part.with_ids else number == part.joined
    return number <= part.count and (own or number % stride == 0 or number == part.count)


@given(parts(), parts())
def test_receipts_of_any_two_parts_of_one_sequence_never_differ(one: Part, other: Part) -> None:
    a, b = one.receipt(), other.receipt()
    found = compare(a, b)
    low, high = max(one.joined, other.joined), min(one.count, other.count)
    last = next(at for at in range(high, -1, -1) if known(one, at, a.stride) and known(other, at, b.stride))
    assert not found.differs
    assert found.outcome in ("equal", "agree")
    assert found.equal == ((one.joined, one.count) == (other.joined, other.count))
    assert "differ" not in str(found)
    assert (found.start, found.agreed) == (low + 1, max(0, last - low))
    assert max(low, high) - max(low, last) < max(a.stride, b.stride)
    if found.equal:
        return
    unknown = high - max(low, last)
    assert (f"the next {unknown:,} are not comparable" in found.problem) == (unknown > 0)
    assert ("no delivery was delivered by both" in found.problem) == (high <= low)
    for mine, its, name in ((one, other, "first"), (other, one, "second")):
        earlier = len(set(range(mine.joined, mine.count)) & set(range(its.joined)))
        later = len(set(range(mine.joined, mine.count)) - set(range(its.count)))
        assert (f"the {name} has {earlier:,} from before" in found.problem) == (earlier > 0)
        assert (f"the {name} has {later:,} more" in found.problem) == (later > 0)


@given(parts(), parts(), st.data(), st.booleans())
def test_a_real_difference_is_named_as_closely_as_the_samples_allow(
    one: Part, other: Part, data: st.DataObject, one_only: bool
) -> None:
    """One delivery differs, or all from there on; also one that only the lineage has."""
    shorter = min(one.count, other.count)
    at = data.draw(st.one_of(st.integers(0, max(0, shorter - 1)), st.sampled_from([0, max(0, shorter - 1)])))
    changed = WORDS.copy()
    changed[at : at + 1 if one_only else None] = ~changed[at : at + 1 if one_only else None]  # taken back, not delivered
    a, b = one.receipt(), other.receipt(changed)
    found = compare(a, b)
    points = [each for each in range(shorter + 1) if known(one, each, a.stride) and known(other, each, b.stride)]
    low, high = max(each for each in points if each <= at), min((each for each in points if each > at), default=None)
    joined = max(one.joined, other.joined)
    if shorter:
        assert not found.equal
    if high is None:  # it is after the last number for which both have a digest, so nothing can tell
        assert not found.differs
        assert found.agreed == max(0, low - joined)
        return
    assert found.outcome == "differ"
    assert found.agreed == max(0, low - joined)
    assert high - low <= max(a.stride, b.stride)
    if high == low + 1:
        assert f"delivery {high:,} differs" in found.problem
    else:
        assert f"one of the deliveries {low + 1:,} to {high:,}" in found.problem
    if one.with_ids and other.with_ids and at >= joined:
        assert found.first == tuple(to_hex(each[at : at + 1])[0] for each in (WORDS, changed))


@given(parts(), parts())
def test_equal_means_delivered_by_both(one: Part, other: Part) -> None:
    """A subscriber that delivered nothing is not equal to one that did, though both have the digest of the same lineage."""
    found = compare(one.receipt(), Part(one.count, one.count, other.with_ids).receipt())
    assert found.equal == (one.joined == one.count)
    assert found.agreed == 0


def test_what_both_delivered_is_said_with_its_numbers() -> None:
    early, late = Part(0, 7, False).receipt(), Part(4, 9, False).receipt()
    assert str(compare(early, late)) == (
        "3 deliveries that both delivered agree, numbers 5 to 7; the first has 4 from before the second joined; "
        "the second has 2 more"
    )
    assert str(compare(Part(0, 4, False).receipt(), late)) == (
        "no delivery was delivered by both; up to delivery 4 their lineage is the same; "
        "the first has 4 from before the second joined; the second has 5 more"
    )
    assert str(compare(late, late)) == "equal: 5 deliveries, the same in the same order; both joined after delivery 4"
    assert str(late) == f"{late.digest} after 9 deliveries, 5 of them here"
    other = replace(late, plan="plan@17")
    assert "one subscription from different places" in str(compare(late, other))


def test_ids_that_contradict_the_digest_are_an_error() -> None:
    receipt = Part(2, 9, True).receipt()
    for ids in (receipt.ids[16:], bytes(16) + receipt.ids[16:]):  # type: ignore[index]
        with pytest.raises(UsageError, match="A006"):
            compare(replace(receipt, ids=ids), Part(0, 9, True).receipt())


@given(parts(), st.integers(0, 100))
def test_a_book_continues_after_a_receipt(part: Part, more: int) -> None:
    book = ReceiptBook.after(part.receipt())
    book.note(WORDS[part.count : part.count + more])
    whole = Part(part.joined, min(len(WORDS), part.count + more), False).receipt()
    assert book.receipt() == whole
    assert Receipt.from_json(json.loads(json.dumps(whole.to_json()))) == whole


@given(st.lists(st.integers(0, 2**128 - 1), max_size=40), st.data())
def test_the_receipt_does_not_depend_on_how_deliveries_are_bundled(numbers: list[int], data: st.DataObject) -> None:
    ids = [f"{each:032x}" for each in numbers]
    whole, parts = ReceiptBook("plan"), ReceiptBook("plan")
    whole.note(ids)
    while ids:
        size = data.draw(st.integers(1, len(ids)))
        parts.note(ids[:size])
        ids = ids[size:]
    assert parts.receipt() == whole.receipt()


def test_a_receipt_has_a_bounded_size_and_survives_json() -> None:
    receipt = Part(5, 3 * SAMPLES_MAX, False).receipt()
    assert len(receipt.samples) <= SAMPLES_MAX
    assert receipt.stride == 4
    told = receipt.to_json()
    assert (told["count"], told["joined"], told["delivered"]) == (3 * SAMPLES_MAX, 5, 3 * SAMPLES_MAX - 5)
    assert Receipt.from_json(json.loads(json.dumps(told))) == receipt
    with pytest.raises(UsageError, match="A005"):
        Receipt.from_json({"plan": "x"})
    for damaged in (
        *({"samples": []}, {"stride": 0}, {"count": "1"}, {"samples": [1] * len(receipt.samples)}, {"stride": 2}),
        *({"digest": "?" * 32}, {"digest": "ab"}, {"joined": -1}, {"joined": 3 * SAMPLES_MAX + 1}, {"joined": True}),
        *({"joined_digest": None}, {"joined": 0}, {"delivered": 5}, {"stride": -1}, {"plan": 3}),
    ):
        with pytest.raises(UsageError, match="A005"):
            Receipt.from_json(told | damaged)


@given(st.one_of(st.just(0), LENGTHS))
def test_receipts_of_earlier_releases_are_read_as_of_subscribers_that_joined_at_the_beginning(count: int) -> None:
    receipt = Part(0, count, False).receipt()
    old = {name: each for name, each in receipt.to_json().items() if name in ("plan", "count", "digest", "stride", "samples")}
    assert Receipt.from_json(old) == receipt
    assert compare(Receipt.from_json(old), receipt)
