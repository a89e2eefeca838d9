"""The end of a run: waits for the remaining deliveries, and compares everything.

Takes: the records of all workers, a cluster without injected faults. Gives: problems, and counts of what was checked. Never:
checks while a worker still publishes.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq

import fairlead
from fairlead.dataclass import dataclass
from fairlead.deliver.receipt import Receipt
from fairlead.engine import compile
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.testing.live.actors.beginning import time_of_log
from fairlead.testing.live.actors.processes import Worker
from fairlead.testing.live.actors.records import Line
from fairlead.testing.live.actors.setting import (
    ADDED,
    BEGINNING,
    EMITTED,
    EMITTED_TOPIC,
    EQUAL,
    FINAL,
    ORDERED,
    RULES,
    STREAMS,
    TYPES,
)
from fairlead.testing.live.verdict import checks, event_time
from fairlead.testing.live.verdict.deliveries import given
from fairlead.testing.live.verdict.event_time import ExportedEvents
from fairlead.testing.live.verdict.joining import joined_problems, last_acknowledged
from fairlead.testing.live.verdict.log_copy import Copy, Identity, copied, first_of_each
from fairlead.testing.live.verdict.publication import publications
from fairlead.testing.live.verdict.trace import Subscriber, trace_of_run
from fairlead.testing.properties.checkers import CHECKERS
from fairlead.testing.properties.trace import Trace
from fairlead.transport.log.protocol import Stored

Counts = dict[str, dict[str, int]]
PLANS = {name: compile(f"{TYPES} {rules}") for name, rules in RULES.items()}
ORDERED_PLAN = compile(f"{TYPES} {ORDERED}")
CATALOGUE = PLANS["one"].catalogue
DERIVED_SECONDS_MAX = 30.0
"""Derived events become final after the deliveries; the subscribers are about to store them."""


@dataclass(frozen=True, eq=False)
class FinalLog:
    """The log when subscribers are done as well. `exported`: by subscription in event time."""

    copy: Copy
    derived: list[Stored]
    receipts: Mapping[str, Mapping[str, Receipt]]
    problems: list[str]
    exported: Mapping[str, ExportedEvents]


async def the_log(url: str, seconds: float) -> Copy:
    """The log when publishers are done."""
    async with fairlead.connect(url, replicas=3) as fl:
        return await copied(fl, STREAMS, seconds)


async def the_exports(url: str, folder: Path) -> dict[str, ExportedEvents]:
    """The events of each subscription in event time, as a user exports them."""
    found = {}
    async with fairlead.connect(url, replicas=3) as fl:
        for each in ORDERED_PLAN.subscriptions:
            path = folder / f"{each.name}.parquet"
            await fl.export(ORDERED, path, subscription=each.name)
            table = pq.read_table(path)
            added = [name for name in table.column_names if name.startswith(ADDED)]  # which the rules do not read
            found[each.name] = event_time.exported(ORDERED_PLAN, table.drop_columns(added))
    return found


async def wait_for_derived(url: str, exported: Mapping[str, ExportedEvents]) -> None:
    """Waits until subscribers have stored the derived events that are final, or for long enough."""
    end, wanted = time.monotonic() + DERIVED_SECONDS_MAX, len(final_relations(exported))
    async with fairlead.connect(url, replicas=3) as fl:
        while time.monotonic() < end:
            blocks = (await copied(fl, [(EMITTED_TOPIC,)], 0)).topics[EMITTED_TOPIC]
            if sum(each.block.count for each in first_of_each(blocks) if each.block.type == FINAL) >= wanted:
                return
            await asyncio.sleep(0.5)


def final_relations(exported: Mapping[str, ExportedEvents]) -> list[Relation]:
    """The relations whose derived events no late event can change any more."""
    order = ORDERED_PLAN.order
    assert order is not None
    (emitting,) = ORDERED_PLAN.emitters[FINAL]
    return list(exported[emitting.name].relations(emitting.name, timedelta(microseconds=order.revise_us or 0)))


async def the_rest(url: str, copy: Copy, exported: Mapping[str, ExportedEvents]) -> FinalLog:
    """The log when subscribers are done."""
    async with fairlead.connect(url, replicas=3) as fl:
        derived = (await copied(fl, [(EMITTED_TOPIC,)], 0)).topics[EMITTED_TOPIC]
        receipts = {name: await fl.receipts(name) for name in RULES}
        return FinalLog(copy, derived, receipts, await _compared(fl), exported)


async def _compared(fl: Client) -> list[str]:
    """The receipts, compared as a user does: of equal subscribers."""
    found = {pair: await fl.compare(*pair) for pair in EQUAL}
    return [f"{' and '.join(pair)} do not agree: {each}" for pair, each in found.items() if not each]


def subscriber_of(worker: Worker) -> tuple[Subscriber, list[str]]:
    return recorded_subscriber(worker.name, worker.record.refresh())


def recorded_subscriber(name: str, lines: Sequence[Line]) -> tuple[Subscriber, list[str]]:
    """A subscriber by its record, and what is wrong with that."""
    found, problems = given(name, lines)
    told = next((line["start"] for line in lines if "start" in line), None)
    start = time_of_log(told) if told is not None and BEGINNING.get(name) == "time" else told
    return Subscriber(name, PLANS[name], found, start), problems


def wait_for_deliveries(copy: Copy, workers: Sequence[Worker], seconds: float) -> bool:
    """Waits until all have acknowledged everything; whether they have."""
    end = time.monotonic() + seconds
    due: dict[tuple[str, str], int] = {}
    while True:
        behind = False
        for worker in workers:
            who, _ = subscriber_of(worker)
            for key, group in who.groups.items():
                if (worker.name, key) not in due:
                    due[worker.name, key] = len(checks.expected(copy, group, who.start))
                behind = behind or who.given[key].acked < due[worker.name, key]
            behind = behind or any(len(checks.expected(copy, each, who.start)) for each in who.silent)
        if not behind or time.monotonic() > end:
            return not behind
        time.sleep(0.2)


def wait_for_joined(joined: Sequence[Worker], whole: Worker, seconds: float) -> None:
    """Waits until those that joined have acknowledged what the other has, or for long enough: less if all they lack are groups
    of which nothing has come yet, since they may have joined after the last delivery."""
    begun, wanted = time.monotonic(), last_acknowledged(whole.record.refresh())
    while (waited := time.monotonic() - begun) < seconds:
        found = [last_acknowledged(each.record.refresh()) for each in joined]
        if all(each == wanted for each in found):
            return
        if waited > seconds / 6 and all(each.items() <= wanted.items() for each in found):
            return
        time.sleep(0.2)


def judged_joined(joined: Sequence[Worker], whole: Worker) -> list[str]:
    deliveries, _ = given(whole.name, whole.record.refresh())
    return [problem for each in joined for problem in joined_problems(each.name, each.record.refresh(), deliveries)]


def judged(outcome: FinalLog, workers: Sequence[Worker], subscribers: Sequence[Worker]) -> tuple[list[str], Counts]:
    """The problems, and by check the number of items checked."""
    records = {each.name: each.record.refresh() for each in workers if each.record.last("sent")}
    problems = list(outcome.problems)
    problems += checks.stored(outcome.copy, CATALOGUE, records)
    problems += publications(outcome.copy, CATALOGUE, records)
    problems += checks.merged(outcome.copy)
    everyone = []
    for worker in subscribers:
        who, wrong = subscriber_of(worker)
        everyone.append(who)
        problems += wrong + checks.delivered(outcome.copy, who, outcome.receipts.get(who.name, {}))
        problems += _in_event_time(outcome, who, worker)
    problems += _derived(outcome, everyone)
    logged = [who for who in everyone if who.plan.order is None and who.start is None]
    trace = trace_of_run(outcome.copy, CATALOGUE, _sent(records), logged)
    problems += checks.kept(trace, PLANS)
    return problems, _counts(outcome, trace, everyone, records)


def _in_event_time(outcome: FinalLog, who: Subscriber, worker: Worker) -> list[str]:
    problems = []
    for key, group in who.groups.items() if who.plan.order is not None else ():
        (name,) = group.names
        events, (_, places) = outcome.exported[name], event_time.due(outcome.copy, group)
        problems += event_time.folded(who.name, who.given[key].lines, events, name)
        problems += event_time.reported(who.name, worker.record.lines, events.reports, places, name)
    return problems


def _derived(outcome: FinalLog, everyone: Sequence[Subscriber]) -> list[str]:
    emitting = [group for who in everyone for group in who.groups.values() if EMITTED in group.plan.emitters]
    problems = []
    for group in emitting:
        relations = [each for each in checks.expected(outcome.copy, group) if each.emitted_type == EMITTED]
        problems += checks.derived(group.plan.catalogue, outcome.derived, EMITTED, relations)
    return problems + checks.derived(ORDERED_PLAN.catalogue, outcome.derived, FINAL, final_relations(outcome.exported))


def _counts(outcome: FinalLog, trace: Trace, everyone: Sequence[Subscriber], records: Mapping[str, Sequence[Line]]) -> Counts:
    copy, every = outcome.copy, [each for who in everyone for each in who.given.values()]
    merged = sum(map(len, copy.merged.values()))
    return {
        "stored": {"events": len(trace.multicasts), "blocks": copy.count, "sources": len(records)},
        "merged": {
            "streams": len(copy.merged),
            "blocks": merged,
            "of them again": merged - sum(len(first_of_each(each)) for each in copy.merged.values()),
        },
        "delivered": {
            "relations": sum(len(each.lines) for each in every),
            "subscribers": len(everyone),
            "given again": sum(each.again for each in every),
            "receipts": sum(map(len, outcome.receipts.values())),
        },
        "revised": _revision_counts(outcome, everyone),
        "derived": {"blocks": len(outcome.derived)},
        "kept": {
            "properties": len(CHECKERS),
            "subscriptions": sum(bool(each.subscription) for each in trace.processes),
            "deliveries": len(trace.deliveries),
        },
    }


def _revision_counts(outcome: FinalLog, everyone: Sequence[Subscriber]) -> dict[str, int]:
    """In event time; reports are those that each subscriber gets."""
    lines = [line for who in everyone if who.plan.order is not None for each in who.given.values() for line in each.lines]
    verdicts = Counter(each[0] for events in outcome.exported.values() for each in events.reports)
    return {
        "deliveries": len(lines),
        "taken back": sum(line["sign"] < 0 for line in lines),
        **{f"{verdict} events": verdicts[verdict] for verdict in ("late", "ahead")},
        "subscribers": sum(who.plan.order is not None for who in everyone),
    }


def _sent(records: Mapping[str, Sequence[Line]]) -> dict[Identity, int]:
    found: dict[Identity, int] = {}
    for source, lines in records.items():
        for each in lines:
            if "sent" in each:
                found.setdefault((each["type"], source, each["sent"]), each["at"])
    return found
