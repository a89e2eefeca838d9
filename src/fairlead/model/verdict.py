"""What becomes of an arriving event, and of a relation that was delivered: one set of words on every runtime."""

from __future__ import annotations

from enum import StrEnum


class EventVerdict(StrEnum):
    """`IN_ORDER`: it takes part; with LATE REVISE, a late event that revises does, too. `LATE`: events after it were released
    before it arrived. `REPEATED`: its source has sent it before. `REJECTED`: it fits no type. `OUT_OF_ORDER`: a publisher has
    stored it after events that depend on it. `AHEAD`: its time is too far after that at which the log stored it."""

    IN_ORDER = "in order"
    LATE = "late"
    REPEATED = "repeated"
    REJECTED = "rejected"
    OUT_OF_ORDER = "out of order"
    AHEAD = "ahead"


class RevisionVerdict(StrEnum):
    """What late events do to relations: `RETRACTED`: one that was delivered is taken back. `ADDED`: one is delivered after
    all."""

    RETRACTED = "retracted"
    ADDED = "added"
