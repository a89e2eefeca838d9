"""DataFrames of the user become one frame of a known form, or are refused before anything runs.

    _type                        the event type of each row
    _order0, _order1, …          the order columns, as values that Arrow can sort; or the position, where rows have one
    _source, _sequence           who published it and as what number, if the user names such columns
    attributes                   one column an attribute name, or `Type.attribute` where frames give one name several types

Takes: one frame with a type column, or a frame for each type. Gives: `Input`. Never: runs a job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.errors import DataError, UsageError
from fairlead.model.plan import Plan
from fairlead.model.types import HEARTBEAT, Kind
from fairlead.order.total import SEQUENCE, SOURCE, order_column
from fairlead.runtime.spark.reading import TYPE, Reading
from fairlead.transport.intake import OnBad
from fairlead.transport.problems import did_you_mean, listed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkType

NUMERIC = ("tinyint", "smallint", "int", "bigint")
FITS: Mapping[Kind, tuple[str, ...]] = {
    Kind.BOOLEAN: ("boolean",),
    Kind.INT: NUMERIC,
    Kind.BIGINT: NUMERIC,
    Kind.DOUBLE: (*NUMERIC, "float", "double", "decimal"),
    Kind.DECIMAL: (*NUMERIC, "decimal", "string", "float", "double"),
    Kind.STRING: ("string", "char", "varchar"),
    Kind.TIMESTAMP: (*NUMERIC, "timestamp", "timestamp_ntz", "string", "float", "double"),
    Kind.BINARY: ("binary", "string"),
}
"""The Spark types whose values can be values of a data type; each value is then checked as in every other input."""
ORDERS = (*NUMERIC, "float", "double", "decimal", "string", "timestamp", "timestamp_ntz", "date", "boolean")


@dataclass(frozen=True)
class Input:
    """`frame` has the columns above. `positioned`: `_order0` is the position itself."""

    frame: DataFrame
    reading: Reading
    positioned: bool
    order_by: tuple[str, ...]


def input_of(
    plan: Plan,
    frames: DataFrame | Mapping[str, DataFrame],
    order_by: Sequence[str] | None,
    position: str | None,
    type_column: str,
    source: str | None,
    sequence: str | None,
    on_bad: OnBad,
) -> Input:
    order = _order_columns(order_by, position)
    read = {name for each in plan.subscriptions for name in each.reads(plan.catalogue) if not plan.catalogue[name].derived}
    if isinstance(frames, Mapping):
        _known_types(frames, plan)
        given = dict(frames)
    else:
        given = {"": frames}
        _has(frames, type_column, "the type column", "name it: match(…, type_column=…)")
    types = [name for name in (*plan.input_types, HEARTBEAT.name) if name in given or "" in given]
    types = list(dict.fromkeys(types))
    columns: dict[str, dict[str, str]] = {}
    for name in types:
        frame = given.get(name, given.get(""))
        assert frame is not None
        for each in order:
            _has(frame, each, "an order column", "the order columns are in every frame", name)
        if name in read and (name != HEARTBEAT.name or name in given or _holds(frame, "at")):
            columns[name] = {attribute.name: attribute.name for attribute in plan.catalogue[name].attributes}
            for attribute in plan.catalogue[name].attributes:
                _fits(frame, attribute.name, attribute.type.kind, str(attribute.type), name)
    clashing = _clashing(given, columns)
    parts = []
    for key, frame in given.items():
        mine = [key] if key else list(columns)
        parts.append(_selected(frame, key, mine, columns, clashing, order, position, type_column, source, sequence))
    if clashing:
        columns = {
            name: {each: f"{name}.{each}" if each in clashing else each for each in attributes}
            for name, attributes in columns.items()
        }
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    others = tuple(name for name in types if name not in columns)
    reading = Reading(plan.catalogue, columns, others, len(order), source is not None or sequence is not None, on_bad)
    return Input(whole, reading, position is not None, tuple(order))


def _order_columns(order_by: Sequence[str] | None, position: str | None) -> list[str]:
    given = [order_by] if isinstance(order_by, str) else list(order_by or ())
    if position is not None and given:
        raise UsageError("A210", "both order_by and position are given", "give the one that rows are ordered by")
    if position is None and not given:
        fix = 'order_by=["at"], or position="offset" where rows come from a log'
        raise UsageError("A211", "nothing says in which order the rows stand", fix)
    return given if position is None else [position]


def _selected(
    frame: DataFrame,
    only: str,
    types: Sequence[str],
    columns: Mapping[str, Mapping[str, str]],
    clashing: frozenset[str],
    order: Sequence[str],
    position: str | None,
    type_column: str,
    source: str | None,
    sequence: str | None,
) -> DataFrame:
    from pyspark.sql import functions as F

    chosen: list[Column] = [(F.lit(only) if only else _column(frame, type_column).cast("string")).alias(TYPE)]
    for number, each in enumerate(order):
        chosen.append(_ordering(frame, each, position is not None).alias(order_column(number)))
    if source is not None or sequence is not None:
        chosen.append((F.lit(None) if source is None else _column(frame, source)).cast("string").alias(SOURCE))
        chosen.append((F.lit(None) if sequence is None else _column(frame, sequence)).cast("bigint").alias(SEQUENCE))
    for name in dict.fromkeys(attribute for each in types if each in columns for attribute in columns[each]):
        chosen.append(_column(frame, name).alias(f"{only}.{name}" if name in clashing else name))
    return frame.select(*chosen)


def _ordering(frame: DataFrame, name: str, is_position: bool) -> Column:
    """The order column as a value that sorts in Arrow as it does in Spark."""
    from pyspark.sql import functions as F

    kind = _type_name(frame.schema[name].dataType)
    column = _column(frame, name)
    if is_position and kind not in NUMERIC:
        raise DataError(
            "D021", f"the position column '{name}' is {kind}, not a whole number", "name the log's offset or sequence", name
        )
    if kind not in ORDERS:
        raise DataError(
            "D021", f"rows cannot be ordered by '{name}': it is {kind}", "order by numbers, times, dates or texts", name
        )
    if kind == "timestamp":
        return F.unix_micros(column)
    if kind == "timestamp_ntz":
        return F.unix_micros(F.to_timestamp(F.concat(column.cast("string"), F.lit("Z"))))
    if kind == "date":
        return F.unix_date(column).cast("bigint")
    return column.cast("bigint") if kind in (*NUMERIC, "boolean") else column.cast("double") if kind == "float" else column


def _clashing(given: Mapping[str, DataFrame], columns: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Attribute names for which frames have columns of different types."""
    found: dict[str, set[str]] = {}
    for name, attributes in columns.items():
        frame = given.get(name, given.get(""))
        assert frame is not None
        for each in attributes:
            found.setdefault(each, set()).add(frame.schema[each].dataType.simpleString())
    return frozenset(name for name, types in found.items() if len(types) > 1)


