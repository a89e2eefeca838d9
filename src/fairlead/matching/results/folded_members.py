"""What the slots of a match hold, and what of it a relation lists: the events of a folded run are not among its members.

Takes: a match, whole or with runs that are folded already. Gives: what expressions read, then members and spans. Never: folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead.matching.folded_run import FoldedRun
from fairlead.matching.outcome import Match
from fairlead.model.events.event import Event
from fairlead.model.plans.plan import Branch
from fairlead.model.relations.relation import FoldedSpan


def held_by_slots(branch: Branch, match: Match) -> Sequence[Any]:
    """An event, a tuple of events, or a folded run."""
    if not match.folded:
        return branch.grouped(match.members, match.runs)
    folded = dict(zip(branch.folded, match.folded, strict=True))
    lengths = [0 if at in folded else length for at, length in enumerate(match.runs or ())]
    return [folded.get(at, each) for at, each in enumerate(branch.grouped(match.members, lengths))]


def visible(branch: Branch, held: Sequence[Any]) -> tuple[tuple[Event, ...], tuple[FoldedSpan, ...]]:
    """The members that a relation lists, and where its folded runs lie."""
    rest = [each for at, each in enumerate(held) if at not in branch.folded]
    members = tuple(event for each in rest for event in (each if isinstance(each, tuple) else (each,)))
    return members, tuple(_span(at, held[at]) for at in branch.folded)


def _span(slot: int, run: FoldedRun | tuple[Event, ...]) -> FoldedSpan:
    if isinstance(run, FoldedRun):
        first, last, latest = run.first, run.last, run.latest
    else:  # all events are there: the definition folds when it delivers
        first, last = run[0], run[-1]
        latest = max((event.time for event in run if event.time is not None), default=None)
    return FoldedSpan(slot, first.position, last.position, first.time, last.time, latest)
