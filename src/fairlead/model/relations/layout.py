"""The table of the relations of a plan: one row per relation, typed columns that are a function of the plan.

    subscription, id, branch     whose it is
    completed_at, place          where in the order: the number of a logged event, and the place beside it (0: its own)
    positions                    the numbers of its members, in signature order, to join on
    members                      for each: type, position, place, and the attributes of all member types, null if the
                                 member's type has no such attribute
    emitted                      type and attributes of the derived event; null if nothing is emitted
    runs                         how many of the members each element has, in signature order; only if a pattern has
                                 runs (`q+`), and null for a relation whose pattern tells it
    folded                       where the runs that FOLD names lie, each by its slot, with the number, the place beside it and
                                 the time of its first and last event; only if a run is folded, and null for a relation of
                                 a pattern without one
    sign                         1, or -1 if the delivery takes the relation back; only in a signed layout

Attributes of one name share a column if their types agree; if not, each has its own, called `Type.attribute`. The schema's
metadata says which column holds which attribute, so that a file can be read without the plan.

Takes: a plan. Gives: `ResultLayout` and its Arrow schema. Never: sees a relation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.model.events.columns import arrow_type
from fairlead.model.events.types import Catalogue, DataType, Kind
from fairlead.model.plans.plan import Plan

NAMES = pa.dictionary(pa.int32(), pa.string())
METADATA = b"fairlead.relations"
RUNS = pa.list_(pa.field("element", pa.int32(), nullable=False))
SPAN_TIME = arrow_type(DataType(Kind.TIMESTAMP))


def _span_fields() -> list[pa.Field]:
    ends = [(f"{end}{name}", kind) for end in ("first", "last") for name, kind in (("", pa.int64()), ("_place", pa.int32()))]
    fields = [pa.field(name, kind, nullable=False) for name, kind in (("slot", pa.int32()), *ends)]
    for at, end in ((3, "first"), (6, "last")):
        fields.insert(at, pa.field(f"{end}_time", SPAN_TIME))
    return fields


SPANS = pa.list_(pa.field("element", pa.struct(_span_fields()), nullable=False))
RESERVED = ("type", "position", "place")


@dataclass(frozen=True)
class ResultColumn:
    """A column for attributes: which attribute of each event type it holds, by number."""

    name: str
    type: DataType
    sources: Mapping[str, int]

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, arrow_type(self.type))


@dataclass(frozen=True)
class ResultLayout:
    """`types` and `subscriptions` are the dictionaries of the columns of these names; `derived` that of `emitted.type`."""

    subscriptions: tuple[str, ...]
    types: tuple[str, ...]
    members: tuple[ResultColumn, ...]
    derived: tuple[str, ...]
    emitted: tuple[ResultColumn, ...]
    catalogue: Catalogue
    signed: bool = False
    """Relations can be taken back."""
    ragged: bool = False
    """A pattern has runs."""
    folded: bool = False
    """A run is folded."""

    @cached_property
    def member_type(self) -> pa.DataType:
        fixed = [_present("type", NAMES), _present("position", pa.int64()), _present("place", pa.int32())]
        return pa.struct([*fixed, *(each.field for each in self.members)])

    @cached_property
    def emitted_type(self) -> pa.DataType:
        return pa.struct([pa.field("type", NAMES), *(each.field for each in self.emitted)])

    @cached_property
    def schema(self) -> pa.Schema:
        columns = [
            _present("subscription", NAMES),
            _present("id", pa.string()),
            _present("branch", pa.int32()),
            _present("completed_at", pa.int64()),
            _present("place", pa.int32()),
            _present("positions", pa.list_(_present("element", pa.int64()))),
            _present("members", pa.list_(_present("element", self.member_type))),
            pa.field("emitted", self.emitted_type),
            *([pa.field("runs", RUNS)] if self.ragged else []),
            *([pa.field("folded", SPANS)] if self.folded else []),
            *([_present("sign", pa.int8())] if self.signed else []),
        ]
        held = {"members": self._held(self.types, self.members), "emitted": self._held(self.derived, self.emitted)}
        return pa.schema(columns, metadata={METADATA: json.dumps(held)})

    def _held(self, types: Iterable[str], columns: tuple[ResultColumn, ...]) -> dict[str, dict[str, str]]:
        """By type and attribute, the name of the column."""
        found: dict[str, dict[str, str]] = {}
        for name in types:
            by_number = {each.sources[name]: each.name for each in columns if name in each.sources}
            found[name] = {each.name: by_number[at] for at, each in enumerate(self.catalogue[name].attributes)}
        return found


def layout_of(plan: Plan, subscription: str | None = None) -> ResultLayout:
    """The layout for all relations of a plan, or for those of one subscription."""
    plan = plan.whole or plan
    chosen = [each for each in plan.subscriptions if subscription in (None, each.name)]
    slots = {slot.type for each in chosen for branch in each.branches for slot in branch.slots}
    types = tuple(sorted({name for slot in slots for name in plan.catalogue.accepts(slot)}))
    derived = tuple(dict.fromkeys(each.emits for each in chosen if each.emits))
    return ResultLayout(
        tuple(each.name for each in chosen),
        types,
        columns_of_types(types, plan.catalogue, RESERVED),
        derived,
        columns_of_types(derived, plan.catalogue, ("type",)),
        plan.catalogue,
        signed=plan.revises,
        ragged=any(each.has_runs for each in chosen),
        folded=any(each.has_folds for each in chosen),
    )


def relation_schema(plan: Plan) -> pa.Schema:
    """The Arrow schema of a plan's relations."""
    return layout_of(plan).schema


def columns_of_types(types: tuple[str, ...], catalogue: Catalogue, reserved: tuple[str, ...]) -> tuple[ResultColumn, ...]:
    """The columns that hold the attributes of all these types."""
    found: dict[str, dict[str, DataType]] = {}
    for name in types:
        for attribute in catalogue[name].attributes:
            found.setdefault(attribute.name, {})[name] = attribute.type
    columns = []
    for attribute_name, by_type in found.items():
        numbers = {name: catalogue[name].index[attribute_name] for name in by_type}
        if len(set(by_type.values())) == 1 and attribute_name not in reserved:
            columns.append(ResultColumn(attribute_name, next(iter(by_type.values())), numbers))
        else:
            columns += [ResultColumn(f"{name}.{attribute_name}", by_type[name], {name: numbers[name]}) for name in by_type]
    return tuple(columns)


def column_paths(path: str, data_type: DataType) -> Iterator[tuple[str, Kind]]:
    """Parquet's columns for an attribute: one for each value in it that is not nested."""
    if data_type.element is not None:
        yield from column_paths(f"{path}.list.element", data_type.element)
    elif data_type.is_nested:
        for each in data_type.fields:
            yield from column_paths(f"{path}.{each.name}", each.type)
    else:
        yield path, data_type.kind


def _present(name: str, data_type: pa.DataType) -> pa.Field:
    return pa.field(name, data_type, nullable=False)
