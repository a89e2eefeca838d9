"""Relations as the result table: whole columns for the kernels' matches, values one by one for relations that are objects
already.

Takes: rows of blocks and the view that has their members, or relations. Gives: a table of the layout
(model/relations/layout.py). Never: makes an object for a member or a relation of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import require
from fairlead.matching.expressions.emission import emitted_columns
from fairlead.matching.results.chunk import Numbers, chunk_of_events
from fairlead.matching.results.event_store import View
from fairlead.matching.results.taken_rows import Taken, parts_of
from fairlead.model.events.columns import arrow_array, number_array, text_array
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.relations.identity import Signs, from_hex, hex_digits, majors_of, places_of, position_word
from fairlead.model.relations.identity import Words as Ids
from fairlead.model.relations.layout import RUNS, SPAN_TIME, SPANS, ResultColumn, ResultLayout
from fairlead.model.relations.relation import PLUS, Relation

if TYPE_CHECKING:
    from fairlead.matching.results.member_words import MemberWords
    from fairlead.matching.results.relations import MatchBlock


@dataclass(frozen=True, eq=False)
class BlockRows:
    """Some rows of a block: `at` is the place of each among the rows of the table."""

    block: MatchBlock
    at: Numbers | slice
    rows: Numbers | slice

    def __len__(self) -> int:
        return len(self.words)

    @property
    def words(self) -> Numbers:
        return self.block.at[self.rows]

    @property
    def refs(self) -> MemberWords:
        return self.block.refs[self.rows]

    @property
    def deadlines(self) -> Numbers | None:
        return None if self.block.deadlines is None else self.block.deadlines[self.rows]


@dataclass
class Frame:
    """The numbers of a table's rows, which determine everything except the attributes."""

    subscription: npt.NDArray[np.int32]
    branch: npt.NDArray[np.int32]
    at: Numbers
    width: Numbers
    sign: Signs

    @classmethod
    def of(cls, length: int) -> Frame:
        short, long = np.zeros((2, length), dtype=np.int32), np.zeros((2, length), dtype=np.int64)
        return cls(short[0], short[1], long[0], long[1], np.full(length, PLUS, dtype=np.int8))

    @cached_property
    def offsets(self) -> Numbers:
        """Where the members of each row begin."""
        return np.concatenate(([0], np.cumsum(self.width)))


def table_of_blocks(layout: ResultLayout, rows: Sequence[BlockRows], view: View, ids: Ids) -> pa.Table:
    frame = Frame.of(len(ids))
    for each in rows:
        frame.subscription[each.at] = layout.subscriptions.index(each.block.subscription.name)
        frame.branch[each.at], frame.at[each.at] = each.block.branch_number, each.words
        frame.width[each.at], frame.sign[each.at] = each.refs.widths, each.block.sign
    emitted = _emitted_of_blocks(layout, rows, view, len(ids))
    further = _runs_of_blocks(layout, rows, len(ids)), _spans_of_blocks(layout, rows, view, len(ids))
    return _table(layout, frame, ids, view.take(_words(frame, rows)), emitted, *further)


def _words(frame: Frame, rows: Sequence[BlockRows]) -> Numbers:
    """The members of all rows, one after the other."""
    if len(rows) == 1 and isinstance(rows[0].at, slice):
        return rows[0].refs.flat
    words = np.empty(int(frame.offsets[-1]), dtype=np.int64)
    for each in rows:
        refs, starts = each.refs, frame.offsets[:-1][each.at]
        if isinstance(refs.widths, int):
            words[starts[:, None] + np.arange(refs.widths)] = refs.words
        else:
            words[np.repeat(starts - refs.starts[:-1], refs.widths) + np.arange(len(refs.words))] = refs.words
    return words


