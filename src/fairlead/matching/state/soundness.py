"""Whether the content of a state is one that a matcher can have: checked once, when it is read, so that both matchers may rely
on it without further checks.

    1. events    increase, end with the last position, are of types that can be queued, and have the times that these require
    2. instances are those of branches of the plan, each key once and in order, with the clock of their window
    3. queues    have the stated lengths and increase; their events exist, of a type that the queue accepts, and of the key
    4. waits     belong to an instance of a branch with absences, fit its members, and are due when their anchors say
    5. entries   satisfy the conditions on them alone by which they were queued, noted or became members, and can be in a
                 relation to come (dead_entries.py)
    6. folds     have the events that stand for their runs, and numbers that fit these (fold_soundness.py)
    7. units     that keep one event of the log, each for itself, keep the same one

Takes: any Content. Raises: StateError (S005) with the first contradiction. Never: evaluates a condition that reads several
events: a state may still be one that no stream leads to, but none that crashes a process, makes it run for ever, or that the
two matchers would continue differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.interpreted.dead_events import QueueNeeds, needs_in_front
from fairlead.matching.interpreted.search import can_be_loose
from fairlead.matching.interpreted.state import objects_of_events
from fairlead.matching.noted_events import noted_event_policy
from fairlead.matching.results.chunk import Numbers, Words
from fairlead.matching.state.body import distrusted, unsound
from fairlead.matching.state.content import NEVER, Content, Events, Form, InstanceTable, Mask, form_of
from fairlead.matching.state.dead_entries import are_alive
from fairlead.matching.state.delivery_counts import require_counts
from fairlead.matching.state.entry_conditions import BranchConditions, EventConditions, Options
from fairlead.matching.state.event_soundness import are_times, filled, require_events, say
from fairlead.matching.state.fold_soundness import require_folds
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.events.values import TIMESTAMP_RANGE
from fairlead.model.plans.key_parts import key_column
from fairlead.model.plans.plan import Branch, Plan, Subscription
from fairlead.model.plans.retention import Horizon, Retention, horizons
from fairlead.model.relations.identity import POSITIONS_MAX


def require_sound(content: Content, last: Position, plan: Plan) -> None:
    with distrusted():
        if last.minor != 0 or not -1 <= last.major <= POSITIONS_MAX:
            raise unsound("there is no such last position")
        _require_clocks(content, plan)
        for number, counted in content.counts.items():
            require_counts(counted, plan.subscriptions[number], _rises)
        require_events(content.events, last, plan.catalogue)
        known = _Known.of(content.events, plan.catalogue)
        conditions = EventConditions(content.events, known.inner, known.times, plan.catalogue)
        used = np.zeros(len(content.events), dtype=bool)
        for form, group in content.groups.items():
            for options, rows in _asked_of_entries(group, _require_group(form, group, known, plan, used), plan):
                say(conditions.hold(rows, options), "an event is where the conditions on it do not hold")
        folded = [group for form, group in content.groups.items() if form.folded]
        if folded:
            events = dict(zip(content.events.words.tolist(), objects_of_events(content.events, plan.catalogue), strict=True))
            for group in folded:
                require_folds(group, plan, events)
        if not used.all():
            raise unsound("there are events that nothing refers to")


def _require_clocks(content: Content, plan: Plan) -> None:
    say(len(content.seen) == len(plan.subscriptions), "it has another number of subscriptions")
    for seen, each in zip(content.seen, plan.subscriptions, strict=True):
        if seen is not None:
            say(each.waits, f"'{each.name}' waits for nothing, but has seen a time")
            say(TIMESTAMP_RANGE[0] <= seen <= TIMESTAMP_RANGE[1], f"'{each.name}' has seen a time that is none")


@dataclass(frozen=True)
class _Known:
    """The events, looked up by word."""

    words: Words
    codes: Numbers
    inner: Numbers
    """Which row of its table each is."""
    times: Numbers
    """NEVER if an event has none."""
    events: Events

    @classmethod
    def of(cls, events: Events, catalogue: Catalogue) -> _Known:
        inner, times = np.zeros(len(events), dtype=np.int64), np.where(events.timed, events.times, NEVER)
        for code, name in enumerate(events.types):
            mine = np.flatnonzero(events.codes == code)
            inner[mine] = np.arange(len(mine))
            schema = catalogue[name]
            if schema.time_index is not None and not schema.derived:
                times[mine] = filled(events.tables[name].column(schema.time_index))
        return cls(events.words, events.codes, inner, times, events)

    def rows(self, words: Words) -> Numbers:
        found = np.searchsorted(self.words, words)
        say(not len(words) or (len(self.words) > 0 and found.max() < len(self.words)), "an event is missing")
        say(not len(words) or bool((self.words[found] == words).all()), "an event is missing")
        return found

    def require_type(self, rows: Numbers, accepted: tuple[str, ...]) -> None:
        allowed = np.array([name in accepted for name in self.events.types], dtype=bool)
        say(not len(rows) or allowed[self.codes[rows]].all(), "an event is queued under a type that it does not have")

    def require_keys(self, rows: Numbers, attributes: tuple[str, ...], keys: tuple[pa.Array, ...], owners: Numbers) -> None:
        """Each event has the key of its instance."""
        import pyarrow.compute as pc

        for code, name in enumerate(self.events.types):
            mine = np.flatnonzero(self.codes[rows] == code)
            for attribute, key in zip(attributes if len(mine) else (), keys, strict=False):
                column = key_column(self.events.tables[name], attribute)
                assert column is not None
                own = column.take(pa.array(self.inner[rows[mine]]))
                same = pc.equal(own.cast(key.type), key.take(pa.array(owners[mine])))
                say(pc.all(same, skip_nulls=False).as_py() is True, "an event is queued under another key")

    def require_rows(self, rows: Numbers, key: tuple[str, ...], owners: Numbers) -> None:
        """Each event of a table has a key, and no other of its instance has the same."""
        seen: set[tuple[Any, ...]] = set()
        for code, name in enumerate(self.events.types):
            mine, table = np.flatnonzero(self.codes[rows] == code), self.events.tables[name]
            taken = pa.array(self.inner[rows[mine]])
            columns = [table.column(table.schema.get_field_index(each)).take(taken).to_pylist() for each in key]
            for row in zip(owners[mine].tolist(), *columns, strict=True) if len(mine) else ():
                say(all(value is not None and value == value for value in row), "an event of a table has no key")
                say(row not in seen, "a table has two events with one key")
                seen.add(row)


# 2. to 4. instances


@dataclass(frozen=True)
class _Asked:
    """The requirements of a branch on its instances; equal subscriptions have the same, so they are checked together."""

    queues: tuple[tuple[str, ...], ...]
    """For each queue, those of members first, the concrete types that it accepts."""
    members: int
    slots: tuple[int, ...]
    """For each member its queue."""
    keys: tuple[tuple[str, ...], ...]
    clocked: bool
    horizons: tuple[Horizon, ...]
    """Of each queue of members."""
    counts: tuple[int | None, ...]
    """How many events each holds at most."""
    tables: tuple[tuple[int, tuple[str, ...]], ...]
    """The queues that are tables, with the attributes of their keys."""
    waiting: tuple[tuple[int, int], ...]
    loose: bool
    """Whether a relation without the newest event can ever be ready (interpreted/conjunction.py)."""
    needs: QueueNeeds
    """By queue, what its events need before them."""
    decisive: tuple[tuple[int, bool], ...]
    """Queues of noted events of which the last before a member decides (noted_events.py), and whether several are kept."""

    @classmethod
    def of(cls, subscription: Subscription, branch: Branch, catalogue: Catalogue) -> _Asked:
        names = [*branch.queue_types, *(each.type for each in branch.noting)]
        of_type = dict(branch.keys)
        policies = [noted_event_policy(subscription, branch, each, catalogue) for each in branch.noting]
        return cls(
            tuple(catalogue.accepts(name) for name in names),
            len(branch.queue_types),
            tuple(branch.queue_types.index(slot.type) for slot in branch.slots),
            tuple(of_type.get(name, ()) for name in names),
            subscription.is_clocked and branch.sequence is None,
            horizons(subscription, branch),
            tuple(branch.retention.get(name, Retention()).count for name in branch.queue_types),
            tuple(branch.table_queues.items()),
            tuple((each.anchors[0], each.apart_us or 0) for each in branch.waiting),
            branch.sequence is None and can_be_loose(subscription, branch, catalogue),
            needs_in_front(branch),
            tuple(
                (len(branch.queue_types) + at, each.timed and not each.early)
                for at, each in enumerate(policies)
                if each.decisive
            ),
        )


@dataclass(frozen=True)
class _Entries:
    """Of each entry of the queues its instance, its queue and its event; of what waits its members' events."""

    owners: Numbers
    queues: Numbers
    rows: Numbers
    members: list[Numbers]


