"""Which evaluator knows which node of expressions: docs/decisions/expressions.md says it, and two of them know all."""

from __future__ import annotations

import ast
from typing import get_args

import pytest

from fairlead.model.expressions.expression import Expression
from tests.root import ROOT
from tests.source_trees import HOME, nodes_of

EVALUATORS = {
    "closures": "matching/expressions/closures.py",
    "interpreter": "testing/interpreter.py",
    "vector": "matching/compiled/running/vector.py",
    "join_conditions": "matching/compiled/planning/join_conditions.py",
    "decimal_values": "matching/compiled/planning/decimal_values.py",
    "emission": "matching/expressions/emission.py",
}
TOTAL = ("closures", "interpreter")
NODES = {each.__name__ for each in get_args(Expression)}


def known(evaluator: str) -> set[str]:
    """The nodes that it has a case for."""
    patterns = (each.cls for each in nodes_of(HOME / EVALUATORS[evaluator]) if isinstance(each, ast.MatchClass))
    return NODES & {each.id for each in patterns if isinstance(each, ast.Name)}


def table() -> dict[str, set[str]]:
    lines = (ROOT / "docs" / "decisions" / "expressions.md").read_text("utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    start = next(at for at, row in enumerate(rows) if row[0] == "node")
    names, found = rows[start][1:], rows[start + 2 : start + 2 + len(NODES)]
    return {name: {row[0] for row in found if row[at + 1] == "yes"} for at, name in enumerate(names)}


def test_the_page_says_which_evaluator_knows_which_node() -> None:
    assert len(NODES) == 18
    assert table() == {name: known(name) for name in EVALUATORS}


@pytest.mark.parametrize("evaluator", TOTAL)
def test_two_evaluators_know_every_node(evaluator: str) -> None:
    assert known(evaluator) == NODES
