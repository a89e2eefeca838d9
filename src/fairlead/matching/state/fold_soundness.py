"""Whether folded runs of a state are some that a matcher can have: the events that stand for a run are just those that adding
them finds again, and its numbers fit them.

Takes: instances of branches with a folded run, and the events. Raises: StateError (S005) with the first contradiction. Never:
knows the id of a run, which depends on events that are not there.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.matching.folded_run import FoldedRun
from fairlead.matching.state.content import InstanceTable
from fairlead.matching.state.event_soundness import say
from fairlead.model.events.event import Event
from fairlead.model.plans.folding import HALF, HEAD, Folding, folding_of
from fairlead.model.plans.plan import Plan


def require_folds(group: InstanceTable, plan: Plan, events: Mapping[int, Event]) -> None:
    """`events`: by word."""
    say(group.folded.shape == (len(group), group.form.folded), "its folded runs have other numbers")
    words, at = group.words.tolist(), 0
    for row, length in enumerate(group.lengths[:, 0].tolist()):
        branch = plan.subscriptions[int(group.subscription[row])].branches[int(group.branch[row])]
        folding, numbers = folding_of(branch, plan.catalogue), group.folded[row].tolist()
        assert folding is not None
        mine = [events[word] for word in words[at : at + length]]
        at += length
        if not mine:
            say(not any(numbers), "a key without a run has numbers of one")
            continue
        bound = branch.retention.get(branch.queue_types[0])
        say(bound is None or bound.count is None or numbers[0] <= bound.count, "a run has more events than RETAIN allows")
        _require_run(folding, mine, numbers)


def _require_run(folding: Folding, events: list[Event], numbers: list[int]) -> None:
    run, count = FoldedRun(folding, (0, 0)), numbers[0]
    for each in events:
        run.add(each)
    kept = [each.position for each in run.representatives()]
    say(kept == [each.position for each in events], "an event is kept that stands for no other")
    first, last = events[0].position, events[-1].position
    room = first.minor or last.minor or count <= last.major - first.major + 1
    say(bool(room) and count >= len(events) and (count == 1) == (len(events) == 1), "a run has no such length")
    say(count > len(events) or numbers[HEAD:] == run.numbers()[HEAD:], "the numbers of a run are not those of its events")
    at = HEAD
    for total in folding.totals:
        known, *parts = numbers[at : at + total.width]
        at += total.width
        say(run.totals[total.key][0] <= known <= count, "a run has more or fewer values than events")
        if total.width == 3:
            high, low = parts
            say(0 <= low < 1 << HALF and abs(high) <= known << (63 - HALF), "a sum is larger than its values can be")
        say(known > 0 or not any(parts), "a run without values has a sum")
