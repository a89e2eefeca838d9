"""Events without a value for an order key have no place: they are rejected where a log has them, and an error otherwise."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import fairlead
from fairlead.errors import DataError
from fairlead.model.events.verdict import EventVerdict
from fairlead.runtime.event_time import EventTimeMatcher
from tests.runtime.event_time.sequences import Record, at, cuts

TYPES = "TYPE A (k INT, x INT, y DOUBLE, t TIMESTAMP) TYPE B (k INT, x INT, y DOUBLE, t TIMESTAMP) "
RULES = "SUBSCRIPTION S MATCH A a THEN B b SUBSCRIPTION T MATCH B b[2] PER k"
KEYS = ("t", "t, x", "t, y DESC", "t, x DESC, y")
LATE = ("", "LATE REVISE WITHIN 3 SECONDS ")


def drawn(random: Random, keys: str) -> list[Record]:
    """Some of the order keys are NULL or NaN."""
    made: list[Record] = []
    for number in range(40):
        event: Record = {"type": random.choice("AB"), "k": random.randrange(2), "x": random.randrange(3), "y": 0.5}
        event |= {"t": at(number * 0.5 - random.choice((0, 0, 1, 3))), "_source": "p", "_sequence": number}
        if random.random() < 0.2:
            name = random.choice([each.split()[0] for each in keys.split(", ")])
            event[name] = float("nan") if name == "y" and random.random() < 0.5 else None
        made.append(event)
    return made


def has_place(event: Record, keys: str) -> bool:
    values = [event[each.split()[0]] for each in keys.split(", ")]
    return all(value is not None and value == value for value in values)


def followed(plan: fairlead.Plan, records: list[Record], random: Random | None, rejects: bool) -> tuple[list[Any], list[Any]]:
    """Deliveries and verdicts; saved and loaded on the way."""
    matcher, found, told = EventTimeMatcher(plan, 2, rejects=rejects, kernels_from=None), list[Any](), list[Any]()
    for columns in cuts(plan, records, random):
        step = matcher.step(columns)
        found += [(each.sign, each.id) for each in step.relations]
        told += zip(step.verdicts.columns.position_array.tolist(), step.verdicts.verdicts, strict=True)
        if random is not None and random.random() < 0.3:
            matcher = EventTimeMatcher.load(plan, matcher.dump(), 2, rejects=rejects, kernels_from=None)
    return found + [(each.sign, each.id) for each in matcher.finish().relations], told


@pytest.mark.sampled
@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("seed", range(6))
def test_they_change_nothing_but_are_reported(keys: str, late: str, seed: int) -> None:
    random = Random(f"{keys} {late} {seed}")
    plan = fairlead.compile(f"{TYPES} ORDER BY {keys} DELAY 1 SECOND {late} {RULES}")
    records = drawn(random, keys)
    found, told = followed(plan, records, None, rejects=True)
    assert followed(plan, records, random, rejects=True) == (found, told)
    rejected = [position for position, verdict in told if verdict is EventVerdict.REJECTED]
    assert rejected == [at for at, each in enumerate(records) if not has_place(each, keys)] != []
    others = [each for each in records if has_place(each, keys)]
    if not late:  # rounds are stretches of the sequence, in which the others then stand elsewhere
        assert followed(plan, others, None, rejects=False)[0] == found
    with pytest.raises(DataError, match="D019"):
        followed(plan, records, None, rejects=False)
