"""RETAIN, TABLE and buckets in PER: what is written, what is refused, what is warned of, and what is said of them."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.errors import LanguageError
from fairlead.guarantees.derive import counterexample_named, derive
from fairlead.language import compile_text
from fairlead.model.guarantee import Property
from fairlead.model.plans.plan import Plan
from fairlead.runtime.why import why
from fairlead.transport.events import read_events

TYPES = """
TYPE A (k INT, v INT, at TIMESTAMP) TIME at
TYPE B (k INT, v INT, at TIMESTAMP) TIME at
TYPE N (k INT)
TABLE T KEY (k) FROM B
"""
S = "SUBSCRIPTION S MATCH "


def plan_of(rules: str) -> Plan:
    return compile_text(TYPES + rules)


def codes(rules: str) -> list[str]:
    return [each.code for each in plan_of(rules).warnings if each.code != "W010"]


@pytest.mark.parametrize(
    ("rules", "code", "said"),
    [
        (S + "A a RETAIN b 1 EVENT", "L120", "no element 'b'"),
        (S + "A a AND A b RETAIN a 2 EVENTS, b 2 EVENTS", "L120", "elements of one type share it"),
        (S + "A a[3] RETAIN a 2 EVENTS", "L121", "needs 3 events of 'A'"),
        (S + "A a{2,} RETAIN a 1 EVENT", "L121", "needs 2 events of 'A'"),
        (S + "A a RETAIN a 0 EVENTS", "L121", "a whole number of events"),
        (S + "A a RETAIN a LAST 4", "L001", "write RETAIN x 10 EVENTS or RETAIN x 5 MINUTES"),
        (S + "A a RETAIN 4 EVENTS", "L001", "'RETAIN' needs an element and a bound"),
        ("TABLE T2 FROM A", "L001", "write TABLE name KEY (attribute, …) FROM Type"),
        (S + "A a EMIT T (k = a.k)", "L064", "it is a table"),
        (S + "A a PER k LIMIT many", "L001", "write LIMIT 10"),
        (S + "A a PER bucket(at)", "L001", "write bucket(at, 1 HOUR)"),
        (S + "A a PER k, bucket(a.at, 5)", "L001", "bucket() needs an attribute and a duration"),
        (S + "A a PER k, hour(at)", "L001", "hour() cannot be part of a key"),
        (S + "A a RETAIN a 1.5 EVENTS", "L121", "a whole number of events"),
        (S + "A a RETAIN a 1000000001 EVENTS", "L121", "a whole number of events"),
        (S + "A a AND N n RETAIN a 1 MINUTE", "L122", "type 'N' have none"),
        (S + "A a RETAIN a 0 SECONDS", "L007", "longer than zero"),
        ("TABLE X KEY (q) FROM A " + S + "A a", "L123", "no attribute 'q'"),
        ("TABLE X KEY (k, k) FROM A " + S + "A a", "L123", "twice"),
        ("TABLE X KEY (k) FROM Nothing " + S + "A a", "L010", "no event type 'Nothing'"),
        ("TABLE X KEY (k) FROM T " + S + "A a", "L124", "'T' is a table"),
        ("EVENT UNION X = A + T " + S + "A a", "L124", "'T' is a table"),
        (S + "T t", "L124", "tables only"),
        (S + "A a AND T t+", "L124", "a run"),
        (S + "A a AND T t KEEP t", "L124", "KEEP names 't'"),
        (S + "A a AND T t RETAIN t 1 EVENT", "L124", "RETAIN names 't'"),
        (S + "A a AND T t DISPOSAL UPTO t", "L124", "DISPOSAL names 't'"),
        (S + "A a WITHOUT T t BEFORE a", "L124", "names the table 'T'"),
        (S + "A a PER bucket(v, 1 HOUR)", "L125", "A.v is INT"),
        (S + "A a PER hour(at, 1 HOUR)", "L125", "no function of a key"),
        (S + "A a AND B b PER bucket(a.at, 1 HOUR) = bucket(b.at, 2 HOURS)", "L125", "unlike buckets"),
        (S + "A a AND N n PER bucket(at, 1 HOUR)", "L051", "'N' has no attribute 'at'"),
    ],
)
def test_what_they_refuse(rules: str, code: str, said: str) -> None:
    with pytest.raises(LanguageError) as raised:
        plan_of(rules)
    assert raised.value.code == code
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "rules",
    [
        "SUBSCRIPTION retain MATCH A retain WHERE retain.v > 1 RETAIN retain 5 EVENTS BATCH",
        "SUBSCRIPTION table MATCH A table AND B bucket WHERE table.v = bucket.v PER k",
        "SUBSCRIPTION S MATCH A batch AND B from WHERE batch.v = from.v PER k",
        "SUBSCRIPTION S MATCH A a RETAIN /* of one */ a -- and the same\n 5 EVENTS",
        "TABLE table KEY (v) FROM A SUBSCRIPTION S MATCH B key AND table t WHERE t.k = key.k",
    ],
)
def test_their_words_are_names_elsewhere(rules: str) -> None:
    assert len(plan_of(rules).subscriptions) == 1


def test_equal_texts_have_equal_digests_and_bounds_are_part_of_them() -> None:
    digests = {
        plan_of(S + text)["S"].digest
        for text in (
            "A a AND B b",
            "A a AND B b RETAIN a 1 EVENT",
            "A a AND B b RETAIN a 2 EVENTS",
            "A a AND B b RETAIN a 2 EVENTS BATCH",
            "A a AND B b RETAIN a 2 SECONDS",
            "A a AND T b",
            "A a AND B b PER bucket(at, 1 HOUR)",
            "A a AND B b PER bucket(at, 2 HOURS)",
        )
    }
    assert len(digests) == 8
    one, other = (
        plan_of(S + "A a AND B b RETAIN a 1 HOUR, b 2 EVENTS"),
        plan_of(S + "B y AND A x RETAIN y 2 EVENTS, x 60 MINUTES"),
    )
    assert one["S"].digest == other["S"].digest


def test_an_order_by_time_makes_bounds_of_buckets() -> None:
    plain, ordered = (
        plan_of(S + "A a[2] PER k, bucket(at, 1 HOUR)"),
        plan_of("ORDER BY at " + S + "A a[2] PER k, bucket(at, 1 HOUR)"),
    )
    assert plain["S"].branches[0].keys == (("A", ("k", "bucket(at, 3600000000)")),)
    assert ordered["S"].branches[0].keys == (("A", ("k",)),)
    assert ordered["S"].branches[0].retained[0][1].words == "1 HOUR BATCH"
    kept = ("DISPOSAL NONE LIMIT 1 PER KEY", "WITHOUT B n BEFORE a[1]", "RETAIN a 2 EVENTS")
    for clause in kept:  # what is not about queues alone still needs the key
        plan = plan_of("ORDER BY at " + S + f"A a[2] PER k, bucket(at, 1 HOUR) {clause}")
        assert "bucket" in str(plan["S"].branches[0].keys)
    assert "bucket" in str(plan_of("ORDER BY at DESC " + S + "A a[2] PER bucket(at, 1 HOUR)")["S"].branches[0].keys)
    assert "bucket" in str(plan_of("ORDER BY v, at " + S + "A a[2] PER bucket(at, 1 HOUR)")["S"].branches[0].keys)


def test_what_is_warned_of() -> None:
    assert codes(S + "A a[2] PER k, bucket(at, 1 HOUR)") == ["W030"]
    assert codes("ORDER BY at " + S + "A a[2] PER k, bucket(at, 1 HOUR)") == []
    assert codes(S + "A a AND B b WHERE a.k = b.k") == ["W001"]
    assert codes(S + "A a AND T b WHERE a.k = b.k") == []
    assert codes(S + "A a AND B b PER k DISPOSAL NONE") == ["W012"]
    assert codes(S + "A a AND B b PER k DISPOSAL NONE RETAIN a 5 EVENTS, b 1 HOUR") == []
    assert codes(S + "A a AND B b PER k DISPOSAL NONE RETAIN a 5 EVENTS") == ["W012"]


def test_explanations_name_bounds_and_tables() -> None:
    said = str(fairlead.explain(plan_of(S + "A a AND T t WHERE t.k = a.k RETAIN a 10 EVENTS BATCH")))
    assert "retain     a 10 EVENTS BATCH" in said
    assert "table      T (k): the last event of each key, read" in said
    assert "hash index" in said
    (found,) = fairlead.explain(plan_of(S + "A a AND T t RETAIN a 1 MINUTE")).to_json()["subscriptions"]
    assert (found["retain"], found["tables"]) == (["a 1 MINUTE"], {"T": ["k"]})


def lost(rules: str) -> set[Property]:
    return {each.property for each in derive(plan_of(rules))["S"] if not each.kept}


def test_guarantees_promise_nothing_that_no_search_has_shown() -> None:
    assert lost(S + "A a AND B b") == set()
    assert lost(S + "A a AND B b RETAIN a 1 EVENT") == {Property.EVENT_VALIDITY, Property.COVERING_AGREEMENT}
    assert lost(S + "A a AND B b WHERE a.k = b.k RETAIN a 1 EVENT DISPOSAL INFIX") > {
        Property.CONJUNCTION_VALIDITY,
        Property.COVERING_AGREEMENT,
        Property.CONJUNCTION_TOTAL_ORDER,
    }
    assert lost(S + "A a RETAIN a 1 EVENT") == set()
    assert lost(S + "A a RETAIN a 5 SECONDS") == {Property.CONJUNCTION_VALIDITY, Property.EVENT_VALIDITY}


VALIDITIES = {Property.CONJUNCTION_VALIDITY, Property.EVENT_VALIDITY}
ORDERS = {Property.TYPE_TOTAL_ORDER, Property.TYPE_FIFO_ORDER, Property.TYPE_LOCAL_ORDER, Property.TYPE_CAUSAL_ORDER}
PARTS, COVERING = {Property.CONJUNCTION_TOTAL_ORDER}, {Property.COVERING_AGREEMENT}
NEIGHBOURS = "A a[2] WHERE a[2].v = 3 MATCHING FIRST CONTIGUOUS DISPOSAL FIRST PREFIX"
READ = {Property.NO_DUPLICATION, Property.NO_DUPLICATION_IN_PLACE, *VALIDITIES, *COVERING}


@pytest.mark.parametrize(
    ("pattern", "options", "also"),
    [
        ("A a AND T t", "", set()),
        ("A a AND T t", "DISPOSAL FIRST PREFIX", set()),
        ("A a AND T t", "DISPOSAL INFIX", ORDERS | PARTS),
        ("A a AND T t", "DISPOSAL INFIX POSTFIX", ORDERS | PARTS),
        ("A a AND T t", "MATCHING RECENT", ORDERS),
        ("A a AND T t WHERE a.v = t.v", "", ORDERS),
        ("A a[2] AND T t", "DISPOSAL FIRST PREFIX", ORDERS),
        ("A a[2] AND T t", "MATCHING FIRST CONTIGUOUS DISPOSAL FIRST PREFIX", set()),
        ("A a[2] AND T t WHERE a[1].v < a[2].v", "", set()),
        ("B b AND AT t", "", set()),
        ("B b AND AT t", "MATCHING RECENT", ORDERS | PARTS),
        ("B b AND AT t WHERE b.v = t.v", "", ORDERS),
        ("AT t AND BT u AND C c WHERE t.v = u.v", "", ORDERS | PARTS),
        ("AT t AND BT u AND C c", "", set()),
        ("A a AND T t", "MATCHING ALL", ORDERS | PARTS),
        ("A a AND T t", "KEEP a", ORDERS | PARTS),
    ],
)
def test_what_a_table_loses_beyond_what_is_read_again_and_replaced(pattern: str, options: str, also: set[Property]) -> None:
    more = "TYPE C (k INT, v INT) TABLE AT KEY (k) FROM A TABLE BT KEY (k) FROM B "
    tied = {Property.EVENT_VALIDITY} if "WHERE a.v" in pattern or "WHERE b.v" in pattern else set()
    assert lost(f"{more}{S}{pattern} {options}") == (READ | also) - tied


def test_no_event_is_promised_a_delivery_where_a_condition_ties_all_to_the_table() -> None:
    for options in ("", "MATCHING RECENT", "DISPOSAL INFIX POSTFIX"):
        found = {each.property: each for each in derive(plan_of(f"{S}A a AND T t WHERE a.v = t.v {options}"))["S"]}
        assert found[Property.EVENT_VALIDITY].kept
        assert "no single event is promised" in found[Property.EVENT_VALIDITY].reason


@pytest.mark.parametrize(
    ("rules", "also"),
    [
        ("A a[2] RETAIN a 3 EVENTS", COVERING),
        ("A a[2] RETAIN a 3 EVENTS DISPOSAL FIRST PREFIX", {Property.NO_DUPLICATION}),
        ("A a[2] RETAIN a 3 EVENTS BATCH DISPOSAL FIRST PREFIX", {Property.NO_DUPLICATION}),
        ("A a[2] RETAIN a 5 SECONDS DISPOSAL FIRST PREFIX", {Property.NO_DUPLICATION, *VALIDITIES, *COVERING}),
        ("A a[2] RETAIN a 5 SECONDS BATCH", VALIDITIES),
        ("A a[2] AND B b RETAIN a 2 EVENTS BATCH", {Property.EVENT_VALIDITY, *COVERING}),
        ("A a[2] AND B b[2] RETAIN a 2 EVENTS BATCH", {Property.EVENT_VALIDITY, *COVERING}),
        ("A a[2] AND B b[2] RETAIN a 2 EVENTS BATCH, b 2 EVENTS BATCH", VALIDITIES | COVERING),
        ("A a AND B b RETAIN a 5 SECONDS BATCH", VALIDITIES | COVERING),
        (f"{NEIGHBOURS} RETAIN a 2 EVENTS", {Property.NO_DUPLICATION, *VALIDITIES}),
        (f"{NEIGHBOURS} RETAIN a 2 EVENTS BATCH", {Property.NO_DUPLICATION, *VALIDITIES, *COVERING}),
        ("A a AND B b WHERE a.k = b.k RETAIN a 1 EVENT", {Property.CONJUNCTION_VALIDITY, *COVERING}),
        ("A a AND B b RETAIN a 2 EVENTS DISPOSAL INFIX", {Property.EVENT_VALIDITY, *COVERING}),
        ("A a AND B b RETAIN a 2 EVENTS DISPOSAL INFIX POSTFIX", {Property.EVENT_VALIDITY, *COVERING}),
        ("A a[3] WHERE a[2].v = 1 RETAIN a 3 EVENTS", VALIDITIES | COVERING),
    ],
)
def test_what_a_bound_loses(rules: str, also: set[Property]) -> None:
    assert lost(S + rules) == also


def test_what_no_argument_covers_is_not_promised() -> None:
    """A kept element stays queued, and a run may be asked for before its events have come."""
    assert lost(S + "A a AND B b KEEP a DISPOSAL INFIX RETAIN b 2 EVENTS") >= PARTS
    assert lost(S + "A a+ AND T t") >= ORDERS


def test_what_a_bound_loses_has_a_trace_or_says_that_it_is_not_shown() -> None:
    for rules in ("A a AND B b RETAIN a 1 EVENT", "A a AND T t", "A a[2] AND B b WHERE a[1].k < b.k RETAIN b 5 SECONDS BATCH"):
        for each in derive(plan_of(S + rules))["S"]:
            found = counterexample_named(each.trace) if each.trace else None
            assert each.kept or "not shown" in each.reason or (found is not None and found.violates is each.property), each


def told(rules: str, events: list[dict[str, object]], position: int) -> str:
    plan = plan_of(rules)
    return str(why(plan, read_events(events, plan.catalogue), position))


def test_why_names_the_event_that_took_the_place() -> None:
    a = {"type": "A", "k": 0, "v": 1, "at": 1}
    b = {"type": "B", "k": 0, "v": 1, "at": 1}
    assert "left (RETAIN) when event 1 came" in told(S + "A a AND B b RETAIN a 1 EVENT", [a, a], 0)
    assert "left (TABLE) when event 1 came" in told(S + "A a AND T t", [b, b], 0)
    assert "expired (RETAIN)" in told(S + "A a[2] AND B b RETAIN a 5 SECONDS BATCH", [a, a | {"at": 7}, b | {"at": 8}], 2)
    late = told(S + "A a AND B b RETAIN a 5 SECONDS", [b | {"at": 20}, a], 1)
    assert "RETAIN: at event 1 the key's clock had left it behind" in late


GAPS = (" ", "\n", " /* KEY */ ", "/**/", " -- BY\n\t")
PHRASES = (
    "TABLE~X~KEY~(k) FROM B",
    "ORDER~BY at DESC",
    "EVENT~UNION V = A + B",
    "TOPIC~t~(A)",
    "TOPIC t (A) TOPIC~t~KEEP 3 DAYS",
    "SUBSCRIPTION S MATCH A a AND B b WITHIN 2 SECONDS KEEP~a",
    "SUBSCRIPTION S MATCH A a RETAIN~a~2~EVENTS",
    "SUBSCRIPTION S MATCH A a PER k LIMIT~3 PER~KEY",
    "SUBSCRIPTION S MATCH A a AND B b WITHIN 2 SECONDS MATCHING ALL LIMIT 3 PER~EVENT",
    "SUBSCRIPTION S MATCH A a WITHOUT B b WITHIN 2 SECONDS OF a CLOCK~BY B PER k",
    "SUBSCRIPTION S MATCH A a+ HAVING count(DISTINCT~a.v) > 2",
    "SUBSCRIPTION S MATCH A a WHERE CASE~WHEN a.v > 1 THEN a.k > 1 END",
    "ORDER BY at DELAY 2 SECONDS PER~SOURCE IDLE 1 MINUTE",
)


@pytest.mark.parametrize("phrase", PHRASES)
def test_blanks_and_comments_stand_between_the_words_of_a_keyword(phrase: str) -> None:
    plain = plan_of(phrase.replace("~", " "))
    for gap in GAPS:
        plan = plan_of(phrase.replace("~", gap))
        assert [each.digest for each in plan.subscriptions] == [each.digest for each in plain.subscriptions]


def test_why_says_which_condition_no_row_of_a_table_met() -> None:
    plan = plan_of(S + "A a AND T t WHERE a.k = t.k AND a.v > t.v")
    rows = [("B", 1, 5), ("A", 1, 4), ("A", 2, 9), ("A", 1, 6)]
    events = [{"type": name, "k": k, "v": v, "at": n} for n, (name, k, v) in enumerate(rows)]
    batches = list(read_events(events, plan.catalogue))
    said = [why(plan, batches, at)[0] for at in range(4)]
    assert [each.verdict for each in said] == ["matched", "too early", "too early", "matched"]
    assert said[1].reasons == (
        "TABLE: no later event completes a relation with it",
        "closest miss [1, 0]: not true: a.v > t.v (a.v = 4, t.v = 5)",
    )
