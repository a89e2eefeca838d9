"""The end of a run: waits for the remaining deliveries, and compares everything.

Takes: the records of all workers, a cluster without injected faults. Gives: problems, and counts of what was checked. Never:
checks while a worker still publishes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import fairlead
from fairlead.dataclass import dataclass
from fairlead.deliver.receipt import Receipt
from fairlead.engine import compile
from fairlead.runtime.live.client import Client
from fairlead.testing.live.actors.processes import Worker
from fairlead.testing.live.actors.records import Line
from fairlead.testing.live.actors.setting import EMITTED, EMITTED_TOPIC, EQUAL, RULES, STREAMS, TYPES
from fairlead.testing.live.verdict import checks
from fairlead.testing.live.verdict.deliveries import given
from fairlead.testing.live.verdict.log_copy import Copy, Identity, copied, first_of_each
from fairlead.testing.live.verdict.trace import Subscriber, trace_of_run
from fairlead.testing.properties.checkers import CHECKERS
from fairlead.testing.properties.trace import Trace
from fairlead.transport.log.protocol import Stored

Counts = dict[str, dict[str, int]]
PLANS = {name: compile(f"{TYPES} {rules}") for name, rules in RULES.items()}


@dataclass(frozen=True, eq=False)
class FinalLog:
    """The log when subscribers are done as well."""

    copy: Copy
    derived: list[Stored]
    receipts: Mapping[str, Mapping[str, Receipt]]
    problems: list[str]


async def the_log(url: str, seconds: float) -> Copy:
    """The log when publishers are done."""
    async with fairlead.connect(url, replicas=3) as fl:
        return await copied(fl, STREAMS, seconds)


async def the_rest(url: str, copy: Copy) -> FinalLog:
    """The log when subscribers are done."""
    async with fairlead.connect(url, replicas=3) as fl:
        derived = (await copied(fl, [(EMITTED_TOPIC,)], 0)).topics[EMITTED_TOPIC]
        receipts = {name: await fl.receipts(name) for name in RULES}
        return FinalLog(copy, derived, receipts, await _compared(fl))


async def _compared(fl: Client) -> list[str]:
    """The receipts, compared as a user does: of equal subscribers, and of those that share some subscriptions."""
    found = await fl.compare(*EQUAL)
    return [] if found else [f"{' and '.join(EQUAL)} do not agree: {found}"]


def subscriber_of(worker: Worker) -> tuple[Subscriber, list[str]]:
    found, problems = given(worker.name, worker.record.refresh())
    return Subscriber(worker.name, PLANS[worker.name], found), problems


def wait_for_deliveries(copy: Copy, workers: Sequence[Worker], seconds: float) -> bool:
    """Waits until all have acknowledged everything; whether they have."""
    end = time.monotonic() + seconds
    due: dict[str, int] = {}
    while True:
        behind = False
        for worker in workers:
            who, _ = subscriber_of(worker)
            for key, group in who.groups.items():
                if key not in due:
                    due[key] = len(checks.expected(copy, group))
                behind = behind or who.given[key].acked < due[key]
            behind = behind or any(len(checks.expected(copy, each)) for each in who.silent)
        if not behind or time.monotonic() > end:
            return not behind
        time.sleep(0.2)


def judged(outcome: FinalLog, workers: Sequence[Worker], subscribers: Sequence[Worker]) -> tuple[list[str], Counts]:
    """The problems, and by check the number of items checked."""
    catalogue = PLANS[EQUAL[0]].catalogue
    records = {each.name: each.record.refresh() for each in workers if each.record.last("sent")}
    problems = list(outcome.problems)
    problems += checks.stored(outcome.copy, catalogue, records)
    problems += checks.merged(outcome.copy)
    everyone = []
    for worker in subscribers:
        who, wrong = subscriber_of(worker)
        everyone.append(who)
        problems += wrong + checks.delivered(outcome.copy, who, outcome.receipts.get(who.name, {}))
    emitting = [group for who in everyone for group in who.groups.values() if EMITTED in group.plan.emitters]
    problems += checks.derived(outcome.copy, catalogue, outcome.derived, EMITTED, emitting)
    trace = trace_of_run(outcome.copy, catalogue, _sent(records), everyone)
    problems += checks.kept(trace, PLANS)
    return problems, _counts(outcome, trace, everyone, records)


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
        "derived": {"blocks": len(outcome.derived)},
        "kept": {
            "properties": len(CHECKERS),
            "subscriptions": sum(bool(each.subscription) for each in trace.processes),
            "deliveries": len(trace.deliveries),
        },
    }


def _sent(records: Mapping[str, Sequence[Line]]) -> dict[Identity, int]:
    found: dict[Identity, int] = {}
    for source, lines in records.items():
        for each in lines:
            if "sent" in each:
                found.setdefault((each["type"], source, each["sent"]), each["at"])
    return found
