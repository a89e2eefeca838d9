"""Subscribers with ORDER BY … DELAY … AHEAD … LATE REVISE, after a run. Each check returns the problems, in words.

    folded     what is left of a subscriber's deliveries, when those that were taken back are gone, is what sorting finds in the
               exported events; so are the derived events in the log, which are never taken back
    reported   the same verdicts on the same events were reported to every subscriber, at the same places among its deliveries

What becomes of an event is written out here once more, event by event, and does not use the runtime's machine. The signed
sequence itself (`due`) is that of a machine that is fed block by block, without any restart.

Takes: a copy of the log, exported events, records. Gives: problems. Never: stops at the first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.deliver.fold import remaining
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import Words, from_hex, signed
from fairlead.model.relations.relation import Relation
from fairlead.runtime.embedded import match
from fairlead.runtime.event_time import EventTimeMatcher
from fairlead.runtime.live.core.block_columns import columns_of
from fairlead.runtime.live.core.stream_groups import StreamGroup
from fairlead.testing.live.actors.records import Line
from fairlead.testing.live.verdict.log_copy import Copy, in_one_order
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.protocol import Stored

Report = tuple[str, str, str, int]
"""Verdict, type, source and x."""


def due(copy: Copy, group: StreamGroup) -> tuple[Sequence[Relation], Sequence[int]]:
    """All deliveries of a group in the copied log; and for each report on an event, how many of them are before it."""
    key = group.sources, group.digest
    if key not in copy.ordered:
        copy.ordered[key] = _due(copy, group)
    return copy.ordered[key]


def _due(copy: Copy, group: StreamGroup) -> tuple[Sequence[Relation], Sequence[int]]:
    (part,) = group.parts
    matcher = EventTimeMatcher(part.plan, INDEX_BITS, rejects=True)
    wanted = {name: group.plan.catalogue[name] for name in part.types} | {HEARTBEAT.name: HEARTBEAT}
    relations, places = list[Relation](), list[int]()
    for number, block in _numbered(copy, group):
        columns = columns_of([block], wanted, 0, sourced=True, numbers=np.array([number]))
        found = matcher.step(columns, np.full(len(columns), block.time), closed=True)
        by = found.by.tolist()
        places += [len(relations) + bisect_left(by, at) for at in sorted(found.verdicts.columns.position_array.tolist())]
        relations += found.relations
    return relations, places


def _numbered(copy: Copy, group: StreamGroup) -> Iterator[tuple[int, Stored]]:
    """The blocks that a group reads, each with its number in the sequence of the group."""
    blocks = [each for _, some in in_one_order(copy, group.sources) for each in some]
    numbers = [each.sequence for each in blocks] if len(group.sources) == 1 else range(1, len(blocks) + 1)
    return zip(numbers, blocks, strict=True)


@dataclass(frozen=True, eq=False)
class ExportedEvents:
    """The exported events of a subscription, in the order of the log. `verdicts`: on each. `frontier`: after all of them."""

    plan: Plan
    table: pa.Table
    verdicts: Sequence[EventVerdict]
    frontier: datetime

    @property
    def reports(self) -> list[Report]:
        """On the events that take no part."""
        rows = zip(self.table.select(["type", "_source", "x"]).to_pylist(), self.verdicts, strict=True)
        return [
            (str(verdict), row["type"], row["_source"], row["x"])
            for row, verdict in rows
            if verdict is not EventVerdict.IN_ORDER and row["type"] != HEARTBEAT.name
        ]

    def relations(self, subscription: str, behind: timedelta) -> tuple[Relation, ...]:
        """What sorting finds in the events that take part, and that the frontier has passed by this much."""
        passed = [
            verdict is EventVerdict.IN_ORDER and at < self.frontier - behind
            for at, verdict in zip(self.table["at"].to_pylist(), self.verdicts, strict=True)
        ]
        return match(self.plan, self.table.filter(pa.array(passed))).of(subscription)


def exported(plan: Plan, table: pa.Table) -> ExportedEvents:
    """An event before the frontier of the events before it is late, unless it is behind by no more than the time for revisions.
    One that is too far after the time at which it was stored is ahead, and moves nothing."""
    order = plan.order
    assert order is not None
    delay, revise = timedelta(microseconds=order.delay_us or 0), timedelta(microseconds=order.revise_us or 0)
    frontier, found = datetime.min.replace(tzinfo=UTC) + 2 * revise, list[EventVerdict]()
    for row in table.select(["type", "at", "_stored"]).to_pylist():
        verdict, at = EventVerdict.IN_ORDER, row["at"]
        if order.ahead_us is not None and at > row["_stored"] + timedelta(microseconds=order.ahead_us):
            verdict = EventVerdict.AHEAD
        elif row["type"] != HEARTBEAT.name:  # publishers here send none; those of waiting readers move nothing
            if at < frontier - revise:
                verdict = EventVerdict.LATE
            frontier = max(frontier, at - delay)
        found.append(verdict)
    return ExportedEvents(plan, table, found, frontier)


def folded(name: str, lines: Sequence[Line], events: ExportedEvents, subscription: str) -> list[str]:
    """`lines`: the deliveries of one group, in the order of their numbers."""
    left = Counter(lines[at]["id"] for at in remaining(words_of(lines)).tolist())
    taken = [lines[at] for at in remaining(words_of(lines)).tolist() if lines[at]["sign"] < 0]
    wanted = Counter(each.id for each in events.relations(subscription, timedelta(0)))
    problems = [f"{name} has taken back {len(taken)} relations of {subscription} that it had not delivered"] if taken else []
    if left != wanted:
        more, less = (left - wanted).total(), (wanted - left).total()
        problems.append(
            f"the deliveries of {subscription} to {name} fold to {left.total()} relations, sorting finds {wanted.total()}: "
            f"{more} are not among these, {less} are missing"
        )
    return problems


def words_of(lines: Sequence[Line]) -> Words:
    """The words of deliveries, as receipts have them."""
    return signed(from_hex([each["id"] for each in lines]), np.array([each["sign"] for each in lines], dtype=np.int8))


def reported(name: str, lines: Iterable[Line], wanted: Sequence[Report], places: Sequence[int], subscription: str) -> list[str]:
    """`lines`: the whole record of a subscriber. `places`: for each report, how many deliveries are before it. A subscriber
    that resumes gets again what was reported after its last acknowledged delivery; the one beside it, everything."""
    problems, reached, last = list[str](), 0, 0
    for life in _lives(lines):
        mine = [each for each in life if each.get("subscription") == subscription]
        last = max([last, *(each["number"] for each in mine if "number" in each)])
        for beside in (False, True):
            told = [each for each in mine if "verdict" in each and each["beside"] is beside]
            found: list[Report] = [(each["verdict"], *each["event"]) for each in told]
            if not found:
                continue
            first = 0 if beside else wanted.index(found[0]) if found[0] in wanted else len(wanted)
            who = f"the one beside {name}" if beside else name
            if first > reached and not beside:
                problems.append(f"{who} lacks the verdicts {reached + 1} to {first} of {subscription}")
            agree = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(found, wanted[first:], strict=False))))
            if agree < len(found):
                due_there = wanted[first + agree] if first + agree < len(wanted) else "nothing"
                problems.append(f"{who} has {found[agree]} of {subscription}, where {due_there} is due")
            wrong = [
                (each["after"], place)
                for each, place in zip(told, places[first:], strict=False)
                if each["after"] is not None and each["after"] != place
            ]
            if wrong:
                problems.append(f"{who} has a verdict of {subscription} after delivery {wrong[0][0]}, not {wrong[0][1]}")
            reached = reached if beside else max(reached, first + len(found))
    if reached < (least := bisect_left(places, last)):
        problems.append(f"{name} has {reached} verdicts of {subscription}, {least} are due before its last delivery")
    return problems


def _lives(lines: Iterable[Line]) -> list[list[Line]]:
    """The lines of each process, or of each connection of it."""
    found: list[list[Line]] = [[]]
    for each in lines:
        if "begun" in each:
            found.append([])
        found[-1].append(each)
    return found
