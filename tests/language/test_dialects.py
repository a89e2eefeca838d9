"""A dialect is a front end and nothing else: what it reads gets the plan, the digests and the errors of every other text."""

from __future__ import annotations

import re

import pytest

import fairlead
from fairlead.errors import LanguageError, UsageError
from fairlead.language.dialects import DIALECTS
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.language.parsing.parser import parse

TYPES = "TYPE A (k INT) TYPE B (k INT)"


def arrows(text: str) -> syntax.Rules:
    """`Name: A -> B`, a line each: one event of the first type, then one of the next."""
    statements: list[syntax.Statement] = [*parse(TYPES).statements]
    for line in re.finditer(r"[^\n]+", text):
        found = re.fullmatch(r"(\w+): (\w+(?: -> \w+)+)", line[0])
        if found is None:
            raise Fault("L001", Span(*line.span()), "this is no arrow", "write Name: A -> B")
        types = [syntax.Word(each[0], Span(*each.span())) for each in re.compile(r"\w+").finditer(text, *_moved(found, line))]
        elements = tuple(syntax.Element(each, each, None, None, each.span) for each in types)
        name = syntax.Word(found[1], Span(line.start(), line.start() + len(found[1])))
        statements.append(syntax.Subscription(name, syntax.InOrder(elements, Span(*line.span())), (), Span(*line.span())))
    return syntax.Rules(tuple(statements))


def _moved(found: re.Match[str], line: re.Match[str]) -> tuple[int, int]:
    return line.start() + found.start(2), line.start() + found.end(2)


@pytest.fixture
def arrow_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DIALECTS, "arrows", arrows)


@pytest.mark.usefixtures("arrow_dialect")
def test_a_text_of_another_dialect_is_the_same_plan() -> None:
    plan = fairlead.compile("Pair: A -> B\nBack: B -> A", dialect="arrows")
    same = fairlead.compile(f"{TYPES} SUBSCRIPTION Pair MATCH A a THEN B b SUBSCRIPTION Back MATCH B b THEN A a")
    assert [each.digest for each in plan.subscriptions] == [each.digest for each in same.subscriptions]
    events = [{"type": name, "k": 1} for name in "ABBA"]
    found, expected = fairlead.match(plan, events), fairlead.match(same, events)
    assert [each.id for each in found] == [each.id for each in expected] != []


@pytest.mark.usefixtures("arrow_dialect")
@pytest.mark.parametrize(
    ("text", "code", "line", "column", "width"),
    [
        ("Pair: A -> B\nBack: B -> C", "L010", 2, 12, 1),
        ("Pair: A -> B\nBack; B", "L001", 2, 1, 7),
        ("P: A -> B\nP: B -> A", "L013", 2, 1, 1),
    ],
)
def test_errors_stand_where_the_text_of_the_dialect_has_them(text: str, code: str, line: int, column: int, width: int) -> None:
    with pytest.raises(LanguageError) as raised:
        fairlead.compile(text, "rules.arrows", dialect="arrows")
    place = raised.value.place
    assert isinstance(place, fairlead.errors.Place)
    assert (raised.value.code, place.file, place.line, place.column, place.width) == (code, "rules.arrows", line, column, width)
    assert raised.value.excerpt == text.splitlines()[line - 1]


def test_a_dialect_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"A012 .*'tesla'") as raised:
        fairlead.compile(TYPES, dialect="tesla")
    assert raised.value.fix == "use one of: fairlead"
