"""Where frames come from: which are the events of a log, and which relations were found in them.

What rules with ORDER BY emit is stored by the blocks of a log that released it. The rows of `match` do not say these, and a
frame that was filtered on the way would make other blocks, which stay in the log. So `to_log` of such rules asks here, and
refuses what it does not know.

Takes: frames, as `log` and `match` return them. Gives: the options of the log, and the rules. Never: keeps a frame alive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from fairlead.dataclass import dataclass
from fairlead.model.plans.plan import Plan


@dataclass(frozen=True)
class FoundInLog:
    """`options`: of the data source from which the events were read."""

    plan: Plan
    options: Mapping[str, str]


_EVENTS: WeakKeyDictionary[Any, Mapping[str, str]] = WeakKeyDictionary()
_RELATIONS: WeakKeyDictionary[Any, FoundInLog] = WeakKeyDictionary()


def note_events(frame: Any, options: Mapping[str, str]) -> None:
    """The frame has the events of a log that rules read, all of them from its start on."""
    _EVENTS[frame] = options


def note_relations(relations: Any, plan: Plan, events: Any) -> None:
    """These are the relations of a plan in these events."""
    options = _EVENTS.get(events) if hasattr(events, "sparkSession") else None
    if options is not None:
        _RELATIONS[relations] = FoundInLog(plan, options)


def note_same(relations: Any, of: Any) -> None:
    """The frame has the rows of the other one."""
    if of in _RELATIONS:
        _RELATIONS[relations] = _RELATIONS[of]


def found_in_log(relations: Any) -> FoundInLog | None:
    """None if the frame is not what `match` returned for a frame of `log`."""
    return _RELATIONS.get(relations)
