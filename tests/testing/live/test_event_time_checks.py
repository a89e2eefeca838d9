"""The checks of the failure suite in event time find what they are there for: each is given a run in which something is wrong.

The run is a log in memory with jittered times; the deliveries are made by the runtime's machine, whole or broken.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.model.relations.identity import to_hex
from fairlead.model.relations.relation import Relation
from fairlead.runtime.event_time import EventTimeMatcher, Revision
from fairlead.runtime.event_time.reviser import Reviser
from fairlead.runtime.live.core.stream_groups import StreamGroup, groups_of
from fairlead.testing.live.actors.jitter import lag_of, time_of
from fairlead.testing.live.actors.publisher import key_of
from fairlead.testing.live.actors.setting import FINAL, NAMES, ORDERED, STREAMS, TYPES
from fairlead.testing.live.verdict import checks, event_time
from fairlead.testing.live.verdict.comparison import ORDERED_PLAN, final_relations
from fairlead.testing.live.verdict.deliveries import DeliveredNumbers
from fairlead.testing.live.verdict.event_time import ExportedEvents, due, exported, folded, reported
from fairlead.testing.live.verdict.log_copy import Copy, copied
from fairlead.testing.live.verdict.trace import Subscriber
from fairlead.transport.log.protocol import Stored

GROUPS = {name: group for group in groups_of(ORDERED_PLAN) for name in group.names}
EVENTS = 400
Lines = list[dict[str, Any]]


async def published(folder: Path) -> tuple[Copy, dict[str, ExportedEvents], list[Stored]]:
    rolls, begun, counts = random.Random(5), datetime.now(UTC), dict.fromkeys(NAMES, 0)
    async with fairlead.connect("memory:", source="left") as fl:
        await fl.declare(TYPES)
        for each in STREAMS:
            await fl.log.open_topics(each)
        for number in range(EVENTS):
            name = rolls.choice(NAMES)
            x = counts[name]
            counts[name] += 1
            at = time_of("left", name, x, begun + number * timedelta(seconds=0.1))
            await fl.publish(name, k=key_of("left", name, x), x=x, at=at, wait=rolls.random() < 0.4)
        await fl.flush()
        tables = {}
        for name in GROUPS:
            await fl.export(ORDERED, folder / f"{name}.parquet", subscription=name)
            tables[name] = exported(ORDERED_PLAN, pq.read_table(folder / f"{name}.parquet"))
        async with fl.subscribe(ORDERED, start="earliest") as sub:
            ends = await sub.ends()
            while not await sub.has_passed(ends):
                await sub.next_within(0.2)
        derived = (await copied(fl, [("main",)], 0)).topics["main"]
        return await copied(fl, STREAMS, 0), tables, derived


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Copy, dict[str, ExportedEvents], list[Stored]]:
    return asyncio.run(published(tmp_path_factory.mktemp("run")))


@pytest.fixture
def copy(run: tuple[Copy, dict[str, ExportedEvents], list[Stored]]) -> Copy:
    return Copy(run[0].streams)


@pytest.fixture
def events(run: tuple[Copy, dict[str, ExportedEvents], list[Stored]]) -> dict[str, ExportedEvents]:
    return run[1]


def lines_of(relations: Sequence[Relation]) -> Lines:
    return [
        {"number": number, "id": each.id, "sign": each.sign, "subscription": each.subscription, "at": number}
        for number, each in enumerate(relations, 1)
    ]


def wrong_deliveries(copy: Copy, group: StreamGroup, lines: Lines) -> str:
    who = Subscriber("timed", ORDERED_PLAN, {"0": DeliveredNumbers(lines)})
    return str([each for each in checks.delivered(copy, who, {}) if "relations, " in each and "receipt" not in each])


def due_with(copy: Copy, group: StreamGroup) -> Sequence[Relation]:
    """As the machine finds it now."""
    return due(Copy(copy.streams), group)[0]


@pytest.mark.parametrize("name", GROUPS)
def test_what_went_well_is_found_to_be_well(copy: Copy, events: dict[str, ExportedEvents], name: str) -> None:
    relations, places = due(copy, GROUPS[name])
    lines = lines_of(relations)
    assert {each["sign"] for each in lines} == {1, -1}
    assert {each[0] for each in events[name].reports} == {"late", "ahead"}
    assert wrong_deliveries(copy, GROUPS[name], lines) == "[]"
    assert folded("timed", lines, events[name], name) == []
    assert reported("timed", record(events[name], places, name), events[name].reports, places, name) == []
    assert to_hex(event_time.words_of(lines)) == to_hex(delivery_words(relations))


def record(events: ExportedEvents, places: Sequence[int], name: str, first: int = 0, last: int | None = None) -> Lines:
    """What a subscriber writes down that has these verdicts."""
    return [{"begun": "timed"}] + [
        {"verdict": each[0], "event": list(each[1:]), "subscription": name, "after": place, "beside": False}
        for each, place in list(zip(events.reports, places, strict=True))[first:last]
    ]


def test_a_relation_that_is_not_taken_back_is_found(copy: Copy, events: dict[str, ExportedEvents]) -> None:
    lines = lines_of(due(copy, GROUPS["Next"])[0])
    del lines[next(at for at, each in enumerate(lines) if each["sign"] < 0)]
    assert "are due: number" in wrong_deliveries(copy, GROUPS["Next"], lines)
    (found,) = folded("timed", lines, events["Next"], "Next")
    assert "1 are not among these, 0 are missing" in found


def test_one_that_is_taken_back_without_having_been_delivered_is_found(copy: Copy, events: dict[str, ExportedEvents]) -> None:
    lines = lines_of(due(copy, GROUPS["Next"])[0])
    lines.append(next(each for each in lines if each["sign"] < 0))
    assert "has taken back 1 relations of Next that it had not delivered" in folded("timed", lines, events["Next"], "Next")[0]


def test_a_machine_that_never_takes_back_is_found_although_the_checks_use_it(
    copy: Copy, events: dict[str, ExportedEvents], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Reviser.revise
    monkeypatch.setattr(Reviser, "revise", lambda self: Revision([], whole(self).added))
    lines = lines_of(due_with(copy, GROUPS["Next"]))
    assert "are not among these, 0 are missing" in str(folded("timed", lines, events["Next"], "Next"))


def test_a_machine_that_drops_late_events_is_found_although_the_checks_use_it(
    copy: Copy, events: dict[str, ExportedEvents], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reviser, "revise", lambda self: Revision([], []))
    for name, group in GROUPS.items():
        assert "fold to" in str(folded("timed", lines_of(due_with(copy, group)), events[name], name))


def test_rounds_of_batches_instead_of_blocks_are_found(
    copy: Copy, events: dict[str, ExportedEvents], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subscriber that reads many blocks at once would revise them together: the same in the end, and another sequence."""
    whole, bits = EventTimeMatcher.__init__, event_time.INDEX_BITS + 5
    monkeypatch.setattr(EventTimeMatcher, "__init__", lambda self, plan, _, **more: whole(self, plan, bits, **more))
    step = EventTimeMatcher.step
    monkeypatch.setattr(EventTimeMatcher, "step", lambda self, columns, stored, closed: step(self, columns, stored))
    lines = lines_of(due_with(copy, GROUPS["Next"]))
    monkeypatch.undo()
    assert "are due: number" in wrong_deliveries(copy, GROUPS["Next"], lines)


