"""The conformance cases of late events live, on a log in memory and on a server: a round is a block of one publisher.

A live subscription reads the events of its own types, and its frontier is theirs. Where a case moves the frontier by an event
of another type, a heartbeat takes its place here, which bounds as much. What a log cannot be asked is listed with the reason.
Every subscription has deliveries of its own: what one event completes or revises in several is in the order of the text.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

import fairlead
from fairlead.model.events.verdict import EventReport
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client, connect
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.testing.revision_cases import RevisionCase, RevisionOutcome, RevisionSuite, load_revision_cases
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.memory_log import MemoryLog
from tests.conformance.test_revisions import label, plain, signed_labels
from tests.root import ROOT
from tests.runtime.event_time.sequences import at
from tests.runtime.live.reading import more
from tests.runtime.live.test_topics import client
from tests.transport.log.logs import run

Record = dict[str, Any]
NEVER = 1_000_000
"""Seconds, after all times of a case: a heartbeat then releases everything."""
APART = timedelta(microseconds=1)


def reason(case: RevisionCase) -> str | None:
    """Why a case is not one of a live subscriber; None if it is."""
    texts = [text for texts in case.rounds for text in texts]
    if any("stored=" in text for text in texts):
        return "the log says when it stores an event"
    if any("#" in text or "source=" in text for text in texts):
        return "a publisher numbers its events itself, once each"
    if len({each.types for each in groups_of(fairlead.compile(case.rules))}) > 1:
        return "subscriptions with other types have frontiers of their own"
    times = [text.split()[1] for text in texts]
    if len(set(times)) < len(times):
        return "events with equal keys are in the order in which they were published"
    return None


CASES = [case for case in load_revision_cases(ROOT / "conformance" / "late") if reason(case) is None]


class LiveRevisions(RevisionSuite):
    def client(self) -> Client:
        """Of an empty log."""
        raise NotImplementedError

    def check(self, case: RevisionCase) -> None:
        super().check(replace(case, expect=tuple(map(by_subscription, case.expect))))

    def batch(self, rules: str, events: list[Record]) -> list[str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [label(each) for each in fairlead.match(fairlead.compile(rules), plain(events))]

    def run(self, rules: str, rounds: list[list[Record]]) -> RevisionOutcome:
        plan = fairlead.compile(rules)
        (types,) = {each.types for each in groups_of(plan)}
        made: list[list[str]] = []
        verdicts: dict[int, str] = {}

        async def work() -> None:
            async with self.client() as fl:
                await fl.declare(rules[: rules.index("ORDER BY")])
                async with fl.subscribe(rules, start="earliest", emit=False, verdicts=True) as sub:
                    for records in rounds:
                        await fl.publish_all([published(each, types) for each in records], wait=True)
                        take(await more(sub))
                    await fl.publish("Heartbeat", at=at(NEVER), wait=True)
                    take(await more(sub))

        def take(found: list[Any]) -> None:
            made.append([*by_subscription(signed_labels(each for each in found if isinstance(each, Relation)))])
            for each in found:
                if isinstance(each, EventReport):
                    verdicts[each.event.to_json()["n"]] = each.verdict.value

        run(work)
        return RevisionOutcome(made[:-1], made[-1], verdicts)


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES, ids=str)
class TestInMemory(LiveRevisions):
    def client(self) -> Client:
        return client(MemoryLog(), "p", Random(1), lost=False)


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Client]]:
    """One server for all cases. Each has an account of its own, and with it a log of its own."""
    names = [f"case{number}" for number in range(len(CASES))]
    told = (f"{name} {{ jetstream: enabled, users: [{{user: {name}, password: {name}}}] }}" for name in names)
    with Server(tmp_path_factory.mktemp("server"), durable=False, more=f"accounts {{ {', '.join(told)} }}") as server:
        yield (connect(server.url, source="p", user=name, password=name) for name in names)


@pytest.mark.server
@pytest.mark.parametrize("case", CASES, ids=str)
class TestOnAServer(LiveRevisions):
    @pytest.fixture(autouse=True)
    def account(self, accounts: Iterator[Client]) -> None:
        self.accounts = accounts

    def client(self) -> Client:
        return next(self.accounts)


def by_subscription(deliveries: Sequence[str]) -> tuple[str, ...]:
    """Their names are in the order of the alphabet in all cases."""
    return tuple(sorted(deliveries, key=lambda each: each.split()[1]))


def published(record: Record, types: tuple[str, ...]) -> Record:
    time = at(record["at"] - 10)
    if record["type"] == "Heartbeat":
        return {"type": "Heartbeat", "at": time}
    if record["type"] not in types:
        return {"type": "Heartbeat", "at": time - APART}
    return {name: value for name, value in record.items() if name != "_number"} | {"at": time}


def test_most_cases_run_live() -> None:
    assert len(CASES) >= 30
