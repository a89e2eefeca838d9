"""Reports on events that take no part in an order by value: late, ahead or repeated.

A verdict is a function of the log: equal subscribers get the same reports, at the same places among their relations. A report
is no delivery: it has no number, is in no receipt, and need not be acknowledged.

Takes: verdicts with their places. Gives: reports (model/verdict.py). Never: decides on an event.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.dataclass import dataclass
from fairlead.matching.results.chunk import Numbers
from fairlead.model.types import Catalogue
from fairlead.model.verdict import EventReport
from fairlead.runtime.event_time import EventVerdicts


@dataclass(frozen=True, eq=False)
class FoundVerdicts:
    """The verdicts of a group in the next blocks. `turns`: for each event, the number of its stretch. `at`: its position in its
    stream."""

    found: EventVerdicts
    turns: Numbers
    at: Numbers


def placed_reports(
    verdicts: FoundVerdicts | None, catalogue: Catalogue, subscriptions: tuple[str, ...]
) -> Iterator[tuple[tuple[int, int], EventReport]]:
    """Each report with its place: the stretch, and the position in it."""
    if verdicts is not None:
        events = verdicts.found.columns.events(catalogue)
        places = zip(verdicts.turns.tolist(), verdicts.at.tolist(), strict=True)
        for place, event, verdict in zip(places, events, verdicts.found.verdicts, strict=True):
            yield place, EventReport(verdict, event, subscriptions)