def table_of_objects(layout: ResultLayout, relations: Sequence[Relation]) -> pa.Table:
    if not relations:
        return layout.schema.empty_table()
    frame = Frame.of(len(relations))
    subscriptions = {name: at for at, name in enumerate(layout.subscriptions)}
    for at, each in enumerate(relations):
        frame.subscription[at], frame.branch[at] = subscriptions[each.subscription], each.branch
        frame.at[at], frame.width[at], frame.sign[at] = position_word(each.completed_at), len(each.members), each.sign
    members = [member for each in relations for member in each.members]
    events: dict[object, Event] = {}  # a derived event's position is relative to one subscription: others may share it
    keys = [member.position if member.position.minor == 0 else id(member) for member in members]
    for key, member in zip(keys, members, strict=True):
        events.setdefault(key, member)
    rows = {key: row for row, key in enumerate(events)}
    words = np.array([position_word(member.position) for member in members], dtype=np.int64)
    places = np.array([rows[key] for key in keys], dtype=np.int64)
    found = parts_of(chunk_of_events(list(events.values())), np.arange(len(words)), places) if events else ()
    ids = from_hex([each.id for each in relations])
    runs = pa.array([each.runs for each in relations], type=RUNS) if layout.ragged else None
    spans = pa.array([_span_rows(each) for each in relations], type=SPANS) if layout.folded else None
    return _table(layout, frame, ids, Taken(words, list(found)), _emitted_of_objects(layout, relations), runs, spans)


def _table(
    layout: ResultLayout,
    frame: Frame,
    ids: Ids,
    members: Taken,
    emitted: pa.Array,
    runs: pa.Array | None,
    spans: pa.Array | None,
) -> pa.Table:
    offsets, count = number_array(frame.offsets.astype(np.int32)), len(ids)
    positions, schema = number_array(majors_of(members.words)), layout.schema
    structs = pa.StructArray.from_arrays(
        [
            pa.DictionaryArray.from_arrays(number_array(members.codes(layout.types)), text_array(layout.types)),
            positions,
            number_array(places_of(members.words)),
            *(members.column(each.field.type, {name: (at,) for name, at in each.sources.items()}) for each in layout.members),
        ],
        fields=list(layout.member_type),
    )
    digits = pa.py_buffer(hex_digits(ids))
    columns = [
        pa.DictionaryArray.from_arrays(number_array(frame.subscription), text_array(layout.subscriptions)),
        pa.StringArray.from_buffers(count, pa.py_buffer(np.arange(0, 32 * count + 1, 32, dtype=np.int32)), digits),
        number_array(frame.branch),
        number_array(majors_of(frame.at)),
        number_array(places_of(frame.at)),
        pa.ListArray.from_arrays(offsets, positions, type=schema.field("positions").type),
        pa.ListArray.from_arrays(offsets, structs, type=schema.field("members").type),
        emitted,
    ]
    if layout.ragged:
        columns.append(runs)
    if layout.folded:
        columns.append(spans)
    if layout.signed:
        columns.append(number_array(frame.sign))
    else:
        require(bool((frame.sign == PLUS).all()), "a table without signs has no relation that is taken back")
    return pa.Table.from_arrays(columns, schema=schema)


def _emitted_of_blocks(layout: ResultLayout, rows: Sequence[BlockRows], view: View, count: int) -> pa.Array:
    """Each block's derived events, computed in its own order and then sorted into that of the table."""
    if not any(each.block.subscription.emits for each in rows):
        return pa.nulls(count, layout.emitted_type)
    parts, at = [], []
    for each in rows:
        branch = each.block.subscription.branches[each.block.branch]
        if branch.emission is None:
            parts.append(pa.nulls(len(each), layout.emitted_type))
        else:
            made = emitted_columns(branch, layout.catalogue, view, each.refs)
            parts.append(_emitted(layout, branch.emission.type, made, len(each)))
        at.append(np.arange(count)[each.at])
    return _in_rows(parts, at)


def _in_rows(parts: Sequence[pa.Array], at: Sequence[Numbers]) -> pa.Array:
    """What blocks have, in the order of the rows `at` which it is."""
    joined = pa.concat_arrays(parts)
    return joined if len(parts) == 1 else joined.take(number_array(np.argsort(np.concatenate(at))))


