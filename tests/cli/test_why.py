"""`fairlead why`: each verdict, with the reason that makes it true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shop import MARKET, RALLY, at, fairlead, quote, report, write_lines

SHIPPING = """\
TYPE Order (id INT, region STRING, amount DOUBLE, at TIMESTAMP) TIME at
TYPE Shipment (id INT, region STRING, at TIMESTAMP) TIME at
TYPE Note (text STRING)

SUBSCRIPTION Late
MATCH Order o
WHERE o.amount >= 10
WITHOUT Shipment s WITHIN 60 SECONDS OF o WHERE s.id = o.id
PER region
EMIT LateSeen(id = o.id)
"""

PAIRS = """\
TYPE A (v INT, at TIMESTAMP) TIME at
TYPE B (v INT, at TIMESTAMP) TIME at
TYPE C (v INT, at TIMESTAMP) TIME at
SUBSCRIPTION Pair
MATCH A a AND B b
WHERE a.v = b.v
WITHIN 60 SECONDS
SUBSCRIPTION Sequence
MATCH A a THEN B b
WITHOUT C c BETWEEN a AND b
SUBSCRIPTION Either
MATCH A a AND C c OR B b AND C c
"""


def order(number: int | None, amount: float, second: int, region: str | None = "eu") -> dict[str, Any]:
    return {"type": "Order", "id": number, "region": region, "amount": amount, "at": at(second)}


def shipment(number: int, second: int, region: str | None = "eu") -> dict[str, Any]:
    return {"type": "Shipment", "id": number, "region": region, "at": at(second)}


def one(name: str, value: int, second: int) -> dict[str, Any]:
    return {"type": name, "v": value, "at": at(second)}


def findings(tmp_path: Path, rules: str, events: list[Any], position: int | str, *more: str) -> list[tuple[str, int, str, str]]:
    (tmp_path / "rules.fl").write_text(rules)
    lines = write_lines(tmp_path / "events.jsonl", events)
    result = fairlead("why", tmp_path / "rules.fl", "--events", lines, "--at", str(position), "--json", *more)
    assert result.exit_code == 0, result.output
    return [
        (each["subscription"], each["branch"], each["verdict"], "; ".join(each["reasons"]))
        for each in json.loads(result.stdout)["findings"]
    ]


def finding(tmp_path: Path, rules: str, events: list[Any], position: int | str, *more: str) -> tuple[str, str]:
    found = findings(tmp_path, rules, events, position, *more)
    assert len(found) == 1
    return found[0][2:]


def test_an_event_whose_type_nobody_reads_is_not_read(tmp_path: Path) -> None:
    verdict, reason = finding(tmp_path, SHIPPING, [{"type": "Note", "text": "hi"}], 0)
    assert verdict == "not read"
    assert reason == "it reads Order, Shipment; the event is of type Note"


def test_a_heartbeat_is_not_read_but_moves_the_clock(tmp_path: Path) -> None:
    verdict, reason = finding(tmp_path, SHIPPING, [{"type": "Heartbeat", "at": at(0)}], 0)
    assert (verdict, reason) == ("not read", "a heartbeat only moves clocks")


def test_an_event_without_a_key_belongs_to_no_instance(tmp_path: Path) -> None:
    verdict, reason = finding(tmp_path, SHIPPING, [order(1, 20, 0, region=None)], 0)
    assert verdict == "no key"
    assert reason == "PER region: region is NULL"


def test_an_event_that_fails_its_own_condition_is_refused(tmp_path: Path) -> None:
    verdict, reason = finding(tmp_path, SHIPPING, [order(1, 5, 0)], 0)
    assert verdict == "refused"
    assert "o.amount >= 10" in reason
    assert "o.amount = 5.0" in reason


def test_a_negated_event_is_noted(tmp_path: Path) -> None:
    verdict, reason = finding(tmp_path, SHIPPING, [order(1, 20, 0), shipment(1, 5)], 1)
    assert verdict == "noted"
    assert "WITHOUT" in reason


def test_a_negated_event_that_forbade_a_relation_says_which(tmp_path: Path) -> None:
    _, reason = finding(tmp_path, SHIPPING, [order(1, 20, 0), order(2, 20, 1), shipment(2, 5)], 2)
    assert "cancelled the relation [1]" in reason


def test_an_event_that_the_window_left_behind_is_expired(tmp_path: Path) -> None:
    events = [one("A", 1, 0), one("B", 2, 30), one("A", 3, 61)]
    found = findings(tmp_path, PAIRS, events, 0, "--subscription", "Pair")
    assert found[0][2] == "expired"
    assert "WITHIN" in found[0][3]
    assert "at event 2" in found[0][3]
    assert "closest miss [0, 1]: not true: a.v = b.v (a.v = 1, b.v = 2)" in found[0][3]


def test_an_event_that_comes_too_late_for_the_window_is_expired_at_once(tmp_path: Path) -> None:
    events = [one("A", 1, 100), one("B", 1, 10)]
    found = findings(tmp_path, PAIRS, events, 1, "--subscription", "Pair")
    assert found[0][2] == "expired"
    assert "at event 1" in found[0][3]


def test_a_window_without_partners_says_what_was_missing(tmp_path: Path) -> None:
    found = findings(tmp_path, PAIRS, [one("A", 1, 0), one("A", 1, 61)], 0, "--subscription", "Pair")
    assert found[0][2] == "expired"
    assert "missing partner: B has 0 of 1 queued" in found[0][3]


GONE = """\
TYPE A (v INT, at TIMESTAMP) TIME at
TYPE B (v INT, at TIMESTAMP) TIME at
SUBSCRIPTION Pair MATCH A a {word} B b WITHIN 60 SECONDS
"""


@pytest.mark.parametrize(("word", "verdict"), [("AND", "waiting"), ("THEN", "too early")])
def test_a_partner_that_expired_or_was_taken_is_named(tmp_path: Path, word: str, verdict: str) -> None:
    expired = [one("A", 1, 0), one("B", 2, 61)]
    assert finding(tmp_path, GONE.format(word=word), expired, 1)[0] == verdict
    assert "A at 0 expired (WITHIN) when event 1 came" in finding(tmp_path, GONE.format(word=word), expired, 1)[1]
    taken = [one("A", 1, 0), one("B", 2, 1), one("B", 3, 2)]
    assert "A at 0 left with the relation [0, 1] (DISPOSAL)" in finding(tmp_path, GONE.format(word=word), taken, 2)[1]


def test_a_partner_of_another_key_that_never_was_or_that_stays_is_not_named(tmp_path: Path) -> None:
    rules = GONE.format(word="AND").replace("WITHIN", "PER v WITHIN")
    assert finding(tmp_path, rules, [one("A", 1, 0), one("A", 1, 90), one("B", 2, 91)], 2)[1] == (
        "missing partner: A has 0 of 1 queued"
    )
    first = "TYPE A (v INT) TYPE B (v INT) SUBSCRIPTION S MATCH A a[2] AND B b DISPOSAL FIRST PREFIX"
    events = [{"type": name, "v": 1} for name in ("A", "A", "B", "B")]
    assert finding(tmp_path, first, events, 3) == (
        "waiting",
        "missing partner: A has 1 of 2 queued; A at 0 left with the relation [0, 1, 2] (DISPOSAL)",
    )


@pytest.mark.parametrize("pattern", ["A a", "A a AND B b", "A a THEN B b"])
def test_an_event_with_another_before_it_that_must_not_be_there(tmp_path: Path, pattern: str) -> None:
    types = GONE.partition("SUBSCRIPTION")[0]
    rules = f"{types}TYPE N (v INT, at TIMESTAMP) TIME at SUBSCRIPTION S MATCH {pattern} WITHOUT N n BEFORE a WITHIN 5 SECONDS"
    events = [one("N", 1, 0), one("A", 2, 5), one("B", 3, 6), one("A", 4, 6)]
    verdict, reason = finding(tmp_path, rules, events, 1)
    assert verdict == "forbidden"
    assert reason.startswith("WITHOUT N n BEFORE a WITHIN 5 SECONDS: the event at 0 stands before it")
    assert finding(tmp_path, rules, events, 3)[0] == ("waiting" if "THEN" in pattern else "matched")
    assert finding(tmp_path, rules, events, 0)[0] == "noted"


def test_the_closest_miss_names_what_stands_before_a_member(tmp_path: Path) -> None:
    types = GONE.partition("SUBSCRIPTION")[0]
    rules = f"{types}TYPE N (v INT, at TIMESTAMP) TIME at SUBSCRIPTION S MATCH A a AND B b WITHOUT N n BEFORE a WHERE n.v = b.v"
    verdict, reason = finding(tmp_path, rules, [one("N", 1, 0), one("A", 2, 5), one("B", 1, 6)], 1)
    assert (verdict, "WITHOUT N n BEFORE a: the event at 0 stands before it" in reason) == ("waiting", True)


def test_an_event_that_another_relation_disposed_of(tmp_path: Path) -> None:
    events = [one("A", 1, 0), one("A", 2, 1), one("B", 2, 2)]
    found = findings(tmp_path, PAIRS, events, 0, "--subscription", "Pair")
    assert found[0][2] == "disposed"
    assert "DISPOSAL PREFIX INFIX: dropped when the relation [1, 2] was delivered" in found[0][3]


def test_an_event_still_queued_at_the_end_is_waiting(tmp_path: Path) -> None:
    found = findings(tmp_path, PAIRS, [one("A", 1, 0)], 0, "--subscription", "Pair")
    assert found[0][2:] == ("waiting", "missing partner: B has 0 of 1 queued")


def test_a_waiting_event_shows_the_closest_miss(tmp_path: Path) -> None:
    found = findings(tmp_path, PAIRS, [one("A", 1, 0), one("B", 2, 1)], 0, "--subscription", "Pair")
    assert found[0][2:] == ("waiting", "closest miss [0, 1]: not true: a.v = b.v (a.v = 1, b.v = 2)")


def test_an_event_on_the_wrong_side_of_then_says_so(tmp_path: Path) -> None:
    found = findings(tmp_path, PAIRS, [one("B", 1, 0), one("A", 1, 1)], 1, "--subscription", "Sequence")
    assert found[0][2] == "waiting"
    assert "THEN: a at 1 is not before b at 0" in found[0][3]


def test_a_negated_event_between_two_members_is_named(tmp_path: Path) -> None:
    found = findings(tmp_path, PAIRS, [one("A", 1, 0), one("C", 1, 1), one("B", 1, 2)], 0, "--subscription", "Sequence")
    assert found[0][2] == "waiting"
    assert "WITHOUT C c BETWEEN a AND b: the event at 1 stands between" in found[0][3]


def test_a_complete_relation_that_an_event_forbade_is_cancelled(tmp_path: Path) -> None:
    verdict, reason = finding(tmp_path, SHIPPING, [order(1, 20, 0), shipment(1, 5), order(2, 5, 90)], 0)
    assert verdict == "cancelled"
    assert "[0]" in reason
    assert "WITHOUT" in reason


def test_a_relation_is_cancelled_before_its_deadline_comes(tmp_path: Path) -> None:
    verdict, _ = finding(tmp_path, SHIPPING, [order(1, 20, 0), shipment(1, 5)], 0)
    assert verdict == "cancelled"


def test_a_relation_before_its_deadline_is_pending(tmp_path: Path) -> None:
    verdict, reason = finding(tmp_path, SHIPPING, [order(1, 20, 0)], 0)
    assert verdict == "pending"
    assert "deadline 2026-01-31T10:01:00Z" in reason


def test_until_decides_what_is_pending(tmp_path: Path) -> None:
    verdict, reason = finding(tmp_path, SHIPPING, [order(1, 20, 0)], 0, "--until", at(60))
    assert (verdict, reason) == ("matched", "in the relation [0]")


def test_a_later_event_decides_what_is_pending(tmp_path: Path) -> None:
    verdict, _ = finding(tmp_path, SHIPPING, [order(1, 20, 0), order(2, 5, 61)], 0)
    assert verdict == "matched"


@pytest.mark.parametrize("position", [0, 1, 3, 4])
def test_every_member_of_a_relation_is_matched(tmp_path: Path, position: int) -> None:
    assert finding(tmp_path, MARKET, RALLY, position) == ("matched", "in the relation [0, 1, 3, 4]")


def test_events_of_other_keys_are_no_partners(tmp_path: Path) -> None:
    verdict, reason = finding(tmp_path, MARKET, RALLY, 2)
    assert verdict == "waiting"
    assert "missing partner: EarningsReport has 0 of 1 queued" in reason


def test_each_branch_has_a_finding_of_its_own(tmp_path: Path) -> None:
    found = findings(tmp_path, PAIRS, [one("A", 1, 0), one("C", 1, 1)], 0, "--subscription", "Either")
    assert [each[1:3] for each in found] == [(0, "matched"), (1, "not read")]


def test_a_derived_event_has_a_position_too(tmp_path: Path) -> None:
    rules = SHIPPING + "SUBSCRIPTION Twice MATCH LateSeen l[2]\n"
    events = [order(1, 20, 0), order(2, 5, 61)]
    found = findings(tmp_path, rules, events, "1-1", "--subscription", "Twice")
    assert found[0][2] == "waiting"


def test_a_derived_event_that_nobody_reads_has_no_place(tmp_path: Path) -> None:
    (tmp_path / "rules.fl").write_text(SHIPPING)
    lines = write_lines(tmp_path / "events.jsonl", [order(1, 20, 0), order(2, 5, 61)])
    result = fairlead("why", tmp_path / "rules.fl", "--events", lines, "--at", "1-1")
    assert result.exit_code == 2
    assert "A007 there is no event at position 1-1" in result.output


def test_a_position_beyond_the_end_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rules.fl").write_text(MARKET)
    lines = write_lines(tmp_path / "events.jsonl", RALLY)
    result = fairlead("why", tmp_path / "rules.fl", "--events", lines, "--at", "99")
    assert result.exit_code == 2
    assert "A007 there is no event at position 99" in result.stderr
    assert "use a position from 0 to 4" in result.stderr


def test_a_duplicate_record_has_no_event_at_its_position(tmp_path: Path) -> None:
    (tmp_path / "rules.fl").write_text(MARKET)
    twice = [report("ACME", 0) | {"_source": "x", "_sequence": 1}] * 2
    lines = write_lines(tmp_path / "events.jsonl", [*twice, quote("ACME", 1.0, 3)])
    result = fairlead("why", tmp_path / "rules.fl", "--events", lines, "--at", "1")
    assert result.exit_code == 2
    assert "the record at position 1 is a duplicate" in result.stderr


def test_text_is_not_a_position(tmp_path: Path) -> None:
    (tmp_path / "rules.fl").write_text(MARKET)
    lines = write_lines(tmp_path / "events.jsonl", RALLY)
    result = fairlead("why", tmp_path / "rules.fl", "--events", lines, "--at", "last")
    assert result.exit_code == 2
    assert "A008" in result.stderr


def test_the_answer_for_people_shows_the_event_first(tmp_path: Path) -> None:
    (tmp_path / "rules.fl").write_text(MARKET)
    lines = write_lines(tmp_path / "events.jsonl", RALLY)
    result = fairlead("why", tmp_path / "rules.fl", "--events", lines, "--at", "4")
    assert result.stdout.splitlines() == [
        "StockQuote at position 4: symbol = ACME, value = 12.5, at = 2026-01-31T10:00:30Z",
        "",
        "Rally: matched",
        "  in the relation [0, 1, 3, 4]",
    ]


def test_an_unknown_subscription_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rules.fl").write_text(MARKET)
    lines = write_lines(tmp_path / "events.jsonl", RALLY)
    result = fairlead("why", tmp_path / "rules.fl", "--events", lines, "--at", "4", "--subscription", "Nope")
    assert result.exit_code == 2
    assert "use one of: Rally" in result.stderr


OVERLAP = """\
TYPE A (k INT, j INT, v INT, at TIMESTAMP) TIME at
TYPE B EXTENDS A ()
TYPE C (k INT, j INT, v INT, at TIMESTAMP) TIME at
SUBSCRIPTION S
"""


def several(name: str, k: int, j: int, second: int) -> dict[str, Any]:
    return {"type": name, "k": k, "j": j, "v": 0, "at": at(second)}


def test_an_event_that_leaves_one_of_its_queues_is_not_too_early_while_it_is_in_another(tmp_path: Path) -> None:
    """The first B can be no second one (nothing is before it), but it is an A too, and the second B is after it."""
    events = [several("B", 1, 1, 0), several("B", 1, 1, 1)]
    assert finding(tmp_path, OVERLAP + "MATCH A a THEN B b", events, 0) == ("matched", "in the relation [0, 1]")


def test_an_event_is_watched_under_all_its_keys(tmp_path: Path) -> None:
    """As an A its key is k, as a B it is j: nobody has the first key, the third event has the second one."""
    rules = OVERLAP + "MATCH A a AND B b PER a.k = b.j"
    events = [several("B", 1, 2, 0), several("A", 2, 0, 1)]
    assert finding(tmp_path, rules, events, 0) == ("matched", "in the relation [1, 0]")


def test_an_event_of_a_cancelled_relation_can_be_in_another_one(tmp_path: Path) -> None:
    """FIRST PREFIX keeps the second A: its first relation is cancelled, a later one waits, then is delivered."""
    rules = OVERLAP + "MATCH A a[2] WITHOUT C c WITHIN 5 SECONDS OF a[2] DISPOSAL FIRST PREFIX"
    events = [several("A", 1, 1, 0), several("A", 1, 1, 1), several("C", 1, 1, 2), several("A", 1, 1, 8)]
    assert finding(tmp_path, rules, events, 1)[0] == "pending"
    verdict, reason = finding(tmp_path, rules, events, 1, "--until", at(20))
    assert (verdict, reason) == ("matched", "in the relation [1, 3]")
    assert finding(tmp_path, rules, events, 0)[0] == "cancelled"


def test_events_that_are_late_or_ahead_take_no_part(tmp_path: Path) -> None:
    """The positions and matches are those of `fairlead run`."""
    (tmp_path / "rules.fl").write_text(
        "TYPE A (k INT, at TIMESTAMP) TIME at TYPE B (k INT, at TIMESTAMP) TIME at"
        " ORDER BY at DELAY 5 SECONDS AHEAD 1 MINUTE SUBSCRIPTION S MATCH A a THEN B b"
    )
    rows = [
        {"type": "A", "k": 1, "at": "2026-01-01T00:00:30Z", "_stored": "2026-01-01T00:00:30Z"},
        {"type": "A", "k": 2, "at": "2026-01-01T00:00:20Z", "_stored": "2026-01-01T00:00:31Z"},  # late
        {"type": "A", "k": 3, "at": "2026-01-01T00:09:00Z", "_stored": "2026-01-01T00:00:32Z"},  # ahead
        {"type": "B", "k": 4, "at": "2026-01-01T00:00:40Z", "_stored": "2026-01-01T00:00:40Z"},
    ]
    events = tmp_path / "events.jsonl"
    events.write_text("".join(json.dumps(each) + "\n" for each in rows))
    command = [str(tmp_path / "rules.fl"), "--events", str(events)]
    ran = fairlead("run", *command, "--out", "-", "--quiet")
    assert [json.loads(line)["positions"] for line in ran.output.splitlines()] == [[0, 1]]
    told = json.loads(fairlead("why", *command, "--at", "1", "--json").output)
    assert told["event"]["k"] == 4
    assert [each["verdict"] for each in told["findings"]] == ["matched"]
    assert told["verdicts"] == {"late": 1, "ahead": 1}
    assert "1 ahead, 1 late" in fairlead("why", *command, "--at", "1").output


LIMITED = """\
TYPE A (v INT, at TIMESTAMP) TIME at
TYPE B (v INT, at TIMESTAMP) TIME at
SUBSCRIPTION S MATCH A a THEN B b {options}
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("LIMIT 1", "LIMIT 1: as many relations were delivered before it"),
        ("PER v LIMIT 1 PER KEY", "relations of its key were"),
    ],
)
def test_an_event_whose_relation_is_beyond_the_limit_is_limited(tmp_path: Path, options: str, said: str) -> None:
    events = [one("A", 1, 0), one("B", 1, 1), one("A", 1, 2), one("B", 1, 3), one("A", 1, 4)]
    rules = LIMITED.format(options=options)
    assert finding(tmp_path, rules, events, 0)[0] == "matched"
    verdict, reason = finding(tmp_path, rules, events, 2)
    assert verdict == "limited"
    assert "in the relation [2, 3]" in reason
    assert said in reason
    assert finding(tmp_path, rules, events, 4)[0] == "waiting"


def test_an_absence_that_fires_beyond_the_limit_is_limited(tmp_path: Path) -> None:
    rules = LIMITED.format(options="LIMIT 1").replace("THEN B b", "WITHOUT B b WITHIN 2 SECONDS OF a")
    events = [one("A", 1, 0), one("A", 2, 1), one("A", 3, 50)]
    assert [finding(tmp_path, rules, events, at)[0] for at in range(3)] == ["matched", "limited", "pending"]
