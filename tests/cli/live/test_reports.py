"""`tail` on what a subscription delivers: relations, relations that are taken back, and reports on events that took no part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

import pytest

from fairlead import compile, match
from fairlead.cli.live.tail import ReportLines, Tailed, _chunks, _show, _tailed
from fairlead.deliver.receipt import Receipt
from fairlead.model.relation import Relation
from fairlead.model.verdict import EventReport, EventVerdict
from fairlead.runtime.live.sync_client import SyncSubscription
from fairlead.transport.events import read_events

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
    _show(done, err=True)
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
