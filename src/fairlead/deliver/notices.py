"""Notices: what a subscriber is told about events that take no part in its order, such as late ones.

Relations say what happened; notices say what was not taken into account. They are a function of the log, as relations are:
equal subscribers get equal notices. They have no numbers, are not acknowledged, and are not part of receipts.

Takes: events as columns, with their verdicts. Gives: `EventNotice`s in the order of arrival, and their numbers by verdict.
Never: decides a verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairlead.model.columns import Columns
from fairlead.model.types import Catalogue
from fairlead.model.verdict import EventNotice, EventVerdict


def notices_of(columns: Columns, verdicts: Sequence[EventVerdict], catalogue: Catalogue) -> tuple[EventNotice, ...]:
    """One notice per event. `verdicts`: that on each of them."""
    return tuple(EventNotice(event, verdict) for event, verdict in zip(columns.events(catalogue), verdicts, strict=True))


def in_words(counts: Counter[str]) -> str:
    """`3 events late, 1 ahead`, in the order in which verdicts are defined; empty if there are none."""
    told = [f"{counts[each]:,} {each}" for each in EventVerdict if counts[each]]
    if told:
        number, _, verdict = told[0].partition(" ")
        told[0] = f"{number} event{'' if number == '1' else 's'} {verdict}"
    return ", ".join(told)
