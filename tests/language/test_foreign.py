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


def test_no_fix_is_what_a_sequence_refuses():
    with pytest.raises(LanguageError) as refused:
        fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH A a NEXT B b DISPOSAL ADVANCE 0")
    assert refused.value.code == "L076"
    assert "NONE" not in refused.value.fix