def _runs_of_blocks(layout: ResultLayout, rows: Sequence[BlockRows], count: int) -> pa.Array | None:
    """How many members each slot has; NULL for a branch without runs."""
    if not layout.ragged:
        return None
    parts, at = [], []
    for each in rows:
        if each.refs.offsets is None:
            parts.append(pa.nulls(len(each), RUNS))
        else:
            lengths = each.refs.run_lengths
            offsets = np.arange(0, lengths.size + 1, lengths.shape[1], dtype=np.int32)
            values = number_array(lengths.reshape(-1).astype(np.int32))
            parts.append(pa.ListArray.from_arrays(number_array(offsets), values, type=RUNS))
        at.append(np.arange(count)[each.at])
    return _in_rows(parts, at)


def _spans_of_blocks(layout: ResultLayout, rows: Sequence[BlockRows], view: View, count: int) -> pa.Array | None:
    """Where folded runs lie; NULL for a branch without them."""
    if not layout.folded:
        return None
    parts, at = [], []
    for each in rows:
        folds = each.refs.folds
        if folds is None:
            parts.append(pa.nulls(len(each), SPANS))
        else:
            columns: list[pa.Array] = [number_array(np.full(len(folds), folds.folding.slot, dtype=np.int32))]
            for words in (folds.role("first"), folds.role("last")):
                times, known = view.take(words).times(layout.catalogue)
                columns += [number_array(majors_of(words)), number_array(places_of(words))]
                columns.append(pa.array(times, mask=~known).cast(SPAN_TIME))
            structs = pa.StructArray.from_arrays(columns, fields=list(SPANS.value_type))
            parts.append(pa.ListArray.from_arrays(number_array(np.arange(len(folds) + 1, dtype=np.int32)), structs, type=SPANS))
        at.append(np.arange(count)[each.at])
    return _in_rows(parts, at)


def _span_rows(relation: Relation) -> list[dict[str, Any]] | None:
    return [
        {
            "slot": each.slot,
            **_end("first", each.first, each.first_time),
            **_end("last", each.last, each.last_time),
        }
        for each in relation.folded
    ] or None


def _end(name: str, position: Position, time: int | None) -> dict[str, Any]:
    (place,) = places_of(np.array([position_word(position)])).tolist()
    return {name: position.major, f"{name}_place": place, f"{name}_time": time}


def _emitted_of_objects(layout: ResultLayout, relations: Sequence[Relation]) -> pa.Array:
    if not any(each.emitted_type for each in relations):
        return pa.nulls(len(relations), layout.emitted_type)
    mine: dict[str | None, list[int]] = {}
    for at, each in enumerate(relations):
        mine.setdefault(each.emitted_type, []).append(at)
    parts = []
    for name, places in mine.items():
        if name is None:
            parts.append(pa.nulls(len(places), layout.emitted_type))
            continue
        values: list[list[Any]] = [[relations[at].emitted_row[n][2] for at in places] for n in _numbers(layout, name)]
        types = [each.type for each in layout.catalogue[name].attributes]
        made = [arrow_array(column, wanted) for column, wanted in zip(values, types, strict=True)]
        parts.append(_emitted(layout, name, made, len(places)))
    order = np.argsort(np.concatenate([np.array(places, dtype=np.int64) for places in mine.values()]))
    return pa.concat_arrays(parts).take(number_array(order))


def _numbers(layout: ResultLayout, name: str) -> range:
    return range(len(layout.catalogue[name].attributes))


def _emitted(layout: ResultLayout, name: str, made: Sequence[pa.Array], count: int) -> pa.Array:
    """The attributes of one derived type in the columns of all."""
    codes = number_array(np.full(count, layout.derived.index(name), dtype=np.int32))

    def column(each: ResultColumn) -> pa.Array:
        return made[each.sources[name]] if name in each.sources else pa.nulls(count, each.field.type)

    names = pa.DictionaryArray.from_arrays(codes, text_array(layout.derived))
    return pa.StructArray.from_arrays([names, *map(column, layout.emitted)], fields=list(layout.emitted_type))
