"""ORDER BY: what it says, what is refused, and what it changes in a digest."""

from __future__ import annotations

import pytest

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.model.plans.canonical import with_order
from fairlead.model.plans.event_order import by_attributes

TYPES = "TYPE A (x INT, at TIMESTAMP) TIME at TYPE B (x INT, s STRING, ts TIMESTAMP, at TIMESTAMP) TIME ts TYPE C (n INT) "
DIGESTS = [
    "95ab96b0c56afa4f39b043d6a57074421171639eb90c8a4ce7237b6b8aec0ec9",
    "c904ba63388c4279a40eba31ec4b8c601aeb7a87b9ad2f8762098f0abbde9ec1",
]
RULES = " SUBSCRIPTION S MATCH A a THEN B b EMIT D (x = a.x) SUBSCRIPTION T MATCH D d AND A a"


@pytest.mark.parametrize(
    ("stated", "shown", "canonical"),
    [
        ("ORDER BY at", "ORDER BY at", "ORDER BY at"),
        ("order by at, x desc;", "ORDER BY at, x DESC", "ORDER BY at, x DESC"),
        (
            "ORDER BY TIME DELAY 1.5 SECONDS",
            "ORDER BY TIME DELAY 1500 MILLISECONDS",
            "ORDER BY TIME DELAY 1500000 MICROSECONDS",
        ),
        (
            "ORDER BY at DELAY 60 SECONDS PER SOURCE IDLE 1 HOUR LATE TAG",
            "ORDER BY at DELAY 1 MINUTE PER SOURCE IDLE 1 HOUR",
            "ORDER BY at DELAY 60000000 MICROSECONDS PER SOURCE IDLE 3600000000 MICROSECONDS",
        ),
        (
            "order by at delay 0 seconds ahead 0.001 seconds late revise within 7 days",
            "ORDER BY at DELAY 0 MICROSECONDS AHEAD 1 MILLISECOND LATE REVISE WITHIN 7 DAYS",
            "ORDER BY at DELAY 0 MICROSECONDS AHEAD 1000 MICROSECONDS LATE REVISE WITHIN 604800000000 MICROSECONDS",
        ),
        ("ORDER BY at AHEAD 0 DAYS;", "ORDER BY at AHEAD 0 MICROSECONDS", "ORDER BY at AHEAD 0 MICROSECONDS"),
        ("ORDER BY x LATE TAG", "ORDER BY x", "ORDER BY x"),
        ("", None, None),
    ],
)
def test_an_order_is_one_for_all_subscriptions_and_its_text_compiles_to_itself(
    stated: str, shown: str | None, canonical: str | None
) -> None:
    for text in (TYPES + stated + RULES, TYPES + RULES + " " + stated):
        plan = compile_text(text)
        assert [each.order for each in plan.subscriptions] == [plan.order] * 2
        assert (None if plan.order is None else str(plan.order)) == shown
        assert (None if plan.order is None else plan.order.canonical) == canonical
    for again in (compile_text(TYPES + (form or "") + RULES) for form in (shown, canonical)):
        assert [each.digest for each in again.subscriptions] == [each.digest for each in plan.subscriptions]


def test_the_digest_of_an_order_does_not_depend_on_what_was_added_to_the_language_since() -> None:
    plan = compile_text(f"{TYPES} ORDER BY at DELAY 2 SECONDS PER SOURCE IDLE 3 SECONDS {RULES}")
    assert [each.digest for each in plan.subscriptions] == DIGESTS


