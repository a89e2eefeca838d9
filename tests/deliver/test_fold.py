"""Deliveries and those that take them back fold to what is left, and receipts distinguish the two."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairlead.deliver.fold import remaining
from fairlead.deliver.receipt import Receipt, ReceiptBook, compare
from fairlead.model.events.position import Position
from fairlead.model.relations.identity import Words, relation_id, signed
from fairlead.model.relations.identity import from_hex as words_of_ids

IDS = [relation_id("ab" * 32, 0, [Position(at), Position(at + 1)]) for at in range(6)]


def words(deliveries: list[tuple[int, int]]) -> Words:
    """Of deliveries that are given as sign and number of an id."""
    signs = np.array([sign for sign, _ in deliveries], dtype=np.int8)
    return signed(words_of_ids([IDS[number] for _, number in deliveries]), signs)


def receipt(deliveries: Words) -> Receipt:
    book = ReceiptBook("plan")
    book.note(deliveries)
    return book.receipt()


@st.composite
def sequences(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Deliveries as a runtime makes them: nothing is delivered twice at a time, and only what is there is taken back."""
    there: set[int] = set()
    made = []
    for number in draw(st.lists(st.integers(0, len(IDS) - 1), max_size=40)):
        made.append((-1 if number in there else 1, number))
        there ^= {number}
    return made


@given(sequences())
def test_what_was_delivered_and_not_taken_back_is_left_in_order(deliveries: list[tuple[int, int]]) -> None:
    left: dict[int, int] = {}  # by number of the id, the place of its delivery
    for at, (sign, number) in enumerate(deliveries):
        if sign > 0:
            left[number] = at
        else:
            del left[number]
    assert remaining(words(deliveries)).tolist() == sorted(left.values())


@given(sequences())
def test_the_receipt_of_what_is_left_is_that_of_a_run_that_delivered_only_that(deliveries: list[tuple[int, int]]) -> None:
    whole = words(deliveries)
    left = remaining(whole)
    plain = ReceiptBook("plan")
    plain.note([IDS[deliveries[at][1]] for at in left])
    assert compare(receipt(whole[left]), plain.receipt())


@given(st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(0, 2)), max_size=20), st.integers(0, 20))
def test_folding_a_part_first_leaves_the_same(deliveries: list[tuple[int, int]], cut: int) -> None:
    """Any signs: a subscriber that joined late is told to take back what it never had."""
    whole = words(deliveries)
    first = whole[:cut][remaining(whole[:cut])]
    in_parts = np.concatenate([first, whole[cut:]])
    left = in_parts[remaining(in_parts)]
    assert sorted(left.tolist()) == sorted(whole[remaining(whole)].tolist())


@given(sequences(), st.data())
def test_receipts_agree_only_if_all_signs_do(deliveries: list[tuple[int, int]], data: st.DataObject) -> None:
    assert compare(receipt(words(deliveries)), receipt(words(list(deliveries))))
    if deliveries:
        at = data.draw(st.integers(0, len(deliveries) - 1))
        other = list(deliveries)
        other[at] = -other[at][0], other[at][1]
        assert compare(receipt(words(deliveries)), receipt(words(other))).differs


def test_without_signs_words_are_the_ids() -> None:
    ids = words_of_ids(IDS)
    assert signed(ids, None) is ids
    assert (signed(ids, np.ones(len(ids), dtype=np.int8)) == ids).all()
