"""Runs: what can be said of them, and what is refused with which words."""

import pytest

from fairlead.engine import compile as compile_rules
from fairlead.errors import LanguageError
from fairlead.model.plans.pattern import Quantifier

TYPES = """
TYPE A (k INT, x INT, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, at TIMESTAMP) TIME at
TYPE C EXTENDS A (z INT)
"""


def branch(text: str):
    return compile_rules(f"{TYPES} SUBSCRIPTION S MATCH {text}")["S"].branches[0]


@pytest.mark.parametrize(
    ("sign", "least", "most"),
    [("+", 1, None), ("*", 0, None), ("?", 0, 1), ("{3}", 3, 3), ("{2,}", 2, None), ("{,5}", 0, 5), ("{2,5}", 2, 5)],
)
def test_a_quantifier_says_how_many_events_a_run_holds(sign, least, most):
    assert branch(f"A a{sign}").runs == {0: Quantifier(least, most, run=True)}


def test_a_run_stands_after_the_other_instances_of_its_type():
    found = branch("A r+ THEN A a THEN B b")
    assert [slot.alias for slot in found.slots] == ["a", "r", "b"]


def test_conditions_on_each_event_and_on_the_whole_run_are_kept_apart():
    found = branch("A r+ THEN B b WHERE r.x > 1 AND r.x < b.x HAVING count(r) > 2 AND max(r.x) < b.x")
    assert [each.slots for each in found.predicates] == [(0,), (0, 1)]
    assert [each.slots for each in found.having] == [(0,), (0, 1)]


@pytest.mark.parametrize("name", ["Having", "having", "distinct", "first", "last"])
def test_the_new_words_are_still_names(name):
    plan = compile_rules(
        f"TYPE {name} ({name} INT) SUBSCRIPTION {name} MATCH {name} q[2] WHERE q[1].{name} = 1 AND count({name}) = 2"
    )
    assert plan.subscriptions[0].name == name


@pytest.mark.parametrize("same", ["A q+ HAVING count(q) > 2", "A r+ HAVING count(r) > 2", "A r{1,} HAVING 2 < count(r)"])
def test_the_digest_covers_runs_and_having_but_no_names(same):
    digest = compile_rules(f"{TYPES} SUBSCRIPTION S MATCH A a+ HAVING count(a) > 2")["S"].digest
    assert compile_rules(f"{TYPES} SUBSCRIPTION T MATCH {same}")["T"].digest == digest


@pytest.mark.parametrize(
    "other", ["A a", "A a+", "A a* HAVING count(a) > 2", "A a+ HAVING count(a) > 3", "A a[3]", "A a{3}", "A a{3,}"]
)
def test_other_runs_have_other_digests(other):
    digest = compile_rules(f"{TYPES} SUBSCRIPTION S MATCH A a+ HAVING count(a) > 2")["S"].digest
    assert compile_rules(f"{TYPES} SUBSCRIPTION S MATCH {other}")["S"].digest != digest


@pytest.mark.parametrize(
    ("code", "text", "fix"),
    [
        ("L095", "A a+ EMIT X(x = a.x)", "first(a.x)"),
        ("L095", "A a+ HAVING a.x > 1", "first(a.x)"),
        ("L095", "A a+ HAVING x > 1", "first(a.x)"),
        ("L095", "A a+ EMIT X(t = time(a))", "first(a."),
        ("L096", "A a+ AND B b WHERE count(a) > 1", "HAVING"),
        ("L096", "A a+ AND B b WHERE b.x > 1 AND b.x < sum(a.x)", "HAVING"),
        ("L097", "A a+ AND A b+", "between them"),
        ("L097", "A a+ AND C b+", "between them"),
        ("L097", "A a+ THEN B b+", "between them"),
        ("L097", "A a+ AND B b+ WHERE a.x = b.x", "HAVING"),
        ("L098", "A a+ AND B b HAVING b.x > 1", "WHERE"),
        ("L098", "A a[2] HAVING count(a) > 1", "as a run"),
        ("L099", "A a+ THEN B b MATCHING FIRST CONTIGUOUS", "q[3]"),
        ("L099", "A a+ THEN B b WITHOUT C c WITHIN 1 SECOND OF b", "EMIT"),
        ("L099", "A a+ THEN B b WITHOUT C c BETWEEN a AND b", "no run"),
        ("L099", "A a+ THEN B b WITHOUT C c BEFORE b WHERE c.x = a.x", "no run"),
        ("L022", "A a{5,2}", "smaller number first"),
        ("L022", "A a{0}", "q?"),
        ("L022", "A a[2]+", "q[3] or q{3}"),
        ("L032", "A a+ WHERE a[1].x > 1", "first(a.x)"),
        ("L046", "A a[2] EMIT X(x = first(a.x))", "a[1]"),
        ("L046", "A a[2] WHERE count(DISTINCT a.x) > 1", "q{3}"),
        ("L046", "A a+ HAVING sum(DISTINCT a.x) > 1", "count(DISTINCT a.x)"),
    ],
)
def test_what_a_run_cannot_do_is_refused_with_what_to_write(code, text, fix):
    with pytest.raises(LanguageError) as refused:
        branch(text)
    assert (refused.value.code, fix in refused.value.fix) == (code, True), refused.value


def test_runs_of_one_type_with_an_element_between_them_are_apart():
    assert len(branch("A a+ THEN B b THEN A c+").runs) == 2
    assert len(branch("A a+ AND B b+").runs) == 2


def test_a_subscription_with_runs_that_has_no_kernel_is_warned_of():
    text = "SUBSCRIPTION S MATCH N n+ HAVING lower(first(n.s)) = 'x' SUBSCRIPTION T MATCH N n+ HAVING first(n.s) = 'x'"
    plan = compile_rules(f"TYPE N (s STRING) {text}")
    assert [(each.code, each.subscription) for each in plan.warnings if each.code == "W025"] == [("W025", "S")]