def test_verdicts_that_are_missing_others_or_elsewhere_are_found(copy: Copy, events: dict[str, ExportedEvents]) -> None:
    mine, (relations, places) = events["Next"], due(copy, GROUPS["Next"])
    count = len(mine.reports)
    assert count > 4

    def found(lines: Lines) -> str:
        end = {"number": len(relations), "subscription": "Next"}
        return str(reported("timed", [*lines, end], mine.reports, places, "Next"))

    assert found(record(mine, places, "Next")) == "[]"
    again = [*record(mine, places, "Next", 0, 3), *record(mine, places, "Next", 1)]  # killed, and reported again
    assert found(again) == "[]"
    assert "lacks the verdicts 3 to 3" in found([*record(mine, places, "Next", 0, 2), *record(mine, places, "Next", 3)])
    assert f"has 2 verdicts of Next, {np.searchsorted(places, len(relations))} are due" in found(
        record(mine, places, "Next", 0, 2)
    )
    other = record(mine, places, "Next")
    other[3] |= {"verdict": "ahead" if other[3]["verdict"] == "late" else "late"}
    assert f"has {(other[3]['verdict'], *other[3]['event'])} of Next" in found(other)
    elsewhere = record(mine, places, "Next")
    elsewhere[2] |= {"after": elsewhere[2]["after"] + 1}
    assert "has a verdict of Next after delivery" in found(elsewhere)
    beside = [each | {"beside": True} if "verdict" in each else each for each in record(mine, places, "Next", 1)]
    assert "the one beside timed has" in found([*record(mine, places, "Next"), *beside])


def test_derived_events_that_are_not_final_or_missing_are_found(
    run: tuple[Copy, dict[str, ExportedEvents], list[Stored]],
) -> None:
    _, events, blocks = run
    final = final_relations(events)
    assert checks.derived(ORDERED_PLAN.catalogue, blocks, FINAL, final) == []
    early = events["Chain"].relations("Chain", timedelta(0))
    assert len(early) > len(final) > 10
    assert "are due" in str(checks.derived(ORDERED_PLAN.catalogue, blocks, FINAL, early))
    assert "are due" in str(checks.derived(ORDERED_PLAN.catalogue, blocks[:-1], FINAL, final))


def test_times_are_in_order_delayed_late_too_late_and_ahead() -> None:
    lags = [lag_of("left", "A", x) for x in range(1_000)]
    assert all(any(low < lag < high for lag in lags) for low, high in ((-200, -60), (0, 1), (1, 5), (5, 20)))
    assert 0.3 < sum(lag == 0 for lag in lags) / len(lags) < 0.7