def test_every_part_of_an_order_is_part_of_the_digests_and_the_shorthand_is_the_same() -> None:
    orders = ["", "ORDER BY at", "ORDER BY x", "ORDER BY at DESC", "ORDER BY at, x", "ORDER BY at DELAY 1 SECOND"]
    orders += ["ORDER BY at DELAY 2 SECONDS", "ORDER BY at DELAY 2 SECONDS PER SOURCE IDLE 3 SECONDS"]
    orders += ["ORDER BY at DELAY 0 SECONDS", "ORDER BY at AHEAD 0 SECONDS", "ORDER BY at AHEAD 2 SECONDS"]
    orders += [f"ORDER BY at DELAY 2 SECONDS {more}" for more in ("AHEAD 2 SECONDS", "LATE REVISE WITHIN 2 SECONDS")]
    orders += [f"ORDER BY at DELAY 2 SECONDS AHEAD 1 SECOND LATE REVISE WITHIN {d} SECONDS" for d in (1, 2)]
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
        ("ORDER BY at DELAY 1 SECOND PER SOURCE IDLE 0 SECONDS", "L007", "longer than zero"),
        ("ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 0 SECONDS", "L007", "longer than zero"),
        ("ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 10000001 WEEKS", "L007", "out of range"),
        ("ORDER BY x AHEAD 1 SECOND", "L085", "AHEAD is about the first order key"),
        ("ORDER BY at DESC AHEAD 1 SECOND", "L085", "ascending TIMESTAMP"),
        ("ORDER BY x LATE REVISE WITHIN 1 SECOND", "L085", "LATE REVISE is about the first order key"),
        ("ORDER BY at LATE REVISE WITHIN 1 SECOND", "L086", "LATE REVISE needs DELAY"),
        ("ORDER BY at AHEAD 1 SECOND LATE REVISE WITHIN 1 SECOND", "L086", "DELAY 0 SECONDS"),
        ("ORDER BY at LATE REVISE", "L001", "WITHIN"),
        ("ORDER BY at LATE", "L001", "REVISE or TAG"),
        ("ORDER BY at LATE REVIS WITHIN 1 SECOND", "L001", "did you mean REVISE"),
        ("ORDER BY at LATE TAG AHEAD 1 SECOND", "L001", "'AHEAD' is not expected here"),
        ("ORDER BY at AHEAD 1 SECOND DELAY 1 SECOND", "L001", "'DELAY' is not expected here"),
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


@pytest.mark.parametrize(
    "rule",
    [
        "MATCH A a AND B b WHERE position(a) < position(b)",
        "MATCH A a AND B b WHERE a.x > 0 AND (b.x > 0 OR NOT position(a) + 1 > 3)",
        "MATCH A a AND B b EMIT E (place = position(a))",
        "MATCH A a THEN A c WITHOUT B b BETWEEN a AND c WHERE Position(b) > 1",
    ],
)
def test_positions_are_refused_where_late_events_change_them(rule: str) -> None:
    stated = "ORDER BY at DELAY 1 SECOND"
    compile_text(f"{TYPES} {stated} SUBSCRIPTION P {rule}")
    with pytest.raises(LanguageError, match="L087"):
        compile_text(f"{TYPES} {stated} LATE REVISE WITHIN 1 SECOND SUBSCRIPTION P {rule}")


def test_types_of_several_kinds_under_one_name_are_refused_and_types_that_nobody_reads_need_no_key() -> None:
    with pytest.raises(LanguageError, match=r"L084 .* not of one data type"):
        compile_text("TYPE A (x INT) TYPE B (x STRING) ORDER BY x SUBSCRIPTION S MATCH A a AND B b")
    assert compile_text(f"{TYPES} ORDER BY at SUBSCRIPTION S MATCH A a").order is not None


def test_the_words_of_an_order_stay_names_elsewhere() -> None:
    text = "TYPE Order (delay INT, idle INT, desc INT) SUBSCRIPTION S MATCH Order order WHERE order.delay > order.idle"
    assert compile_text(text).order is None
    text = "TYPE Late (ahead INT, tag INT) SUBSCRIPTION Revise MATCH Late late AND Late revise WHERE late.ahead > revise.tag"
    assert compile_text(text).order is None
    assert (
        compile_text("TYPE Late (ahead INT, tag INT) ORDER BY ahead, tag SUBSCRIPTION Tag MATCH Late ahead").order is not None
    )
    assert compile_text("TYPE Order (delay INT) SUBSCRIPTION S MATCH Order ORDER BY delay DESC").order is not None


def test_with_an_order_topics_are_no_problem() -> None:
    text = f"TOPIC t (A) {TYPES}%s SUBSCRIPTION S MATCH A a THEN B b"
    assert "W017" in {each.code for each in compile_text(text % "").warnings}
    assert "W017" not in {each.code for each in compile_text(text % " ORDER BY at").warnings}
