"""Rules with tables, bounds and timers, drawn so that they meet what they could lose: what is said to be kept is never
violated, and a verdict that says too much is found out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from fairlead.guarantees import derive
from fairlead.model.guarantee import Guarantee, Property
from fairlead.model.plans.plan import Branch, Plan
from tests.guarantees.aimed_worlds import KINDS, aimed_world
from tests.guarantees.test_clauses import violates_only_what_is_lost
from tests.guarantees.worlds import compiled
from tests.marks import sample_size

Verdicts = Callable[[Plan], Mapping[str, tuple[Guarantee, ...]]]
WORLDS = 150
UNJUDGED = dict.fromkeys(KINDS, frozenset[Property]()) | {"AFTER": frozenset({Property.CONJUNCTION_VALIDITY})}
"""In a short trace, relations that wait look as if none were delivered. test_clauses.py has the long ones."""


def judged(kind: str, count: int, verdicts_of: Verdicts = derive) -> set[Property]:
    """What is violated in any world."""
    found: set[Property] = set()
    for seed in range(count):
        world = aimed_world(kind, seed)
        plan = compiled(world.text)
        verdicts = verdicts_of(plan).items()
        said = {name: [each for each in some if each.property not in UNJUDGED[kind]] for name, some in verdicts}
        found |= violates_only_what_is_lost(world.text, plan, said, world.records, world.publishers)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_to_be_kept_is_never_violated(kind: str) -> None:
    found = judged(kind, sample_size(WORLDS))
    assert {Property.COVERING_AGREEMENT, Property.EVENT_VALIDITY, Property.TYPE_FIFO_ORDER} <= found, "the worlds are aimed"


@pytest.mark.parametrize("kind", KINDS)
def test_a_verdict_that_leaves_out_the_clause_is_found_out(kind: str) -> None:
    """As if TABLE, RETAIN or AFTER cost nothing."""

    def bare(branch: Branch) -> Branch:
        return replace(branch, tables=(), retained=(), clauses=tuple(each for each in branch.clauses if not each.waits))

    def without(plan: Plan) -> dict[str, tuple[Guarantee, ...]]:
        plain = [replace(each, branches=tuple(map(bare, each.branches))) for each in plan.subscriptions]
        return dict(derive(replace(plan, subscriptions=tuple(plain))))

    with pytest.raises(AssertionError, match=r"Verdict\.KEPT"):
        judged(kind, WORLDS, without)
