"""The reference for users is complete and true."""

import re

import pytest

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.language.checking.typing.literals import UNITS
from fairlead.model.expressions.expression import AGGREGATES
from fairlead.model.expressions.function_table import FUNCTIONS
from tests.root import ROOT

REFERENCE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
RAISING = [
    *sorted((ROOT / "src/fairlead/language").rglob("*.py")),
    ROOT / "src/fairlead/matching/compiled/planning/eligibility.py",
]
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in RAISING)
BLOCKS = re.findall(r"```fairlead\n(.*?)```", REFERENCE, re.DOTALL)


def test_every_code_is_documented_and_every_documented_code_exists():
    raised = set(re.findall(r'"([LUW][0-9]{3})"', SOURCES))
    documented = re.findall(r"^\| ([LUW][0-9]{3}) \|", REFERENCE, re.MULTILINE)
    assert sorted(documented) == sorted(set(documented))
    assert set(documented) == raised


@pytest.mark.parametrize("name", [*FUNCTIONS, *AGGREGATES, "position", "time", *UNITS])
def test_every_function_and_unit_is_documented(name):
    assert f"`{name}" in REFERENCE


@pytest.mark.parametrize("block", BLOCKS)
def test_every_example_compiles_without_a_warning_but_for_what_it_leaves_unused(block):
    types = BLOCKS[0]
    try:
        plan = compile_text(block if block is types or "TYPE" in block else types + block)
    except LanguageError as error:
        raise AssertionError(str(error)) from None
    assert {each.code for each in plan.warnings} <= {"W010"}, plan.warnings