def _known_types(frames: Mapping[str, Any], plan: Plan) -> None:
    known = (*plan.input_types, HEARTBEAT.name)
    for name in frames:
        if name not in known:
            fix = did_you_mean(name, known) or listed("declared types:", known)
            raise DataError("D001", f"event type '{name}' is not declared, or is derived", fix)
    if not frames:
        raise UsageError("A212", "there is no frame", "give a frame for each event type")


def _holds(frame: DataFrame, name: str) -> bool:
    return name in frame.columns


def _has(frame: DataFrame, name: str, what: str, fix: str, of: str = "") -> None:
    if not _holds(frame, name):
        near = did_you_mean(name, frame.columns)
        owner = f"the frame of '{of}'" if of else "the frame"
        raise DataError("D020", f"{owner} has no column '{name}', {what}", near or fix)


def _fits(frame: DataFrame, name: str, kind: Kind, wanted: str, of: str) -> None:
    _has(frame, name, f"an attribute of '{of}'", f"add it; the frame has {', '.join(frame.columns)}", of)
    found = _type_name(frame.schema[name].dataType)
    if found not in FITS[kind] and found != "void":
        fix = f"cast it to something that is a {wanted}"
        raise DataError("D022", f"the column '{name}' is {found}, the attribute '{of}.{name}' is {wanted}", fix)


def _type_name(kind: SparkType) -> str:
    return kind.simpleString().partition("(")[0].partition("<")[0]


def _column(frame: DataFrame, name: str) -> Column:
    return frame[f"`{name.replace('`', '``')}`"]
