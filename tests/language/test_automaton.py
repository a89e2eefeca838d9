"""The parser of right texts gives what Lark gives for them, and leaves every wrong text to Lark."""

from importlib import resources
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.language import automaton
from fairlead.language.fault import Fault
from fairlead.language.parse import parse_with_lark
from fairlead.language.tabulate import printed, tables

from .sentences import TYPES
from .test_fuzz import PIECES, SOUND, WORDS

CASES = Path(__file__).parents[2] / "conformance"


def agrees_with_lark(text: str) -> None:
    try:
        expected = parse_with_lark(text)
    except Fault:
        expected = None
    assert automaton.read(text) == expected


def test_the_tables_are_those_of_the_grammar():
    stored = resources.files("fairlead.language").joinpath("tables.json").read_text(encoding="utf-8")
    assert stored == printed(tables()), "the grammar has changed: run `make grammar`"


def test_the_sound_text():
    assert automaton.read(TYPES + SOUND) is not None
    agrees_with_lark(TYPES + SOUND)


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
        "SUBSCRIPTION S MATCH T t[1.5]",
        "SUBSCRIPTION S MATCH T t[12345678901]",
        "SUBSCRIPTION S MATCH T t+",
        "SUBSCRIPTION S MATCH T t WHERE " + "(" * 40 + "t.a" + ")" * 40,
        "SUBSCRIPTION S MATCH T t WHERE " + "(" * 90 + "t.a" + ")" * 90,
    ],
)
def test_texts_at_the_edges(text):
    agrees_with_lark(text)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_arbitrary_words(words):
    agrees_with_lark(" ".join(words))


@settings(max_examples=300)
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
