"""Converts the user's DataFrames to one frame of a known form, or rejects them before anything runs.

    _code                        the event type of each row, as its number among those that can occur; null for any other
    _type                        the row's own type name, if it is unknown
    _order0, _order1, …          the order columns, as values that Arrow can sort; or the position, if rows have one
    _source, _sequence           the publisher and its number of the event, if the user names such columns, or the frame has
                                 columns of these names
    _stored                      when the log stored the event, in microseconds, if the rules have AHEAD and the frame says it
    _topic, _offset              where in the log it is, if the frame is a stream of a log (log/source.py); `_stored`, too
    _value0, _value1, …          the attributes: one column for a name and a Spark type: frames may have one name with several

Columns of the user are found by their exact names, and identified by number from then on: Spark itself ignores case in names,
and interprets dots in them.

Takes: one frame with a type column, or a frame for each type. Gives: `InputFrame`. Never: runs a job.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.errors import DataError, FairleadWarning, UsageError
from fairlead.model.events.types import HEARTBEAT, DataType, Kind
from fairlead.model.plans.plan import Plan
from fairlead.order.log_holdback import LOGGED, OFFSET, STORED, TOPIC
from fairlead.order.total import SEQUENCE, SOURCE, order_column
from fairlead.runtime.spark.input.arrivals import CODE, TYPE, InputColumns
from fairlead.runtime.spark.input.frame_order import (
    NUMERIC,
    TEXTS,
    order_columns,
    require_one_order,
    require_order,
    require_time,
    sorted_column,
)
from fairlead.runtime.spark.input.parquet_scans import Recipe
from fairlead.runtime.spark.input.time_zones import instants, zoned_texts
from fairlead.runtime.spark.setup.readiness import zone_of
from fairlead.transport.admission.gate import OnBad
from fairlead.transport.admission.problems import did_you_mean, not_published, unknown_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkType

FITS: Mapping[Kind, tuple[str, ...]] = {
    Kind.BOOLEAN: ("boolean",),
    Kind.INT: NUMERIC,
    Kind.BIGINT: NUMERIC,
    Kind.DOUBLE: (*NUMERIC, "float", "double"),
    Kind.DECIMAL: (*NUMERIC, "decimal", "string", "float", "double"),
    Kind.STRING: TEXTS,
    Kind.TIMESTAMP: (*NUMERIC, "timestamp", "timestamp_ntz", "string", "float", "double"),
    Kind.DATE: ("date", "string"),
    Kind.BINARY: ("binary", "string"),
}
"""The Spark types whose values can be values of a data type; each value is then checked as in every other input."""


Numbered = tuple[str, str, bool]
"""A column of the user: its name, its Spark type, and whether it is read as a TIMESTAMP."""


@dataclass(frozen=True)
class InputFrame:
    """`frame` has the columns above. `sources`: the frames it is made of. `zone`: the session's zone, for times without
    one."""

    frame: DataFrame
    reading: InputColumns
    sources: tuple[tuple[DataFrame, Recipe], ...] = ()
    zone: str | None = None

    @property
    def positioned(self) -> bool:
        return self.reading.positioned

    @property
    def order_by(self) -> tuple[str, ...]:
        return self.reading.order_by


class UserFrame:
    """A frame of the user: `kinds` by column name. `of`: its event type, empty if a column contains it."""

    def __init__(self, frame: DataFrame, of: str) -> None:
        self.of = of
        self.names = frame.columns
        self.kinds = {field.name: field.dataType for field in frame.schema.fields}
        self.whole = frame
        self.zone = zone_of(frame.sparkSession)
        self.frame = frame.toDF(*(f"c{at}" for at in range(len(self.names))))

    def column(self, name: str) -> Column:
        return self.frame[f"c{self.names.index(name)}"]

    def kind(self, name: str) -> str:
        return _type_name(self.kinds[name])

    def require(self, name: str, what: str, fix: str) -> None:
        owner = f"the frame of '{self.of}'" if self.of else "the frame"
        if name not in self.names:
            raise DataError("D020", f"{owner} has no column '{name}', {what}", did_you_mean(name, self.names) or fix)
        if self.names.count(name) > 1:
            raise DataError("D015", f"{owner} has the column '{name}' twice", "name every column once")


def input_of(
    plan: Plan,
    frames: DataFrame | Mapping[str, DataFrame],
    order_by: Sequence[str] | str | None,
    position: str | None,
    type_column: str,
    source: str | None,
    sequence: str | None,
    on_bad: OnBad,
) -> InputFrame:
    asked = [order_by] if isinstance(order_by, str) else list(order_by or ())
    require_order(plan, asked, position)
    if on_bad not in ("stop", "skip"):
        raise UsageError("A101", f"on_bad is {on_bad!r}", fix="use 'stop' or 'skip'")
    given = _given(plan, frames, type_column)
    orders = [order_columns(plan, each, asked if position is None else [position]) for each in given]
    for each, order in zip(given, orders, strict=True):
        for name in order:
            each.require(name, "an order column", "the order columns are in every frame")
    origins = [_origin(each, source, sequence) for each in given]
    require_one_order(plan, given, orders, position is not None)
    types = dict.fromkeys((*plan.input_types, HEARTBEAT.name)) if not given[0].of else {each.of: None for each in given}
    columns, numbers = _attributes(plan, given, tuple(types), orders)
    read = _read(plan)
    others = tuple(name for name in types if name not in columns and name not in read)
    sourced, ahead = any(name is not None for each in origins for name in each), _ahead(plan, given, orders)
    logged = plan.order is not None and plan.order.delay_us is not None and all(map(_is_logged, given))
    named = tuple(orders[0]), position is not None
    reading = InputColumns(plan.catalogue, columns, others, len(orders[0]), sourced, on_bad, ahead, logged, *named)
    recipes = [
        _recipe(each, reading, numbers, order, type_column, origin)
        for each, order, origin in zip(given, orders, origins, strict=True)
    ]
    parts = [_selected(each, recipe) for each, recipe in zip(given, recipes, strict=True)]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    sources = tuple((each.whole, recipe) for each, recipe in zip(given, recipes, strict=True))
    kinds = {each.kind(name) for each, order in zip(given, orders, strict=True) for name in order} & {"timestamp_ntz"}
    kinds |= {_base(kind) for _, kind, is_time in numbers if is_time}
    zone = (given[0].zone or "UTC") if kinds & {"timestamp_ntz", *TEXTS} else None
    return InputFrame(whole, reading, sources, zone)


def _origin(given: UserFrame, source: str | None, sequence: str | None) -> tuple[str | None, str | None]:
    """The columns of source and sequence: those that the user names or, by default, `_source` and `_sequence`."""
    if source is None and sequence is None:
        source, sequence = (name if name in given.names else None for name in (SOURCE, SEQUENCE))
        if sequence is not None and source is None:
            fix = f"add a column '{SOURCE}' with the source that numbers the rows, or rename the other"
            raise DataError("D010", f"the frame has a column '{SEQUENCE}' and no column '{SOURCE}'", fix)
    if source is not None:
        given.require(source, "the source of its rows", "it is in every frame")
        _is_one_of(given, source, TEXTS, "the source of a row is text")
    if sequence is not None:
        given.require(sequence, "the sequence of its rows", "it is in every frame")
        _is_one_of(given, sequence, NUMERIC, "the sequence of a row is a whole number")
    return source, sequence


def _is_logged(given: UserFrame) -> bool:
    """Whether a stream's rows say where in a log they are."""
    kinds = {TOPIC: TEXTS, OFFSET: NUMERIC, STORED: ("timestamp",)}
    return given.whole.isStreaming and all(name in given.names and given.kind(name) in kinds[name] for name in LOGGED)


