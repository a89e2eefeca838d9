"""Whatever the text, compiling gives a plan or a LanguageError with a place; nothing else, and it does not hang."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.errors import LanguageError, Place
from fairlead.language import compile_text
from fairlead.model.expressions.expression import AGGREGATES
from fairlead.model.expressions.function_table import FUNCTIONS
from fairlead.model.plans.plan import Plan
from tests.marks import sample_size

from .sentences import TYPES

VOCABULARY = """
TYPE EXTENDS TIME EVENT UNION SUBSCRIPTION MATCH WHERE PER WITHIN MATCHING DISPOSAL EMIT WITHOUT AND OR THEN AS
OF IS IN BETWEEN LIKE NOT NULL TRUE FALSE FIRST RECENT CONTIGUOUS PREFIX INFIX POSTFIX TIMESTAMP INTERVAL
Order Trade Note Flow Seen o t n id size value ticker at urgent price body Heartbeat position time
INT STRING DECIMAL MINUTES SECONDS DAY 0 1 3 64 65 1.5 1e400 99999999999999999999 'a' '2024-01-01' '
( ) [ ] { } , . ; + - * / % = == != <> < <= > >= ? : -- /* */
"""
WORDS = (
    *VOCABULARY.split(),
    "\n",
    *FUNCTIONS,
    *AGGREGATES,
)
SOUND = """
SUBSCRIPTION S MATCH Order o THEN Trade t[2] WHERE o.id = t[1].id AND (t[2].value > 1 OR NOT o.urgent) PER id
WITHIN 5 MINUTES WITHOUT Note n BETWEEN o AND t[2] WHERE n.code = o.size MATCHING RECENT DISPOSAL INFIX
EMIT Seen(id = o.id, total = sum(t.value)) SUBSCRIPTION R MATCH Seen s[2] WHERE s[1].total < s[2].total
"""
PIECES = SOUND.split()


def compiles_or_says_why(text: str) -> None:
    outcome: Plan | LanguageError
    try:
        outcome = compile_text(text)
    except LanguageError as error:
        outcome = error
    if isinstance(outcome, LanguageError):
        assert isinstance(outcome.place, Place)
        assert 1 <= outcome.place.line <= text.count("\n") + 1
        assert 1 <= outcome.place.column <= max(map(len, text.split("\n"))) + 1
        assert outcome.code.startswith("L")
        assert outcome.fix
    else:
        assert isinstance(outcome, Plan)


@given(st.text())
def test_arbitrary_text(text):
    compiles_or_says_why(text)


@settings(max_examples=sample_size(300))
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_arbitrary_words(words):
    compiles_or_says_why(TYPES + " ".join(words))


@settings(max_examples=sample_size(300))
@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_arbitrary_conditions(words):
    compiles_or_says_why(f"{TYPES} SUBSCRIPTION S MATCH Order o AND Trade t[2] WHERE {' '.join(words)}")


@settings(max_examples=sample_size(300))
@given(st.lists(st.tuples(st.integers(0, len(PIECES) - 1), st.sampled_from(WORDS)), min_size=1, max_size=3))
def test_a_sound_text_with_a_few_words_changed(changes):
    words = list(PIECES)
    for at, word in changes:
        words[at] = word
    compiles_or_says_why(TYPES + " ".join(words))


def test_the_sound_text_is_sound():
    assert [each.name for each in compile_text(TYPES + SOUND).subscriptions] == ["S", "R"]


def test_long_lists_are_not_deep():
    conjuncts = " AND ".join(f"o.size != {n}" for n in range(5_000))
    assert len(compile_text(f"{TYPES} SUBSCRIPTION S MATCH Order o WHERE {conjuncts}").subscriptions) == 1
    options = ", ".join(map(str, range(20_000)))
    assert len(compile_text(f"{TYPES} SUBSCRIPTION S MATCH Order o WHERE o.size IN ({options})").subscriptions) == 1
