"""A part of a sequence of deliveries is found where it begins, also where deliveries repeat and where it differs later on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairlead.deliver.alignment import repeats, start_in, start_in_receipt, starts
from fairlead.deliver.receipt import SAMPLES_MAX, ReceiptBook
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
    assert start_in_receipt(receipt_words(whole).receipt(), part) == best


@given(st.integers(1, len(IDS)), st.data())
def test_a_part_is_found_though_it_goes_on_longer_and_differs_later(count: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, count - 1))
    other = data.draw(st.integers(start + 1, len(IDS)))
    part = IDS[start:].copy()
    part[other - start :] ^= np.uint64(1)
    assert start_in(IDS[:count], part) == start
    assert start_in_receipt(receipt_words(IDS[:count]).receipt(), part) == start


def test_what_is_not_there_or_not_known_has_no_place() -> None:
    assert start_in(IDS[:100], IDS[100:]) is None
    assert start_in(IDS, IDS[:0]) is None
    assert start_in_receipt(receipt_words(IDS[:100]).receipt(), IDS[100:]) is None
    many = np.arange(2 * (SAMPLES_MAX + 1), dtype=np.uint64).reshape(-1, 2)
    assert start_in_receipt(receipt_words(many[:-1]).receipt(), many[7:]) == 7
    assert start_in_receipt(receipt_words(many).receipt(), many[7:]) is None  # it has no digest after each delivery


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


@given(FEW)
def test_repeats_are_those_of_one_sign_in_a_row(numbers: list[int]) -> None:
    assert repeats(words(numbers)) == 0
    assert repeats(IDS[numbers]) == len(numbers) - len(set(numbers))
