"""A listener's feed: relations, relations that are taken back and reports, as events, by WebSocket and as CloudEvents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from openapi_schema_validator import OAS31Validator

from fairlead import compile, match
from fairlead.model.events.verdict import EventReport, EventVerdict
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.core.deliveries import NO_NUMBERS, Batch, DeliveryNumbers
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.transport.events import read_events
from fairlead.web.metrics import GatewayMetrics
from fairlead.web.openapi import SCHEMAS
from fairlead.web.streams.feed import Feed, FeedMessage, Writing

TYPES = "TYPE A (k INT, at TIMESTAMP) TIME at;"
PLAN = compile(f"{TYPES} ORDER BY at DELAY 0 SECONDS LATE REVISE WITHIN 1 MINUTE SUBSCRIPTION S MATCH A a")
EVENTS = [{"type": "A", "k": k, "at": f"2026-01-31T10:00:0{k}Z", "_source": "s", "_sequence": k} for k in range(3)]
KEY = "group"


class Told:
    """A subscription that has these batches."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.plan: Plan = PLAN
        self.receipts: Mapping[str, None] = {KEY: None}
        self.acknowledged: list[Mapping[str, int]] = []
        self.skipped: dict[str, int] = {}
        self._batches = batches

    async def batches(self) -> AsyncIterator[Batch]:
        for each in self._batches:
            yield each

    def skip_early(self, key: str, number: int) -> None:
        self.skipped[key] = number

    async def acknowledge(self, numbers: Mapping[str, int]) -> None:
        self.acknowledged.append(numbers)


def relations() -> list[Relation]:
    return list(match(compile(f"{TYPES} SUBSCRIPTION S MATCH A a"), EVENTS))


def reports(*verdicts: EventVerdict) -> list[EventReport]:
    (columns,) = read_events(EVENTS[: len(verdicts)], PLAN.catalogue)
    return [EventReport(verdict, each, ("S",)) for verdict, each in zip(verdicts, columns.events(PLAN.catalogue), strict=True)]


def batches() -> list[Batch]:
    one, two, three = relations()
    nothing = Batch(PLAN, [], DeliveryNumbers(0, (), ()), reports(EventVerdict.LATE), [0])
    first = Batch(PLAN, [one, two], DeliveryNumbers(2, (KEY,), (1,)))
    again, numbers = [one.taken_back(), three, one], DeliveryNumbers(3, (KEY,), (3,))
    revised = Batch(PLAN, again, numbers, reports(*[EventVerdict.AHEAD] * 3), [1, 1, 3])
    early = Batch(PLAN, [replace(each, early=True) for each in (two, two.taken_back())], NO_NUMBERS, early=True)
    return [nothing, first, early, revised]


def messages(after: str | None = None) -> tuple[list[FeedMessage], Told]:
    told = Told(batches())

    async def work() -> list[FeedMessage]:
        return [each async for each in Feed(cast(LiveSubscription, told), after)]

    return asyncio.run(work()), told


def test_deliveries_have_ids_and_reports_are_among_them_without() -> None:
    one, two, three = (each.id for each in relations())
    found, _ = messages()
    assert [(each.kind, each.id) for each in found] == [
        ("verdict", None),
        ("relation", f"1-{one}"),
        ("relation", f"2-{two}"),
        ("early", None),
        ("early-retraction", None),
        ("retraction", f"3-{one}"),
        ("verdict", None),
        ("verdict", None),
        ("relation", f"4-{three}"),
        ("relation", f"5-{one}"),
        ("verdict", None),
    ]


def test_a_listener_resumes_after_a_retraction_and_acknowledges_it_as_any_delivery() -> None:
    one, *_ = (each.id for each in relations())
    found, told = messages(after=f"3-{one}")
    assert [each.number for each in found if each.id] == [4, 5]
    assert told.acknowledged == [{KEY: 3}]


@pytest.mark.parametrize("cloudevents", [False, True])
def test_messages_are_written_as_the_description_says(cloudevents: bool) -> None:
    found, _ = messages()
    writing = Writing(PLAN, cloudevents)
    values = [json.loads(writing.text(writing.value(each))) for each in found]
    if cloudevents:
        assert [each["type"] for each in values] == [f"fairlead.{each.kind}" for each in found]
        assert len({(each["source"], each["id"]) for each in values}) == len(values)
        values = [each["data"] for each in values]
    for message, value in zip(found, values, strict=True):
        OAS31Validator(SCHEMAS["EventReport" if message.kind == "verdict" else "Relation"]).validate(value)
        assert value.get("sign", 1) == (-1 if message.kind.endswith("retraction") else 1)
        assert value.get("early", False) == message.kind.startswith("early")
        assert value.get("verdict") == (message.content.verdict if isinstance(message.content, EventReport) else None)


def test_metrics_count_verdicts_by_kind_and_retractions_apart() -> None:
    metrics = GatewayMetrics()
    found, _ = messages()
    for each in found:
        metrics.count_sent(each.kind, each.content)
    lines = metrics.text().splitlines()
    expected: dict[str, Any] = {
        "relations_sent_total": 4.0,
        "retractions_sent_total": 1.0,
        "early_sent_total": 2.0,
        'verdicts_sent_total{verdict="late"}': 1.0,
        'verdicts_sent_total{verdict="ahead"}': 3.0,
    }
    for name, value in expected.items():
        assert f"fairlead_gateway_{name} {value}" in lines
