"""Texts that ask for the same have one digest, and texts that ask for something else have another."""

from __future__ import annotations

import itertools
import random

import pytest

from fairlead.language import compile_text
from fairlead.model.plans.plan import Subscription

TYPES = """
TYPE A (k INT, v INT, w INT, at TIMESTAMP) TIME at
TYPE B (k INT, v INT, w INT, at TIMESTAMP) TIME at
TYPE C (k INT, v INT, w INT, at TIMESTAMP) TIME at
"""
OTHER_TIME = "at TIMESTAMP) TIME at", "at TIMESTAMP, t TIMESTAMP) TIME t"
BRANCHES = ("A a AND B b", "B b THEN C c", "C c AND A a", "A a[2]")


def digest(rules: str, types: str = TYPES, name: str = "S") -> str:
    return compile_text(types + rules)[name].digest


def test_the_order_of_branches_does_not_matter_and_equal_ones_are_one() -> None:
    where = " WHERE a.v < b.v AND b.w = c.w AND a.k > 1"
    found: list[Subscription] = []
    for order in itertools.permutations(BRANCHES[:3]):
        for repeated in (False, True):
            texts = (*order, order[0]) if repeated else order
            found.append(compile_text(f"{TYPES} SUBSCRIPTION S MATCH {' OR '.join(f'({each})' for each in texts)}{where}")["S"])
    assert len({each.digest for each in found}) == 1
    assert {tuple(branch.signature for branch in each.branches) for each in found} == {(("A", "B"), ("A", "C"), ("B", "C"))}


@pytest.mark.parametrize("seed", range(20))
def test_permuted_texts_have_one_digest(seed: int) -> None:
    """Branches, predicates, the parts of an OR and the sides of comparisons, names and aliases."""
    chosen = random.Random(seed)
    patterns = chosen.sample(BRANCHES, chosen.randint(1, 3))
    conditions = [("a.v", "<", "b.w"), ("b.v", "=", "c.v"), ("a.w", "!=", "3"), ("c.k", "<=", "a.k"), ("b.k", ">", "2")]
    used = [each for each in conditions if any(_has(pattern, each) for pattern in patterns)]
    kept = chosen.sample(used, chosen.randint(0, len(used)))
    either = [("a.v", "=", "1"), ("a.w", "=", "2"), ("a.k", "<", "7")] if any("A a" in each for each in patterns) else []
    expected: set[str] = set()
    for _ in range(6):
        texts = [_turned(each, chosen) for each in chosen.sample(kept, len(kept))]
        if either:
            texts.insert(
                chosen.randint(0, len(texts)), f"({' OR '.join(_turned(e, chosen) for e in chosen.sample(either, 3))})"
            )
        rules = " OR ".join(f"({each})" for each in chosen.sample(patterns, len(patterns)))
        where = f" WHERE {' AND '.join(texts)}" if texts else ""
        name = chosen.choice(("S", "Other"))
        text = f"SUBSCRIPTION {name} MATCH {rules}{where}"
        if chosen.random() < 0.5:
            for alias in "abc":
                text = text.replace(f"{alias}.", f"x{alias}.").replace(f"{alias.upper()} {alias}", f"{alias.upper()} x{alias}")
        expected.add(digest(text, name=name))
    assert len(expected) == 1


def _has(pattern: str, condition: tuple[str, str, str]) -> bool:
    return all(f" {side[0]}" in f" {pattern}" for side in (condition[0], condition[2]) if "." in side)


def _turned(condition: tuple[str, str, str], chosen: random.Random) -> str:
    left, operator, right = condition
    mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
    return f"{right} {mirrored} {left}" if chosen.random() < 0.5 else f"{left} {operator} {right}"


WITHOUTS = (
    "WITHOUT C x BETWEEN a AND b WHERE x.v > a.v AND x.k = 1",
    "WITHOUT C y BETWEEN a AND b WHERE y.v > b.v",
    "WITHOUT C z WITHIN 5 SECONDS OF a WHERE z.k = a.k",
    "WITHOUT B u WITHIN 5 SECONDS OF b",
    "WITHOUT B w BETWEEN a AND b",
)


@pytest.mark.parametrize("per", ["", " PER k"])
def test_the_order_of_without_clauses_does_not_matter_and_equal_ones_are_one(per: str) -> None:
    """Digest, signature, keys and every slot: a matcher of one text goes on with the state of another's."""
    found: list[Subscription] = []
    for chosen in (WITHOUTS[:2], WITHOUTS[1:4], WITHOUTS):
        before = len(found)
        for order in itertools.permutations(chosen):
            texts = (
                *order,
                order[0].replace(f" {order[0].split()[2]} ", " again ").replace(f"{order[0].split()[2]}.", "again."),
            )
            for each in (order, texts):
                text = f"{TYPES} SUBSCRIPTION S MATCH A a THEN B b {' '.join(each)}{per}"
                found.append(compile_text(text)["S"])
        assert len({_said(each) for each in found[before:]}) == 1
    assert len({_said(each) for each in found}) == 3


