"""By which columns the rows of the user's frames are ordered, and whether these have an order.

Takes: the plan, the user's frames, what they ask for. Gives: names of columns, and columns that sort in Arrow as in Spark.
Raises: UsageError and DataError. Never: runs a job.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from fairlead.errors import DataError, UsageError
from fairlead.model.events.types import HEARTBEAT, EventType, Kind
from fairlead.model.plans.event_order import TIME as TIME_KEY
from fairlead.model.plans.event_order import EventOrder, OrderKey
from fairlead.model.plans.plan import Plan
from fairlead.runtime.spark.input.time_zones import instants

if TYPE_CHECKING:
    from pyspark.sql import Column

if TYPE_CHECKING:
    from fairlead.runtime.spark.input.frames import UserFrame


NUMERIC = ("tinyint", "smallint", "int", "bigint")


TEXTS = ("char", "varchar", "string")


ORDERS = (*NUMERIC, *TEXTS, "float", "double", "decimal", "timestamp", "timestamp_ntz", "date", "boolean", "binary")


def require_time(kind: str, name: str, order: EventOrder) -> None:
    """The durations of an order are compared with times, not with numbers of some unit."""
    if kind not in ("timestamp", "timestamp_ntz"):
        problem = f"the rules say {order}, and the order column '{name}' is {kind}"
        raise DataError("D021", problem, f"cast it to a timestamp: F.timestamp_seconds('{name}') if it has seconds", name)


def require_order(plan: Plan, asked: Sequence[str], position: str | None) -> None:
    if position is not None and asked:
        raise UsageError("A210", "both order_by and position are set", "use the one that the rows are ordered by")
    if position is not None and plan.order is not None:
        raise UsageError("A210", f"position is set, and the rules say {plan.order}", "leave position out")
    if position is None and not asked and plan.order is None:
        fix = 'order_by=["at"], ORDER BY at in the rules, or position="offset" if the rows come from a log'
        raise UsageError("A211", "the rows have no order: there is neither order_by, ORDER BY nor position", fix)


def order_columns(plan: Plan, given: UserFrame, asked: Sequence[str]) -> list[str]:
    """The columns by which the rows of a frame are ordered: those asked for, or of the names that the keys of ORDER BY have in
    its types."""
    if plan.order is None:
        return list(asked)
    types = [plan.catalogue[given.of]] if given.of else [plan.catalogue[name] for name in plan.input_types]
    found = [order_column_of(key, types, given.names) for key in plan.order.keys]
    if given.of == HEARTBEAT.name and found[0] not in given.names:
        found[0] = HEARTBEAT.attributes[0].name
    return found


def order_column_of(key: OrderKey, types: Sequence[EventType], known: Collection[str]) -> str:
    """The column of an order key in a frame with these types and columns."""
    if key.attribute in known or not (key.attribute.isascii() and key.attribute.upper() == TIME_KEY):
        return key.attribute
    names = sorted({each.time_attribute for each in types if each.time_attribute is not None})
    if len(names) != 1:
        problem = f"ORDER BY TIME in one frame, in which event times are in {' and '.join(names) or 'no column'}"
        raise UsageError("A211", problem, "pass one frame per event type: match(plan, {'Type': frame, …})")
    return names[0]


def sorted_column(given: UserFrame, name: str) -> Column:
    """The order column as a value that sorts in Arrow as it does in Spark."""
    from pyspark.sql import functions as F

    kind, column = given.kind(name), given.column(name)
    if kind in ("timestamp", "timestamp_ntz"):
        return F.unix_micros(instants(column))
    if kind == "binary":
        return F.hex(column)  # sorts as the bytes do
    if kind == "date":
        return F.unix_date(column).cast("bigint")
    if kind in (*NUMERIC, "boolean"):
        return column.cast("bigint")
    return column.cast("double") if kind == "float" else column.cast("string") if kind in TEXTS else column


def require_one_order(plan: Plan, given: Sequence[UserFrame], orders: Sequence[Sequence[str]], is_position: bool) -> None:
    """Order columns must have a type with an order, and the same one in every frame."""
    for names in zip(*orders, strict=True):
        for each, name in zip(given, names, strict=True):
            kind = each.kind(name)
            if is_position and kind not in NUMERIC:
                problem = f"the position column '{name}' is {kind}, not a whole number"
                raise DataError("D021", problem, "use the offset or sequence of the log", name)
            if kind not in ORDERS:
                fix = "order by numbers, times or dates"
                raise DataError("D021", f"the order column '{name}' is {kind}, which has no order", fix, name)
            first = given[0].kind(names[0])
            if _family(kind) != _family(first):
                problem = (
                    f"the order column '{name}' is {first} in the frame of '{given[0].of}' and {kind} in that of '{each.of}'"
                )
                raise DataError("D021", problem, "cast it to one type in all frames", name)
        if given[0].kind(names[0]) in TEXTS:
            _text_order(plan, names[0])


def _text_order(plan: Plan, name: str) -> None:
    """A text column orders as text only if the rules declare it as text. '10:00+02:00' is earlier than '09:00Z' but sorts after
    it, so texts that are times are rejected, and so are texts that the rules do not declare: they may be times."""
    found = [plan.catalogue[each].attribute(name) for each in plan.input_types]
    kinds = {attribute.type.kind for attribute in found if attribute is not None}
    if kinds == {Kind.STRING}:
        return
    if kinds == {Kind.DATE}:
        fix = f'frame.withColumn("{name}", F.to_date("{name}"))  # from pyspark.sql import functions as F'
        raise DataError("D021", f"the order column '{name}' is text, and its attribute is a DATE", fix, name)
    cast = f'frame.withColumn("{name}", F.to_timestamp("{name}"))'
    if Kind.TIMESTAMP in kinds:
        fix = f"{cast}  # from pyspark.sql import functions as F"
        raise DataError("D021", f"the order column '{name}' is text, and its attribute is a TIMESTAMP", fix, name)
    fix = f'{cast} where it is a time; .cast("bigint") where it is a number; .cast("binary") to order by its bytes'
    raise DataError("D021", f"the order column '{name}' is text, and no event type declares it as STRING", fix, name)


def _family(kind: str) -> str:
    """Types whose values have one order among themselves."""
    for family in (NUMERIC, TEXTS, ("float", "double")):
        if kind in family:
            return family[-1]
    return kind
