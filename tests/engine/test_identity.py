"""Ids computed for columns are the ids computed one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.events.position import Position
from fairlead.model.relations.identity import from_hex, position_word, relation_id, relation_ids, to_hex, words_of

DIGEST = "0123456789abcdef" * 4


@given(st.lists(st.lists(st.integers(0, 2**41), min_size=3, max_size=3), max_size=8), st.integers(0, 5))
def test_a_column_of_ids_is_the_ids_of_its_rows(majors: list[list[int]], branch: int) -> None:
    expected = [relation_id(DIGEST, branch, [(position_word(Position(at)),) for at in row]) for row in majors]
    words = relation_ids([(DIGEST, branch, len(majors))], words_of(np.array(majors, dtype=np.int64).reshape(-1, 3)))
    assert to_hex(words) == expected
    assert (from_hex(expected) == words).all()


def test_ids_differ_by_subscription_branch_member_place_and_number_of_members() -> None:
    one, two, after, before = ((position_word(each),) for each in (Position(1), Position(2), Position(2, 1), Position(2, -1)))
    ids = [
        relation_id(DIGEST, 0, [one, two]),
        relation_id("f" * 64, 0, [one, two]),
        relation_id(DIGEST, 1, [one, two]),
        relation_id(DIGEST, 0, [two, one]),
        relation_id(DIGEST, 0, [one]),
        relation_id(DIGEST, 0, [one, two, two]),
        relation_id(DIGEST, 0, [one, after]),
        relation_id(DIGEST, 0, [one, before]),
    ]
    assert len(set(ids)) == len(ids)
