"""Event time over a sequence of events: hold back, release in order, and revise for those that are late."""

from fairlead.runtime.event_time.buffer import EventTimeBuffer, EventVerdicts, ReleasedEvents, taking_part, without_ahead
from fairlead.runtime.event_time.matcher import EventTimeMatcher, OrderedFindings
from fairlead.runtime.event_time.reviser import Reviser, Revision

__all__ = [
    "EventTimeBuffer",
    "EventTimeMatcher",
    "EventVerdicts",
    "OrderedFindings",
    "ReleasedEvents",
    "Reviser",
    "Revision",
    "taking_part",
    "without_ahead",
]
