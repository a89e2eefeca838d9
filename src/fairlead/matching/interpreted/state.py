"""Converts state between columns and the objects of event-by-event matching.

Takes: instances with their events, or a Content. Gives: the other. Never: knows the byte format, or kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.folded_run import FoldedRun
from fairlead.matching.interpreted.folds.folded_conjunction import folded_start
from fairlead.matching.interpreted.instance import Held, Instance, Key, Pending
from fairlead.matching.outcome import Match
from fairlead.matching.results.chunk import chunk_of_events
from fairlead.matching.state.content import (
    NEVER,
    NO_EVENTS,
    Content,
    CountTable,
    Events,
    Form,
    InstanceTable,
    counted_keys,
    events_of_chunk,
    form_of,
)
from fairlead.matching.state.delivery_counts import in_order_of_keys
from fairlead.model.events.columns import as_numbers, canonical_rows, is_counted, of_numbers
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.folding import Folding
from fairlead.model.plans.plan import Plan, Subscription
from fairlead.model.relations.identity import Lanes, position_of, position_word


@dataclass
class _Rows:
    """A group under construction."""

    subscription: list[int] = field(default_factory=list)
    branch: list[int] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)


def content_of_objects(held: Sequence[Held], plan: Plan) -> Content:
    """By subscription, in the order of the plan."""
    rows: dict[Form, _Rows] = {}
    events: dict[int, Event] = {}
    pairs = [*zip(plan.subscriptions, held, strict=True)]
    for number, (subscription, each) in enumerate(pairs):
        for at, (branch, instances) in enumerate(zip(subscription.branches, each.instances, strict=True)):
            used = {key: instance for key, instance in instances.items() if not instance.is_empty()}
            if used:
                made = rows.setdefault(form_of(branch, plan.catalogue), _Rows())
                made.subscription += [number] * len(used)
                made.branch += [at] * len(used)
                made.keys += used
                made.instances += used.values()
    groups = {form: _group(form, made, events).ordered() for form, made in rows.items()}
    waits = [each.waits for each in plan.subscriptions]
    seen = [each.seen if wait else None for each, wait in zip(held, waits, strict=True)]
    counts = {at: _counts(subscription, each, plan) for at, (subscription, each) in enumerate(pairs) if each.counts}
    return Content(seen, groups, _events([events[word] for word in sorted(events)], plan.catalogue), counts)


def _counts(subscription: Subscription, held: Held, plan: Plan) -> CountTable:
    kinds = enumerate(counted_keys(subscription, plan.catalogue))
    keys = tuple(_key_column([key[at] for key in held.counts], kind) for at, kind in kinds)
    return in_order_of_keys(CountTable(keys, np.array([*held.counts.values()], dtype=np.int64)))


def _group(form: Form, rows: _Rows, events: dict[int, Event]) -> InstanceTable:
    def word(event: Event) -> int:
        at = position_word(event.position)
        events[at] = event
        return at

    instances = rows.instances
    waiting = [(at, each) for at, instance in enumerate(instances) for each in instance.pending]
    members = [word(event) for _, each in waiting for event in each.match.members]
    return InstanceTable(
        form,
        np.array(rows.subscription, dtype=np.int64),
        np.array(rows.branch, dtype=np.int64),
        tuple(_key_column([key[at] for key in rows.keys], kind) for at, kind in enumerate(form.keys)),
        np.array([NEVER if each.clock is None else each.clock for each in instances], dtype=np.int64),
        np.array([each.loose for each in instances], dtype=bool),
        np.array([len(queue) for each in instances for queue in each.lists()], dtype=np.int64).reshape(-1, form.queues),
        np.array([word(event) for each in instances for queue in each.lists() for event in queue], dtype=np.int64),
        np.array([at for at, _ in waiting], dtype=np.int64),
        np.array([each.match.deadline for _, each in waiting], dtype=np.int64),
        np.array([each.cancelled for _, each in waiting], dtype=bool),
        np.array(members, dtype=np.int64).reshape(-1, form.members),
        np.array([_folded(each, form) for each in instances], dtype=np.int64).reshape(len(instances), form.folded),
    )


def _folded(instance: Instance, form: Form) -> list[int]:
    """The numbers of a folded run; zeros where there is none."""
    return [0] * form.folded if instance.folded is None else instance.folded.numbers()


def _key_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if is_counted(kind):
        return of_numbers(pa.array(values, type=pa.int64()), kind)
    if pa.types.is_floating(kind):
        return pa.array([value + 0.0 for value in values], type=kind)  # -0.0 and 0.0 are one key
    return pa.array(values, type=kind)


def _events(events: Sequence[Event], catalogue: Catalogue) -> Events:
    if not events:
        return NO_EVENTS
    made = events_of_chunk(chunk_of_events(events), catalogue)
    times = [each.time if each.schema.derived else None for each in events]
    made.times[:], made.timed[:] = [each or 0 for each in times], [each is not None for each in times]
    return made


def objects_of_content(content: Content, plan: Plan) -> list[Held]:
    """By subscription, in the order of the plan."""
    events = dict(zip(content.events.words.tolist(), objects_of_events(content.events, plan.catalogue), strict=True))
    held = [Held([{} for _ in each.branches], seen) for each, seen in zip(plan.subscriptions, content.seen, strict=True)]
    for form, group in content.groups.items():
        lengths, queued = group.lengths.tolist(), iter(group.words.tolist())
        made = []
        for at, key in enumerate(_keys(group)):
            number, branch = int(group.subscription[at]), int(group.branch[at])
            lists = [[events[next(queued)] for _ in range(length)] for length in lengths[at]]
            queues = len(plan.subscriptions[number].branches[branch].queue_types)
            clock = int(group.clock[at])
            instance = Instance(lists[:queues], lists[queues:], None if clock == NEVER else clock, bool(group.loose[at]))
            if form.folded:
                start = folded_start(plan.subscriptions[number], plan.subscriptions[number].branches[branch], plan.catalogue)
                instance = Instance([[]], [], instance.clock, folded=_unfolded(start, lists[0], group.folded[at].tolist()))
            held[number].instances[branch][key] = instance
            made.append((key, branch, instance))
        waiting = zip(group.owner.tolist(), group.deadline.tolist(), group.cancelled.tolist(), strict=True)
        for row, (owner, deadline, cancelled) in enumerate(waiting):
            key, branch, instance = made[owner]
            match = Match(branch, tuple(events[int(group.members[row, slot])] for slot in range(form.members)), deadline)
            due = (deadline, tuple(member.position for member in match.members), branch)
            instance.pending.append(Pending(due, match, key, cancelled))
    for number, table in content.counts.items():
        held[number].counts = dict(zip(_keys(table), table.counts.tolist(), strict=True))
    return held


def _unfolded(start: tuple[Folding, Lanes], events: Sequence[Event], numbers: Sequence[int]) -> FoldedRun | None:
    if not events:
        return None
    run = FoldedRun(*start)
    for event in events:
        run.add(event)
    run.set_numbers(numbers)
    return run


def _keys(group: InstanceTable | CountTable) -> list[Key]:
    columns = []
    for column in group.keys:
        columns.append((as_numbers(column) if is_counted(column.type) else column).to_pylist())
    return list(zip(*columns, strict=True)) if columns else [()] * len(group)


def objects_of_events(events: Events, catalogue: Catalogue) -> list[Event]:
    rows = [iter(canonical_rows(events.tables[name], catalogue[name])) for name in events.types]
    schemas = [catalogue[name] for name in events.types]
    identities = None if events.identities is None else list(map(tuple, events.identities.tolist()))
    times, timed, made = events.times.tolist(), events.timed.tolist(), []
    for at, (word, code) in enumerate(zip(events.words.tolist(), events.codes.tolist(), strict=True)):
        schema, row = schemas[code], next(rows[code])
        own = None if schema.time_index is None or schema.derived else row[schema.time_index]
        made.append(
            Event(
                schema,
                row,
                position_of(word),
                times[at] if timed[at] else own,
                None if events.sources is None else events.sources[at],
                None if events.sequences is None else events.sequences[at],
                None if identities is None else identities[at],
            )
        )
    return made
