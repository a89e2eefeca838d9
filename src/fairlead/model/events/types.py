"""Event types: names, ordered typed attributes, an optional supertype, an optional event time, and unions.

Takes: declarations of the language. Gives: frozen types and the catalogue that answers "which events does a subscriber of this
type receive?". Never: looks at an event's values (see values.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property

from fairlead.dataclass import dataclass


class Kind(StrEnum):
    """Spark's type names. INTERVAL exists inside expressions and in derived events: no input attribute has it. ARRAY and
    STRUCT are made of other types (see DataType)."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    TIMESTAMP = "TIMESTAMP"
    DATE = "DATE"
    BINARY = "BINARY"
    INTERVAL = "INTERVAL"
    ARRAY = "ARRAY"
    STRUCT = "STRUCT"


NUMERIC = frozenset({Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL})
INTEGER = frozenset({Kind.INT, Kind.BIGINT})
NESTED = frozenset({Kind.ARRAY, Kind.STRUCT})
PATH = "."
"""Between the names of a path: no attribute and no field has a name with it."""


@dataclass(frozen=True)
class DataType:
    """A kind, and for DECIMAL its precision and scale (default 10, 0, as in Spark); for ARRAY the type of its elements, for
    STRUCT its fields in order."""

    kind: Kind
    precision: int = 10
    scale: int = 0
    element: DataType | None = None
    fields: tuple[Attribute, ...] = ()

    @property
    def is_nested(self) -> bool:
        return self.kind in NESTED

    @property
    def parts(self) -> tuple[DataType, ...]:
        """The types that a nested one is made of."""
        return (self.element,) if self.element is not None else tuple(each.type for each in self.fields)

    @cached_property
    def depth(self) -> int:
        """How many types are within one another; 1 for a type that is not nested."""
        return 1 + max((each.depth for each in self.parts), default=0)

    @cached_property
    def scalars(self) -> tuple[DataType, ...]:
        """The types of all values in it that are not nested, in order; of such a type, itself."""
        return tuple(each for part in self.parts for each in part.scalars) if self.is_nested else (self,)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The numbers of the fields of a STRUCT, by name."""
        return {each.name: at for at, each in enumerate(self.fields)}

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.kind is Kind.ARRAY:
            return f"ARRAY<{self.element}>"
        if self.kind is Kind.STRUCT:
            return f"STRUCT<{', '.join(f'{each.name}: {each.type}' for each in self.fields)}>"
        return self.kind.value


@dataclass(frozen=True)
class Attribute:
    name: str
    type: DataType

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


MAIN = "main"
"""The topic of types for which no other is declared."""


@dataclass(frozen=True)
class EventType:
    """One type. `attributes` lists inherited ones first. A union has `members` and only the attributes that all
    members share; a derived type is made by a subscription's EMIT."""

    name: str
    attributes: tuple[Attribute, ...]
    supertype: str | None = None
    time_attribute: str | None = None
    members: tuple[str, ...] = ()
    derived: bool = False
    implicit_time: bool = False
    """A derived type without a TIME attribute whose events still have a time: the largest of their members'."""
    topic: str = MAIN
    """The stream of a log that its events share with those of other types. Elsewhere it has no meaning."""
    table: tuple[str, ...] = ()
    """Of a TABLE, which has members as a union has: the attributes of its key."""

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {attribute.name: at for at, attribute in enumerate(self.attributes)}

    @cached_property
    def time_index(self) -> int | None:
        return None if self.time_attribute is None else self.index[self.time_attribute]

    def attribute(self, name: str) -> Attribute | None:
        """An attribute, or a field of one by its path: `address.zip`."""
        at = self.index.get(name)
        if at is not None:
            return self.attributes[at]
        return self._at_path(name)[0] if PATH in name else None

    def place(self, name: str) -> tuple[int, ...]:
        """The number of an attribute; of a path, also those of its fields."""
        at = self.index.get(name)
        return (at,) if at is not None else self._at_path(name)[1]

    def type_of(self, name: str) -> DataType:
        """Of an attribute or path that exists."""
        found = self.attribute(name)
        assert found is not None
        return found.type

    def _at_path(self, name: str) -> tuple[Attribute | None, tuple[int, ...]]:
        if name not in self._paths:
            self._paths[name] = self._followed(name)
        return self._paths[name]

    @cached_property
    def _paths(self) -> dict[str, tuple[Attribute | None, tuple[int, ...]]]:
        return {}

    def _followed(self, name: str) -> tuple[Attribute | None, tuple[int, ...]]:
        head, *fields = name.split(PATH)
        if head not in self.index:
            return None, ()
        numbers = [self.index[head]]
        found = self.attributes[numbers[0]].type
        for each in fields:
            if each not in found.index:
                return None, ()
            numbers.append(found.index[each])
            found = found.fields[numbers[-1]].type
        return Attribute(name, found), tuple(numbers)

    @property
    def timed(self) -> bool:
        """Its events have an event time."""
        return self.time_attribute is not None or self.implicit_time

    @property
    def is_union(self) -> bool:
        return bool(self.members)

    def __str__(self) -> str:
        return self._declaration

    @cached_property
    def _declaration(self) -> str:
        if self.table:
            return f"TABLE {self.name} KEY ({', '.join(self.table)}) FROM {self.members[0]}"
        if self.is_union:
            return f"EVENT UNION {self.name} = {' + '.join(self.members)}"
        extends = f" EXTENDS {self.supertype}" if self.supertype else ""
        columns = ", ".join(map(str, self.attributes))
        timed = f" TIME {self.time_attribute}" if self.time_attribute else " TIME of its members" if self.implicit_time else ""
        return f"TYPE {self.name}{extends} ({columns}){timed}"


