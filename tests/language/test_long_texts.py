"""Long texts: memory and work grow with the text and not faster. Counted, not timed."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from fairlead import compile, explain
from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.language.parsing.fault import Fault
from fairlead.language.parsing.parser import parse, parse_with_lark

RULE = "TYPE A (s STRING) SUBSCRIPTION S MATCH A a WHERE a.s = "
LONG = {
    "a text": RULE + "'" + "x" * 500_000 + "'",
    "a text of quotes": RULE + "'" + "''" * 250_000 + "'",
    "a pattern": RULE.replace("= ", "LIKE ") + "'" + "x_" * 250_000 + "'",
    "a comment": "/*" + "x" * 500_000 + "*/",
    "a comment of stars": "/*" + "*" * 500_000 + "/",
    "many comments": RULE + "/**/" * 125_000 + "'x'",
    "a text without an end": RULE + "'" + "x" * 500_000,
    "a comment without an end": RULE + "/*" + "x" * 500_000,
    "quotes without an end": RULE + "'" + "''" * 250_000,
}
BYTES_A_CHARACTER = 30
"""The text, its parts and what is shown of them, a few times over; a mark for each character took more than 200."""


@pytest.mark.sampled
@pytest.mark.parametrize("what", LONG)
@pytest.mark.parametrize("read", [compile_text, parse_with_lark])
def test_memory_is_a_few_times_the_text(what: str, read: Callable[[str], Any]) -> None:
    read(RULE + "'x'")
    refused = False
    tracemalloc.start()
    try:
        read(LONG[what])
    except (LanguageError, Fault):
        refused = True
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert refused == ("without" in what)
    assert peak < BYTES_A_CHARACTER * len(LONG[what]), f"{peak / len(LONG[what]):.0f} bytes a character"


def joined(conditions: list[str], attributes: int) -> str:
    names = ", ".join(f"x{at} INT" for at in range(attributes))
    return f"TYPE A ({names}) TYPE B ({names}) SUBSCRIPTION S MATCH A a AND B b WHERE {' AND '.join(conditions)}"


MANY: dict[str, Callable[[int], str]] = {
    "conditions on as many attributes": lambda n: joined([f"a.x{at} < b.x{at}" for at in range(n)], n),
    "conditions on few attributes": lambda n: joined([f"a.x{at % 20} <= b.x{at // 20 % 20}" for at in range(n)], 20),
    "the same condition": lambda n: joined(["a.x0 < b.x0"] * n, 1),
    "equalities": lambda n: joined([f"a.x{at % 20} = b.x{at // 20 % 20}" for at in range(n)], 20),
    "alternatives": lambda n: joined([f"(a.x{at} < b.x{at} OR a.x{at} > 5)" for at in range(n)], n),
    "expressions": lambda n: joined([f"a.x0 + {at} < b.x0 * {at + 1}" for at in range(n)], 1),
    "conditions on one event": lambda n: joined([f"a.x0 != {at}" for at in range(n)], 1),
    "options": lambda n: joined([f"a.x0 + b.x0 IN ({', '.join(map(str, range(n)))})"], 1),
    "emitted attributes": lambda n: (
        f"{joined(['a.x0 < b.x0'], 1)} EMIT X ({', '.join(f'f{at} = a.x0 + {at}' for at in range(n))})"
    ),
    "subscriptions": lambda n: (
        "TYPE A (x INT) TYPE B (x INT)"
        + "".join(f" SUBSCRIPTION S{at} MATCH A a AND B b WHERE a.x < b.x + {at}" for at in range(n))
    ),
    "links of a chain": lambda n: (
        "TYPE X0 (x INT)" + "".join(f" SUBSCRIPTION S{at} MATCH X{at} a EMIT X{at + 1} (x = a.x)" for at in range(n))
    ),
    "members of a union": lambda n: (
        "".join(f"TYPE A{at} (x INT) " for at in range(n))
        + f"EVENT UNION U = {' + '.join(f'A{at}' for at in range(n))} SUBSCRIPTION S MATCH U u AND A0 a"
    ),
}


def calls(work: Callable[[], Any]) -> int:
    """Calls of functions, of Python's own too."""
    counted = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("what", MANY)
def test_four_times_the_rules_are_little_more_than_four_times_the_work(what: str) -> None:
    def work(size: int) -> Callable[[], Any]:
        text = MANY[what](size)
        return lambda: str(explain(compile(text)))

    calls(work(10))  # what is made once
    few, many = calls(work(100)), calls(work(400))
    assert many < 6 * few, f"{few} and {many}"


NESTED = {
    "conditions": "({})",
    "negations": "NOT {}",
    "functions": "coalesce({}, 1) = 1",
    "last arguments": "a.x = coalesce(1, 2, {})",
    "far to the right": "a.x = 1 OR a.x = 2 AND a.x NOT BETWEEN 1 AND a.x + 2 * coalesce(1, 2, a.x = 1 OR ({}))",
    "minus": "a.x = - - - ({})",
    "all of it": "NOT (a.x IN (1, 2) OR NOT coalesce(a.x, a.x - ({})) = 1)",
}
CONDITION = "TYPE A (x INT) SUBSCRIPTION S MATCH A a WHERE "


def nested(what: str, depth: int, inner: str = "a.x = 1") -> str:
    before, after = NESTED[what].split("{}")
    return CONDITION + before * depth + inner + after * depth


def said(read: Callable[[str], Any], text: str) -> str:
    try:
        read(text)
    except Fault as fault:
        return fault.code
    return ""


@pytest.mark.sampled
@pytest.mark.parametrize("what", NESTED)
def test_what_is_open_at_once_is_bounded_just_where_no_text_is_right(what: str) -> None:
    """Lark reads to the end and measures the tree: it refuses every text that is refused on the way."""
    found = [(said(parse, nested(what, depth)), said(parse_with_lark, nested(what, depth))) for depth in range(1, 100, 7)]
    assert all(one == other for one, other in found)
    assert {one for one, _ in found} == {"", "L004"}


@pytest.mark.parametrize("what", NESTED)
@pytest.mark.parametrize("before", ["", "a[9999999999].x = 1 AND ", f"{'(' * 75}a.x = 1{')' * 75} AND "])
@pytest.mark.parametrize("inner", ["a.x = 1", "", "a.x = = 1"])
def test_a_text_that_is_nested_too_deep_is_not_read_on(
    monkeypatch: pytest.MonkeyPatch, what: str, before: str, inner: str
) -> None:
    """Whatever comes after, and whatever was wrong before: 100,000 parentheses took Lark ten seconds."""
    monkeypatch.delattr("fairlead.language.parsing.parser.parse_with_lark")
    text = nested(what, 2_000, inner).replace(CONDITION, CONDITION + before)
    with pytest.raises(Fault, match="L004") as refused:
        parse(text)
    assert refused.value.span.end < 10_000
