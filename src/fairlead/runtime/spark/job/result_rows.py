"""The rows of a job on Spark: relations, and events that could not take part.

    verdict        `in order`: a relation; `late`: an event before what was released; `ahead`: an event whose time is too far
                   after that of its storage; `rejected`: a record that fits no type; `repeated`: a record whose sequence its
                   source had already reached; `retracted`: a relation is taken back; `added`: one is delivered after all
    subscription, relation_id, branch
    completed_at   the position of the logged event that completed it (of another row: its own, null if it has none)
    place          0: at that event's own place; 1, 2 …: after it, by a derived one; -1, -2 …: before it, by a deadline
    turn           its place in the delivery of that event's relations: sort by completed_at, turn
    revision       the number of the round of late events that took it back or added it; only with LATE REVISE
    members, emitted     as in the embedded runtime's table (model/relations/layout.py); the positions of all members:
                         `members.position`
    subscriptions  those for which an event is late, ahead or repeated; only on streams whose subscriptions have different
                   frontiers
    reason         why it is not a relation

Turns are comparable over all tasks of a job, though no task knows what another one finds at the same event:

    -2, -1         before the event, counted back from it: what deadlines decided, and what that led to
    0, 1, 2 …      at the event itself: each subscription has as many numbers as one event can complete relations of it, in the
                   order of the text
    from there on  after the event, counted: what its derived ones led to

Relations beside an event belong to those subscriptions that need one order, and these are one task (targets.py). Positions, and
so turns, are comparable between subscriptions with the same frontier. In a revision,
turns count the rows of one task: those that it takes back, in the order in which they were delivered, then those that it adds.

Takes: relations, or tables of events. Gives: Arrow tables of `schema`. Never: makes an object for a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.errors import require
from fairlead.matching.results.relation_batches import relation_table
from fairlead.model.events.verdict import EventVerdict, RevisionVerdict
from fairlead.model.limits import LIMITS
from fairlead.model.plans.plan import Plan, Subscription
from fairlead.model.relations.layout import ResultLayout, layout_of
from fairlead.model.relations.relation import Relation
from fairlead.order.total import SEQUENCE, SOURCE

IN_ORDER, LATE = EventVerdict.IN_ORDER.value, EventVerdict.LATE.value
REJECTED, REPEATED, AHEAD = EventVerdict.REJECTED.value, EventVerdict.REPEATED.value, EventVerdict.AHEAD.value
RETRACTED, ADDED = RevisionVerdict.RETRACTED.value, RevisionVerdict.ADDED.value
REVISION, SUBSCRIPTIONS = "revision", "subscriptions"
Numbers = npt.NDArray[np.int64]
Names = Sequence[str]


class ResultRows:
    """`certain`: all rows are relations. Then their columns are not nullable, which spares Spark a null check of every value: a
    tenth of its time for the rows. `by_frontier`: an event can have another verdict for other subscriptions."""

    def __init__(self, plan: Plan, certain: bool = False, by_frontier: bool = False) -> None:
        self.layout: ResultLayout = replace(layout_of(plan), signed=True)
        """Here the sign of a delivery is its verdict."""
        self.certain, self.by_frontier = certain, by_frontier
        self.revises = plan.revises
        self.names = pa.array([each.name for each in plan.subscriptions], pa.string())
        self.firsts: Numbers = np.cumsum([0, *(_at_one_event(each) for each in plan.subscriptions)])
        """By subscription the first of its turns at an event; and the first after all of them."""
        self.room: Numbers = np.append(np.diff(self.firsts), np.iinfo(np.int64).max)
        """The number of turns of each; beside the event there is no bound."""

    @cached_property
    def schema(self) -> pa.Schema:
        held = {field.name: field for field in self._plain}
        names = ["verdict", "subscription", "relation_id", "branch", "completed_at", "place", "turn"]
        kinds = [pa.string(), pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int32(), pa.int64()]
        fixed = [pa.field(name, kind, not self.certain) for name, kind in zip(names, kinds, strict=True)]
        fixed += [pa.field(REVISION, pa.int64())] if self.revises else []
        named = [pa.field(SUBSCRIPTIONS, pa.list_(pa.string()))] if self.by_frontier else []
        runs = [held[name] for name in ("runs", "folded") if name in held]
        return pa.schema([*fixed, held["members"], *runs, held["emitted"], *named, pa.field("reason", pa.string())])

    @cached_property
    def _plain(self) -> pa.Schema:
        """The columns of the embedded runtime's table that are also in this one, in a form that Spark reads."""
        held = [field for field in self.layout.schema if field.name not in ("positions", "sign")]
        return pa.schema([_plain(field, self.certain) for field in held])

    def relations(self, found: Sequence[Relation]) -> pa.Table:
        """The delivered relations, in this order."""
        given = self._given([found])
        return self._rows(given, _same(IN_ORDER, len(given)), self._turns(given), None)

    def revised(self, retracted: Sequence[Relation], added: Sequence[Relation], revision: int) -> pa.Table:
        """The relations that a round of late events takes back and adds, in this order."""
        given = self._given([retracted, added])
        verdicts = pa.concat_arrays([_same(RETRACTED, len(retracted)), _same(ADDED, len(added))])
        return self._rows(given, verdicts, np.arange(len(given), dtype=np.int64), revision)

    def _given(self, batches: Sequence[Sequence[Relation]]) -> pa.Table:
        return relation_table(batches, self.layout).select(self._plain.names).cast(self._plain)

    def _rows(self, given: pa.Table, verdicts: pa.Array, turns: Numbers, revision: int | None) -> pa.Table:
        columns = {
            "verdict": verdicts,
            "relation_id": given.column("id"),
            "turn": pa.array(turns),
            REVISION: pa.repeat(pa.scalar(revision, pa.int64()), len(given)),
            "reason": pa.nulls(len(given), pa.string()),
            SUBSCRIPTIONS: pa.nulls(len(given), pa.list_(pa.string())),
        }
        made = [columns[name] if name in columns else given.column(name) for name in self.schema.names]
        return pa.table(made, schema=self.schema)

    def _turns(self, given: pa.Table) -> Numbers:
        """The turns of relations in the order of delivery. The relations are of whole events: all that one task completes at an
        event, or beside it, arrive together."""
        at, place = given.column("completed_at").to_numpy(), given.column("place").to_numpy()
        number = np.zeros(len(at), dtype=np.int64)
        if len(self.names) > 1:
            number = pc.index_in(given.column("subscription"), self.names).to_numpy().astype(np.int64)
        before, after = -1, len(self.names)
        owner = np.where(place == 0, number, np.where(place > 0, after, before))
        numbers, new = np.arange(len(at), dtype=np.int64), np.ones(len(at), dtype=bool)
        new[1:] = (at[1:] != at[:-1]) | (owner[1:] != owner[:-1])
        begins, run = np.flatnonzero(new), np.cumsum(new) - 1
        nth, left = numbers - begins[run], np.append(begins[1:], len(at))[run] - numbers
        require(bool((nth < self.room[owner]).all()), "one event completes no more relations than it has turns")
        turns: Numbers = np.where(owner == before, -left, self.firsts[owner] + nth)
        return turns

    def rejected(self, positions: pa.Array, code: pa.Array, problem: pa.Array, record: pa.Array) -> pa.Table:
        reason = pc.binary_join_element_wise(code, problem, pc.coalesce(record, pa.scalar("")), " ")
        return self._apart(REJECTED, positions, reason, None)

    def unplaced(self, refused: pa.Table) -> pa.Table:
        """Records that have no place in the order, and so no position."""
        texts = (refused.column(name).combine_chunks() for name in ("code", "problem", "record"))
        return self.rejected(pa.nulls(len(refused), pa.int64()), *texts)

    def repeated(self, positions: pa.Array, sources: pa.Array, sequences: pa.Array, whose: Names = ()) -> pa.Table:
        """Records that were dropped, each at its position. `whose`: the subscriptions for which they are repeats."""
        reason = pc.binary_join_element_wise(_origins(sources, sequences), "again, or behind", " ")
        return self._apart(REPEATED, positions, reason, None, whose)

    def late(self, name: str, events: pa.Table, reason: str, whose: Names = ()) -> pa.Table:
        """Late events of one type: each is the only member of its row."""
        return self._event(LATE, name, events, reason, whose)

    def ahead(self, name: str, events: pa.Table, reason: str, whose: Names = ()) -> pa.Table:
        """Events of one type that are ahead, in the same form."""
        return self._event(AHEAD, name, events, reason, whose)

    def _event(self, verdict: str, name: str, events: pa.Table, reason: str, whose: Names) -> pa.Table:
        nowhere = pa.nulls(len(events), pa.int64())
        return self._apart(verdict, nowhere, _reasons(reason, events), self._members(name, events), whose)

    def _apart(
        self, verdict: str, positions: pa.Array, reason: pa.Array, members: pa.Array | None, whose: Names = ()
    ) -> pa.Table:
        columns = {"verdict": _same(verdict, len(positions)), "completed_at": positions, "reason": reason}
        if members is not None:
            columns["members"] = members
        if whose:
            columns[SUBSCRIPTIONS] = pa.array([list(whose)] * len(positions), pa.list_(pa.string()))
        made = [columns.get(field.name, pa.nulls(len(positions), field.type)) for field in self.schema]
        return pa.table(made, schema=self.schema)

    def _members(self, name: str, events: pa.Table) -> pa.Array | None:
        kind = self.schema.field("members").type
        arrays: list[Any] = []
        for field in kind.value_type:
            column = next((each for each in self.layout.members if each.name == field.name and name in each.sources), None)
            if field.name == "type":
                arrays.append(_same(name, len(events)))
            elif column is not None:
                arrays.append(events.column(column.sources[name]).combine_chunks())
            else:
                arrays.append(pa.nulls(len(events), field.type))
        inner = pa.StructArray.from_arrays([_one(each) for each in arrays], fields=list(kind.value_type))
        return pa.ListArray.from_arrays(pa.array(np.arange(len(events) + 1, dtype=np.int32)), inner).cast(kind)


