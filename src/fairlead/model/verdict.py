"""What becomes of an arriving event, on every runtime."""

from __future__ import annotations

from enum import StrEnum


class EventVerdict(StrEnum):
    """`IN_ORDER`: it takes part. `LATE`: events after it were released before it arrived. `REPEATED`: its source has sent it
    before. `REJECTED`: it fits no type."""

    IN_ORDER = "in order"
    LATE = "late"
    REPEATED = "repeated"
    REJECTED = "rejected"