def _require_group(form: Form, group: InstanceTable, known: _Known, plan: Plan, used: Mask) -> _Entries:
    """`used`: marks the events that something refers to."""
    _require_columns(form, group)
    kinds = _kinds(form, group, plan)
    _require_order(group)
    # 3. the entries of all queues: for each its instance, its queue and its event
    lengths = group.lengths.reshape(-1)
    owners = np.repeat(np.repeat(np.arange(len(group)), form.queues), lengths)
    queues = np.repeat(np.tile(np.arange(form.queues), len(group)), lengths)
    rows = known.rows(group.words)
    together = (owners[1:] == owners[:-1]) & (queues[1:] == queues[:-1])
    say((group.words[1:] > group.words[:-1])[together].all(), "a queue is not in order")
    members = [known.rows(group.members[:, slot]) for slot in range(form.members)]
    for each in (rows, *members):
        used[each] = True
    of_owner = np.empty(len(group), dtype=np.int64)
    for number, mine in enumerate(kinds.values()):
        of_owner[mine] = number
    for number, (asked, mine) in enumerate(kinds.items()):
        chosen = of_owner[owners] == number if len(kinds) > 1 else slice(None)
        say(asked.loose or not group.loose[mine].any(), "a relation is said to be ready that never can be")
        _require_queues(asked, group, mine, owners[chosen], queues[chosen], rows[chosen], known)
        say(are_alive(group, mine, asked.needs), "an event is queued that can be in no relation")
        waits = np.flatnonzero(of_owner[group.owner] == number)
        if len(waits):
            _require_waits(asked, group, waits, [each[waits] for each in members], known)
    return _Entries(owners, queues, rows, members)


