"""Judges a history: the one call.

    for problem in check(history): print(problem)

Takes: a history, of a simulated or of a real run. Gives: problems, in words. Never: imports the runtime or the transport, whose
work it judges.
"""

from __future__ import annotations

from itertools import pairwise

from fairlead.testing.history.deliveries import delivery_problems
from fairlead.testing.history.publishing import publishing_problems
from fairlead.testing.history.values import History


def check(history: History) -> list[str]:
    torn = [
        f"positions in {name} do not increase"
        for name, events in {**history.topics, **history.streams}.items()
        if any(one.position >= other.position for one, other in pairwise(events))
    ]
    return [*torn, *publishing_problems(history), *(() if torn else delivery_problems(history))]
