"""A part of a sequence of deliveries is found where it begins, also where deliveries repeat and where it differs later on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairlead.deliver.alignment import receipts_in, repeats, start_in, starts, words_in
from fairlead.deliver.receipt import SAMPLES_MAX, ReceiptBook, compare
from fairlead.model.relations.identity import Words, relation_id, signed
from fairlead.model.relations.identity import from_hex as words_of_ids

IDS = words_of_ids([relation_id("ab" * 32, 0, [(at,)]) for at in range(200)])
FEW = st.lists(st.integers(0, 3), max_size=30)


def words(numbers: list[int]) -> Words:
    """Each of a few relations in turn delivered and taken back."""
    there: set[int] = set()
    signs = []
    for number in numbers:
        signs.append(-1 if number in there else 1)
        there ^= {number}
    return signed(IDS[numbers], np.array(signs, dtype=np.int8))


def receipt_words(whole: Words) -> ReceiptBook:
    book = ReceiptBook("plan")
    book.note(whole)
    return book


def known_words(whole: Words) -> Words:
    found = words_in(receipt_words(whole).receipt())
    assert found is not None
    assert np.array_equal(found, whole)  # a receipt with all digests has all deliveries
    return found


def longest(whole: Words, part: Words, start: int) -> int:
    both = min(len(whole) - start, len(part))
    same = [bool((whole[start + at] == part[at]).all()) for at in range(both)]
    return same.index(False) if False in same else both


@given(FEW, FEW)
def test_the_place_with_the_most_deliveries_in_agreement_is_found(numbers: list[int], others: list[int]) -> None:
    whole, part = words(numbers), words(others)
    lengths = [longest(whole, part, start) for start in range(len(whole))]
    best = lengths.index(max(lengths)) if part.size and any(lengths) else None
    assert start_in(whole, part) == best
    assert start_in(known_words(whole), part) == best


@given(st.integers(1, len(IDS)), st.data())
def test_a_part_is_found_though_it_goes_on_longer_and_differs_later(count: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, count - 1))
    other = data.draw(st.integers(start + 1, len(IDS)))
    part = IDS[start:].copy()
    part[other - start :] ^= np.uint64(1)
    assert start_in(IDS[:count], part) == start
    assert start_in(known_words(IDS[:count]), part) == start


def test_what_is_not_there_or_not_known_has_no_place() -> None:
    assert start_in(IDS[:100], IDS[100:]) is None
    assert start_in(IDS, IDS[:0]) is None
    assert start_in(known_words(IDS[:100]), IDS[100:]) is None
    many = np.arange(2 * (SAMPLES_MAX + 1), dtype=np.uint64).reshape(-1, 2)
    assert start_in(known_words(many[:-1]), many[7:]) == 7
    assert words_in(receipt_words(many).receipt()) is None  # it has no digest after each delivery


@given(FEW, st.data())
def test_two_parts_that_overlap_begin_with_the_same_delivery(numbers: list[int], data: st.DataObject) -> None:
    whole = words(numbers)
    (low, high), (start, end) = (sorted(data.draw(st.integers(0, len(whole))) for _ in range(2)) for _ in range(2))
    one, other = whole[low:high], whole[start:end]
    skipped = starts(one, other)
    agreed = min(len(one) - skipped[0], len(other) - skipped[1])
    if min(high, end) > max(low, start):
        assert (one[skipped[0] : skipped[0] + agreed] == other[skipped[1] : skipped[1] + agreed]).all()
        assert agreed >= min(high, end) - max(low, start)


@given(st.integers(2, 100), st.data())
def test_another_order_is_not_taken_for_a_later_beginning(count: int, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(count)).filter(lambda each: each[0] != 0))
    assert starts(IDS[:count], IDS[order]) == (0, 0)


@given(st.integers(2, 100), st.data())
def test_nor_beside_a_receipt(count: int, data: st.DataObject) -> None:
    """Reversed deliveries begin with the last one, and so would agree with it and have the others after it."""
    order = data.draw(st.one_of(st.just([*range(count)][::-1]), st.permutations(range(count))))
    receipt = receipt_words(IDS[:count]).receipt()
    outcomes = {compare(receipt, each).outcome for each in receipts_in(receipt, IDS[list(order)])}
    assert ("equal" in outcomes) == (list(order) == [*range(count)])
    assert "agree" not in outcomes


@given(st.integers(2, 100), st.data())
def test_a_part_beside_a_receipt_still_agrees(count: int, data: st.DataObject) -> None:
    start, end = data.draw(st.integers(0, count - 1)), data.draw(st.integers(count, len(IDS)))
    receipt = receipt_words(IDS[:count]).receipt()
    found = [compare(receipt, each) for each in receipts_in(receipt, IDS[start:end])]
    assert max(each.agreed for each in found if each.outcome in ("agree", "equal")) == count - start


@given(FEW)
def test_repeats_are_those_of_one_sign_in_a_row(numbers: list[int]) -> None:
    assert repeats(words(numbers)) == 0
    assert repeats(IDS[numbers]) == len(numbers) - len(set(numbers))
