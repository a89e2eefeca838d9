"""Live subscribers conform: the events of a case are published one after the other, and the relations are those of the case.

Every case runs on a log in memory, in one topic; with a topic for each type, and on a real server, a spread sample does, and
all with FAIRLEAD_LIVE_CASES=all. An event is published when the one before it is stored, merged and read, so that the order of
the log is that of the case. That this is so is read out of the log, and positions of the log are put down as those of the case
by what stands where in each stream. What
live subscribers cannot be asked is listed here with the reason, never skipped.

One thing is not compared: what is read from different streams. Subscriptions that have no stream in common are followed each
by itself, and a disjunction reads a stream for each of its conjunctions, and merges what comes of them by the times at which
the streams stored it. So what one event completes in several of them is put in the order of the text here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import fairlead
from fairlead.errors import FairleadError
from fairlead.language import compile_text
from fairlead.matching.results.delivery_order import NOT_DUE
from fairlead.model.events.position import Position
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.subscriber.stream_reader import blocks_between
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.testing.conformance import Case, CaseOutcome, ConformanceSuite, conforms
from fairlead.testing.live.verdict.log_copy import types_of
from fairlead.transport.log.blocks.block import INDEX_BITS
from tests.conformance.cases import CASES
from tests.transport.log.logs import run

ALL = os.environ.get("FAIRLEAD_LIVE_CASES") == "all"
SAMPLE = 12
"""Every so many cases run on a server, unless all are asked for."""
POLL_SECONDS = 0.002

TOLD_OTHERWISE: Mapping[str, tuple[str, str]] = {
    "a record without a type is refused": ("A010", "an event is published under the name of its type"),
}
"""Cases that live subscribers or publishers refuse with another code."""

REPEATED = "a client numbers what it publishes; of sources with numbers of their own, repeats are dropped before the log"
NUMBERED = "position() is the number in the log, which counts by blocks"
NOT_SAID: Mapping[str, str] = {
    "position and time of a member": NUMBERED,
    "the position of a derived event is the number of the event beside it": NUMBERED,
    "a declared type that a subscription emits is derived and cannot be published": (
        "whether a type is derived is a matter of a subscriber's rules: others may publish it"
    ),
    "a repeated sequence of a source is dropped and counted, and keeps its position number": REPEATED,
    "a sequence below the last one is a duplicate, a gap is not": REPEATED,
    "a source's sequence runs over all its types": REPEATED,
    "a dropped duplicate moves no clock and fires no absence": REPEATED,
}
"""Cases of which a log has no form, with the reason: they run, and are not compared."""


def listed(cases: tuple[Case, ...]) -> list[Case]:
    return [case for case in cases if case.name not in {*TOLD_OTHERWISE, *NOT_SAID}]


@pytest.mark.sampled
@pytest.mark.parametrize("case", listed(CASES), ids=str)
class TestInMemory(ConformanceSuite):
    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
        return run(lambda: delivered("memory:", rules, events, until))


@pytest.mark.sampled
@pytest.mark.parametrize("case", listed(CASES)[:: 1 if ALL else 3], ids=str)
class TestInMemoryWithTopics(ConformanceSuite):
    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
        return run(lambda: delivered("memory:", with_topics(rules), events, until))


LATER = (" BEFORE ", " LIMIT ", " CLOCK BY ")
"""Clauses of which cases run on a server for certain, not by chance."""
SERVED = listed(CASES)[:: 1 if ALL else SAMPLE]
SERVED += [
    case
    for word in LATER
    for case in [each for each in listed(CASES) if word in each.rules and not each.error and each not in SERVED][:3]
]


@pytest.mark.server
@pytest.mark.parametrize("case", SERVED, ids=str)
class TestOnAServer(ConformanceSuite):
    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
        return run(lambda: delivered(None, rules, events, until))


@pytest.mark.server
@pytest.mark.parametrize("case", SERVED[:: 1 if ALL else 4], ids=str)
class TestOnAServerWithTopics(ConformanceSuite):
    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
        return run(lambda: delivered(None, with_topics(rules), events, until))


@pytest.mark.parametrize("case", [case for case in CASES if case.name in TOLD_OTHERWISE], ids=str)
def test_what_cannot_be_published_or_subscribed_to_is_refused(case: Case) -> None:
    with pytest.raises(FairleadError) as caught:
        run(lambda: delivered("memory:", case.rules, [dict(event) for event in case.events], case.until))
    assert caught.value.code == TOLD_OTHERWISE[case.name][0]


@pytest.mark.parametrize("case", [case for case in CASES if case.name in NOT_SAID], ids=str)
def test_what_a_log_has_no_form_for_runs_and_comes_to_something_else(case: Case) -> None:
    """Should one of them conform one day, it no longer belongs here."""
    found = run(lambda: delivered("memory:", case.rules, [dict(event) for event in case.events], case.until))
    assert not conforms(case, found)


def test_every_exception_is_of_a_case() -> None:
    assert {*TOLD_OTHERWISE, *NOT_SAID} <= {case.name for case in CASES}


def with_topics(rules: str) -> str:
    """With a topic for each type, or for those that a supertype or a union joins."""
    try:
        catalogue = compile_text(rules).catalogue
    except FairleadError:
        return rules
    topic = {each.name: each.name for each in catalogue if not each.is_union and each.name != HEARTBEAT.name}
    for each in catalogue:
        joined = each.members if each.is_union else (each.name, each.supertype) if each.supertype else ()
        for other in joined[1:]:
            topic = {name: topic[joined[0]] if was == topic[other] else was for name, was in topic.items()}
    return " ".join(f"TOPIC t_{each} ({name})" for name, each in topic.items()) + f" {rules}"


async def delivered(url: str | None, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
    """Nothing more comes up to `until`: a heartbeat just after it says so in a log."""
    stream = [*events]
    if until is not None:
        stream.append({"type": "Heartbeat", "at": until.astimezone(UTC) + timedelta(microseconds=1)})
    async with fairlead.connect(url) as fl, fl.subscribe(rules, start="earliest", emit=False) as sub:
        (only, *others) = [*(each.name for each in sub.plan.catalogue if not each.is_union and not each.derived), None]
        found: list[Relation] = []
        for event in stream:
            name = event.get("type", only if others == [None] else None)
            await fl.publish(name, {key: value for key, value in event.items() if key != "type"}, wait=True)
            found += await read(sub)
        found += await read(sub)
        return CaseOutcome(await in_one_order(fl, sub, found, [str(event.get("type", only)) for event in stream]))


async def read(sub: LiveSubscription) -> list[Relation]:
    """All that is stored now, matched."""
    ends, found = await sub.ends(), []
    while True:
        relation = sub.next_at_hand() or await sub.next_within(POLL_SECONDS)
        if relation is not None:
            found.append(relation)
        elif await sub.has_passed(ends):
            return found


async def in_one_order(fl: Client, sub: LiveSubscription, found: list[Relation], types: list[str]) -> list[dict[str, Any]]:
    """The definition has one order: by the place of completion; at one place what deadlines decided, by deadline, and then in
    the order of the text. What comes of one stream is in it as it was delivered; what comes of several is put in it."""
    numbers = {each.name: at for at, each in enumerate(sub.plan.subscriptions)}
    places: dict[tuple[str, int], Mapping[int, int]] = {}
    apart: set[str] = set()
    for followed in sub._groups.values():
        apart |= set(followed.group.names if len(followed.streams) > 1 else ())
        for part, stream in zip(followed.group.parts, followed.streams, strict=True):
            known = await numbered(fl, stream, types)
            for each in (one for one in part.plan.subscriptions if one.name not in part.plan.silent):
                places |= {(each.name, each.number(at)): known for at in range(len(each.branches))}

    def delivery(relation: Relation) -> tuple[int, ...]:
        at, known = relation.completed_at, places[relation.subscription, relation.branch]
        branch = relation.branch if relation.subscription in apart else 0
        return known[at.major], at.minor, deadline(relation, sub.plan), numbers[relation.subscription], branch

    for task in sub._tasks:
        if len(task.reading.streams) == 1:
            names = {name for each in task.groups for name in each.group.names}
            mine = [each for each in found if each.subscription in names]
            assert mine == sorted(mine, key=delivery)
    return [shown(each, places[each.subscription, each.branch]) for each in sorted(found, key=delivery)]


def deadline(relation: Relation, plan: Plan) -> int:
    """Of what was decided before an event; what an event completed comes after that."""
    absences = plan[relation.subscription].branches[relation.branch].waiting if relation.completed_at.minor < 0 else ()
    return max(((relation.members[each.since].time or 0) + each.apart_us for each in absences), default=NOT_DUE)


async def numbered(fl: Client, stream: Any, types: list[str]) -> dict[int, int]:
    """By position in a stream, which event of the case stands there: the n-th of its type is the n-th that was published."""
    left: dict[tuple[str, str], Iterator[int]] = {}
    """By topic and type. Of heartbeats, only ours: those who read several streams publish more, to see how far each is."""
    found: dict[int, int] = {}
    async for some in blocks_between(fl.log, stream, 0, await fl.log.last(stream)):
        for stored in (each for each in some if each.block.source == fl.source):
            for at, name in enumerate(types_of(stored.block), stored.sequence << INDEX_BITS):
                mine = left.setdefault((stored.block.topic, name), iter([at for at, each in enumerate(types) if each == name]))
                found[at] = next(mine)
    order = [found[at] for at in sorted(found)]
    assert order == sorted(order), f"the order of the log is not that of the case: {order}"
    return found


def shown(relation: Relation, known: Mapping[int, int]) -> dict[str, Any]:
    def of_case(position: Position) -> int | str:
        return Position(known[position.major], position.minor).shown

    return {
        "subscription": relation.subscription,
        "positions": tuple(of_case(member.position) for member in relation.members),
        "emitted": relation.emitted,
        "completed_at": of_case(relation.completed_at),
        "branch": relation.branch,
    }