def _ahead(plan: Plan, given: Sequence[UserFrame], orders: Sequence[Sequence[str]]) -> int | None:
    """How far an event may be ahead of its storage (AHEAD); None if the frames do not say when that was."""
    if plan.order is None:
        return None
    for each, order in zip(given, orders, strict=True):
        if plan.order.ahead_us is not None or (plan.order.delay_us and each.whole.isStreaming):
            require_time(each.kind(order[0]), order[0], plan.order)
    if plan.order.ahead_us is None:
        return None
    for each in given:
        if STORED in each.names:
            _is_one_of(each, STORED, ("timestamp_ntz", "timestamp"), "the time at which the log stored a row is a timestamp")
    if not any(STORED in each.names for each in given):
        problem = f"the rules say {plan.order}, and the events do not say when the log stored them: none is ahead"
        warnings.warn(FairleadWarning("W102", problem, f"add a column '{STORED}' with that time, or drop AHEAD"), stacklevel=4)
        return None
    return plan.order.ahead_us


def _given(plan: Plan, frames: DataFrame | Mapping[str, DataFrame], type_column: str) -> list[UserFrame]:
    """The frames, each with its type. One frame needs no type column if only one type can be published."""
    for each in frames.values() if isinstance(frames, Mapping) else (frames,):
        if not hasattr(each, "sparkSession"):
            problem = f"match accepts a DataFrame, or a dict of DataFrames by event type, not {type(each).__name__}"
            raise UsageError("A212", problem, "pass one frame with a type column, or one frame per event type")
    if isinstance(frames, Mapping):
        _known_types(frames, plan)
        return [UserFrame(frame, name) for name, frame in frames.items()]
    one = UserFrame(frames, "")
    if type_column not in one.names and len(plan.input_types) == 1:
        one.of = plan.input_types[0]
    else:
        one.require(type_column, "the type column", "name it: match(…, type_column=…)")
        _is_one_of(one, type_column, TEXTS, "the type of a row is the name of an event type")
    return [one]


