"""Two subscribers compare receipts: equal means equal in every delivery; different names the first that differs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.deliver.receipt import SAMPLES_MAX, Receipt, ReceiptBook, compare
from fairlead.errors import UsageError

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
