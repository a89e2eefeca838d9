"""The parser of right texts gives what Lark gives for them, and leaves every wrong text to Lark."""

from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.language.parsing import automaton
from fairlead.language.parsing import parser as parsing
from fairlead.language.parsing.fault import Fault
from fairlead.language.parsing.parser import parse, parse_with_lark
from fairlead.language.parsing.syntax import Rules
from fairlead.language.parsing.table_builder import printed, tables
from tests.marks import sample_size
from tests.root import ROOT

from .sentences import TYPES
from .test_fuzz import PIECES, SOUND, WORDS

CASES = ROOT / "conformance"


def agrees_with_lark(text: str) -> None:
    expected, found = outcome(parse_with_lark, text), automaton.read(text)
    assert outcome(parse, text) == expected
    assert (found == expected) if isinstance(expected, Rules) else isinstance(found, int)


def outcome(parser: Callable[[str], Rules], text: str) -> Rules | dict[str, Any]:
    """The rules, or all that a fault says."""
    try:
        return parser(text)
    except Fault as fault:
        return vars(fault)


def test_the_tables_are_those_of_the_grammar():
    stored = resources.files("fairlead.language.parsing").joinpath("tables.json").read_text(encoding="utf-8")
    assert stored == printed(tables()), "the grammar has changed: run `make grammar`"


def test_the_sound_text():
    assert isinstance(automaton.read(TYPES + SOUND), Rules)
    agrees_with_lark(TYPES + SOUND)


@pytest.mark.sampled
@pytest.mark.parametrize("file", sorted(CASES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_rules_of_the_conformance_cases(file):
    texts = [each["rules"] for each in yaml.safe_load(file.read_text(encoding="utf-8"))["cases"] if "rules" in each]
    assert texts
    for text in texts:
        agrees_with_lark(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";;",
        "-- nothing but words",
        "TYPE T () -- and no line end",
        "TYPE T () /* and * stars ** */;\ufeff TYPE U ()",
        "TYPE T () /* open",
        "TYPE T (match INT, type INT, Where INT)",
        "TYPE Größe (ß INT) SUBSCRIPTION s MATCH Größe g WHERE g.ß = 1",
        "ſubscription s match T t like t.a",
        "ſUBSCRIPTION S MATCH T t WıTHIN 5 SECONDS",
        "SUBSCRIPTION S MATCH T t WHERE t.a LIKE 'x''y' AND t.b liKe ''",
        "SUBSCRIPTION S MATCH T t WHERE t.a = 1.5e3 - -2 --1",
        "SUBSCRIPTION S MATCH T t WHERE t.a/*x*/= 4/2",
        "TOPIC t (A, B) TOPIC /* */ u (C)",
        "TYPE Topic (topic INT) SUBSCRIPTION S MATCH Topic topic WHERE topic.order = 1",
        "TOPIC t",
        "TYPE A (by INT) ORDER\nBY by, b DESC DELAY 3 SECONDS",
        "order by at delay 3 seconds per  source idle 1 hour SUBSCRIPTION S MATCH A order PER k",
        "ORDER BY at DELAY 3 SECONDS PER k",
        "ORDER k",
        "SUBSCRIPTION S MATCH T t[1.5]",
        "SUBSCRIPTION S MATCH T t[12345678901]",
        "SUBSCRIPTION S MATCH T t+",
        "SUBSCRIPTION S MATCH T t WHERE " + "(" * 40 + "t.a" + ")" * 40,
        "SUBSCRIPTION S MATCH T t WHERE " + "(" * 90 + "t.a" + ")" * 90,
    ],
)
def test_texts_at_the_edges(text):
    agrees_with_lark(text)


def test_of_a_long_text_lark_reads_only_the_end(monkeypatch):
    read = []
    monkeypatch.setattr(parsing, "parse_with_lark", lambda text, shown=None: read.append(text) or parse_with_lark(text, shown))
    good = "SUBSCRIPTION S MATCH T t\n"
    with pytest.raises(Fault) as caught:
        parse(good * 100 + "SUBSCRIPTION S MACH T t")
    assert caught.value.fix == "did you mean MATCH?"
    assert caught.value.span.start == 100 * len(good) + len("SUBSCRIPTION S ")
    assert [len(each.strip()) for each in read] == [len(good + "SUBSCRIPTION S MACH T t")]


@pytest.mark.slow
@settings(max_examples=sample_size(300))
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_arbitrary_words(words):
    agrees_with_lark(SOUND + " ".join(words))


@settings(max_examples=sample_size(300))
@given(
    st.lists(st.tuples(st.integers(0, len(PIECES) - 1), st.sampled_from(WORDS)), max_size=3), st.sampled_from([" ", "\n", ""])
)
@example([(2, "First")], " ")
def test_a_sound_text_with_a_few_words_changed(changes, between):
    words = list(PIECES)
    for at, word in changes:
        words[at] = word
    agrees_with_lark(between.join(words))


@given(st.text())
def test_arbitrary_text(text):
    agrees_with_lark(text)
