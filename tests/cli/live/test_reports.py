"""`tail` on what a subscription delivers: relations, relations that are taken back, and reports on events that took no part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import cast

import pytest

from fairlead import compile, match
from fairlead.cli.live.tail import ReportLines, Tailed, _chunks, _show, _tailed
from fairlead.deliver.receipt import Receipt
from fairlead.model.events.verdict import EventReport, EventVerdict
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.sync_client import SyncSubscription
from fairlead.transport.events import read_events
from fairlead.transport.log.jetstream.server import Server
from tests.cli.shop import fairlead, write_lines

TYPES = "TYPE A (k INT, at TIMESTAMP) TIME at;"
PLAN = compile(f"{TYPES} ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 1 MINUTE SUBSCRIPTION S MATCH A a")
EVENTS = [{"type": "A", "k": k, "at": f"2026-01-31T10:00:0{k}Z", "_source": "s", "_sequence": k} for k in range(2)]


class Told:
    """A subscription that delivers two relations, takes the first back, and reports an event in between."""

    def __init__(self) -> None:
        self.plan = PLAN
        self.acknowledged = 0
        one, two = match(compile(f"{TYPES} SUBSCRIPTION S MATCH A a"), EVENTS)
        (columns,) = read_events(EVENTS, PLAN.catalogue)
        late, ahead = map(EventReport, (EventVerdict.LATE, EventVerdict.AHEAD), columns.events(PLAN.catalogue))
        self._delivered: Iterator[Relation | EventReport | None] = iter(
            [one, late, None, two, ahead, one.taken_back(), None, None]
        )

    def next(self, timeout: float | None = None) -> Relation | EventReport | None:
        return next(self._delivered)

    @property
    def receipts(self) -> Mapping[str, Receipt]:
        return {"group": Receipt("plan", 3, "ab" * 16, 1, ("ab" * 16,) * 3)}

    def ack(self) -> None:
        self.acknowledged += 1


def tailed(*, as_json: bool, quiet: bool = False) -> Tailed:
    sub = cast(SyncSubscription, Told())
    reports = ReportLines(to_stdout=as_json, shown=not quiet)
    return _tailed(sub, None, _chunks(sub, 3, None, [], reports), "-", None, reports)


def test_people_read_verdicts_on_the_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    done = tailed(as_json=False)
    printed = capsys.readouterr()
    assert [json.loads(line)["sign"] for line in printed.out.splitlines()] == [1, 1, -1]
    assert printed.err.splitlines() == [
        "late: A 0 of s, 2026-01-31T10:00:00Z, position 0",
        "ahead: A 1 of s, 2026-01-31T10:00:01Z, position 1",
    ]
    _show(done)
    assert capsys.readouterr().err.splitlines()[:2] == ["S: 2 relations, 1 taken back", "1 event late, 1 ahead"]
    tailed(as_json=False, quiet=True)
    assert capsys.readouterr().err == ""


def test_programs_read_them_between_the_relations(capsys: pytest.CaptureFixture[str]) -> None:
    done = tailed(as_json=True)
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = [json.loads(line) for line in printed.out.splitlines()]
    assert [each.get("verdict", each.get("sign")) for each in lines] == [1, "late", 1, "ahead", -1]
    told = done.to_json()
    assert (told["relations"], told["taken_back"], told["verdicts"]) == ({"S": 2}, {"S": 1}, {"late": 1, "ahead": 1})


PLANT = """
TYPE Alarm (k INT, at TIMESTAMP) TIME at
TYPE Reading (k INT, at TIMESTAMP) TIME at
"""
UNANSWERED = """
ORDER BY at DELAY 2 SECONDS AHEAD 1 MINUTE LATE REVISE WITHIN 10 SECONDS
SUBSCRIPTION Unanswered MATCH Alarm a WITHOUT Reading r WITHIN 3 SECONDS OF a PER k
"""


@pytest.mark.server
def test_a_tail_of_a_log_prints_signs_and_verdicts_in_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plant.fl").write_text(PLANT)
    Path("rules.fl").write_text(UNANSWERED)
    blocks = (
        [("Alarm", 1, "01"), ("Reading", 9, "06"), ("Reading", 9, "11")],
        [("Reading", 1, "02")],  # late, and within what is revised
        [("Alarm", 7, "2099-01-01T00:00:00Z"), ("Reading", 9, "30")],
        [("Reading", 8, "03")],  # too late
    )
    with Server(tmp_path / "server", durable=False) as server:
        monkeypatch.setenv("FAIRLEAD_URL", server.url)
        assert fairlead("declare", "plant.fl").exit_code == 0
        for block in blocks:
            rows = [{"type": name, "k": k, "at": at if "T" in at else f"2026-01-31T10:00:{at}Z"} for name, k, at in block]
            write_lines(Path("block.jsonl"), rows)
            assert fairlead("publish", "--from", "block.jsonl", "--source", "plant", "-q").exit_code == 0
        tail = ("tail", "rules.fl", "--start", "earliest", "--until-end")
        found = fairlead(*tail, "--json")
        assert found.exit_code == 0, found.output
        lines = [json.loads(line) for line in found.stdout.splitlines()]
        assert [each.get("verdict", each.get("sign")) for each in lines] == [1, -1, "ahead", "late"]
        assert lines[0]["id"] == lines[1]["id"]
        assert [(each["type"], each["event"]["k"]) for each in lines[2:]] == [("Alarm", 7), ("Reading", 8)]
        summary = json.loads(found.stderr)
        assert (summary["relations"], summary["taken_back"]) == ({"Unanswered": 1}, {"Unanswered": 1})
        assert summary["verdicts"] == {"ahead": 1, "late": 1}
        assert summary["receipts"][0]["deliveries"] == 2
        Path("found.jsonl").write_text(found.stdout)
        early = [json.loads(line) for line in fairlead(*tail, "--early", "all", "-q").stdout.splitlines()]
        assert [each["sign"] for each in early if each.get("early")] == [1, -1]
        assert [each["sign"] for each in early if "early" not in each] == [1, -1]
        assert early[0]["early"] is True
        told = fairlead(*tail, "--early", "all")
        assert "Unanswered: 1 relation, 1 taken back; 2 early lines\n" in told.stderr
        Path("early.jsonl").write_text(told.stdout)
        assert fairlead("compare", "found.jsonl", "early.jsonl").exit_code == 0  # early lines are not in receipts
        assert fairlead(*tail, "--early", "final", "-q").stdout.count("early") == 0  # another event can change each
        assert fairlead(*tail, "--early", "all", "--out", "early.parquet").exit_code == 2
        plain = fairlead(*tail, "--out", "again.parquet")
        assert "ahead: Alarm 4 of plant, 2099-01-01T00:00:00Z, position " in plain.stderr
        assert "Unanswered: 1 relation, 1 taken back\n1 event late, 1 ahead\n" in plain.stderr
        assert plain.stdout == ""
        fairlead(*tail, "--name", "desk", "-q")
        (line,) = json.loads(fairlead("streams", "--json").stdout)["subscribers"]
        assert (line["acknowledged"], line["verdicts"]) == (2, {"ahead": 1, "late": 1})
        assert "1 event late, 1 ahead" in fairlead("streams").stdout
        same = fairlead("compare", "found.jsonl", "again.parquet")
        assert (same.exit_code, same.stdout) == (0, "equal: 2 relations, the same in the same order\n")


SEVERAL = {
    "apart": "SUBSCRIPTION S MATCH A a AND B b SUBSCRIPTION T MATCH B b AND C c SUBSCRIPTION U MATCH C c",
    "nested": "SUBSCRIPTION S MATCH A a SUBSCRIPTION T MATCH A a AND B b SUBSCRIPTION U MATCH A a AND B b AND C c",
    "alike": "SUBSCRIPTION S MATCH A a THEN B b SUBSCRIPTION T MATCH A a AND B b",
}


@pytest.mark.parametrize("topics", ["", "TOPIC b (A) TOPIC a (B) TOPIC c (C)"], ids=["one topic", "topics"])
@pytest.mark.parametrize("rules", SEVERAL.values(), ids=SEVERAL)
def test_an_event_counts_once_however_many_subscriptions_it_is_late_for(
    rules: str, topics: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `fairlead run`, though every subscription has its reports; in the summary for people and in that for programs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRLEAD_URL", f"file:{tmp_path / 'log'}")
    random = Random(rules + topics)
    types = topics + " ".join(f" TYPE {name} (k INT, at TIMESTAMP) TIME at" for name in "ABC")
    Path("types.fl").write_text(types)
    Path("rules.fl").write_text(f"ORDER BY at DELAY 2 SECONDS {rules}")
    assert fairlead("declare", "types.fl").exit_code == 0
    rows = [
        {"type": random.choice("ABC"), "k": at, "at": f"2026-01-31T10:00:{max(0, at - random.choice((0, 0, 1, 9))):02}Z"}
        for at in range(50)
    ]
    write_lines(Path("events.jsonl"), rows)
    assert fairlead("publish", "--from", "events.jsonl", "--source", "s", "--batch-rows", "1", "-q").exit_code == 0
    tail = ("tail", "rules.fl", "--start", "earliest", "--until-end", "--no-emit")
    found = fairlead(*tail, "--json")
    assert found.exit_code == 0, found.output
    reports = [each for each in map(json.loads, found.stdout.splitlines()) if "verdict" in each]
    events = {(each["type"], each["sequence"]) for each in reports}
    assert 1 < len(events) < len(reports)
    assert json.loads(found.stderr)["verdicts"] == {"late": len(events)}
    shown = fairlead(*tail, "--out", "found.jsonl").stderr
    assert f"\n{len(events)} events late\n" in shown
    assert shown.count("late: ") == len(reports)
    assert shown.count(", for ") == len(reports)
    exported = fairlead("export", "rules.fl", "--out", "events.parquet")
    assert (exported.exit_code, exported.stdout) == (0, "")
    assert "events of A, B" in exported.stderr
    Path("whole.fl").write_text(f"{types} ORDER BY at DELAY 2 SECONDS {rules}")
    again = json.loads(fairlead("run", "whole.fl", "--events", "events.parquet", "--json").stdout)
    assert again["late"] == len(events)
