"""What is remembered of a source's numbers never calls a number repeated that was not stored, nor new that was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.order.stored_numbers import INNER_MAX, SPANS_MAX, StoredNumbers, Unordered

REQUESTS = st.lists(st.sets(st.integers(0, 120), min_size=1, max_size=30).map(sorted), max_size=40)


@given(REQUESTS)
def test_every_answer_is_true_and_the_text_loses_nothing(requests: list[list[int]]) -> None:
    known, stored = StoredNumbers(), set[int]()
    for numbers in requests:
        assert StoredNumbers.of(known.text()) == known
        try:
            new = known.new_of(numbers)
        except Unordered:
            continue
        assert [numbers[at] for at in new] == [each for each in numbers if each not in stored]
        fresh = [numbers[at] for at in new]
        if fresh:
            known = known.with_stored(fresh)
            stored |= {*fresh}
        assert known.next == max(stored, default=-1) + 1
        assert known.new_of(numbers) == [], "the same request, sent again"


@given(st.permutations(range(40)))
def test_numbers_in_any_order_are_each_stored_once(order: list[int]) -> None:
    known = StoredNumbers()
    for number in order:
        assert known.new_of([number]) == [0]
        known = known.with_stored([number])
        assert known.new_of([number]) == []
    assert known == StoredNumbers(40)


def test_the_largest_number_does_not_end_a_source() -> None:
    known = StoredNumbers().with_stored([0]).with_stored([2**62 - 1])
    for number in range(1, 500):
        assert known.new_of([number]) == [0]
        known = known.with_stored([number])
    assert len(known.spans) == 1


def test_old_gaps_are_forgotten_and_then_nobody_guesses() -> None:
    known = StoredNumbers()
    for number in range(0, 4 * SPANS_MAX, 2):
        known = known.with_stored([number])
    assert len(known.spans) == SPANS_MAX
    assert len(known.text()) < 1000
    with pytest.raises(Unordered):
        known.new_of([1])
    assert known.new_of([known.floor]) == []
    assert known.new_of([known.floor + 1]) == [0]


def test_a_block_that_skips_much_is_a_run_which_can_be_sent_again_as_a_whole() -> None:
    sparse = list(range(0, 3 * (INNER_MAX + 2), 3))
    known = StoredNumbers().with_stored(sparse)
    assert len(known.spans) == 1
    assert known.new_of(sparse) == []
    assert known.new_of([*sparse, 100]) == [len(sparse)]
    for others in ([1], sparse[1:], [*sparse[:-1], sparse[-1] - 1]):
        with pytest.raises(Unordered):
            known.new_of(others)


@pytest.mark.parametrize(
    "text", ["", "x", "1", "5.6", "5.0.1-", "5.0.9-0", "5.0.1-9", "5.0.0-1", "5.0" + ".1-0" * 65, "5.4.2-0"]
)
def test_texts_that_contradict_themselves_are_refused(text: str) -> None:
    assert StoredNumbers.of(text) is None
