"""W014: rules whose searches can take more than O(n log n) steps are named when compiled, with bound, cause and remedy."""

from __future__ import annotations

import pytest

from fairlead.engine import compile

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
