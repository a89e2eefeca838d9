"""Sequences in the language: which patterns are one, their trees, what conditions are about, what is refused."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.errors import LanguageError
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.sequence import Chain, Choice, Loop, Take

TYPES = """
TYPE A (k INT, x INT, y DOUBLE, at TIMESTAMP) TIME at
TYPE B (k INT, j INT, x INT, at TIMESTAMP) TIME at
TYPE C (k INT, x INT)
TYPE D EXTENDS A (z INT)
TABLE T KEY (k) FROM A
"""


def subscription(text: str) -> Subscription:
    return fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH {text}")["S"]


def branch(text: str) -> Branch:
    return subscription(text).branches[0]


def warnings(text: str) -> list[str]:
    found = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH {text}").warnings
    return [each.code for each in found if each.code not in ("W010", "W025")]


@pytest.mark.parametrize(
    "text",
    [
        "A a NEXT B b",
        "(A a THEN B b)+",
        "(A a)?",
        "A a ELSE B b",
        "A a+ SHORTEST",
        "A a* LONGEST THEN B b",
        "A a THEN B b WITHIN 1 SECOND OF PREVIOUS",
        "A a+ UNTIL a.x > 3",
        "A a THEN A b WHERE b.x > prev(b.x)",
        "A a+ THEN B b WHERE b.x > sum(a.x)",
        "A a MATCHING STEPWISE",
        "A a THEN B b MATCHING FIRST STEPWISE",
    ],
)
def test_what_makes_a_branch_a_sequence(text):
    assert branch(text).sequence is not None


@pytest.mark.parametrize("text", ["A a THEN B b", "A a+ THEN B b", "A a+ HAVING count(a) > 3", "A a AND B b", "A a[3]"])
def test_all_others_are_none(text):
    assert branch(text).sequence is None


def test_each_branch_is_a_sequence_on_its_own():
    assert [each.sequence is None for each in subscription("A a NEXT B b OR A c THEN B d").branches].count(True) == 1


def test_the_tree_of_a_pattern():
    made = branch("A a NEXT (B b{2,3} SHORTEST ELSE C c) THEN D d")
    a, b, c, d = (next(at for at, each in enumerate(made.slots) if each.alias == alias) for alias in "abcd")
    inner = Choice((Loop(Take(b), 2, 3, longest=False), Take(c)))
    assert made.sequence == Chain((Take(a), inner, Take(d)), (False, True))


def test_elements_of_groups_and_alternatives_are_runs():
    made = branch("A a NEXT (B b ELSE C c) NEXT (D d)+")
    assert {made.slots[at].alias for at in made.runs} == {"b", "c", "d"}


def test_a_count_is_rows_next_to_each_other():
    assert branch("A a[3] NEXT B b").sequence == Chain((Chain((Take(0), Take(1), Take(2)), (False, False)), Take(3)), (False,))


@pytest.mark.parametrize(
    ("text", "timed"),
    [
        ("A a NEXT B b+ WITHIN 1 SECOND", True),
        ("A a NEXT B b? WITHIN 1 SECOND", True),
        ("A a NEXT B b? MATCHING STEPWISE WITHIN 1 SECOND", True),
        ("A a NEXT B b+", False),
        ("A a+ WITHIN 1 SECOND OF PREVIOUS", True),
        ("A a NEXT B b+ SHORTEST WITHIN 1 SECOND", False),
        ("A a NEXT B b{2} WITHIN 1 SECOND", False),
        ("A a+ NEXT B b WITHIN 1 SECOND", False),
        ("(A a NEXT B b*){2} WITHIN 1 SECOND", True),
        ("A a NEXT (B b ELSE C c) THEN A e* NEXT B f? WITHIN 1 SECOND OF PREVIOUS", True),
    ],
)
def test_a_sequence_that_a_time_can_end_is_timed(text, timed):
    assert branch(text.replace("C c", "D c")).timed == timed


def test_a_condition_is_about_the_last_element_that_it_names():
    made = branch("A a NEXT B b+ NEXT D d WHERE d.x > a.x AND b.x > a.x AND b.x > prev(b.x, 2) AND d.x > sum(b.x)")
    assert [made.slots[each.about or 0].alias for each in made.predicates] == ["d", "b", "b", "d"]
    assert [each.looks_back for each in made.predicates] == [0, 0, 2, 0]


@pytest.mark.parametrize(
    ("code", "text", "fix"),
    [
        ("L100", "A a AND B b NEXT C c", "NEXT"),
        ("L100", "(A a AND B b) ELSE C c", "ELSE"),
        ("L020", "A a NEXT (B b OR C c)", "OR"),
        ("L101", "A a NEXT B b MATCHING RECENT", "FIRST"),
        ("L101", "A a NEXT B b MATCHING ALL", "FIRST"),
        ("L101", "A a NEXT B b MATCHING FIRST CONTIGUOUS", "FIRST"),
        ("L101", "A a NEXT B b MATCHING RECENT STEPWISE", "FIRST STEPWISE"),
        ("L102", "A a NEXT B b DISPOSAL INFIX", "UPTO"),
        ("L102", "A a NEXT B b DISPOSAL NONE", "UPTO"),
        ("L102", "A a NEXT B b KEEP a", "UPTO"),
        ("L102", "A a NEXT B b RETAIN a 5 EVENTS", "UPTO"),
        ("L102", "A a NEXT T t", "TABLE"),
        ("L102", "A a NEXT B b WITHOUT C c BETWEEN a AND b", "EMIT"),
        ("L103", "A a+ NEXT B b WHERE b.x > a.x", "last(a.x)"),
        ("L103", "(A a ELSE C c) NEXT B b WHERE b.x > a.x", "first(a.x)"),
        ("L103", "A a+ NEXT B b WHERE time(b) > time(a)", "last"),
        ("L104", "A a NEXT B b WHERE b.x > prev(a.x)", "prev(b.x)"),
        ("L104", "A a NEXT B b WHERE b.x > prev(b.x, 0)", "prev(b.x, 2)"),
        ("L104", "A a NEXT B b WHERE b.x > prev(b.x, 65)", "prev(b.x, 2)"),
        ("L035", "A a NEXT B b WHERE b.x > prev(b)", "attribute"),
        ("L104", "A a NEXT B b WHERE b.x > prev(3)", "prev(q.value)"),
        ("L104", "A a+ NEXT B b HAVING sum(a.x) > prev(b.x)", "WHERE"),
        ("L104", "A a NEXT B b EMIT X(x = prev(b.x))", "WHERE"),
        ("L105", "A a UNTIL a.x > 1 NEXT B b", "a*"),
        ("L105", "A a NEXT B b* UNTIL a.x > 1", "b"),
        ("L106", "A a NEXT B b WHERE 1 = 2", "attribute"),
        ("L107", "A a NEXT D d PER a.k = d.z", "same attribute"),
        ("L054", "A a NEXT C c WITHIN 1 SECOND OF PREVIOUS", "TIME"),
        ("L022", "(A a NEXT B b){3,2}", "smaller number first"),
        ("L050", "A a+ UNTIL a.x > 1 UNTIL a.x > 2", "one"),
        ("L098", "A a NEXT B b HAVING b.x > 1", "WHERE"),
        ("L095", "A a NEXT (B b)? EMIT X(x = b.x)", "first(b.x)"),
    ],
)
def test_what_is_refused(code, text, fix):
    with pytest.raises(LanguageError) as refused:
        branch(text)
    assert refused.value.code == code, refused.value
    assert fix in f"{refused.value.problem} {refused.value.fix}", refused.value


def test_words_of_sequences_are_names_elsewhere():
    made = fairlead.compile(
        "TYPE Next (next INT, until INT, prev INT, stepwise INT)\n"
        "SUBSCRIPTION longest MATCH Next next THEN Next until WHERE until.until > next.next AND next.stepwise = until.prev\n"
        "SUBSCRIPTION shortest MATCH Next else"
    )
    assert [each.alias for each in made["longest"].branches[0].elements] == ["next", "until"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("W026", "A a NEXT B b+"),
        ("W027", "(A a+)+ SHORTEST NEXT B b"),
        ("W027", "(A a* NEXT B b*)* SHORTEST NEXT B c"),
        ("W028", "A a THEN B b MATCHING STEPWISE"),
        ("W029", "A a+ NEXT B b WHERE count(a) >= 2"),
    ],
)
def test_what_lint_says(code, text):
    assert code in warnings(text)


@pytest.mark.parametrize(
    "text", ["A a NEXT B b", "A a+ LONGEST", "A a NEXT B b+ SHORTEST", "A a THEN B b MATCHING STEPWISE WITHIN 1 HOUR"]
)
def test_where_lint_says_nothing(text):
    assert warnings(text) == []


def test_nobody_is_warned_of_sequences_that_have_machine_code():
    found = fairlead.compile(f"{TYPES}SUBSCRIPTION S MATCH A a NEXT B b").warnings
    assert "W025" not in [each.code for each in found]


def test_the_digest_is_that_of_the_content():
    def digest(text: str) -> str:
        return subscription(text).digest

    assert digest("A a NEXT B b") == digest("A x NEXT B y")
    assert digest("A a NEXT B b") == digest("A a[1] NEXT (B b)")
    different = ["A a NEXT B b", "A a THEN B b", "A a+ NEXT B b", "A a+ SHORTEST NEXT B b", "(A a)+ NEXT B b", "A a ELSE B b"]
    different += ["A a NEXT B b MATCHING STEPWISE", "A a NEXT B b WITHIN 1 SECOND OF PREVIOUS", "A a* UNTIL a.x > 1 NEXT B b"]
    different += ["A a* UNTIL a.x > 2 NEXT B b", "B b NEXT A a"]
    assert len({digest(each) for each in different}) == len(different)
