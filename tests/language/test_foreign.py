"""What a newcomer from SQL MATCH_RECOGNIZE, Flink CEP or Esper writes: the error says what it is here."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.errors import LanguageError

TYPES = "TYPE A (k INT, x INT, at TIMESTAMP) TIME at\nTYPE B (k INT, x INT, at TIMESTAMP) TIME at\n"


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("A a -> B b", "write THEN"),
        ("A a FOLLOWED BY B b", "NEXT"),
        ("A a followedBy B b", "THEN"),
        ("A a NOT NEXT B b", "WITHOUT"),
        ("A a NEXT NOT B b", "NEXT Type alias"),
        ("A a | B b", "ELSE"),
        ("(A a | B b)+", "ELSE"),
        ("A a, B b", "THEN or AND"),
        ("PERMUTE(A a, B b)", "AND"),
        ("A a+? NEXT B b", "SHORTEST"),
        ("A a+ GREEDY", "LONGEST"),
        ("A a+ RELUCTANT NEXT B b", "SHORTEST"),
        ("A a NEXT B+ b", "after the alias"),
        ("(A* a NEXT B b)+", "after the alias"),
        ("(A a NEXT B b)[2]", "(…){2}"),
        ("A a NEXT B b AFTER MATCH SKIP PAST LAST ROW", "DISPOSAL PREFIX INFIX"),
        ("A a NEXT B b DISPOSAL SKIP TO NEXT ROW", "FIRST PREFIX"),
        ("A a NEXT B b PARTITION BY k", "PER"),
        ("A a NEXT B b MEASURES a.x AS y", "EMIT"),
        ("A a NEXT B b DEFINE b AS b.x > 1", "WHERE"),
        ("A a NEXT B b ONE ROW PER MATCH", "leave it out"),
        ("A a NEXT B b all rows per match", "leave it out"),
        ("A a+ UNTIL a.x > 1 OR a.x < 0 NEXT B b", "parentheses"),
        ("A a NEXT B b WITHIN 5 MINUTES OF a", "PREVIOUS"),
        ("(A a NEXT B b)+ WITHIN 5 MINUTES OF PREVIOUS", "after the elements"),
        ("A a{0} NEXT B b", "q?"),
    ],
)
def test_the_fix_says_what_it_is_here(text, fix):
    with pytest.raises(LanguageError) as refused:
        fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH {text}")
    assert fix in refused.value.fix, refused.value


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("A a WHERE a.x > 1 GROUP BY k", "PER key"),
        ("A a WHERE a.k = a.x GROUP BY k", "PER key"),
        ("A a GROUP BY k", "PER key"),
        ("A a AND NOT B b PER k", "WITHOUT Type x"),
        ("A a THEN NOT B b PER k", "WITHOUT Type x"),
        ("NOT A a", "WITHOUT Type x"),
        ("EVERY A a PER k", "leave out EVERY"),
        ("A{5} a PER k", "after the alias"),
        ("A[5] a PER k", "after the alias"),
        ("A a+ HAVING count(*) > 5", "count(x)"),
        ("A a THEN B b WITHIN 120 PER k", "unit of time"),
        ("A a THEN B b WITHIN 120", "unit of time"),
        ("A a THEN B b WITHIN '2 hours' PER k", "without quotes"),
        ("A a THEN B b WITHIN INTERVAL '2' HOURS", "without quotes"),
        ("A a THEN B b WITHIN 2h", "write HOURS"),
        ("A a THEN B b WITHIN 5 min PER k", "write MINUTES"),
        ("A a THEN B b WITHIN 5 minits PER k", "did you mean MINUTES?"),
        ("A a THEN B b WITHIN 2 MONTHS", "DAYS or WEEKS"),
        ("A a EMIT X(a.k)", "name each attribute"),
        ("A a EMIT X(k = a.k, a.x)", "name each attribute"),
        ("A a EMIT X(k, x)", "name each attribute"),
        ("A a EMIT X(k: a.k)", "name each attribute"),
        ("A a EMIT X(count(a))", "name each attribute"),
        ("A a WHERE a.x CONTAINS 'b'", "LIKE"),
        ("A a WHERE a.x STARTS WITH 'b'", "LIKE"),
        ("A a WHERE a.x ILIKE 'b%'", "lower("),
        ("A a[3] WHERE a1.x < a2.x", "write a[1]"),
        ("A a WHERE a.k = bob", "'bob'"),
        ("A a WHERE a.x > lag(a.x)", "prev(q.x)"),
        ("A a WHERE a.at > now()", "WITHIN"),
        ("A a WHERE if(a.x, 1, 2) = 1", "CASE WHEN"),
        ("A a # comment", "write --"),
        ("A a // comment", "write --"),
        ("A a EMIT M(k = a.k) SUBSCRIPTION T MATCH M m WHERE m.time > a.at", "time(m)"),
    ],
)
def test_what_newcomers_write_is_said_in_the_words_of_the_language(text, fix):
    with pytest.raises(LanguageError) as refused:
        fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH {text}")
    assert fix in refused.value.fix, refused.value


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("SELECT * FROM A WHERE x > 1", "SUBSCRIPTION name MATCH"),
        ("SUBSCRIPTION my-rule MATCH A a", "letters, digits and _"),
        ("SUBSCRIPTION My Rule MATCH A a", "one word"),
        ("CREATE TYPE C (k INT)", "leave it out"),
        ("TYPE C (k INT NOT NULL)", "can be NULL"),
        ("TYPE C (k INT PRIMARY KEY)", "PER"),
        ("TYPE C (STRING k)", "k STRING"),
        ("TYPE Match (k INT)", "MATCH is a word of the language"),
    ],
)
def test_statements_of_newcomers_too(text, fix):
    with pytest.raises(LanguageError) as refused:
        fairlead.compile(TYPES + text)
    assert fix in refused.value.fix, refused.value


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("A a b", "OR?"),
        ("A a WHERE a.x IN 1, 2", "between elements"),
        ("A a PER k, WHERE", "between elements"),
        ("A a EMIT X(k = a.k x = 1)", "?"),
    ],
)
def test_a_fix_that_does_not_apply_is_not_given(text, wrong):
    with pytest.raises(LanguageError) as refused:
        fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH {text}")
    assert wrong not in refused.value.fix, refused.value


def test_no_fix_is_what_a_sequence_refuses():
    with pytest.raises(LanguageError) as refused:
        fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH A a NEXT B b DISPOSAL ADVANCE 0")
    assert refused.value.code == "L076"
    assert "NONE" not in refused.value.fix
