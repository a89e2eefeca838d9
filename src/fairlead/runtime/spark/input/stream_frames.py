"""Frames whose rows are events of several streams, as a disjunction reads them: each part reads its own stream.

Takes: a plan, and a frame with a column that names the stream by its types. Gives: for each part its plan and its rows. Never:
silently omits a row of another stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlead.errors import DataError, UsageError
from fairlead.model.plans.plan import Plan
from fairlead.runtime.parts import parts_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def frames_of_parts(plan: Plan, frames: Any, position: str | None, stream: str) -> Iterator[tuple[Plan, DataFrame]]:
    """Raises UsageError; a row of a stream that the plan does not read raises D025 when the result is computed."""
    from pyspark.sql import DataFrame

    if not isinstance(frames, DataFrame) or position is None or stream not in frames.columns:
        fix = "pass the frame of `log`, with position='position', stream='stream'"
        raise UsageError("A217", "`stream` needs one frame with positions and a column of stream names", fix)
    names = [each.name for each in parts_of(plan)]
    for part in parts_of(plan):
        yield part.plan, frames.where(_is(part.name, names, stream)).drop(stream)


def _is(name: str, names: list[str], column: str) -> Column:
    from pyspark.sql import functions as F

    problem = f"a row belongs to none of the streams that the rules read: {', '.join(map(repr, names))}"
    error = DataError("D025", problem, "pass the events that were read for these rules", f"column '{column}'")
    return F.when(F.col(column).isin(names), F.col(column) == name).otherwise(F.raise_error(F.lit(str(error))).cast("boolean"))
