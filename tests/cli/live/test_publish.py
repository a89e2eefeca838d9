"""Files whose types are in several topics: events of different topics are stored close to each other. Errors of the command."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import fairlead
from fairlead.cli.live.publish import APART_EVENTS_MAX, _ending, _pieces
from fairlead.errors import DataError, FairleadError, LogError, StateError
from fairlead.model.events.verdict import EventReport
from fairlead.runtime.live.publisher.outbox import Outbox, telling
from fairlead.transport.events import read_events
from tests.cli import shop
from tests.cli.shop import write_lines

TYPES = "TOPIC a (A) TOPIC b (B) TOPIC c (C) " + " ".join(f"TYPE {name} (k INT, at TIMESTAMP) TIME at" for name in "ABC")
RULES = f"""
ORDER BY at DELAY {APART_EVENTS_MAX + 1} SECONDS
SUBSCRIPTION Either MATCH A a OR B b OR C c
"""
START = datetime(2026, 1, 1, tzinfo=UTC)


def events_of(random: Random, count: int) -> list[dict[str, Any]]:
    """One a second, and long stretches of one type."""
    name, made = "A", []
    for at in range(count):
        name = random.choice("ABC") if random.random() < 0.1 else name
        made.append({"type": name, "k": at, "at": START + timedelta(seconds=at)})
    return made


def test_a_delay_covers_the_events_that_are_published_together_and_need_not_cover_the_file() -> None:
    events = events_of(Random(3), 5 * APART_EVENTS_MAX)
    with fairlead.connect("memory:").sync as fl:
        fl.declare(TYPES)
        known = fl.types()
        published = []
        for columns in read_events(events, known):
            for piece in _pieces(columns, known):
                assert len(piece) <= APART_EVENTS_MAX
                assert all(table.num_rows for table in piece.tables.values())
                published.append(fl.publish_columns(piece))
        assert sum(published) == len(events)
        fl.publish("Heartbeat", at=START + timedelta(days=9), wait=True)
        found = []
        with fl.subscribe(RULES, start="earliest", verdicts=True) as sub:
            ends = sub.ends()
            while not sub.has_passed(ends):
                while (told := sub.next(timeout=0.1)) is not None:
                    assert not isinstance(told, EventReport)
                    found.append(told.events[0]["k"])
        assert found == [each["k"] for each in events]


def test_events_of_one_topic_are_not_cut() -> None:
    known = fairlead.compile("TYPE A (k INT) TYPE B (k INT) SUBSCRIPTION S MATCH A a AND B b").catalogue
    (columns,) = read_events([{"type": "AB"[at % 2], "k": at} for at in range(3000)], known)
    assert [len(each) for each in _pieces(columns, known)] == [3000]


CODES = [
    StateError("S131", "another publisher is storing 'A' under the source name 's'", "give every concurrent publisher …"),
    LogError("N001", "the server does not answer: no answer", "start it again: the events that were not stored are then sent"),
    LogError("N022", "the log has lost blocks of source 's'", "publish the events again that were lost; …"),
    LogError("N003", "permission denied", "ask for the right"),
]


@pytest.mark.parametrize("error", CODES, ids=lambda each: each.code)
@pytest.mark.parametrize("pieces", [0, 1, 3])
def test_an_error_of_the_command_promises_no_next_call(
    error: FairleadError, pieces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the code, and however much is stored before it: what the client would keep is lost with the command."""
    calls = 0

    async def failing(self: Outbox) -> None:
        nonlocal calls
        calls += 1
        with telling(accepted=True):
            if calls > pieces:
                raise error

    monkeypatch.setattr(Outbox, "stored", failing)
    monkeypatch.setenv("FAIRLEAD_URL", f"file:{tmp_path / 'log'}")
    write_lines(tmp_path / "a.jsonl", [{"type": "A", "k": at} for at in range(40)])
    (tmp_path / "types.fl").write_text("TYPE A (k INT)")
    assert shop.fairlead("declare", tmp_path / "types.fl").exit_code == 0
    found = shop.fairlead("publish", "--from", tmp_path / "a.jsonl", "--source", "s", "--batch-rows", "10")
    assert found.exit_code == 1
    assert found.stderr.startswith(f"{error.code} {error.problem}; the log has the first {pieces * 10} events, and some")
    assert "10 after them\n  fix: " in found.stderr
    assert "next publish" not in found.stderr
    assert "then sent" not in found.stderr
    assert "then publish the events that the log does not have" in found.stderr


def test_an_error_about_a_bad_call_stays_as_it_is() -> None:
    with pytest.raises(DataError, match="not accepted"), _ending(3, 4), telling(accepted=False):
        raise DataError("D007", "too large")
