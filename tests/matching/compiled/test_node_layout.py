"""Links and words of a node are two views of one memory, and the compiler is told that they are not: no program mixes them."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.matching.compiled.codegen.kernel_names import LINKS, NODES
from fairlead.matching.compiled.representation.contents import elements_in, statements_in
from fairlead.matching.compiled.representation.formulas import Array, Constant, Formula, Variable
from fairlead.matching.compiled.representation.statements import For, Program
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
        words, links = _reached(source.program, NODES), _reached(source.program, LINKS)
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


def _reached(program: Program, array: Array) -> set[int]:
    """The elements of a row of the array that the program reads or writes."""
    found: set[int] = set()
    for statement in (each for function in program.functions for each in statements_in(function.body)):
        for element in elements_in(statement):
            if element.array is array:
                found |= _numbers(element.indices[1], program)
    return found


def _numbers(index: Formula, program: Program) -> set[int]:
    """What a constant is, or a variable that counts from one constant to another."""
    if isinstance(index, Constant):
        return {int(index.value)}
    assert isinstance(index, Variable)
    counts = [each for function in program.functions for each in statements_in(function.body) if isinstance(each, For)]
    (bounds,) = {(each.first.value, each.end.value) for each in counts if each.variable.name == index.name}  # type: ignore[union-attr,attr-defined]
    return set(range(*bounds))
