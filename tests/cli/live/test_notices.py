"""`tail` on what a subscription delivers: relations, relations that are taken back, and notices of events that took no part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from fairlead import compile, match
from fairlead.cli.live.tail import NoticeLines, Tailed, _chunks, _show, _tailed
from fairlead.deliver.notices import notices_of
from fairlead.deliver.receipt import Receipt
from fairlead.model.relation import Relation
from fairlead.model.verdict import EventNotice, EventVerdict
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
        self._late, self._ahead = notices_of(columns, [EventVerdict.LATE, EventVerdict.AHEAD], PLAN.catalogue)
        self._steps: Iterator[tuple[Relation | None, list[EventNotice]]] = iter(
            [(one, []), (None, [self._late]), (two, []), (None, []), (one.taken_back(), [self._ahead]), (None, [])]
        )
        self._notices: list[EventNotice] = []

    def next(self, timeout: float | None = None) -> Relation | None:
        relation, notices = next(self._steps)
        self._notices += notices
        return relation

    def notices(self) -> list[EventNotice]:
        taken, self._notices = self._notices, []
        return taken

    def has_passed(self, ends: Any) -> bool:
        return next(self._steps, None) is None

    @property
    def receipts(self) -> Mapping[str, Receipt]:
        return {"group": Receipt("plan", 3, "ab" * 16, 1, ("ab" * 16,) * 3)}

    def ack(self) -> None:
        self.acknowledged += 1


def tailed(*, as_json: bool, quiet: bool = False) -> Tailed:
    sub = cast(SyncSubscription, Told())
    notices = NoticeLines(to_stdout=as_json, shown=not quiet)
    steps = _chunks(sub, 3, None, [], notices)
    return _tailed(sub, None, steps, "-", None, notices)


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
