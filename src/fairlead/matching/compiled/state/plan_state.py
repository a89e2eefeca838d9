"""The state of a plan on kernels as columns (content.py), the same that event-by-event matching has: an engine can begin with
one matcher and continue with the other."""

from __future__ import annotations

import numpy as np

from fairlead.matching.compiled.codegen.counters import SEEN
from fairlead.matching.compiled.running.acceptance import stretches
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.folds.fold_kernel import FoldKernel
from fairlead.matching.compiled.running.lane import Family, KernelLane
from fairlead.matching.compiled.running.pool import NEVER
from fairlead.matching.compiled.running.sequences.sequence_kernel import SequenceKernel
from fairlead.matching.compiled.state.dump import group_of_kernel
from fairlead.matching.compiled.state.fold_state import group_of_folds, load_folds
from fairlead.matching.compiled.state.load import load
from fairlead.matching.compiled.state.sequence_state import group_of_sequence, load_sequence
from fairlead.matching.results.chunk import Chunk, Words
from fairlead.matching.results.event_store import View, distinct
from fairlead.matching.state.content import NO_EVENTS, Content, Form, InstanceTable, events_of_chunk, form_of, joined
from fairlead.model.events.columns import Columns
from fairlead.model.plans.plan import Plan


def content_of_lane(lane: KernelLane) -> Content:
    plan = lane.plan
    parts: dict[Form, list[InstanceTable]] = {}
    for family in lane.families:
        numbers = np.array([each.number for each in family.members], dtype=np.int64)
        branches = np.array([each.branch for each in family.members], dtype=np.int64)
        form = _form(family, plan)
        if isinstance(family.kernel, FoldKernel):
            group = group_of_folds(family.kernel, form, int(numbers[0]), int(branches[0]))
        elif isinstance(family.kernel, SequenceKernel):
            group = group_of_sequence(family.kernel, form, int(numbers[0]), int(branches[0]))
        else:
            group = group_of_kernel(family.kernel, form, numbers, branches)
        done = [number for number in numbers.tolist() if _is_done(lane, number)]
        if done:
            group = group.taken(np.flatnonzero(~np.isin(group.subscription, done)))
        if len(group):
            parts.setdefault(form, []).append(group)
    groups = {form: joined(each) for form, each in parts.items()}
    seen = [lane.seen.get(each.name, NEVER) for each in plan.subscriptions]
    words = [each for group in groups.values() for each in (group.words, group.members.reshape(-1))]
    live = distinct(np.concatenate(words)) if words else np.zeros(0, dtype=np.int64)
    events = events_of_chunk(lane.store.view().take(live).chunk(), plan.catalogue) if len(live) else NO_EVENTS
    names = enumerate(each.name for each in plan.subscriptions)
    counts = {at: table for at, name in names if name in lane.limits and (table := lane.limits[name].table())}
    return Content([None if each == NEVER else int(each) for each in seen], groups, events, counts)


def _is_done(lane: KernelLane, number: int) -> bool:
    """A LIMIT is reached: what alike subscriptions share has still something of it, which can no longer be delivered."""
    limit = lane.limits.get(lane.plan.subscriptions[number].name)
    return limit is not None and limit.is_reached


def restore(lane: KernelLane, content: Content) -> None:
    """Queue what a state has queued; the events go into the store."""
    catalogue = lane.plan.catalogue
    for subscription, seen in zip(lane.plan.subscriptions, content.seen, strict=True):
        if seen is not None:
            lane.seen[subscription.name] = seen
    for number, counted in content.counts.items():
        lane.limits[lane.plan.subscriptions[number].name].load(counted)
    chunk = content.events.chunk() if len(content.events) else None
    whole = None if chunk is None else KernelBatch(chunk.columns, catalogue, chunk.words, chunk.times)
    if whole is not None:
        whole.know(content.events.truths)
    for family in lane.families:
        family.kernel.pool.counters[SEEN] = lane.seen.get(family.members[0].subscription.name, NEVER)
        group = content.groups.get(_form(family, lane.plan))
        if group is None:
            continue
        group, which = _chosen(group, family)
        if len(group):
            if isinstance(family.kernel, FoldKernel):
                load_folds(family.kernel, group, _only(distinct(group.words), chunk, lane.plan))
                continue
            events = _batch(group, chunk, whole, lane.plan)
            if isinstance(family.kernel, SequenceKernel):
                load_sequence(family.kernel, group, events)
            else:
                load(family.kernel, group, which, events)
    if chunk is not None:
        lane.store.add_chunk(chunk)


def _form(family: Family, plan: Plan) -> Form:
    return form_of(family.kernel.branches[0], plan.catalogue)


def _chosen(group: InstanceTable, family: Family) -> tuple[InstanceTable, Words]:
    """The instances of a family, and which of its branches each belongs to."""
    scale = 1 + int(group.branch.max())
    rows = group.subscription * scale + group.branch
    wanted = np.array([each.number * scale + each.branch for each in family.members if each.branch < scale], dtype=np.int64)
    which = np.flatnonzero([each.branch < scale for each in family.members])
    low, high = np.searchsorted(rows, wanted), np.searchsorted(rows, wanted, "right")
    chosen, which = stretches(np.arange(len(rows)), low, high, which)
    if len(chosen) == len(rows) and (chosen[1:] > chosen[:-1]).all():
        return group, which
    return group.taken(chosen), which


def _batch(group: InstanceTable, chunk: Chunk | None, whole: KernelBatch | None, plan: Plan) -> KernelBatch:
    """The events that a group refers to. If they are most of all, these will do, and are looked at once for several groups."""
    words = distinct(np.concatenate([group.words, group.members.reshape(-1)]))
    if chunk is not None and whole is not None and len(words) and 2 * len(words) > len(chunk):
        return whole
    return _only(words, chunk, plan)


def _only(words: Words, chunk: Chunk | None, plan: Plan) -> KernelBatch:
    if chunk is None or not len(words):
        return KernelBatch(Columns((), np.zeros(0, dtype=np.int8), range(0), {}), plan.catalogue)
    mine = View([[chunk]]).take(words).chunk()
    return KernelBatch(mine.columns, plan.catalogue, mine.words, mine.times)
