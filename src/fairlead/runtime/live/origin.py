"""The origin of a lineage: for each part of its group, the position of the first event to read.

Takes, gives: positions, as names and as JSON. Never: reads a log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

Origin = tuple[int, ...]


def name_of(origin: Origin) -> str:
    """The origin as a word of a key or a source."""
    if len(origin) == 1:
        return f"{origin[0]:x}"
    return hashlib.sha256(" ".join(map(str, origin)).encode()).hexdigest()[:16]


def to_json(places: Sequence[int]) -> int | list[int]:
    return places[0] if len(places) == 1 else list(places)


def from_json(told: int | list[int]) -> tuple[int, ...]:
    return (told,) if isinstance(told, int) else tuple(told)
