"""FOLD: what is written, what is refused, what is suggested, and what is said of it."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.runtime.why import why
from fairlead.transport.events import read_events

TYPES = """
TYPE A (k INT, v INT, d DECIMAL(18,2), w DECIMAL(19,2), at TIMESTAMP) TIME at
TYPE B (k INT, v INT, at TIMESTAMP) TIME at
"""
S = "SUBSCRIPTION S MATCH "


@pytest.mark.parametrize(
    ("rules", "code", "said"),
    [
        (S + "A a+ FOLD b", "L129", "no element 'b'"),
        (S + "A a+ FOLD a, a", "L129", "FOLD names 'a' twice"),
        (S + "A a FOLD a", "L129", "not a run"),
        (S + "A a[3] FOLD a", "L129", "not a run"),
        (S + "A a+ FOLD a FOLD a", "L050", "one FOLD clause"),
        (S + "A a+ FOLD", "L001", "write FOLD q"),
        (S + "A a{2,5} FOLD a", "L130", "write a{2,}"),
        (S + "A a+ WITHIN 1 MINUTE FOLD a", "L130", "write RETAIN a 1 HOUR BATCH"),
        (S + "A a+ RETAIN a 5 EVENTS FOLD a", "L130", "write RETAIN a 5 EVENTS BATCH"),
        (S + "A a+ RETAIN a 5 MINUTES FOLD a", "L130", "BATCH"),
        (S + "A a+ DISPOSAL FIRST PREFIX FOLD a", "L130", "write DISPOSAL PREFIX INFIX"),
        (S + "B b THEN A a+ FOLD a", "L130", "in a subscription of its own, MATCH A a+"),
        (S + "A a{2,} LONGEST WITHIN 5 MINUTES OF PREVIOUS PER k FOLD a", "L130", "write a session"),
        (S + "A a+ LONGEST WITHIN 1 DAY FOLD a", "L130", "write a session"),
        (S + "A a NEXT A b+ LONGEST WITHIN 5 MINUTES OF PREVIOUS FOLD b", "L130", "write a session"),
        (S + "A a+ SHORTEST FOLD a", "L130", "write a session"),
        (S + "A a+ LONGEST UNTIL sum(a.v) > 9 FOLD a", "L130", "compare with prev(…) alone"),
        (S + "A a+ LONGEST WHERE a.v > prev(a.v, 2) FOLD a", "L130", "compare with prev(…) alone"),
        (S + "A a+ LONGEST WITHIN 1 DAY OF PREVIOUS HAVING sum(a.v) > 9 FOLD a", "L130", "HAVING count(a) >= 5"),
        (S + "A a+ FOLD a EMIT E (s = sum(a.w))", "L131", "at most 18 digits"),
        (S + "A a+ HAVING sum(a.w) > 5 FOLD a", "L131", "or use avg"),
    ],
)
def test_what_cannot_be_folded_is_refused(rules: str, code: str, said: str) -> None:
    with pytest.raises(LanguageError) as caught:
        compile_text(TYPES + rules)
    assert caught.value.code == code
    assert said in str(caught.value)


def test_fold_is_still_a_name() -> None:
    plan = compile_text(TYPES + S + "A fold AND B b WHERE fold.v = b.v")
    assert plan["S"].branches[0].slots[0].alias == "fold"
    assert compile_text(TYPES + S + "A fold")["S"].folded_aliases == ()
    assert compile_text(TYPES + S + "A q+ fold q")["S"].folded_aliases == ("q",)


@pytest.mark.parametrize(
    ("rules", "suggested"),
    [
        ("A a+ HAVING count(a) >= 100000", True),
        ("A a+ HAVING 250000 < count(a) AND min(a.v) > 3 PER k", True),
        ("A a{100000,}", True),
        ("A a+ HAVING count(a) >= 99999", False),
        ("A a+ HAVING count(a) <= 100000", False),
        ("A a+ HAVING count(a) >= 100000 FOLD a", False),
        ("A a+ HAVING count(a) >= 100000 WITHIN 1 DAY", False),
        ("A a THEN B b+ HAVING count(b) >= 100000", False),
    ],
)
def test_long_runs_suggest_it(rules: str, suggested: bool) -> None:
    assert ("W031" in [each.code for each in compile_text(TYPES + S + rules).warnings]) is suggested


def test_it_changes_the_digest_and_not_that_of_which_ids_are_made() -> None:
    text = TYPES + S + "A a{2,} {} EMIT E (n = count(a)) SUBSCRIPTION T MATCH E e"
    folded, plain = (compile_text(text.replace("{}", each)) for each in ("FOLD a", ""))
    for name in "ST":
        assert folded[name].digest != plain[name].digest
        assert folded[name].id_digest == plain[name].digest
    assert folded.unfolded["S"].branches == plain["S"].branches


def test_what_is_said_of_it() -> None:
    plan = fairlead.compile(TYPES + S + "A a+ HAVING count(DISTINCT a.v) > 2 PER k FOLD a EMIT E (low = min(a.d))")
    text = str(fairlead.explain(plan))
    assert "fold       a: kept as what is read of it, not event by event" in text
    assert "a: 136 bytes and 4 events at most for each key, however long it is" in text
    assert "count(DISTINCT a.v) keeps an event of each value" in text
    assert "FOLD a" in plan._repr_html_()
    assert fairlead.explain(plan).to_json()["subscriptions"][0]["fold"] == ["a"]


def test_why_knows_events_that_a_folded_run_does_not_keep() -> None:
    plan = compile_text(TYPES + S + "A a{3,} FOLD a")
    events = [{"type": "A", "k": 1, "v": 1, "d": None, "w": None, "at": at} for at in range(4)]
    found = [why(plan, read_events(events, plan.catalogue), at) for at in (1, 3)]
    assert [(each.verdict, each.reasons[:1]) for (each,) in found] == [
        ("matched", ("in the relation [0, 1, 2]",)),
        ("waiting", found[1][0].reasons[:1]),
    ]
