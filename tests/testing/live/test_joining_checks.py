"""What joined others in the middle of a run is compared with what they received: every kind of difference is found."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from fairlead.testing.live.actors.records import Line
from fairlead.testing.live.actors.setting import RULES, SKEW_SECONDS, SOURCES, STARTS
from fairlead.testing.live.actors.skewed_clock import skew_of
from fairlead.testing.live.verdict.deliveries import DeliveredNumbers
from fairlead.testing.live.verdict.joining import joined_problems, last_acknowledged

ALL, JOINED = 20, 8
"""Deliveries in all, and those before it joined."""


def delivery(number: int) -> Line:
    return {"number": number, "group": "g", "id": f"id-{number}", "sign": 1}


WHOLE = {"g": DeliveredNumbers([delivery(number) for number in range(1, ALL + 1)], ALL)}


def record() -> list[Line]:
    """Two lives: the second begins after what the first had acknowledged, so two are given again."""
    first = [delivery(number) for number in range(JOINED + 1, 15)]
    second = [delivery(number) for number in range(13, ALL + 1)]
    lives = [{"begun": "j"}, *first, {"acked": 12, "group": "g"}, {"begun": "j"}, *second, {"acked": ALL, "group": "g"}]
    return [*lives, {"receipts": {"g": {"count": ALL}}}]


def numbered(lines: list[Line], number: int) -> int:
    return next(at for at, line in enumerate(lines) if line.get("number") == number)


def without(lines: list[Line], number: int) -> None:
    del lines[numbered(lines, number)]


def doubled(lines: list[Line], number: int) -> None:
    lines.insert(numbered(lines, number), delivery(number))


def another(lines: list[Line], number: int) -> None:
    lines[numbered(lines, number)]["id"] = "another"


def taken_back(lines: list[Line], number: int) -> None:
    lines[numbered(lines, number)]["sign"] = -1


def skipped(lines: list[Line], number: int) -> None:
    """The second life begins too late."""
    again = next(at for at, line in enumerate(lines) if "begun" in line and at)
    lines[again + 1 : again + 4] = []


def repeated(lines: list[Line], number: int) -> None:
    """The second life begins with what was acknowledged."""
    again = next(at for at, line in enumerate(lines) if "begun" in line and at)
    lines.insert(again + 1, delivery(12))


def short(lines: list[Line], number: int) -> None:
    without(lines, ALL)


def beyond(lines: list[Line], number: int) -> None:
    lines.append(delivery(ALL + 1))


def miscounted(lines: list[Line], number: int) -> None:
    lines[-1]["receipts"]["g"]["count"] -= 1


def silent(lines: list[Line], number: int) -> None:
    lines.clear()


def test_a_subscriber_that_receives_what_the_others_receive_has_no_problem() -> None:
    assert joined_problems("j", record(), WHOLE) == []
    assert joined_problems("j", [record()[0], record()[-1]], WHOLE) == []  # nothing came after it had joined
    assert last_acknowledged(record()) == {"g": ALL}


@pytest.mark.parametrize("number", [10, 16, 19])
@pytest.mark.parametrize(
    "damage", [without, doubled, another, taken_back, skipped, repeated, short, beyond, miscounted, silent]
)
def test_every_difference_is_found(damage: Callable[[list[Line], int], None], number: int) -> None:
    lines = copy.deepcopy(record())
    damage(lines, number)
    assert joined_problems("j", lines, WHOLE)


def test_some_clocks_are_right_some_ahead_and_some_behind() -> None:
    assert {skew_of(name) for name in (*SOURCES, *RULES, *STARTS)} == {0.0, SKEW_SECONDS, -SKEW_SECONDS}