NO_TIME = 0
"""The time of a derived event whose TIME is NULL, if no member has one to use instead: 1970."""

HEARTBEAT = EventType("Heartbeat", (Attribute("at", DataType(Kind.TIMESTAMP)),), time_attribute="at")
"""The built-in type that advances the clock when nothing else happens. Every subscription's input contains it."""


@dataclass(frozen=True)
class Catalogue:
    """The declared types by name, in order of declaration."""

    types: tuple[EventType, ...] = ()
    _by_name: Mapping[str, EventType] = field(init=False, repr=False, compare=False)
    _accepted: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False, default_factory=dict)
    _inputs: dict[tuple[str, ...], frozenset[str]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        named = {HEARTBEAT.name: HEARTBEAT} | {each.name: each for each in self.types}
        object.__setattr__(self, "_by_name", named)

    def __iter__(self) -> Iterator[EventType]:
        return iter(self.types)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> EventType:
        return self._by_name[name]

    def get(self, name: str) -> EventType | None:
        return self._by_name.get(name)

    def extended(self, added: EventType) -> Catalogue:
        """The catalogue with one more type, of a new name. The index is copied, not rebuilt: a text may emit ten thousand
        types, one after the other."""
        made = Catalogue()
        object.__setattr__(made, "types", (*self.types, added))
        object.__setattr__(made, "_by_name", {**self._by_name, added.name: added})
        return made

    @cached_property
    def _subtypes(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in self.types:
            if each.supertype:
                found.setdefault(each.supertype, []).append(each.name)
        return found

    def accepts(self, name: str) -> tuple[str, ...]:
        """The concrete types whose events a subscriber of `name` receives, sorted by name: itself, its subtypes,
        and for a union those of its members."""
        if name in self._accepted:
            return self._accepted[name]
        wanted = set(self[name].members) or {name}
        waiting = list(wanted)
        while waiting:
            below = self._subtypes.get(waiting.pop(), ())
            waiting += [each for each in below if each not in wanted]
            wanted.update(below)
        self._accepted[name] = found = tuple(sorted(each for each in wanted if not self[each].is_union))
        return found

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """Of all types."""
        return self.topics_of(each.name for each in self.types)

    def topics_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """The topics of these types, sorted. Heartbeats are in every topic, and have none of their own."""
        return tuple(sorted({self[name].topic for name in names if name != HEARTBEAT.name}))

    def input_of(self, names: tuple[str, ...]) -> frozenset[str]:
        """The concrete types of the input of a subscriber of all `names`; heartbeats always belong to it."""
        found = self._inputs.get(names)
        if found is None:
            self._inputs[names] = found = frozenset({HEARTBEAT.name}.union(*map(self.accepts, names)))
        return found
