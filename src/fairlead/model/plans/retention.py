"""RETAIN: how much of a queue stays, whatever matches.

RETAIN q 10 EVENTS          the ten newest events of q's queue
RETAIN q 10 EVENTS BATCH    an event that would be the eleventh empties the queue first
RETAIN q 5 MINUTES          those that are at most five minutes before the clock of their key
RETAIN q 5 MINUTES BATCH    those of the same five minutes as the clock: cut at multiples since 1970

A bound is one of the queue, which all elements of its type share. With WITHIN, both hold.

Gives: frozen values and what follows from them. Never: sees an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.dataclass import dataclass
from fairlead.model.events.values import duration_words

if TYPE_CHECKING:
    from fairlead.model.plans.plan import Branch, Subscription


@dataclass(frozen=True)
class Retention:
    """`RETAIN x count EVENTS [BATCH]` or `RETAIN x span [BATCH]`: one of the two numbers is there."""

    count: int | None = None
    span_us: int | None = None
    batch: bool = False

    @property
    def words(self) -> str:
        amount = duration_words(self.span_us or 0) if self.count is None else f"{self.count} EVENT{'S' * (self.count != 1)}"
        return f"{amount} BATCH" if self.batch else amount

    @property
    def counts_all(self) -> bool:
        """When the queue is emptied depends on events that can be in no relation, too."""
        return self.batch and self.count is not None

    @property
    def canonical(self) -> str:
        """For digests."""
        return f"{f'{self.span_us} us' if self.count is None else f'{self.count} events'}{' batch' if self.batch else ''}"


@dataclass(frozen=True)
class Horizon:
    """The time before which the events of a queue leave: by WITHIN, and by a RETAIN of its own."""

    within_us: int | None = None
    span_us: int | None = None
    batch: bool = False

    def __bool__(self) -> bool:
        return self.within_us is not None or self.span_us is not None

    def cuts(self, clock: Any) -> list[Any]:
        """For this clock (a number, an array of them, or a formula): the largest of these is the horizon."""
        made = [] if self.within_us is None else [clock - self.within_us]
        if self.span_us is not None:
            made.append(clock - clock % self.span_us if self.batch else clock - self.span_us)
        return made

    def at(self, clock: int) -> int:
        return int(max(self.cuts(clock)))


def horizons(subscription: Subscription, branch: Branch) -> tuple[Horizon, ...]:
    """Of each queue of the branch; tables and the rows of sequences have none."""
    found = []
    for at, name in enumerate(branch.queue_types):
        mine = branch.retention.get(name, Retention())
        unbounded = at in branch.table_queues or branch.sequence is not None
        found.append(Horizon() if unbounded else Horizon(subscription.within_us, mine.span_us, mine.batch))
    return tuple(found)


def retain_words(subscription: Subscription) -> tuple[str, ...]:
    """The bounds of RETAIN, as the text says them."""
    said = (
        f"{branch.slots[branch.slots_of_type[name][0]].alias} {each.words}"
        for branch in subscription.branches
        for name, each in branch.retained
    )
    return tuple(dict.fromkeys(said))


def tables_of(subscription: Subscription) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each table that it reads, with its key."""
    return tuple(dict.fromkeys(table for branch in subscription.branches for table in branch.tables))
