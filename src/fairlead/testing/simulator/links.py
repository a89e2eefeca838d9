"""Links between simulated processes: what becomes of a message on its way.

    reliable FIFO     every message arrives once, in the order of sending
    reliable          every message arrives once, in any order
    lossy             some messages are lost, the others arrive in any order
    duplicating       some messages arrive twice, none is lost
    lossy, duplicating  both

Takes: a plan, a seed. Gives: the times at which each message arrives. Never: loses anything while the world is drained.
"""

from __future__ import annotations

import random
from enum import StrEnum

from fairlead.dataclass import dataclass


class LinkKind(StrEnum):
    FIFO = "reliable FIFO"
    RELIABLE = "reliable"
    LOSSY = "lossy"
    DUPLICATING = "duplicating"
    LOSSY_DUPLICATING = "lossy, duplicating"

    @property
    def loses(self) -> bool:
        return self in (LinkKind.LOSSY, LinkKind.LOSSY_DUPLICATING)

    @property
    def repeats(self) -> bool:
        return self in (LinkKind.DUPLICATING, LinkKind.LOSSY_DUPLICATING)


@dataclass(frozen=True)
class LinkDelay:
    """Seconds on the way: normally distributed, cut at 0. With `tail`, a tenth of the messages take up to that much more."""

    mean: float = 0.01
    deviation: float = 0.003
    tail: float = 0.0

    def draw(self, rolls: random.Random) -> float:
        found = max(0.0, rolls.gauss(self.mean, self.deviation))
        return found + rolls.random() * self.tail if self.tail and rolls.random() < 0.1 else found


@dataclass(frozen=True)
class LinkPlan:
    """`loss`, `again`: shares of the messages, where the kind allows it."""

    kind: LinkKind = LinkKind.FIFO
    delay: LinkDelay = LinkDelay()
    loss: float = 0.2
    again: float = 0.2

    def arrivals(self, rolls: random.Random, sent: float, last: float, *, drained: bool) -> list[float]:
        """When a message arrives. `last`: the last arrival on this link so far."""
        at = sent + self.delay.draw(rolls)
        lost, repeated = rolls.random() < self.loss, rolls.random() < self.again
        if self.kind is LinkKind.FIFO:
            return [max(at, last)]
        if self.kind.loses and lost and not drained:
            return []
        return [at, sent + 3 * self.delay.draw(rolls)] if self.kind.repeats and repeated else [at]
