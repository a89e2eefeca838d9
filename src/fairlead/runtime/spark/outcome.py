"""The rows that a job on Spark gives: relations, and events that could not take part.

    verdict        `in order`: a relation; `late`: an event behind what was released; `rejected`: a record that fits no type;
                   `repeated`: a record whose sequence its source had already reached
    subscription, relation_id, branch
    completed_at   the position of the logged event that completed it (of another row: its own, null if it has none)
    place          0: at that event's own place; 1, 2 …: after it, by a derived one; -1, -2 …: before it, by a deadline
    turn           its number among what one task delivers at that event: sort by completed_at, subscription, turn
    members, emitted     as in the embedded runtime's table (model/layout.py); the positions of all members: `members.position`
    reason         why it is no relation

Takes: relations, or tables of events. Gives: Arrow tables of `schema`. Never: makes an object for a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.model.layout import Layout, layout_of
from fairlead.model.plan import Plan
from fairlead.model.relation import Relation
from fairlead.transport.output.relation_files import relation_table

IN_ORDER, LATE, REJECTED, REPEATED = "in order", "late", "rejected", "repeated"


class Outcome:
    """`certain`: no other row than relations can come. Then what each of them has is not nullable, which spares Spark a look at
    every value for whether there is one: a tenth of the time that it takes the rows."""

    def __init__(self, plan: Plan, certain: bool = False) -> None:
        self.layout: Layout = layout_of(plan)
        self.certain = certain

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
        at = given.column("completed_at").to_numpy()
        columns = {
            "verdict": _same(IN_ORDER, len(given)),
            "relation_id": given.column("id"),
            "turn": pa.array(_turns(at)),
            "reason": pa.nulls(len(given), pa.string()),
        }
        made = [columns[name] if name in columns else given.column(name) for name in self.schema.names]
        return pa.table(made, schema=self.schema)

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


def _turns(at: Any) -> Any:
    """Counts from 0 wherever a new logged event begins."""
    if not len(at):
        return np.zeros(0, dtype=np.int64)
    numbers = np.arange(len(at), dtype=np.int64)
    begins = np.concatenate([[True], at[1:] != at[:-1]])
    return numbers - np.maximum.accumulate(np.where(begins, numbers, 0))


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