def _reasons(reason: str, events: pa.Table) -> pa.Array:
    """With the source and the sequence of each event, if it has them: its attributes are there only if relations show them."""
    if SEQUENCE not in events.column_names:
        return _same(reason, len(events))
    sources, sequences = (_one(events.column(name)) for name in (SOURCE, SEQUENCE))
    named = pc.binary_join_element_wise(reason, _origins(sources, sequences), "; ")
    return pc.coalesce(named, pa.scalar(reason))


def _origins(sources: pa.Array, sequences: pa.Array) -> pa.Array:
    named = pc.binary_join_element_wise("source", sources.cast(pa.string()), " ")
    named = pc.if_else(pc.is_null(sources), "the unnamed source", named)
    return pc.binary_join_element_wise("sequence", sequences.cast(pa.string()), "of", named, " ")


def _one(array: Any) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _same(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), rows)


def _at_one_event(subscription: Subscription) -> int:
    """How many relations one event can complete: one for each branch and key, with MATCHING ALL and sequences up to a limit."""
    searches = sum(max(1, len({attributes for _, attributes in branch.keys})) for branch in subscription.branches)
    several = subscription.matching.all or subscription.has_sequences
    each = (subscription.limit_per_event or LIMITS.relations_per_event_max) if several else 1
    return searches * each


def _plain(field: pa.Field, certain: bool) -> pa.Field:
    """Without dictionaries, which Spark does not read, and nullable throughout unless relations are certain."""
    return pa.field(field.name, _plain_type(field.type, certain), field.nullable or not certain)


def _plain_type(kind: pa.DataType, certain: bool) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_field, certain))
    if pa.types.is_struct(kind):
        return pa.struct([_plain(each, certain) for each in kind])
    return kind
