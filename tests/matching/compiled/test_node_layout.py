"""Links and words of a node are two views of one memory, and the compiler is told that they are not: no source may mix them."""

from __future__ import annotations

import ast

import pytest

import fairlead
from fairlead.matching.compiled.codegen.kernel_names import LINKS, NODES
from fairlead.matching.compiled.running.branch import form_of
from tests.matching.compiled.test_cost import ROWS, TYPES

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
        words, links = _reached(source.text, NODES.name), _reached(source.text, LINKS.name)
        first = source.layout["REF"]
        assert min(words) >= first
        assert max(words) < source.layout.width
        assert max(links) < 2 * first


@pytest.mark.parametrize(
    ("match", "stored"),
    [
        ("A a AND B b WHERE a.x < b.x", 0),  # the index decides it, whichever comes last
        ("A a THEN B b WHERE a.x < b.x", 0),  # only B comes last, and the index of A decides it
        ("A a AND B b WHERE a.x < b.x AND a.y < b.y", 2),  # one index a queue: the other comparison is tested
        ("A a AND B b WHERE a.x + 1 < b.x", 0),
        ("A a AND B b WHERE a.x < b.x + a.y", 3),  # what an index is asked for is made of queued values too
    ],
)
def test_what_an_index_decides_is_neither_tested_again_nor_stored(match: str, stored: int) -> None:
    plan = fairlead.compile(f"{TYPES}\nSUBSCRIPTION S MATCH {match}")
    (subscription,) = plan.subscriptions
    shape, source = form_of(subscription, subscription.branches[0], plan.catalogue, False)
    assert len(source.layout.place_of_column) == stored <= len(shape.columns)


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