def _require_columns(form: Form, group: InstanceTable) -> None:
    size, waits = len(group), len(group.owner)
    shapes = {
        "subscription": (size,), "branch": (size,), "clock": (size,), "lengths": (size, form.queues), "owner": (waits,),
        "deadline": (waits,), "members": (waits, form.members), "words": (len(group.words),),
    }  # fmt: skip
    for name, shape in shapes.items():
        column = getattr(group, name)
        say(column.dtype == np.int64 and column.shape == shape, f"its columns of instances are unlike ({name})")
    for mask, count in ((group.loose, size), (group.cancelled, waits)):
        say(mask.dtype == np.bool_ and mask.shape == (count,), "its columns of instances are unlike")
    say(size > 0, "it has instances without a key")
    say(tuple(key.type for key in group.keys) == form.keys, "its keys are of other types")
    for key in group.keys:
        say(len(key) == size and key.null_count == 0, "a key is NULL")
        if pa.types.is_floating(key.type):
            values = key.to_numpy()
            say(not np.isnan(values).any() and not np.signbit(values[values == 0]).any(), "a key is NaN, or a negative zero")
    lengths = group.lengths
    say(int(lengths.min()) >= 0 and int(lengths.max()) <= len(group.words), "a queue has no such length")
    say(int(lengths.sum()) == len(group.words), "its queues hold more or less than they say")
    say(not waits or (int(group.owner.min()) >= 0 and int(group.owner.max()) < size), "something waits for no instance")


def _kinds(form: Form, group: InstanceTable, plan: Plan) -> Mapping[_Asked, Numbers]:
    """Instances by the requirements of their branches."""
    found: dict[_Asked, list[Numbers]] = {}
    for number, at, rows in _by_branch(group):
        say(0 <= number < len(plan.subscriptions), "an instance belongs to no subscription")
        subscription = plan.subscriptions[number]
        say(0 <= at < len(subscription.branches), "an instance belongs to no branch")
        branch = subscription.branches[at]
        say(form_of(branch, plan.catalogue) == form, "an instance stands among those of another form")
        found.setdefault(_Asked.of(subscription, branch, plan.catalogue), []).append(rows)
    return {asked: np.concatenate(rows) for asked, rows in found.items()}


def _by_branch(group: InstanceTable) -> Iterator[tuple[int, int, Numbers]]:
    subscription, branch = group.subscription, group.branch
    starts = np.flatnonzero(np.concatenate(([True], (subscription[1:] != subscription[:-1]) | (branch[1:] != branch[:-1]))))
    for low, high in zip(starts.tolist(), [*starts[1:].tolist(), len(group)], strict=True):
        yield int(subscription[low]), int(branch[low]), np.arange(low, high)


def _require_order(group: InstanceTable) -> None:
    """2. Each instance once, in the canonical order; likewise waiting relations."""
    if len(group) > 1:
        columns: list[Any] = [group.subscription, group.branch, *group.keys]
        say(_rises(columns), "its instances are not in order, or one is there twice")
    if len(group.owner) > 1:
        columns = [group.subscription[group.owner], group.deadline, *group.members.T, group.branch[group.owner]]
        say(_rises(columns), "what waits is not in order, or is there twice")


