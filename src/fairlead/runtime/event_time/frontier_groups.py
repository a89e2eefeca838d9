"""A plan with ORDER BY … DELAY over one sequence of events: every subscription has the frontier of the events that it reads.

A subscription means what it means alone with its upstream, so an event that it does not read cannot make others late for it.
Subscriptions that read the same types have the same frontier: they share a matcher (matcher.py), which is given their events
only. What all matchers find is delivered in one order, as live:

    1. by the event of the sequence that released it; what a round of late events revises comes at the end of the round
    2. by subscription, in the order of the text
    3. as its subscription found it

Takes: batches in the order of a log or of a file. Gives: deliveries, and verdicts on events that take no part, by subscription.
Never: reads a clock, does I/O; depends on how the sequence is cut into batches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.engine import Engine
from fairlead.errors import StateError, require
from fairlead.matching.results.delivery_order import Interleaved, names_of
from fairlead.matching.state.encoding import Change
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.plans.partition import alone, logged_types, upstream_of
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.order.holdback import head_and_rest, with_head
from fairlead.runtime.event_time.buffer import EventTimeBuffer, EventVerdicts, rows_of, without_ahead
from fairlead.runtime.event_time.matcher import NO_ROUND, EventTimeMatcher, OrderedFindings

Numbers = npt.NDArray[np.int64]
VERSION = 2


@dataclass(frozen=True, eq=False)
class FrontierGroup:
    """Subscriptions with one frontier. `plan`: they and their upstream. `types`: those that they read, by name."""

    plan: Plan
    types: tuple[str, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.plan.subscriptions if each.name not in self.plan.silent)

    def share(self, columns: Columns) -> Columns:
        """Its events of a batch."""
        wanted = {*self.types, HEARTBEAT.name}
        if all(name in wanted for name in columns.places):
            return columns
        rows = [places for name, places in columns.places.items() if name in wanted]
        return rows_of(columns, np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *rows])), self.plan.catalogue)


def frontier_groups(plan: Plan) -> tuple[FrontierGroup, ...]:
    """By the types that they read; in the order of their first subscription."""
    found: dict[tuple[str, ...], list[str]] = {}
    for each in plan.subscriptions:
        if each.name not in plan.silent:
            types = logged_types(plan, {each.name, *upstream_of(plan, each)}) - {HEARTBEAT.name}
            found.setdefault(tuple(sorted(types)), []).append(each.name)
    if len(found) == 1:
        return (FrontierGroup(plan, next(iter(found))),)
    return tuple(FrontierGroup(alone(plan, names), types) for types, names in found.items())


@dataclass(frozen=True, eq=False)
class JointFindings:
    """`relations`, `rounds`: as in OrderedFindings, of all groups in one order. `verdicts`: by group; `judged`: how many events
    have each verdict, in any of them."""

    relations: Sequence[Relation]
    rounds: Numbers | None
    verdicts: Sequence[EventVerdicts]
    judged: Mapping[EventVerdict, int]
    duplicates: int


class SequenceMatcher:
    """`matchers`: by group. `last`: the last position of the sequence. `late`: how many events were late for some subscription.
    `change`: of the subscriptions. `begun`: those of groups without a state."""

    def __init__(self, plan: Plan, groups: Sequence[FrontierGroup], matchers: Sequence[EventTimeMatcher], last: int) -> None:
        require(plan.order is not None, "the events have an order by value")
        assert plan.order is not None
        self.plan, self.order, self.groups, self.matchers, self.last, self.late = plan, plan.order, groups, matchers, last, 0
        self.begun = frozenset[str]()
        self._numbers = {each.name: number for number, each in enumerate(plan.subscriptions)}

    @property
    def position(self) -> int:
        """The position of the next event of the sequence."""
        return self.last + 1

    @property
    def engines(self) -> list[Engine]:
        return [each.engine for each in self.matchers]

    def step(self, columns: Columns) -> JointFindings:
        """The next events of the sequence."""
        self.last = columns.last_after(self.last)
        found = []
        for group, matcher in zip(self.groups, self.matchers, strict=True):
            mine = group.share(columns)
            found.append([matcher.step(mine, mine.stored), matcher.passed(self.last)])
        return self._joint(found)

    def finish(self, until: int | None = None) -> JointFindings:
        """The sequence has ended: the last round of every group, then all events that were held, then what `until` decides."""
        return self._joint([[each.passed(None), each.finish(until)] for each in self.matchers], ended=True)

    def _joint(self, found: Sequence[Sequence[OrderedFindings]], ended: bool = False) -> JointFindings:
        """`found`: by group, its steps. `ended`: the second step of all groups follows the first one of all."""
        parts, ends, later, numbers, rounds, turns = list[Sequence[Relation]](), [], [], [], [], []
        verdicts, seen, duplicates = list[EventVerdicts](), dict[EventVerdict, set[int]](), 0
        for group, steps in zip(self.groups, found, strict=True):
            for step, each in enumerate(steps):
                duplicates += each.duplicates
                if len(each.verdicts):
                    told = each.verdicts
                    verdicts.append(told if len(self.groups) == 1 else EventVerdicts(told.columns, told.verdicts, group.names))
                    for position, verdict in zip(told.columns.position_array.tolist(), told.verdicts, strict=True):
                        seen.setdefault(verdict, set()).add(position)
                if not len(each.relations):
                    continue
                number = each.rounds if each.rounds is not None else np.full(len(each.relations), NO_ROUND)
                parts.append(each.relations)
                rounds.append(number)
                turns.append(np.full(len(number), step if ended else 0))
                later.append(number != NO_ROUND)
                ends.append(np.zeros_like(each.by) if ended else each.by)
                names = names_of(each.relations, np.arange(len(each.relations)))
                numbers.append(np.array([self._numbers[name] for name in names], dtype=np.int64))
        self.late += len(seen.get(EventVerdict.LATE, ()))
        judged = {verdict: len(positions) for verdict, positions in seen.items()}
        if not parts:
            return JointFindings((), None, verdicts, judged, duplicates)
        owner = np.repeat(np.arange(len(parts), dtype=np.int32), [len(each) for each in parts])
        place = np.concatenate([np.arange(len(each)) for each in parts])
        order = np.lexsort((place, owner, *map(np.concatenate, (numbers, later, ends, turns))))
        whole = np.concatenate(rounds)[order]
        relations: Sequence[Relation] = parts[0]
        if len(parts) > 1 or not np.array_equal(order, np.arange(len(order))):
            relations = Interleaved(parts, owner[order], place[order])
        return JointFindings(relations, whole if (whole != NO_ROUND).any() else None, verdicts, judged, duplicates)

    def held(self) -> bytes:
        """The state, without that of the first group's engine."""
        heads, parts = list[dict[str, Any]](), list[bytes]()
        for at, (group, matcher) in enumerate(zip(self.groups, self.matchers, strict=True)):
            engine, held = matcher.engine.dump() if at else b"", matcher.held()
            heads.append({"types": list(group.types), "bytes": [len(engine), len(held)]})
            parts += [engine, held]
        head = {"version": VERSION, "last": self.last, "late": self.late, "groups": heads}
        return b"".join([with_head(head, b""), *parts])

    @property
    def change(self) -> Change:
        """By name, without those that were dropped."""
        mine = [(group.names, each.engine.change) for group, each in zip(self.groups, self.matchers, strict=True)]
        resumed = {name for names, each in mine for name in each.resumed if name in names}
        started = self.begun | {name for names, each in mine for name in each.started if name in names}
        names = [each.name for each in self.plan.subscriptions]
        return Change(tuple(each for each in names if each in resumed), tuple(each for each in names if each in started))


