"""LIKE: the same everywhere, and no text or pattern makes it try a place twice."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.matching.expressions.functions import like_pattern
from fairlead.matching.expressions.like import Segment
from fairlead.runtime.live.core.routes import route_letters, routes_of
from fairlead.testing.interpreter import is_like
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.fuzz import like

TYPES = "TYPE A (s STRING)\n"


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(8))
def test_generated_patterns_and_texts_are_alike_on_every_lane(part: int) -> None:
    for seed in range(part * 100, part * 100 + 100):
        like.case(seed)


@pytest.mark.parametrize("length", range(6))
def test_all_short_patterns_on_all_short_texts(length: int) -> None:
    texts = ["".join(each) for size in range(5) for each in product("ab", repeat=size)]
    column = pa.array(texts)
    for pattern in map("".join, product("ab%_", repeat=length)):
        compiled = like_pattern(pattern)
        expected = [is_like(text, pattern) for text in texts]
        assert list(map(compiled.fullmatch, texts)) == expected, pattern
        by_column = compiled.of_column(column)
        assert by_column is not None
        assert by_column.tolist() == expected, pattern


PATTERNS = (
    "%a%a%a%a%a%a%b",
    "%" + "a%" * 40 + "b",
    "a" * 30 + "%b",
    "%ab%" * 20,
    "%a_a%_b",
    "%_a%" * 30 + "b",
    "%" * 500 + "b",
)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("text", ["a" * 5000, "ab" * 2500, "a" * 4999 + "b", "b" * 5000])
def test_each_place_of_a_text_is_tried_for_one_segment(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    def find(self: Segment, text: str, begin: int, end: int) -> int:
        """The naive search, which counts the places that it tries: each costs at most the width of the segment."""
        nonlocal tried
        for at in range(begin, end - self.width + 1):
            tried += 1
            if all(each is None or each == letter for each, letter in zip(self.characters, text[at:], strict=False)):
                return at
        return -1

    expected = like_pattern(pattern).fullmatch(text)
    monkeypatch.setattr(Segment, "find", find)
    assert like_pattern(pattern).fullmatch(text) is expected
    assert tried <= len(text)


def test_a_pattern_too_long_for_an_expression_is_evaluated_text_by_text() -> None:
    pattern = "%x" * 50_000
    assert like_pattern("%\ud800%").of_column(pa.array(["a"])) is None
    assert like_pattern(pattern).of_column(pa.array(["a"])) is None
    plan = compile_text(f"{TYPES} SUBSCRIPTION S MATCH A a WHERE a.s LIKE '{pattern}'")
    rows = [{"type": "A", "s": text} for text in ["a", "x" * 50_000, None] * 100]
    assert len(Engine(plan, kernels_from=0).feed(*read_events(rows, plan.catalogue))) == 100


@pytest.mark.sampled
@pytest.mark.parametrize("pattern", ["%a%a%", "a\\\\b%", "a\\%", "_", "", "%", "%__", "a_%b", "\\_%"])
def test_engines_reference_and_routes_agree(pattern: str) -> None:
    texts = ["", "a", "aa", "a\\b", "a\\bc", "a%", "a%x", "😀", "\n", "x\ny", "ab", "axb", "_x", None]
    rows = [{"type": "A", "s": text} for text in texts * 30]
    for sign in ("LIKE", "NOT LIKE"):
        plan = compile_text(f"{TYPES} SUBSCRIPTION S MATCH A a WHERE a.s {sign} '{pattern}'")
        (columns,) = read_events(rows, plan.catalogue)
        slow, fast = Engine(plan, kernels_from=None).feed(columns), Engine(plan, kernels_from=0).feed(columns)
        expected = [each.positions for each in ReferenceMatcher(plan).run(columns.events(plan.catalogue))]
        assert [each.positions for each in slow] == [each.positions for each in fast] == expected
        condition = routes_of(plan, ["A"])["A"]
        table = columns.tables["A"]
        for at, text in enumerate(texts):
            wanted = text is not None and is_like(text, pattern) == (sign == "LIKE")
            assert route_letters(table.slice(at, 1), plan.catalogue["A"], [condition])[0] == "ny"[wanted]
