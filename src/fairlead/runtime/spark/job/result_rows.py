"""The rows that a job on Spark gives: relations, and events that could not take part.

    verdict        `in order`: a relation; `late`: an event behind what was released; `rejected`: a record that fits no type;
                   `repeated`: a record whose sequence its source had already reached
    subscription, relation_id, branch
    completed_at   the position of the logged event that completed it (of another row: its own, null if it has none)
    place          0: at that event's own place; 1, 2 …: after it, by a derived one; -1, -2 …: before it, by a deadline
    turn           where it stands in the delivery of that event's relations: sort by completed_at, turn
    members, emitted     as in the embedded runtime's table (model/layout.py); the positions of all members: `members.position`
    reason         why it is no relation

Turns are comparable over all tasks of a job, though no task knows what another one finds at the same event:

    -2, -1         before the event, counted back from it: what deadlines decided, and what that led to
    0, 1, 2 …      at the event itself: each subscription has as many numbers as one event can complete relations of it, in the
                   order of the text
    from there on  after the event, counted: what its derived ones led to

What stands beside an event is of those subscriptions that need one order, and these are one task (targets.py).

Takes: relations, or tables of events. Gives: Arrow tables of `schema`. Never: makes an object for a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.errors import require
from fairlead.model.layout import ResultLayout, layout_of
from fairlead.model.plan import Plan, Subscription
from fairlead.model.relation import Relation
from fairlead.transport.output.relation_files import relation_table

IN_ORDER, LATE, REJECTED, REPEATED = "in order", "late", "rejected", "repeated"
Numbers = npt.NDArray[np.int64]


class ResultRows:
    """`certain`: no other row than relations can come. Then what each of them has is not nullable, which spares Spark a look at
    every value for whether there is one: a tenth of the time that it takes the rows."""

    def __init__(self, plan: Plan, certain: bool = False) -> None:
        self.layout: ResultLayout = layout_of(plan)
        self.certain = certain
        self.names = pa.array([each.name for each in plan.subscriptions], pa.string())
        self.firsts: Numbers = np.cumsum([0, *(_at_one_event(each) for each in plan.subscriptions)])
        """By subscription the first of its turns at an event; and the first after all of them."""
        self.room: Numbers = np.append(np.diff(self.firsts), np.iinfo(np.int64).max)
        """How many turns each has; beside the event there is no bound."""

    @cached_property
    def schema(self) -> pa.Schema:
        held = {field.name: field for field in self._plain}
        names = ["verdict", "subscription", "relation_id", "branch", "completed_at", "place", "turn"]
        kinds = [pa.string(), pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int32(), pa.int64()]
        fixed = [pa.field(name, kind, not self.certain) for name, kind in zip(names, kinds, strict=True)]
        return pa.schema([*fixed, held["members"], held["emitted"], pa.field("reason", pa.string())])

    @cached_property
    def _plain(self) -> pa.Schema:
        """Of the embedded runtime's table what is in this one too, in a form that Spark reads."""
        return pa.schema([_plain(field, self.certain) for field in self.layout.schema if field.name != "positions"])

    def relations(self, found: Sequence[Relation]) -> pa.Table:
        """What was delivered, in this order."""
        given = relation_table([found], self.layout).select(self._plain.names).cast(self._plain)
        columns = {
            "verdict": _same(IN_ORDER, len(given)),
            "relation_id": given.column("id"),
            "turn": pa.array(self._turns(given)),
            "reason": pa.nulls(len(given), pa.string()),
        }
        made = [columns[name] if name in columns else given.column(name) for name in self.schema.names]
        return pa.table(made, schema=self.schema)

    def _turns(self, given: pa.Table) -> Numbers:
        """Of relations in the order of delivery, their turns. They are of whole events: what is completed at one, or beside it,
        and by one task, is handed over at once."""
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
        require(bool((nth < self.room[owner]).all()), "one event completes at most one relation for each branch and key")
        turns: Numbers = np.where(owner == before, -left, self.firsts[owner] + nth)
        return turns

    def rejected(self, positions: pa.Array, code: pa.Array, problem: pa.Array, record: pa.Array) -> pa.Table:
        reason = pc.binary_join_element_wise(code, problem, pc.coalesce(record, pa.scalar("")), " ")
        return self._apart(REJECTED, positions, reason, None)

    def repeated(self, positions: pa.Array, sources: pa.Array, sequences: pa.Array) -> pa.Table:
        """Records that were dropped, each at its position."""
        named = pc.if_else(pc.is_null(sources), "the unnamed source", pc.binary_join_element_wise("source", sources, " "))
        reason = pc.binary_join_element_wise("sequence", sequences.cast(pa.string()), "of", named, "again, or behind", " ")
        return self._apart(REPEATED, positions, reason, None)

    def late(self, name: str, events: pa.Table, reason: str) -> pa.Table:
        """Events of one type that come behind what was released: each is the only member of its row."""
        members = self._members(name, events)
        return self._apart(LATE, pa.nulls(len(events), pa.int64()), _same(reason, len(events)), members)

    def _apart(self, verdict: str, positions: pa.Array, reason: pa.Array, members: pa.Array | None) -> pa.Table:
        columns = {"verdict": _same(verdict, len(positions)), "completed_at": positions, "reason": reason}
        if members is not None:
            columns["members"] = members
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


def _one(array: Any) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _same(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), rows)


def _at_one_event(subscription: Subscription) -> int:
    """How many relations one event can complete: one for each branch and key that it arrives at."""
    return sum(max(1, len({attributes for _, attributes in branch.keys})) for branch in subscription.branches)


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