def _said(subscription: Subscription) -> str:
    """All of it, but for names and texts."""
    branches = [
        (branch.slots, branch.keys, [(each.type, each.slot, [one.slots for one in each.predicates]) for each in branch.noting])
        for branch in subscription.branches
    ]
    return f"{subscription.digest} {branches}"


def test_a_clause_belongs_to_the_branches_that_have_its_anchors_in_the_order_of_each() -> None:
    either = "SUBSCRIPTION S MATCH (A a THEN B b) OR (A a THEN C c)"
    digests = {digest(f"{either} {' '.join(order)}") for order in itertools.permutations((*WITHOUTS[:1], *WITHOUTS[2:4]))}
    assert len(digests) == 1
    assert digest(f"{either} {WITHOUTS[0]}") not in digests


@pytest.mark.parametrize(
    "change",
    [
        ("x.v > a.v", "x.v > b.v"),
        ("x.k = 1", "x.k = 2"),
        ("x BETWEEN a AND b", "x BETWEEN b AND a"),
        ("C z", "B z"),
        ("5 S", "6 S"),
    ],
)
def test_what_without_clauses_say_does_matter(change: tuple[str, str]) -> None:
    rules = f"SUBSCRIPTION S MATCH A a THEN B b {' '.join(WITHOUTS[:3])}"
    assert digest(rules) != digest(rules.replace(*change))


def test_one_without_clause_has_the_digest_that_it_always_had() -> None:
    """As states and receipts that are kept somewhere have it."""
    assert digest(f"SUBSCRIPTION S MATCH A a THEN B b {WITHOUTS[0]}").startswith("84488d8125073a5a")
    assert digest(f"SUBSCRIPTION S MATCH A a THEN B b {WITHOUTS[2]}").startswith("b40e238474e38cfc")


def test_companions_and_what_is_not_read_of_the_types_do_not_matter() -> None:
    rules = "SUBSCRIPTION S MATCH A a AND B b WHERE a.v = b.v PER k EMIT M (v = a.v)"
    alone = digest(rules)
    assert digest(f"{rules} SUBSCRIPTION T MATCH C c EMIT N (v = c.v) SUBSCRIPTION R MATCH M m AND N n") == alone
    for change in (
        ("w INT, at", "w DOUBLE, more STRING, at"),  # not read
        ("w INT, ", ""),
        ("k INT, v INT", "v INT, k INT"),
        (" TIME at", ""),  # time is not used
    ):
        assert digest(rules, TYPES.replace(*change)) == alone, change


@pytest.mark.parametrize(
    ("rules", "change"),
    [
        ("SUBSCRIPTION S MATCH A a AND B b WHERE a.v = b.v", ("v INT", "v BIGINT")),
        ("SUBSCRIPTION S MATCH A a AND B b PER k", ("k INT", "k BIGINT")),
        ("SUBSCRIPTION S MATCH A a EMIT M (w = a.w)", ("w INT", "w BIGINT")),
        ("SUBSCRIPTION S MATCH A a AND B b WITHIN 1 DAY", OTHER_TIME),
        ("SUBSCRIPTION S MATCH A a AND B b WHERE time(a) < time(b)", OTHER_TIME),
        ("SUBSCRIPTION S MATCH A a WITHOUT B b WITHIN 1 DAY OF a", OTHER_TIME),
        ("SUBSCRIPTION S MATCH A a AND B b", ("TYPE C", "TYPE D EXTENDS A () TYPE C")),
    ],
)
def test_what_is_read_of_the_types_does_matter(rules: str, change: tuple[str, str]) -> None:
    assert digest(rules) != digest(rules, TYPES.replace(*change))


def test_upstream_subscriptions_matter_but_neither_their_names_nor_their_order() -> None:
    first = "SUBSCRIPTION One MATCH A a EMIT M (v = a.v)"
    second = "SUBSCRIPTION Two MATCH B b WHERE b.v > 1 EMIT M (v = b.v)"
    reader = "SUBSCRIPTION S MATCH M m[2]"
    both = digest(f"{first} {second} {reader}")
    assert digest(f"{reader} {second.replace('Two', 'Zwei')} {first}") == both
    assert digest(f"{first} {reader}") != both
    assert digest(f"{first} {second.replace('b.v > 1', 'b.v > 2')} {reader}") != both
    assert digest(f"{first} {second} {second.replace('Two', 'Three')} {reader}") != both


def test_the_times_of_derived_events_come_from_upstream() -> None:
    """The reader's window is measured by the times of A's events, of which only the derived type tells."""
    rules = "SUBSCRIPTION E MATCH A a EMIT M (v = a.v) SUBSCRIPTION S MATCH M m[2] WITHIN 1 DAY"
    other = TYPES.replace(*OTHER_TIME)
    assert digest(rules) != digest(rules, other)
    assert digest(rules, name="E") == digest(rules, other, name="E")
    unwindowed = rules.replace(" WITHIN 1 DAY", "")
    assert digest(unwindowed) == digest(unwindowed, other)
