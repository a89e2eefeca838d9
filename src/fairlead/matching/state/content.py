"""The state of matchers as columns: the one form that every matcher writes and reads, equal for equal histories.

Branches of one *form* (equal numbers of queues and members, keys of the same types) share an `InstanceTable`: a row for each
instance, that is for each key of a branch that is in use. All referenced events are in `Events`, once, in their order.

Gives: `Content`, its parts, and their canonical order. Never: bytes (encoding.py), objects (interpreted/state.py) or kernels
(compiled/).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.results.chunk import Chunk, Numbers, Words
from fairlead.model.events.columns import Columns, arrow_type
from fairlead.model.events.types import Catalogue, DataType, Kind
from fairlead.model.expressions.expression import Condition
from fairlead.model.plans.folding import folding_of
from fairlead.model.plans.key_parts import key_type
from fairlead.model.plans.plan import Branch, Plan, Subscription
from fairlead.model.relations.identity import Words as Ids
from fairlead.model.relations.identity import majors_of

Mask = npt.NDArray[np.bool_]
NEVER = np.iinfo(np.int64).min
"""The clock of a key that has seen nothing."""


@dataclass(frozen=True)
class Form:
    keys: tuple[pa.DataType, ...]
    queues: int
    """Queues of members, then one for each WITHOUT clause."""
    members: int
    folded: int = 0
    """Numbers that are kept of a folded run, if the branch has one."""


@dataclass(frozen=True)
class InstanceTable:
    """Instances in the order of subscription, branch and key. Waiting relations are in the order of subscription, deadline,
    members and branch."""

    form: Form
    subscription: Numbers
    """Its number in the plan."""
    branch: Numbers
    keys: tuple[pa.Array, ...]
    clock: Numbers
    loose: Mask
    lengths: npt.NDArray[np.int64]
    """A column for each queue."""
    words: Words
    """The queued events: instance by instance, queue by queue, oldest first."""
    owner: Numbers
    """For each waiting relation, the row of its instance."""
    deadline: Numbers
    cancelled: Mask
    members: npt.NDArray[np.int64]
    """For the waiting relations, a column of words for each member."""
    folded: npt.NDArray[np.int64]
    """What is kept of folded runs beside the events that stand for them (model/plans/folding.py): a row for each instance."""

    def __len__(self) -> int:
        return len(self.subscription)

    @cached_property
    def _totals(self) -> Numbers:
        made: Numbers = self.lengths.sum(axis=1)
        return made

    @cached_property
    def _ends(self) -> Numbers:
        return np.cumsum(self._totals)

    def taken(self, rows: Numbers) -> InstanceTable:
        """Some instances, in this order, with their waiting relations in the existing order."""
        totals = self._totals[rows]
        first = self._ends[rows] - totals
        words = self.words[np.arange(int(totals.sum())) + np.repeat(first - (np.cumsum(totals) - totals), totals)]
        new_number = np.full(len(self), -1, dtype=np.int64)
        new_number[rows] = np.arange(len(rows))
        owner = new_number[self.owner]
        waits = np.flatnonzero(owner >= 0)
        return InstanceTable(
            self.form,
            self.subscription[rows],
            self.branch[rows],
            tuple(column.take(pa.array(rows)) for column in self.keys),
            self.clock[rows],
            self.loose[rows],
            self.lengths[rows],
            words,
            owner[waits],
            self.deadline[waits],
            self.cancelled[waits],
            self.members[waits],
            self.folded[rows],
        )

    def ordered(self) -> InstanceTable:
        """In the canonical order."""
        if len(self) < 2:
            return self.in_order_of_deadlines()
        order = canonical_order((pa.array(self.subscription), pa.array(self.branch), *self.keys))
        return self.taken(order).in_order_of_deadlines()

    def in_order_of_deadlines(self) -> InstanceTable:
        """The waiting relations in the canonical order."""
        if len(self.owner) < 2:
            return self
        by_members = tuple(self.members[:, slot] for slot in reversed(range(self.form.members)))
        order = np.lexsort((self.branch[self.owner], *by_members, self.deadline, self.subscription[self.owner]))
        parts = {name: getattr(self, name)[order] for name in ("owner", "deadline", "cancelled", "members")}
        return replace(self, **parts)


def canonical_order(columns: Sequence[pa.Array]) -> Numbers:
    import pyarrow.compute as pc  # loading it takes longer than a small state

    table = pa.table(list(columns), names=[str(at) for at in range(len(columns))])
    order: Numbers = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names]).to_numpy()
    return order.astype(np.int64)


def joined(groups: Sequence[InstanceTable]) -> InstanceTable:
    """Groups of one form, without a branch in common, as one."""
    if len(groups) == 1:
        return groups[0]
    starts = np.cumsum([0, *(len(each) for each in groups[:-1])]).tolist()
    owners = [each.owner + start for each, start in zip(groups, starts, strict=True)]
    names = ("subscription", "branch", "clock", "loose", "lengths", "words", "deadline", "cancelled", "members", "folded")
    parts: dict[str, Any] = {name: np.concatenate([getattr(each, name) for each in groups]) for name in names}
    keys = tuple(pa.concat_arrays(each) for each in zip(*(group.keys for group in groups), strict=True))
    return InstanceTable(groups[0].form, keys=keys, owner=np.concatenate(owners), **parts).ordered()


@dataclass(frozen=True)
class Events:
    """Events in their order. The j-th event of a type is row j of its table; `types` are sorted by name."""

    types: tuple[str, ...]
    words: Words
    codes: Numbers
    tables: Mapping[str, pa.RecordBatch]
    times: Numbers
    """The times of derived events; others have theirs among their attributes."""
    timed: Mask
    sources: Sequence[str | None] | None = None
    sequences: Sequence[int | None] | None = None
    identities: Ids | None = None
    """Two words for each event, if the events are in an order by value."""
    truths: dict[tuple[str, Condition], Mask] = field(default_factory=dict, compare=False)
    """Where conditions on single events (at slot 0) were found to hold: by type and condition, for all rows of the table."""

    def __len__(self) -> int:
        return len(self.words)

    def chunk(self) -> Chunk:
        times = {}
        for code, name in enumerate(self.types):
            mine = self.codes == code
            if self.timed[mine].all() and mine.any():
                times[name] = self.times[mine]
        columns = Columns(
            *(self.types, self.codes, majors_of(self.words), self.tables, self.sources, self.sequences),  # type: ignore[arg-type]
            identities=self.identities,
        )
        return Chunk(columns, self.words, times)


NO_NUMBERS = np.zeros(0, dtype=np.int64)
NO_EVENTS = Events((), NO_NUMBERS, NO_NUMBERS, {}, NO_NUMBERS, np.zeros(0, dtype=bool))


def events_of_chunk(chunk: Chunk, catalogue: Catalogue) -> Events:
    columns = chunk.columns
    types = tuple(sorted(name for name in columns.types if name in columns.tables))
    number = np.array([types.index(name) if name in types else -1 for name in columns.types], dtype=np.int64)
    times, timed = np.zeros(len(chunk), dtype=np.int64), np.zeros(len(chunk), dtype=bool)
    for name in types:
        schema = catalogue[name]
        rows, given = columns.places[name], chunk.times.get(name)
        if schema.derived and given is not None:
            times[rows], timed[rows] = given, True
        elif schema.derived and schema.time_index is not None:
            own = columns.tables[name].column(schema.time_index).cast(pa.int64())
            times[rows], timed[rows] = own.fill_null(0).to_numpy(), own.is_valid().to_numpy(zero_copy_only=False)
    codes = number[columns.code_array]
    origin = columns.sources, columns.sequences, columns.identities
    return Events(types, chunk.words, codes, columns.tables, times, timed, *origin)


@dataclass(frozen=True)
class CountTable:
    """How many relations a LIMIT has counted: a row for each key that it counts apart, in their order, or one row."""

    keys: tuple[pa.Array, ...]
    counts: Numbers

    def __len__(self) -> int:
        return len(self.counts)


@dataclass(frozen=True)
class Content:
    seen: Sequence[int | None]
    """By subscription, the latest time of its clock, if it waits for something (WITHOUT ... WITHIN)."""
    groups: Mapping[Form, InstanceTable]
    """The forms that have an instance."""
    events: Events
    counts: Mapping[int, CountTable] = field(default_factory=dict)
    """By number of a subscription with a LIMIT that has counted something."""

    def __len__(self) -> int:
        """The number of entries in queues."""
        return sum(len(group.words) for group in self.groups.values())


def form_of(branch: Branch, catalogue: Catalogue) -> Form:
    folding = folding_of(branch, catalogue)
    folded = 0 if folding is None else folding.width
    return Form(_key_types(branch.keys, catalogue), len(branch.queue_types) + len(branch.noting), len(branch.slots), folded)


def counted_keys(subscription: Subscription, catalogue: Catalogue) -> tuple[pa.DataType, ...]:
    """The types of the keys that a LIMIT counts apart: they hold those of all branches."""
    if subscription.limit is None or not subscription.limit.per_key:
        return ()
    return _key_types([each for branch in subscription.branches for each in branch.keys], catalogue)


def _key_types(keys: Sequence[tuple[str, tuple[str, ...]]], catalogue: Catalogue) -> tuple[pa.DataType, ...]:
    schemas = [catalogue[name] for name, _ in keys]
    parts = zip(*(attributes for _, attributes in keys), strict=True)
    return tuple(_key_type([key_type(schema, each) for schema, each in zip(schemas, part, strict=True)]) for part in parts)


def _key_type(types: Sequence[DataType]) -> pa.DataType:
    """A type that holds the keys of all; they are of one kind, except INT and BIGINT."""
    if types[0].kind is Kind.INT:
        return pa.int64()
    if types[0].kind is not Kind.DECIMAL:
        return arrow_type(types[0])
    scale = max(each.scale for each in types)
    precision = max(each.precision - each.scale for each in types) + scale
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def forms_of(plan: Plan) -> list[Form]:
    """All forms of a plan, in the order of its branches."""
    return list(dict.fromkeys(form_of(branch, plan.catalogue) for each in plan.subscriptions for branch in each.branches))
