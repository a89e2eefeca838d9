"""ORDER BY: what it says, what is refused, and what it changes in a digest."""

from __future__ import annotations

import pytest

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.model.canonical import with_order
from fairlead.model.event_order import by_attributes

TYPES = "TYPE A (x INT, at TIMESTAMP) TIME at TYPE B (x INT, s STRING, ts TIMESTAMP, at TIMESTAMP) TIME ts TYPE C (n INT) "
RULES = " SUBSCRIPTION S MATCH A a THEN B b EMIT D (x = a.x) SUBSCRIPTION T MATCH D d AND A a"


@pytest.mark.parametrize(
    ("stated", "canonical"),
    [
        ("ORDER BY at", "ORDER BY at"),
        ("order by at, x desc;", "ORDER BY at, x DESC"),
        ("ORDER BY TIME DELAY 1.5 SECONDS", "ORDER BY TIME DELAY 1500000 MICROSECONDS"),
        (
            "ORDER BY at DELAY 1 MINUTE PER SOURCE IDLE 1 HOUR",
            "ORDER BY at DELAY 60000000 MICROSECONDS PER SOURCE IDLE 3600000000 MICROSECONDS",
        ),
        ("", None),
    ],
)
def test_an_order_is_one_for_all_subscriptions_and_its_text_compiles_to_itself(stated: str, canonical: str | None) -> None:
    for text in (TYPES + stated + RULES, TYPES + RULES + " " + stated):
        plan = compile_text(text)
        assert [each.order for each in plan.subscriptions] == [plan.order] * 2
        assert (None if plan.order is None else str(plan.order)) == canonical
    again = compile_text(TYPES + (canonical or "") + RULES)
    assert [each.digest for each in again.subscriptions] == [each.digest for each in plan.subscriptions]


def test_every_part_of_an_order_is_part_of_the_digests_and_the_shorthand_is_the_same() -> None:
    orders = ["", "ORDER BY at", "ORDER BY x", "ORDER BY at DESC", "ORDER BY at, x", "ORDER BY at DELAY 1 SECOND"]
    orders += ["ORDER BY at DELAY 2 SECONDS", "ORDER BY at DELAY 2 SECONDS PER SOURCE IDLE 3 SECONDS"]
    digests = [tuple(each.digest for each in compile_text(TYPES + order + RULES).subscriptions) for order in orders]
    assert len({digest for pair in digests for digest in pair}) == 2 * len(orders)
    short = with_order(compile_text(TYPES + RULES), by_attributes(["at"]))
    assert tuple(each.digest for each in short.subscriptions) == digests[1]
    assert by_attributes(["at", "x desc"]) == compile_text(f"{TYPES} ORDER BY at, x DESC {RULES}").order


@pytest.mark.parametrize(
    ("stated", "code", "told"),
    [
        ("ORDER BY at ORDER BY x", "L083", "stated twice"),
        ("ORDER BY ts", "L084", "'A' has no attribute 'ts'"),
        ("ORDER BY s", "L084", "'A' has no attribute 's'"),
        ("ORDER BY att", "L084", "did you mean 'at'"),
        ("ORDER BY at, at", "L084", "already"),
        ("ORDER BY x DELAY 1 SECOND", "L085", "ascending TIMESTAMP"),
        ("ORDER BY at DESC DELAY 1 SECOND", "L085", "ascending TIMESTAMP"),
        ("ORDER BY at DELAY 0 SECONDS", "L007", "longer than zero"),
        ("ORDER BY at DELAY 1 SECOND PER SOURCE", "L001", "IDLE"),
        ("ORDER BY", "L001", "'S' is not expected"),
        ("ORDER at", "L001", "ORDER BY"),
        ("ORDER BY at DELY 2 SECONDS", "L001", "did you mean DELAY"),
    ],
)
def test_what_is_no_order_is_refused(stated: str, code: str, told: str) -> None:
    with pytest.raises(LanguageError) as caught:
        compile_text(TYPES + stated + RULES)
    assert caught.value.code == code
    assert told in str(caught.value)


def test_types_of_several_kinds_under_one_name_are_refused_and_types_that_nobody_reads_need_no_key() -> None:
    with pytest.raises(LanguageError, match=r"L084 .* not of one data type"):
        compile_text("TYPE A (x INT) TYPE B (x STRING) ORDER BY x SUBSCRIPTION S MATCH A a AND B b")
    assert compile_text(f"{TYPES} ORDER BY at SUBSCRIPTION S MATCH A a").order is not None


def test_order_delay_and_idle_stay_names_elsewhere() -> None:
    text = "TYPE Order (delay INT, idle INT, desc INT) SUBSCRIPTION S MATCH Order order WHERE order.delay > order.idle"
    assert compile_text(text).order is None
    assert compile_text("TYPE Order (delay INT) SUBSCRIPTION S MATCH Order ORDER BY delay DESC").order is not None


def test_with_an_order_topics_are_no_problem() -> None:
    text = f"TOPIC t (A) {TYPES}%s SUBSCRIPTION S MATCH A a THEN B b"
    assert "W017" in {each.code for each in compile_text(text % "").warnings}
    assert "W017" not in {each.code for each in compile_text(text % " ORDER BY at").warnings}
