"""W014: rules whose searches can take more than O(n log n) steps are named when compiled, with bound, cause and remedy."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from fairlead.engine import compile
from fairlead.errors import FairleadError
from fairlead.explanation import explain
from fairlead.matching.compiled.planning.costs.cost import Costs
from fairlead.matching.compiled.planning.costs.cost_bound import ONE, shown
from fairlead.matching.compiled.planning.family import family_key
from fairlead.matching.compiled.planning.shape_builder import shape_of
from tests.fuzz.rules import rules
from tests.matching.compiled.test_cost import ROWS

TYPES = "\n".join(f"TYPE {name} (k INT, x INT, y INT, at TIMESTAMP) TIME at" for name in "ABCE")


def warned(match: str) -> list[str]:
    return [str(each) for each in compile(f"{TYPES}\nSUBSCRIPTION S MATCH {match}").warnings if each.code == "W014"]


@pytest.mark.parametrize(
    ("match", "bound", "cause"),
    [
        ("A a AND B b AND C c WHERE a.x + b.x = c.x", "O(n²)", "a condition reads three members or more"),
        ("A a[3] AND B b WHERE a[1].x + a[2].x + a[3].x = b.x", "O(n³)", "a condition reads three members or more"),
        (
            "A a AND B b AND C c AND E e WHERE a.x != b.x AND b.y != c.y AND c.x != a.y",
            "O(n²)",
            "conditions between members form a circle",
        ),
        ("A a[3] THEN B b[3] WHERE a[2].x = b[2].x", "O(n²)", "conditions between members form a circle"),
        (
            "A a AND B b AND C c WHERE a.x != b.x AND a.y != b.y AND b.x != c.x",
            "O(n²)",
            "what joins two members is more than one comparison",
        ),
    ],
)
def test_what_multiplies_is_named(match: str, bound: str, cause: str) -> None:
    (text,) = warned(match)
    assert f"can cost {bound} for n queued events: {cause}" in text
    assert "add PER, so that n is the queue of one key; add WITHIN to bound n; or join members in pairs" in text


@pytest.mark.parametrize(
    ("match", "arrives", "bound"),
    [
        ("A a THEN B b WITHOUT C c BETWEEN a AND b WHERE c.x = a.x", "B", "O(n c + n log n)"),
        ("A a[2] WITHOUT C c BETWEEN a[1] AND a[2] WHERE c.x = a[2].x", "A", "O(n c + n log n)"),
        ("A a THEN B b THEN C c WITHOUT E e BETWEEN a AND c WHERE e.x > a.x", "C", "O(n c log n + n log n)"),
    ],
)
def test_what_is_compared_with_all_that_was_noted_is_named(match: str, arrives: str, bound: str) -> None:
    (text,) = warned(match)
    assert f"an arriving {arrives} can cost {bound} for n queued events: each relation is compared with every event" in text
    assert "leave out of the WHERE of the WITHOUT what reads members, or say it with PER" in text


@pytest.mark.parametrize(
    ("match", "bound"),
    [
        ("A a AND B b WHERE a.x != b.x AND a.y != b.y DISPOSAL FIRST PREFIX", "O(n²)"),
        ("A a AND B b WHERE a.x + b.x > 7 DISPOSAL FIRST PREFIX", "O(n²)"),
        ("A a AND B b WHERE a.x = b.x AND a.y < b.y DISPOSAL FIRST PREFIX", "O(n k)"),
    ],
)
def test_a_search_over_everything_multiplies_with_two_members_too(match: str, bound: str) -> None:
    (text,) = warned(match)
    assert f"an arriving event after a match or expiry can cost {bound}" in text
    assert warned(match.replace(" DISPOSAL FIRST PREFIX", "")) == []


OPTIONS = ("", " MATCHING FIRST CONTIGUOUS", " MATCHING RECENT", " DISPOSAL FIRST PREFIX", " WITHIN 1 HOUR", " PER k")
PATTERNS = [
    match
    for match, *_ in ROWS
    if not any(word in match for word in ("MATCHING", "DISPOSAL", "PER ", " D d", "WITHOUT B b WITHIN"))
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_rule_is_warned_of_just_where_explain_multiplies_lengths(options: str) -> None:
    """Over the rules of docs/complexity.md, whose bounds are counted (tests/matching/compiled/test_cost.py)."""
    for match in PATTERNS:
        plan = compile(f"{TYPES}\nSUBSCRIPTION S MATCH {match}{options}")
        (subscription,) = plan.subscriptions
        costs = Costs(shape_of(subscription, subscription.branches[0], plan.catalogue), plan.catalogue)
        bounds = [each.bound for each in costs.arrivals()] + [shown(costs.loosely() or ONE)]
        multiplied = any(re.search(r"[nkc][²³^]|\b[nkc] [nkc]\b", bound) for bound in bounds)
        assert bool(warned(match + options)) == multiplied, (match, bounds)


POWERS = {"": 1, "²": 2, "³": 3}


def multiplies(bound: str) -> bool:
    """Whether lengths are multiplied with each other in some term: read from the text, as users do."""
    terms = re.search(r"O\((.*)\)", bound)[1].replace("log n", "").split(" + ")  # type: ignore[index]
    letters = [re.findall(r"[nkcw](?:\^(\d+)|([²³]?))", term) for term in terms]
    return any(sum(int(number or POWERS[sign]) for number, sign in found) > 1 for found in letters)


def test_bounds_are_read_right() -> None:
    assert [each for each in ("O(1)", "O(log n)", "O(n log n + c)", "O(k + c + w)") if multiplies(each)] == []
    assert all(map(multiplies, ("O(n c)", "O(n² + c)", "O(n^4 log n)", "O(log n + k c)", "O(n k)")))


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(3))
def test_a_random_rule_is_warned_of_just_where_explain_multiplies_lengths(seed: int) -> None:
    """Every clause of the language over overlapping types; of alike subscriptions the first is named."""
    rng, seen = Random(seed), {True: 0, False: 0}
    while min(seen.values()) < 20:
        text = str(rules(rng))
        try:
            plan = compile(text)
        except FairleadError:
            continue
        if any(each.code in ("W013", "W025") for each in plan.warnings):
            continue  # explain has no costs of what has no kernel
        costs = {each["name"]: each["costs"] for each in explain(plan).to_json()["subscriptions"]}
        heavy = {name for name, branches in costs.items() if any(multiplies(bound) for bound in bounds_of(branches))}
        named = {each.subscription for each in plan.warnings if each.code == "W014"}
        assert named <= heavy, (text, named, heavy)
        told = [each for each in plan.subscriptions if each.name in named]
        alike = {family_key(each, branch) for each in told for branch in each.branches} - {None}
        for each in plan.subscriptions:
            others = alike & {family_key(each, branch) for branch in each.branches}
            assert each.name in named or each.name not in heavy or others, (text, each.name)
        seen[bool(heavy)] += 1


def bounds_of(branches: list[dict[str, Any]]) -> list[str]:
    every = [each["search_over_everything"] for each in branches] + [a["bound"] for each in branches for a in each["arrivals"]]
    return [each for each in every if each is not None]


def test_the_remedy_leaves_out_what_the_rule_has() -> None:
    (text,) = warned("A a AND B b AND C c WHERE a.x + b.x = c.x PER k WITHIN 1 HOUR")
    assert "fix: or" not in text
    assert "fix: join members in pairs" in text


@pytest.mark.parametrize(
    "match",
    [
        "A a[6] WHERE a[1].x < a[2].x AND a[2].x < a[3].x AND a[3].x < a[4].x AND a[4].x < a[5].x AND a[5].x < a[6].x",
        "A a[5] WHERE a[1].x != a[2].x AND a[2].x != a[3].x AND a[3].x != a[4].x AND a[4].x != a[5].x",
        "A a AND B b AND C c AND E e WHERE a.x < b.x AND a.x = c.x AND a.y != e.y",
        "A a AND B b AND C c AND E e WHERE a.x < b.x AND b.y < c.y AND c.x < e.x AND e.y < a.y",
        "A a[3] THEN B b[3] WHERE a[3].x = b[1].x",
        "A a AND B b WHERE a.x + b.x > 7 AND a.y != b.y",
    ],
)
def test_chains_stars_and_trees_are_not(match: str) -> None:
    assert warned(match) == []


def test_alike_subscriptions_are_named_once() -> None:
    rules = "\n".join(f"SUBSCRIPTION S{n} MATCH A a AND B b AND C c WHERE a.x + b.x = c.x AND a.y > {n}" for n in range(5))
    assert len([each for each in compile(f"{TYPES}\n{rules}").warnings if each.code == "W014"]) == 1
