"""What became of one relation in a sequence with late events: when it was delivered, and which late events took it back or
added it. And what became of one event, if it is late for some subscriptions only.

Late events are revised round by round, all of a round together. To name those that matter, the round is repeated with each late
event alone; if none of them alone has the effect, they have it together.

Takes: a plan with ORDER BY … DELAY, and the batches of a sequence. Gives: the deliveries of one relation, with their causes;
findings about an event. Never: changes what a matcher does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.matching.results.delivery_order import ids_of, taken
from fairlead.model.events.columns import Columns
from fairlead.model.events.event import Event
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import to_hex
from fairlead.model.relations.relation import Relation
from fairlead.runtime.event_time.buffer import rows_of
from fairlead.runtime.event_time.frontier_groups import FrontierGroup, frontier_groups
from fairlead.runtime.event_time.matcher import FILE_ROUND_BITS, NO_ROUND, EventTimeMatcher, OrderedFindings
from fairlead.runtime.why import BranchFinding, wanted_position, why


@dataclass(frozen=True)
class RelationStep:
    """One delivery of the relation. `position`: of the event of the sequence by which it was delivered. `round`: the number of
    the round of late events that did it, and `causes` those that did it; both are None and empty for an ordinary delivery."""

    relation: Relation
    position: int
    round: int | None = None
    causes: tuple[Event, ...] = ()

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"sign": self.relation.sign, "position": self.position}
        if self.round is not None:
            told["round"] = self.round
            told["causes"] = [{"position": each.position.shown, "event": each.to_json()} for each in self.causes]
        return told


def relation_history(plan: Plan, batches: Sequence[Columns], identity: str, until: int | None = None) -> list[RelationStep]:
    """The deliveries of the relations whose ids begin with `identity`, in order; none if there is no such relation."""
    found = [_of_group(each, batches, identity, until) for each in frontier_groups(plan)]
    return [step for steps in found for step in steps]


def why_in_event_time(
    plan: Plan,
    batches: Iterable[Columns],
    apart: Mapping[FrontierGroup, Mapping[int, EventVerdict]],
    by: npt.NDArray[np.int64],
    position: int | str,
    until: int | None = None,
) -> list[BranchFinding]:
    """What happened to the event at a position of the sorted events, for each branch of each subscription: every group of
    subscriptions is replayed with the events that take part in it. `apart`: by group, the verdicts on the others, by their
    positions in the sequence. `by`: those of the sorted events."""
    sorted_events, found, wanted = list(batches), dict[str, list[BranchFinding]](), wanted_position(position)
    for group, verdicts in apart.items():
        gone = np.flatnonzero(np.isin(by, np.array(sorted(verdicts), dtype=np.int64)))
        mine = [_without(each, gone, plan) for each in sorted_events]
        if wanted.minor == 0 and wanted.major in gone:
            verdict = verdicts[int(by[wanted.major])].value
            told = why(group.plan, sorted_events, position, until)
            told = [_apart(each, verdict) for each in told]
        else:
            told = why(group.plan, mine, position, until)
        for each in told:
            found.setdefault(each.subscription, []).append(each)
    return [each for subscription in plan.subscriptions for each in found.get(subscription.name, ())]


def _apart(finding: BranchFinding, verdict: str) -> BranchFinding:
    """For an event that takes no part. Branches that do not read its type still say so."""
    if finding.verdict == "not read":
        return finding
    reason = "by the events that the subscription reads, it took no part when it arrived"
    return replace(finding, verdict=verdict, reasons=(reason,))


def _without(columns: Columns, positions: npt.NDArray[np.int64], plan: Plan) -> Columns:
    stays = np.flatnonzero(~np.isin(columns.position_array, positions))
    if len(stays) == len(columns):
        return columns
    return replace(rows_of(columns, stays, plan.catalogue), last_position=columns.last_position)


def _of_group(group: FrontierGroup, whole: Sequence[Columns], identity: str, until: int | None) -> list[RelationStep]:
    """Those of subscriptions with one frontier."""
    plan, batches = group.plan, [group.share(each) for each in whole]
    matcher, steps = EventTimeMatcher(plan), list[RelationStep]()
    for columns in batches:
        steps += _mentions(matcher.step(columns, columns.stored), identity)
    steps += _mentions(matcher.finish(until), identity)
    causes = dict(_causes(plan, batches, steps))
    return [
        each
        if each.round is None
        else RelationStep(each.relation, min(each.position, matcher.buffer.last), each.round, causes[each.round])
        for each in steps
    ]


def _mentions(found: OrderedFindings, identity: str) -> Iterator[RelationStep]:
    if not len(found.relations):
        return
    places = np.array([at for at, each in enumerate(to_hex(ids_of(found.relations))) if each.startswith(identity)])
    for at, relation in zip(places.tolist(), taken(found.relations, places.astype(np.int64)), strict=True):
        number = NO_ROUND if found.rounds is None else int(found.rounds[at])
        yield RelationStep(relation, int(found.by[at]), None if number == NO_ROUND else number)


def _causes(plan: Plan, batches: Sequence[Columns], steps: Sequence[RelationStep]) -> Iterator[tuple[int, tuple[Event, ...]]]:
    """By round that mentions the relation, the late events that matter. The sequence is read once more, up to each round."""
    matcher, position = EventTimeMatcher(plan), 0
    for number in sorted({each.round for each in steps if each.round is not None}):
        (mentioned,) = [each.relation for each in steps if each.round == number]
        start, end = number << FILE_ROUND_BITS, (number + 1) << FILE_ROUND_BITS
        for columns in _between(batches, position, start):
            matcher.step(columns, columns.stored, closed=True)
        state, position = matcher.dump(), start
        yield number, _of_round(plan, state, list(_between(batches, start, end)), mentioned)


def _of_round(plan: Plan, state: bytes, parts: Sequence[Columns], mentioned: Relation) -> tuple[Event, ...]:
    judging = EventTimeMatcher.load(plan, state)
    late = [judging.buffer.judge(each, each.stored).revising for each in parts]
    events = [
        event
        for part, mask in zip(parts, late, strict=True)
        for event in rows_of(part, np.flatnonzero(mask), plan.catalogue).events(plan.catalogue)
    ]
    found = []
    for event in events:
        matcher = EventTimeMatcher.load(plan, state)
        for at, (part, mask) in enumerate(zip(parts, late, strict=True)):
            kept = np.flatnonzero(~mask | (part.position_array == event.position.major))
            stored = None if part.stored is None else part.stored[kept]
            told = matcher.step(rows_of(part, kept, plan.catalogue), stored, closed=at + 1 == len(parts))
            if any(each.round is not None and each.relation.sign == mentioned.sign for each in _mentions(told, mentioned.id)):
                found.append(event)
    return tuple(found or events)


def _between(batches: Sequence[Columns], low: int, high: int) -> Iterator[Columns]:
    """The events at positions from `low` to before `high`."""
    for columns in batches:
        start, end = np.searchsorted(columns.position_array, (low, high)).tolist()
        if start < end:
            yield columns.part(start, end)
