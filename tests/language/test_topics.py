"""TOPIC: which types share a stream, what is refused, and what depends on an order between topics."""

from __future__ import annotations

import pytest

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.language.checking.topics import keeps_of
from fairlead.language.parsing.parser import parse

TYPES = "TYPE A (x INT); TYPE A2 EXTENDS A (y INT); TYPE B (x INT); TYPE C (x INT); EVENT UNION U = A + A2; "


def topics(text: str) -> dict[str, str]:
    return {each.name: each.topic for each in compile_text(text).catalogue}


def test_types_share_main_unless_a_topic_names_them_and_families_stay_together():
    assert set(topics(TYPES).values()) == {"main"}
    emitting = "SUBSCRIPTION S MATCH A a EMIT D (x = a.x)"
    found = topics(f"TOPIC t (A, D) {TYPES} TOPIC u (B) TOPIC t (C) {emitting}")
    assert found == {"A": "t", "A2": "t", "B": "u", "C": "t", "U": "t", "D": "t"}


def test_topics_are_no_part_of_what_a_subscription_asks_for():
    rules = "SUBSCRIPTION S MATCH A a AND B b"
    plain, placed = compile_text(TYPES + rules), compile_text(f"TOPIC t (A); TOPIC u (B); {TYPES}{rules}")
    assert plain["S"].digest == placed["S"].digest


@pytest.mark.parametrize(
    ("text", "code", "problem"),
    [
        ("TOPIC t (A, Z);", "L010", "'Z'"),
        ("TOPIC t (U);", "L080", "union"),
        ("TOPIC t (Heartbeat);", "L080", "every topic"),
        ("TOPIC t (A, A);", "L081", "'t' already"),
        ("TOPIC t (A); TOPIC u (A);", "L081", "'t' already"),
        ("TOPIC t (A); TOPIC u (A2);", "L082", "extends 'A'"),
        ("TOPIC u (A2);", "L082", "topic 'main'"),
        ("TOPIC t (B); EVENT UNION V = A + B;", "L082", "several topics"),
        ("TOPIC t ();", "L001", "not expected"),
        ("TOPIC t", "L001", "needs a name and types"),
        ("TOPIC", "L001", "needs a name and types"),
    ],
)
def test_what_is_not_one_order_is_refused(text: str, code: str, problem: str):
    with pytest.raises(LanguageError, match=problem) as caught:
        compile_text(TYPES + text)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "text", ["TYPE Topic (topic INT)", "TYPE T (topic INT) SUBSCRIPTION S MATCH T topic WHERE topic.topic = 1"]
)
def test_topic_stays_a_name_elsewhere(text: str):
    compile_text(text)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("TOPIC t (A) KEEP 30 DAYS", "30 DAYS"),
        ("TOPIC t KEEP 200 GB", "200 GB"),
        ("TOPIC t (A) KEEP 1.5 TB, 36 hours", "36 HOURS, 1500 GB"),
        ("TOPIC t KEEP 1 day TOPIC t (A) KEEP 24 HOURS", "1 DAY"),
        ("TOPIC t (A) KEEP all", "ALL"),
    ],
)
def test_keep_says_how_much_of_a_topic_a_log_keeps_and_changes_no_subscription(said: str, told: str):
    rules = "SUBSCRIPTION S MATCH A a"
    assert {name: str(each) for name, each in keeps_of(parse(said)).items()} == {"t": told}
    assert {name: str(each) for name, each in keeps_of(parse(f"TOPIC t KEEP {told}")).items()} == {"t": told}
    assert compile_text(f"{TYPES} {said}; {rules}")["S"].digest == compile_text(TYPES + rules)["S"].digest


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("TOPIC t KEEP", "L001"),
        ("TOPIC t KEEP 3 FROGS", "L007"),
        ("TOPIC t KEEP 0 DAYS", "L007"),
        ("TOPIC t KEEP 0 GB", "L088"),
        ("TOPIC t KEEP 99999999999 TB", "L088"),
        ("TOPIC t KEEP 1 DAY, 2 WEEKS", "L088"),
        ("TOPIC t KEEP some", "L088"),
        ("TOPIC t KEEP 1 DAY TOPIC t KEEP 2 DAYS", "L088"),
    ],
)
def test_a_keep_that_is_no_limit_is_refused(text: str, code: str):
    with pytest.raises(LanguageError) as caught:
        compile_text(TYPES + text)
    assert caught.value.code == code


def test_keep_stays_a_name_elsewhere():
    compile_text("TYPE Keep (keep INT) SUBSCRIPTION S MATCH Keep keep WHERE keep.keep = 1")


ACROSS = "TOPIC t (B);"


@pytest.mark.parametrize(
    ("rule", "clause"),
    [
        ("MATCH A a THEN B b", "THEN"),
        ("MATCH A a AND C c THEN B b", "THEN"),
        ("MATCH A a AND C c WITHOUT B b BETWEEN a AND c WHERE b.x = a.x", "WITHOUT"),
        ("MATCH A a AND B b WITHOUT C c BETWEEN a AND b WHERE c.x = a.x", "WITHOUT"),
        ("MATCH A a AND B b MATCHING RECENT", "MATCHING RECENT"),
        ("MATCH A a[2] AND B b MATCHING FIRST CONTIGUOUS", "MATCHING FIRST CONTIGUOUS"),
        ("MATCH (A a AND C c) OR (B b THEN C d)", "THEN"),
    ],
)
def test_an_order_between_topics_is_warned_of_and_one_topic_is_the_remedy(rule: str, clause: str):
    found = [each for each in compile_text(f"{TYPES}{ACROSS} SUBSCRIPTION S {rule}").warnings if each.code == "W017"]
    assert [each.problem.startswith(clause) for each in found] == [True]
    assert "one TOPIC" in found[0].fix
    assert "W017" not in {each.code for each in compile_text(f"{TYPES} SUBSCRIPTION S {rule}").warnings}


@pytest.mark.parametrize(
    "rule", ["MATCH A a AND B b", "MATCH A a THEN C c", "MATCH (A a THEN C c) OR B b", "MATCH B b[3] MATCHING RECENT"]
)
def test_an_order_within_a_topic_is_not_warned_of(rule: str):
    assert "W017" not in {each.code for each in compile_text(f"{TYPES}{ACROSS} SUBSCRIPTION S {rule}").warnings}