def sequence_matcher(plan: Plan, **arguments: Any) -> SequenceMatcher:
    """Of a sequence that begins."""
    groups = frontier_groups(plan)
    return SequenceMatcher(plan, groups, [EventTimeMatcher(each.plan, **arguments) for each in groups], -1)


def resumed_sequence(
    plan: Plan, state: bytes, held: bytes, load: Callable[[Plan, bytes | None], Engine], **arguments: Any
) -> SequenceMatcher:
    """From what `held` returned, beside the state of the first group's engine. A group of which there is no state begins with
    the next event. Raises StateError."""
    groups, stored, last, late = frontier_groups(plan), dict[tuple[str, ...], tuple[bytes, bytes]](), -1, 0
    if held:
        try:
            head, rest = head_and_rest(held)
            if head["version"] != VERSION:
                problem = f"the held-back events were written in version {head['version']}, this release reads {VERSION}"
                raise StateError("S110", problem, "run the release that wrote the state, or start again")
            last, late = int(head["last"]), int(head["late"])
            stored = dict(_stored(head["groups"], rest, state))
        except (ValueError, KeyError, TypeError, IndexError, json.JSONDecodeError, OSError):
            raise StateError("S119", "the held-back events in the state are damaged", "use an earlier dump") from None
    else:
        last = load(plan, state).last.major  # of rules in another order
    known = [stored.get(each.types) for each in groups]
    matchers = []
    for each, found in zip(groups, known, strict=True):
        engine, kept = found if found is not None else (None if held else state, b"")
        matchers.append(EventTimeMatcher.resume(each.plan, load(each.plan, engine), kept, **arguments))
    made = SequenceMatcher(plan, groups, matchers, last)
    made.begun = frozenset(
        name for each, found in zip(groups, known, strict=True) if held and found is None for name in each.names
    )
    made.late = late
    return made