def _read(plan: Plan) -> frozenset[str]:
    """The types of the input that some subscription reads."""
    catalogue = plan.catalogue
    return frozenset(name for each in plan.subscriptions for name in each.reads(catalogue) if not catalogue[name].derived)


def _attributes(
    plan: Plan, given: Sequence[UserFrame], types: Sequence[str], orders: Sequence[Sequence[str]]
) -> tuple[dict[str, dict[str, str]], dict[Numbered, str]]:
    """For every type that is read the column of each attribute, and for these columns a name and a Spark type. A time that is
    also an order column is not sent twice: every column costs every row."""
    columns: dict[str, dict[str, str]] = {}
    numbers: dict[Numbered, str] = {}
    read = _read(plan)
    for name in (each for each in types if each in read):
        frame, order = next((each, order) for each, order in zip(given, orders, strict=True) if each.of in ("", name))
        if name == HEARTBEAT.name and not frame.of and not _beats(frame):
            continue  # the frame has no column for a heartbeat's time: such rows are rejected
        columns[name] = {}
        for attribute in plan.catalogue[name].attributes:
            _fits(frame, attribute.name, attribute.type, name)
            is_time = attribute.type.kind is Kind.TIMESTAMP
            if is_time and attribute.name in order and frame.kind(attribute.name) in ("timestamp", "timestamp_ntz"):
                columns[name][attribute.name] = order_column(order.index(attribute.name))
                continue
            key = attribute.name, frame.kinds[attribute.name].simpleString(), is_time
            columns[name][attribute.name] = numbers.setdefault(key, f"_value{len(numbers)}")
    return columns, numbers


def _beats(frame: UserFrame) -> bool:
    return frame.names.count("at") == 1 and frame.kind("at") in FITS[Kind.TIMESTAMP]


def _recipe(
    given: UserFrame,
    reading: InputColumns,
    numbers: Mapping[Numbered, str],
    order: Sequence[str],
    type_column: str,
    origin: tuple[str | None, str | None],
) -> Recipe:
    """How columns of the frame become those of the input."""
    held = {column for name, mine in reading.columns.items() if given.of in ("", name) for column in mine.values()}
    values = {column: name for (name, _, _), column in numbers.items() if column in held}
    times = frozenset(column for (_, _, is_time), column in numbers.items() if column in held and is_time)
    code = reading.types.index(given.of) if given.of else None
    stored = STORED if (reading.ahead is not None or reading.logged) and STORED in given.names else None
    named = None if given.of else type_column
    return Recipe(tuple(order), values, reading.types, code, named, *origin, times, stored, reading.sourced, reading.logged)


