"""The total order as it is defined (order/total.py), as a sort of Python tuples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def key_of(value: Any) -> tuple[Any, ...]:
    """Nulls last; NaN behind all numbers; -0.0 before 0.0."""
    if value is None:
        return (2,)
    if isinstance(value, float):
        return (1,) if math.isnan(value) else (0, value, math.copysign(1.0, value))
    return (0, value)


def row_key(name: str, order: Sequence[Any], sourced: Sequence[Any], content: Sequence[Any]) -> tuple[Any, ...]:
    """Of one row: its order columns, of which 0.0 and -0.0 are equal, source and sequence, its type, its attributes."""
    order = [each + 0.0 if isinstance(each, float) else each for each in order]
    return (*map(key_of, order), *map(key_of, sourced), name == "Heartbeat", name, *map(key_of, content))