def _rises(columns: Sequence[Any]) -> bool:
    """Whether rows increase strictly, compared from the first column on. (Sorting them would take five times as long.)"""
    left: Any = slice(None)
    for column in columns:
        if isinstance(column, pa.Array):
            import pyarrow.compute as pc

            later, earlier = column.slice(1), column.slice(0, len(column) - 1)
            less, equal = (
                each.to_numpy(zero_copy_only=False)[left] for each in (pc.less(later, earlier), pc.equal(later, earlier))
            )
        else:
            later, earlier = column[1:][left], column[:-1][left]
            less, equal = later < earlier, later == earlier
        if less.any():
            return False
        left = np.flatnonzero(equal) if isinstance(left, slice) else left[equal]
        if not len(left):
            return True
    return False


def _require_queues(
    asked: _Asked, group: InstanceTable, mine: Numbers, owners: Numbers, queues: Numbers, rows: Numbers, known: _Known
) -> None:
    """3. The queues of instances of one kind."""
    clock = group.clock[mine]
    if not asked.clocked:
        say((clock == NEVER).all(), "there is a clock without a window")
        waited = np.bincount(group.owner, minlength=len(group))[mine] > 0
        say((waited | (group.lengths[mine].sum(axis=1) > 0)).all(), "an instance has nothing")
    else:
        say(are_times(clock), "a clock shows a time that is none")
        times, now = known.times[rows], group.clock[owners]
        say((times <= now).all(), "an event is later than its clock")
        for queue, bound in enumerate(asked.horizons):
            here = queues == queue
            say(all((times[here] >= cut).all() for cut in bound.cuts(now[here])), "an event has left its window")
    for queue, count in enumerate(asked.counts):
        say(count is None or int(group.lengths[mine, queue].max()) <= count, "a queue has more than RETAIN allows")
    for queue, accepted in enumerate(asked.queues):
        here = np.flatnonzero(queues == queue)
        known.require_type(rows[here], accepted)
        if asked.keys[queue] and len(here):
            known.require_keys(rows[here], asked.keys[queue], group.keys, owners[here])
    for queue, key in asked.tables:
        here = np.flatnonzero(queues == queue)
        known.require_rows(rows[here], key, owners[here])
    for queue, timed in asked.decisive:
        here = np.flatnonzero(queues == queue)
        together = owners[here][1:] == owners[here][:-1]
        times = known.times[rows[here]]
        rising = (times[1:] > times[:-1])[together].all() if timed else not together.any()
        say(rising, "an event is noted that decides nothing")


def _require_waits(asked: _Asked, group: InstanceTable, waits: Numbers, members: list[Numbers], known: _Known) -> None:
    """4. The waiting relations in instances of one kind."""
    say(bool(asked.waiting), "something waits where nothing is absent")
    words = np.sort(group.members[waits], axis=1)
    say((words[:, 1:] != words[:, :-1]).all(), "a member is there twice")
    for rows, queue in zip(members, asked.slots, strict=True):
        known.require_type(rows, asked.queues[queue])
        if asked.keys[queue]:
            known.require_keys(rows, asked.keys[queue], group.keys, group.owner[waits])
    anchors = [(known.times[members[anchor]], within) for anchor, within in asked.waiting]
    say(all((times != NEVER).all() for times, _ in anchors), "an anchor has no time")
    due: Any = np.max([times + within for times, within in anchors], axis=0)
    say((due == group.deadline[waits]).all(), "a deadline is not that of its anchors")


def _asked_of_entries(group: InstanceTable, entries: _Entries, plan: Plan) -> Iterator[tuple[Options, Numbers]]:
    """5. Events with the conditions on them: each distinct one once, for all branches that have it."""
    found: dict[Options, list[Numbers]] = {}
    for number, at, instances in _by_branch(group):
        places = BranchConditions.of(plan.subscriptions[number].branches[at])
        if any(places.queues):
            low, high = np.searchsorted(entries.owners, (instances[0], instances[-1] + 1)).tolist()
            for queue, options in enumerate(places.queues):
                if options:
                    found.setdefault(options, []).append(entries.rows[low:high][entries.queues[low:high] == queue])
        waits = np.flatnonzero((group.owner >= instances[0]) & (group.owner <= instances[-1])) if any(places.members) else ()
        for options, rows in zip(places.members if len(waits) else (), entries.members, strict=False):
            if options:
                found.setdefault(options, []).append(rows[waits])
    for options, parts in found.items():
        yield options, parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
