"""FOLD leaves which relations there are, where, and with which ids: so it loses and gives no property."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.guarantees.derive import derive_on
from fairlead.guarantees.runtimes import Runtime

TYPES = "TYPE A (k INT, v INT, at TIMESTAMP) TIME at TYPE B (k INT, v INT) SUBSCRIPTION S MATCH "
RULES = (
    "A a+ HAVING count(a) >= 9",
    "A a{3,} PER k DISPOSAL INFIX",
    "A a* RETAIN a 9 EVENTS BATCH",
    "(A a{4,}) OR B b",
)


@pytest.mark.parametrize("rules", RULES)
def test_verdicts_are_those_without_fold(rules: str) -> None:
    folded, plain = (fairlead.compile(f"{TYPES}{rules} {clause}") for clause in ("FOLD a", ""))
    for one, other in zip(derive_on(folded, [*Runtime]).values(), derive_on(plain, [*Runtime]).values(), strict=True):
        assert one == other