def _stored(
    heads: Sequence[Mapping[str, Any]], rest: memoryview, state: bytes
) -> Iterator[tuple[tuple[str, ...], tuple[bytes, bytes]]]:
    at = 0
    for number, each in enumerate(heads):
        engine, held = each["bytes"]
        parts = bytes(rest[at : at + engine]), bytes(rest[at + engine : at + engine + held])
        yield tuple(each["types"]), (parts[0] if number else state, parts[1])
        at += engine + held


def taking_part(
    batches: Iterable[Columns],
    plan: Plan,
    tell: Callable[[EventVerdicts], None],
    apart: Mapping[FrontierGroup, dict[int, EventVerdict]] | None = None,
) -> Iterator[Columns]:
    """The events of a sequence that take part for some subscription in the end, to be sorted: without those that are ahead, or
    so late that nothing is revised. `tell` is called with these. Events that no subscription reads stay. `apart`: is given the
    verdicts on the events that take no part in a group, by their positions in the sequence."""
    order = plan.order
    assert order is not None
    groups = frontier_groups(plan) if apart is None else tuple(apart)
    buffers = [EventTimeBuffer(order, plan.catalogue) for _ in groups]
    for columns in batches:
        if order.delay_us is None:
            kept, ahead = without_ahead(columns, order, plan.catalogue)
            tell(ahead)
            yield kept
            continue
        verdicts, accepted = dict[int, EventVerdict](), set[int]()
        for group, buffer in zip(groups, buffers, strict=True):
            mine = group.share(columns)
            judged = buffer.judge(mine, mine.stored)
            accepted.update(judged.positions[judged.held | judged.revising].tolist())
            told = buffer.verdicts(judged, {EventVerdict.LATE: judged.late, EventVerdict.AHEAD: judged.ahead})
            mine_apart = dict(zip(told.columns.position_array.tolist(), told.verdicts, strict=True))
            verdicts |= mine_apart
            if apart is not None:
                apart[group].update(mine_apart)
        read = {HEARTBEAT.name, *(name for each in groups for name in each.types)}
        unread = [places for name, places in columns.places.items() if name not in read]
        stays = np.isin(columns.position_array, np.array(sorted(accepted), dtype=np.int64))
        stays[np.concatenate([np.zeros(0, dtype=np.int64), *unread])] = True
        gone = [at for at, position in enumerate(columns.position_array.tolist()) if position in verdicts and not stays[at]]
        if gone:
            left = rows_of(columns, np.array(gone, dtype=np.int64), plan.catalogue)
            tell(EventVerdicts(left, tuple(verdicts[at] for at in left.position_array.tolist())))
        yield columns if stays.all() else rows_of(columns, np.flatnonzero(stays), plan.catalogue)
