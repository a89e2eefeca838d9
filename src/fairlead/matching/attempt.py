"""Handles a batch event by event, as long as that is little work.

The matchers in Python count their work, in steps of about a microsecond. When a batch has taken more than its limit, the
attempt ends in the middle of the current search, everything that the batch has changed is restored, and kernels get the whole
batch: nothing of it has been delivered yet. So the results do not depend on when that happens.

Steps are counted, not timed: the core reads no clock. Measured on plans of one to fifty subscriptions, with windows, keys and
DECIMALs, a step takes 0.7 to 1.9 microseconds.

Takes: steps, and the former instances. Gives: `Spent`, and the restored matchers. Never: looks at a state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fairlead.matching.interpreted.instance import Instance, Key

EVENT, ARRIVAL = 10, 10
"""Steps for an event, and for every subscription that reads it, besides its search. Together the cost of an event in a plan of
one subscription, so budgets can be given in events (thresholds.py)."""
QUEUED = 16
"""Events of a queue that count as one step if a whole queue is filtered by a comprehension."""
UNLIMITED = 1 << 63
EVERY = 1 << 16
"""Steps between two questions whether to continue: about 65 milliseconds."""


class Spent(Exception):
    """The batch takes more work than its limit. Never leaves the engine."""


class InstanceMatcher(Protocol):
    """A matcher whose instances can be restored."""

    def put_back(self, number: int, key: Key, instance: Instance | None) -> None:
        """Restores the instance of a branch and key; None: there was none."""

    def put_back_count(self, key: Key, count: int) -> None:
        """Restores how many relations its LIMIT had counted of a key."""

    def settle(self, seen: int | None) -> None:
        """After all instances: restores the latest time that it had seen, and what follows from the instances."""


class Attempt:
    """One for all matchers of an engine. Without a limit nothing is recorded."""

    __slots__ = ("_counts", "_instances", "_seen", "asked", "check", "limit", "spent")

    def __init__(self) -> None:
        self.spent, self.limit = 0, UNLIMITED
        self.check: Callable[[], None] | None = None
        """Asked in searches without a limit whether to continue; it raises if not."""
        self.asked = 0
        self._instances: dict[tuple[InstanceMatcher, int, Key], Instance | None] = {}
        self._seen: dict[InstanceMatcher, int | None] = {}
        self._counts: dict[tuple[InstanceMatcher, Key], int] = {}

    def begin(self, limit: int) -> None:
        """Earlier changes are permanent."""
        self.spent, self.limit, self.asked = 0, limit, 0
        self._instances, self._seen, self._counts = {}, {}, {}

    def end(self) -> int:
        """Makes the changes permanent. Returns the steps they took."""
        spent = self.spent
        self.begin(UNLIMITED)
        return spent

    def spend(self, steps: int) -> None:
        self.spent += steps
        if self.spent > self.limit:
            raise Spent
        if self.spent - self.asked > EVERY and self.check is not None and self.limit == UNLIMITED:
            self.asked = self.spent
            self.check()

    def keep_seen(self, matcher: InstanceMatcher, seen: int | None) -> None:
        """Before the matcher sees a time."""
        if self.limit != UNLIMITED:
            self._seen.setdefault(matcher, seen)

    def keep(self, matcher: InstanceMatcher, number: int, key: Key, instance: Instance | None) -> None:
        """Before an instance changes, appears or goes."""
        if self.limit != UNLIMITED and (matcher, number, key) not in self._instances:
            self._instances[matcher, number, key] = None if instance is None else instance.copy()

    def keep_count(self, matcher: InstanceMatcher, key: Key, count: int) -> None:
        """Before a relation is counted."""
        if self.limit != UNLIMITED:
            self._counts.setdefault((matcher, key), count)

    def undo(self) -> None:
        """Restores all matchers to the beginning of the attempt."""
        instances, counts, times = self._instances, self._counts, self._seen
        self.begin(UNLIMITED)  # what is restored is searched again
        for (matcher, number, key), instance in instances.items():
            matcher.put_back(number, key, instance)
        for (matcher, key), count in counts.items():
            matcher.put_back_count(key, count)
        for matcher, seen in times.items():  # matchers without a time wait for none
            matcher.settle(seen)
