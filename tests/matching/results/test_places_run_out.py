"""Beside one event there is room for a number of derived ones: the same in both matchers, and a coded error beyond it."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.errors import UnsupportedError
from fairlead.language import compile_text
from fairlead.matching.compiled.running.paths import BEFORE, DERIVED, STEP, placed
from fairlead.model.events.event import Event, Places
from fairlead.model.events.position import Position
from fairlead.model.limits import LIMITS
from fairlead.model.relations.identity import position_of, words_of

MAJOR = 7
MOST = LIMITS.derived_per_event_max
PLAN = compile_text("TYPE A (k INT) SUBSCRIPTION S MATCH A a EMIT M (k = a.k) SUBSCRIPTION R MATCH M m")


def one_by_one(side: int, count: int) -> Position:
    """The place of the last of so many; the many before it are not made."""
    places = Places(MAJOR)
    if side != BEFORE:
        places.settle(Event(PLAN.catalogue["A"], (1,), Position(MAJOR)))
    places.minor += count - 1
    return places.settle(Event(PLAN.catalogue["M"], (1,), Position(MAJOR))).position


def all_at_once(side: int, count: int) -> Position:
    paths = np.zeros((count, 1 + STEP), dtype=np.int64)
    paths[:, 0], paths[:, 1] = words_of(np.array([MAJOR]))[0], side
    return position_of(int(placed(paths)[-1]))


@pytest.mark.parametrize("side", [BEFORE, DERIVED])
def test_both_matchers_have_the_same_places(side: int) -> None:
    for count in (1, 2, MOST):
        assert one_by_one(side, count) == all_at_once(side, count)
    for place in (one_by_one, all_at_once):
        with pytest.raises(UnsupportedError, match=f"U004 more than 1,000,000 derived events .* beside event {MAJOR}"):
            place(side, MOST + 1)


def test_the_last_place_before_an_event_is_not_its_own() -> None:
    assert one_by_one(BEFORE, MOST) == Position(MAJOR, -1)
    assert one_by_one(DERIVED, MOST) == Position(MAJOR, MOST)
