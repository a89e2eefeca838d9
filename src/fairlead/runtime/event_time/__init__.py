"""Event time over a sequence of events: hold back, release in order, and revise for those that are late."""

from fairlead.runtime.event_time.buffer import EventTimeBuffer, EventVerdicts, ReleasedEvents, without_ahead
from fairlead.runtime.event_time.frontier_groups import (
    FrontierGroup,
    JointFindings,
    SequenceMatcher,
    frontier_groups,
    resumed_sequence,
    sequence_matcher,
    taking_part,
)
from fairlead.runtime.event_time.matcher import EventTimeMatcher, OrderedFindings
from fairlead.runtime.event_time.reviser import Reviser, Revision

__all__ = [
    "EventTimeBuffer",
    "EventTimeMatcher",
    "EventVerdicts",
    "FrontierGroup",
    "JointFindings",
    "OrderedFindings",
    "ReleasedEvents",
    "Reviser",
    "Revision",
    "SequenceMatcher",
    "frontier_groups",
    "resumed_sequence",
    "sequence_matcher",
    "taking_part",
    "without_ahead",
]