def _selected(given: UserFrame, recipe: Recipe) -> DataFrame:
    """The recipe, as Spark carries it out."""
    from pyspark.sql import functions as F

    chosen = _typed(given, recipe)
    for number, each in enumerate(recipe.order):
        chosen.append(sorted_column(given, each).alias(order_column(number)))
    if recipe.sourced:
        nothing = F.lit(None)
        chosen.append((given.column(recipe.source) if recipe.source else nothing).cast("string").alias(SOURCE))
        chosen.append((given.column(recipe.sequence) if recipe.sequence else nothing).cast("bigint").alias(SEQUENCE))
    if recipe.stored is not None:
        chosen.append(F.unix_micros(instants(given.column(recipe.stored))).alias(STORED))
    if recipe.logged:
        chosen += [given.column(TOPIC).cast("string").alias(TOPIC), given.column(OFFSET).cast("bigint").alias(OFFSET)]
    for column, name in recipe.values.items():
        chosen.append((_time(given, name) if column in recipe.times else given.column(name)).alias(column))
    return given.frame.select(*chosen)


def _typed(given: UserFrame, recipe: Recipe) -> list[Column]:
    """The type of a row is a number from here on: a text would cost every row as much as two values do."""
    from pyspark.sql import functions as F

    if recipe.type_column is None:
        return [F.lit(recipe.code).cast("int").alias(CODE), F.lit(None).cast("string").alias(TYPE)]
    said = given.column(recipe.type_column).cast("string")
    number, text = F.lit(None).cast("int"), said
    for at, name in reversed(list(enumerate(recipe.types))):
        number, text = F.when(said == name, F.lit(at)).otherwise(number), F.when(said == name, F.lit(None)).otherwise(text)
    return [number.alias(CODE), text.alias(TYPE)]


def _time(given: UserFrame, name: str) -> Column:
    """A column for an attribute of type TIMESTAMP: times without a zone are in the session's zone, as in Spark itself."""
    kind, column = given.kind(name), given.column(name)
    if kind == "timestamp_ntz":
        return instants(column)
    return zoned_texts(column) if kind in TEXTS and given.zone is not None else column


def _known_types(frames: Mapping[str, Any], plan: Plan) -> None:
    known = (*plan.input_types, HEARTBEAT.name)
    for name in frames:
        if name not in known:
            declared = plan.catalogue.get(name)
            if declared is not None:
                raise not_published(declared)
            raise unknown_type(name, known)
    if not frames:
        raise UsageError("A212", "the dict has no DataFrame", "pass one frame per event type")


def _fits(given: UserFrame, name: str, wanted: DataType, of: str) -> None:
    given.require(name, f"an attribute of '{of}'", f"add it; the frame has {', '.join(given.names)}")
    found = given.kind(name)
    if wanted.is_nested:
        _nested_fits(f"the column '{name}'", given.kinds[name], wanted, f"{of}.{name}")
    elif found not in FITS[wanted.kind] and found != "void":
        fix = f"cast it to {wanted}"
        raise DataError("D022", f"the column '{name}' is {found}, the attribute '{of}.{name}' is {wanted}", fix)


def _nested_fits(place: str, found: SparkType, wanted: DataType, of: str) -> None:
    """Times inside are instants: Spark's session zone is only applied to columns."""
    name = _type_name(found)
    if name == "void":
        return
    allowed = ("array",) if wanted.element is not None else ("struct",) if wanted.fields else FITS[wanted.kind]
    if wanted.kind is Kind.TIMESTAMP:
        allowed = (*NUMERIC, "timestamp", "float", "double")
    if name not in allowed:
        fix = "cast it to TIMESTAMP" if name == "timestamp_ntz" else f"cast it to {wanted}"
        raise DataError("D022", f"{place} is {name}, the attribute '{of}' is {wanted} there", fix)
    parts: Any = found
    if wanted.element is not None:
        _nested_fits(f"an element of {place}", parts.elementType, wanted.element, of)
    for field in parts.fields if wanted.fields else ():
        if field.name not in wanted.index:
            fix = did_you_mean(field.name, wanted.index) or "drop it, or declare it"
            raise DataError("D022", f"{place} has a field '{field.name}', the attribute '{of}' has none", fix)
        _nested_fits(f"field '{field.name}' of {place}", field.dataType, wanted.fields[wanted.index[field.name]].type, of)


def _is_one_of(given: UserFrame, name: str, kinds: Sequence[str], what: str) -> None:
    if given.kind(name) not in (*kinds, "void"):
        raise DataError("D022", f"the column '{name}' is {given.kind(name)}: {what}", f"cast it to {kinds[-1]}", name)


def _type_name(kind: SparkType) -> str:
    return _base(kind.simpleString())


def _base(kind: str) -> str:
    return kind.partition("(")[0].partition("<")[0].partition(" collate")[0]
