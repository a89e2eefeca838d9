"""Which noted events are kept, and when they forbid a relation. Both matchers do the same.

    after a member     those after the oldest queued event that can be this member: others are before every such member to come
    before a member    all, but for cases 2 and 3

1. *Early.* If a clause reads no other member than the one that it names, which is the only instance of its type, and can note
   no other, then it is decided when that member arrives: all that could forbid it are noted. A member that is forbidden is not
   queued, since it can be in no relation, and searches do not ask again. So nothing is kept for queued members. (Not where
   RETAIN counts the events of its queue, or it is a table.)
2. The pattern has a window w, and the clause `WITHIN d`: the oldest leaves if it is more than w + d before the clock of its
   key. That is before the reach of any member, queued or to come.
3. *Decisive.* Nothing but place and time matters: the conditions of the clause are about the noted event alone. Then an event
   that is not later in time than one before it is not kept: that one forbids the same, and more. So times rise. And the oldest
   leaves once the next one is before every queued event that can be the member; if the clause is early, at once. Without
   `WITHIN`, that leaves the first one.

Takes: a branch, one of its clauses, and the catalogue. Gives: `NotedEventPolicy`. Never: looks at an event.
"""

from __future__ import annotations

from fairlead.dataclass import dataclass
from fairlead.model.clauses.clause import NotingClause
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.plan import Branch, Subscription


@dataclass(frozen=True)
class NotedEventPolicy:
    anchor: int
    """The slot of the member after (or before) which events are noted."""
    before: bool
    """They are noted before the member: they are kept while none is queued."""
    early: bool = False
    decisive: bool = False
    timed: bool = False
    horizon_us: int | None = None
    """w + d of 2."""


def noted_event_policy(
    subscription: Subscription, branch: Branch, clause: NotingClause, catalogue: Catalogue
) -> NotedEventPolicy:
    if clause.since is not None:
        return NotedEventPolicy(clause.since, False)
    assert clause.until is not None
    horizon = None
    if subscription.within_us is not None and clause.apart_us is not None:
        horizon = subscription.within_us + clause.apart_us
    decisive = not clause.reads_members and not branch.twins(clause, catalogue) - {clause.until}
    return NotedEventPolicy(clause.until, True, is_early(branch, clause, catalogue), decisive, clause.timed, horizon)


def is_early(branch: Branch, clause: NotingClause, catalogue: Catalogue) -> bool:
    """1. holds."""
    if clause.since is not None or clause.until is None:
        return False
    bound = branch.retention.get(branch.slots[clause.until].type)
    if clause.until in branch.read or (bound is not None and bound.count is not None):
        return False  # a member that is forbidden has its place in the queue
    read = {*clause.members(len(branch.slots)), *branch.twins(clause, catalogue)}
    return read == {clause.until} and len(branch.slots_of_type[branch.slots[clause.until].type]) == 1
