"""Two subscribers compare receipts: equal means equal in every delivery; different names the first that differs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.deliver.receipt import SAMPLES_MAX, Receipt, ReceiptBook, compare
from fairlead.errors import UsageError
from fairlead.model.identity import Words, to_bytes, to_hex

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
    assert "the first has no more" in str(comparison)


def test_receipts_of_different_subscriptions_need_not_agree() -> None:
    other = fairlead.compile(RULES + " WHERE a.x < b.x")
    comparison = compare(fairlead.match(fairlead.compile(RULES), EVENTS).receipt, fairlead.match(other, EVENTS).receipt)
    assert not comparison
    assert "different subscriptions" in comparison.problem


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
IDS = np.random.default_rng(1).integers(0, 2**63, (8 * SAMPLES_MAX + 8, 2), dtype=np.uint64)


def receipt_of(ids: Words, with_ids: bool) -> Receipt:
    made = ReceiptBook("plan")
    made.note(ids)
    return made.receipt(to_bytes(ids) if with_ids else None)


@given(LENGTHS, LENGTHS, st.booleans(), st.booleans())
def test_receipts_of_two_prefixes_of_one_sequence_never_differ(one: int, other: int, first: bool, second: bool) -> None:
    a, b = receipt_of(IDS[:one], first), receipt_of(IDS[:other], second)
    found = compare(a, b)
    shorter = min(one, other)
    assert not found.differs
    assert found.equal == (one == other)
    assert "differ" not in found.problem
    resolution = 1 if one == other or (a.ids and b.ids) else max((each.stride for each in (a, b) if not each.ids), default=1)
    assert shorter - resolution < found.agreed <= shorter
    if (a if one < other else b).ids is None and (b if one < other else a).ids is not None:
        assert found.agreed == shorter  # the longer one knows its digest after any number
    assert one == other or f"{abs(one - other)} more" in found.problem
    assert found.agreed == shorter or f"the next {shorter - found.agreed} are not comparable" in found.problem


@given(LENGTHS, LENGTHS, st.data(), st.booleans(), st.booleans())
def test_a_real_difference_is_named_as_closely_as_the_samples_allow(
    one: int, other: int, data: st.DataObject, first: bool, second: bool
) -> None:
    shorter = min(one, other)
    at = data.draw(st.one_of(st.integers(0, max(0, shorter - 1)), st.sampled_from([0, max(0, shorter - 1)])))
    changed = IDS[:other].copy()
    changed[at:] += np.uint64(1)  # from there on nothing is the same
    a, b = receipt_of(IDS[:one], first), receipt_of(changed, second)
    found = compare(a, b)
    if not shorter:
        assert not found.differs
        return
    stride = max((each.stride for each in (a, b) if not each.ids), default=1)
    assert not found
    assert found.agreed <= at < found.agreed + stride
    if found.differs:
        if stride == 1:
            assert f"delivery {at + 1} differs" in found.problem
        if a.ids and b.ids:
            assert found.first == tuple(to_hex(each[at : at + 1])[0] for each in (IDS, changed))
    else:  # it lies behind the last number of deliveries for which both have a digest
        assert one != other
        assert found.agreed == shorter // stride * stride
        assert f"the next {shorter - found.agreed} are not comparable" in found.problem


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
    receipt = book([str(at) for at in range(3 * SAMPLES_MAX)]).receipt()
    assert len(receipt.samples) <= SAMPLES_MAX
    assert receipt.stride == 4
    assert Receipt.from_json(json.loads(json.dumps(receipt.to_json()))) == receipt
    with pytest.raises(UsageError, match="A005"):
        Receipt.from_json({"plan": "x"})
    for damaged in ({"samples": []}, {"stride": 0}, {"count": "1"}, {"samples": [1] * len(receipt.samples)}, {"stride": 2}):
        with pytest.raises(UsageError, match="A005"):
            Receipt.from_json(receipt.to_json() | damaged)
