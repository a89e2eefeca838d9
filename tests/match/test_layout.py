"""Links and words of a node are two views of one memory, and the compiler is told that they are not: no source may mix them."""

from __future__ import annotations

import ast

import pytest

import fairlead
from fairlead.matching.kernel.branch import form_of
from tests.match.test_cost import ROWS, TYPES

ABSENCES = [
    "A a WITHOUT B b WITHIN 1 HOUR OF a",
    "A a AND B b WHERE a.x < b.x WITHOUT C c WITHIN 1 HOUR OF a",
    "A a AND B b WHERE a.x = b.x AND a.y < b.y WITHOUT C c WITHIN 1 HOUR OF b",
    "A a[2] AND B b WITHOUT C c WITHIN 1 HOUR OF b",
]


@pytest.mark.parametrize("match", [*(each[0] for each in ROWS), *ABSENCES])
def test_words_are_never_reached_below_the_first_and_links_never_above_the_last(match: str) -> None:
    plan = fairlead.compile(f"{TYPES}\nSUBSCRIPTION S MATCH {match}")
    (subscription,) = plan.subscriptions
    for several in (False, True):
        _, source = form_of(subscription, subscription.branches[0], plan.catalogue, several)
        words, links = _reached(source.text, "ni"), _reached(source.text, "nn")
        first = source.layout["REF"]
        assert min(words) >= first
        assert max(words) < source.layout.width
        assert max(links) < 2 * first


def _reached(source: str, name: str) -> set[int]:
    """The elements of a row of the array that the source reads or writes."""
    found: set[int] = set()
    tree = ast.parse(source)
    ranges = {
        node.target.id: node.iter for node in ast.walk(tree) if isinstance(node, ast.For) and isinstance(node.target, ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name):
            continue
        assert isinstance(node.slice, ast.Tuple)
        at = node.slice.elts[1]
        if isinstance(at, ast.Constant):
            found.add(at.value)
            continue
        assert isinstance(at, ast.Name)
        found |= set(eval(ast.unparse(ranges[at.id])))
    return found
