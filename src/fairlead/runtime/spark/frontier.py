"""How a stream says how far it is complete: what the user states, or the watermarks of the frames.

Takes: the frames and the arguments. Gives: a Frontier, or the refusal of a stream that has none. Never: reads data.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from fairlead.errors import UnsupportedError, UsageError
from fairlead.order.holdback import Frontier
from fairlead.runtime.spark.frames import Input
from fairlead.runtime.spark.reading import REJECTED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def frontier_of(
    given: Input, frames: DataFrame | Mapping[str, DataFrame], stated: str | None, delay: str | timedelta | None
) -> Frontier:
    types = given.reading.types
    if given.positioned:
        return Frontier(types, positioned=True)
    if stated not in (None, "types", "stream"):
        raise UsageError("A214", f"frontier is {stated!r}", 'use "types" or "stream"')
    allowed = 0 if delay is None else _microseconds(given.frame, delay)
    if stated is not None:
        return Frontier(types, stated == "stream", {name: allowed for name in (*types, REJECTED)})
    each = frames if isinstance(frames, Mapping) else {"": frames}
    delays = {name: _watermark(frame, given.order_by[0]) for name, frame in each.items()}
    if any(found is None for found in delays.values()):
        missing = ", ".join(repr(name) for name, found in delays.items() if found is None and name)
        raise UnsupportedError(
            "U110",
            f"nothing says how far the stream{' of ' + missing if missing else ''} is complete, so nothing could ever be released",
            fix=f"frame.withWatermark({given.order_by[0]!r}, '10 seconds'), or frontier=\"types\" where every type comes in order, or "
            'position="offset" where rows come from a log',
        )
    if not isinstance(frames, Mapping):
        return Frontier(types, True, {name: delays[""] or 0 for name in (*types, REJECTED)})
    return Frontier(tuple(frames), False, {name: found or 0 for name, found in delays.items()})


def _watermark(frame: DataFrame, column: str) -> int | None:
    """The delay in microseconds of the frame's watermark, if it is on the first order column."""
    todo: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while todo:
        node = todo.pop()
        if node.getClass().getSimpleName() == "EventTimeWatermark" and node.eventTime().name() == column:
            interval = node.delay()
            return int(interval.months * 31 * 86_400_000_000 + interval.days * 86_400_000_000 + interval.microseconds)
        children = node.children()
        todo += [children.apply(at) for at in range(children.size())]
    return None


def _microseconds(frame: DataFrame, delay: str | timedelta) -> int:
    if isinstance(delay, timedelta):
        return int(delay / timedelta(microseconds=1))
    try:
        found = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.util.IntervalUtils.fromIntervalString(delay)  # type: ignore[union-attr]
        return int(found.days * 86_400_000_000 + found.microseconds)
    except Exception as error:
        raise UsageError("A215", f"delay is {delay!r}, not a length of time", 'such as "10 seconds", or a timedelta') from error
