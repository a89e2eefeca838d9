"""Helpers that let the tests read as sentences: one set of types, rules compiled against them, faults marked in the text."""

from __future__ import annotations

import pytest

from fairlead.errors import LanguageError, Place
from fairlead.language import compile_text
from fairlead.language.parsing.text import EXCERPT_CHARACTERS_MAX
from fairlead.model.lint_warning import LintWarning
from fairlead.model.plans.plan import Branch, Plan, Subscription

TYPES = """
TYPE Order (id STRING, user STRING, size INT, price DECIMAL(10,2), urgent BOOLEAN, at TIMESTAMP) TIME at
TYPE Trade (id STRING, ticker STRING, size BIGINT, value DOUBLE, at TIMESTAMP) TIME at
TYPE BlockTrade EXTENDS Trade (desk STRING)
TYPE Note (id STRING, code INT, body BINARY)
EVENT UNION Flow = Order + Trade
"""


def plan(rule: str, types: str = TYPES) -> Plan:
    return compile_text(types + rule)


def subscription(rule: str) -> Subscription:
    return plan(f"SUBSCRIPTION S MATCH {rule}").subscriptions[0]


def branch(rule: str) -> Branch:
    (only,) = subscription(rule).branches
    return only


def condition(text: str, pattern: str = "Order o AND Trade t[3]") -> Branch:
    return branch(f"{pattern} WHERE {text}")


def warnings(rule: str) -> list[LintWarning]:
    return [each for each in plan(f"SUBSCRIPTION S MATCH {rule}").warnings if each.code != "W010"]


def warned(rule: str) -> list[str]:
    return [each.code for each in warnings(rule)]


def refused(code: str, marked: str, fix: str | None = None, types: str = TYPES) -> LanguageError:
    """Compiling fails with that code at the place between « and »; `fix` is a part of the advice."""
    before, rest = marked.split("«")
    inside, after = rest.split("»")
    text = types + before + inside + after
    with pytest.raises(LanguageError) as caught:
        compile_text(text, "rules.fl")
    error = caught.value
    assert error.code == code, str(error)
    start = len(types + before)
    line_start = text.rfind("\n", 0, start) + 1
    width = max(1, len(inside.split("\n")[0]))
    assert error.place == Place(text.count("\n", 0, start) + 1, start - line_start + 1, width, "rules.fl"), str(error)
    assert error.excerpt == text[line_start:].split("\n")[0].replace("\t", " ")[:EXCERPT_CHARACTERS_MAX]
    assert error.problem
    assert error.fix
    if fix:
        assert fix in error.fix, str(error)
    return error


def refused_in(code: str, marked: str, fix: str | None = None) -> LanguageError:
    return refused(code, f"SUBSCRIPTION S MATCH {marked}", fix)


def refused_where(code: str, marked: str, fix: str | None = None) -> LanguageError:
    return refused(code, f"SUBSCRIPTION S MATCH Order o AND Trade t[3] WHERE {marked}", fix)
