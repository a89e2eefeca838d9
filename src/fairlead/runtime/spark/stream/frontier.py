"""How far a stream is complete: the user's arguments, or the watermarks of the frames.

Takes: the frames and the arguments. Gives: a Frontier, or the error of a stream that has none. Never: reads data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from fairlead.errors import UnsupportedError, UsageError
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.plans.event_order import EventOrder
from fairlead.order.holdback import Frontier
from fairlead.runtime.spark.input.frames import InputFrame
from fairlead.runtime.spark.setup.jvm import watermarks
from fairlead.runtime.spark.setup.workers import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MICROSECOND, DAY_US = timedelta(microseconds=1), 86_400_000_000
MONTH_DAYS = 31
"""As Spark counts months in a watermark."""
DELAY = "spark.watermarkDelayMs"
"""The schema's metadata of a column with a watermark."""
SECOND_US = 1_000_000
UNITS = {
    "microsecond": 1, "millisecond": 1_000, "second": SECOND_US, "minute": 60 * SECOND_US, "hour": 3600 * SECOND_US,
    "day": DAY_US, "week": 7 * DAY_US, "month": MONTH_DAYS * DAY_US, "year": 12 * MONTH_DAYS * DAY_US,
}  # fmt: skip
PART = re.compile(r"([+-]?\s*\d+(?:\.\d+)?)\s+([a-zA-Z]+)")


def frontier_of(
    given: InputFrame,
    frames: DataFrame | Mapping[str, DataFrame],
    stated: str | None,
    delay: str | timedelta | None,
    order: EventOrder | None = None,
) -> Frontier:
    """`order`: that of the rules, which may have a delay of its own."""
    types, first = given.reading.types, given.order_by[0]
    if stated not in (None, "types", "stream"):
        raise UsageError("A214", f"frontier is {stated!r}", 'use "types" or "stream"')
    if given.positioned:
        if stated is not None or delay is not None:
            raise UsageError(
                "A218", "frontier and delay are not supported with position", "leave them out: positions determine the order"
            )
        return Frontier(types, positioned=True)
    if order is not None and order.delay_us is not None:
        if stated is not None or delay is not None:
            problem = f"frontier or delay is set, and the rules say {order}"
            raise UsageError("A218", problem, "leave them out: DELAY determines how far the stream is complete")
        allowed = dict.fromkeys((*types, HEARTBEAT.name), order.delay_us)
        return Frontier(types, True, allowed, idle=order.idle_us, revise=order.revise_us)
    if stated is not None:
        lag = 0 if delay is None else _units(given, frames, delay)
        return Frontier(types, stated == "stream", {name: lag for name in types if name != HEARTBEAT.name})
    if delay is not None:
        fix = 'add frontier="types" or frontier="stream"; a watermark has its own delay'
        raise UsageError("A219", f"delay is {delay!r}, and frontier is not set: there is nothing to delay", fix)
    each = dict(frames) if isinstance(frames, Mapping) else {"": frames}
    delays = {name: _watermark(frame, first) for name, frame in each.items() if name != HEARTBEAT.name}
    missing = [name for name, found in delays.items() if found is None]
    if missing:
        which = f" of {', '.join(map(repr, missing))}" if isinstance(frames, Mapping) else ""
        raise UnsupportedError(
            "U110",
            f"nothing determines how far the stream{which} is complete, so no event would be released",
            fix=f"frame.withWatermark({first!r}, '10 seconds'), or frontier=\"types\" if each type arrives in order, "
            'or position="offset" if the rows come from a log, or ORDER BY … DELAY in the rules',
        )
    if not isinstance(frames, Mapping):
        return Frontier(types, True, {name: delays[""] or 0 for name in types if name != HEARTBEAT.name})
    return Frontier(types, False, {name: found or 0 for name, found in delays.items()})


def _watermark(frame: DataFrame, column: str) -> int | None:
    """The delay in microseconds of the frame's watermark on the column, if it has one; of several (a union) the longest. The
    schema contains only that of the first frame of a union, in whole milliseconds; a remote session has nothing more."""
    if is_remote(frame):
        said = frame.schema[column].metadata.get(DELAY)
        return None if said is None else int(said) * 1_000
    return max((_microseconds(*delay) for delay in watermarks(frame, column)), default=None)


def _units(given: InputFrame, frames: DataFrame | Mapping[str, DataFrame], delay: str | timedelta) -> int:
    """The delay in the unit of the first order column: microseconds, or days."""
    name = given.order_by[0]
    for frame in frames.values() if isinstance(frames, Mapping) else (frames,):
        kind = frame.schema[name].dataType.simpleString()
        if kind not in ("timestamp", "timestamp_ntz", "date"):
            problem = f"delay is {delay!r}, a length of time, and the order column '{name}' is {kind}"
            raise UsageError("A219", problem, "order by a timestamp or a date first, or leave the delay out")
    length = _length(delay)
    return -(-length // DAY_US) if kind == "date" else length


def _length(delay: str | timedelta) -> int:
    """In microseconds. Texts as in Spark's `withWatermark`: "10 seconds", "1 hour 30 minutes", "1.5 seconds"."""
    fix = 'such as "10 seconds", or a timedelta'
    if isinstance(delay, timedelta):
        found = delay // MICROSECOND
    else:
        text = re.sub(r"^\s*interval\s+", "", str(delay), flags=re.IGNORECASE)
        parts = [(number, UNITS.get(unit.lower().removesuffix("s"))) for number, unit in PART.findall(text)]
        if not parts or PART.sub("", text).strip() or any(unit is None for _, unit in parts):
            raise UsageError("A215", f"delay is {delay!r}, not a length of time", fix)
        found = math.ceil(sum(Fraction(number.replace(" ", "")) * (unit or 0) for number, unit in parts))
    if found < 0:
        raise UsageError("A215", f"delay is {delay!r}, which is negative", fix)
    return found


def _microseconds(months: int, days: int, rest: int) -> int:
    return (months * MONTH_DAYS + days) * DAY_US + rest
