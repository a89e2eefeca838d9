"""The end of the positions of a stream: publishers stop before it.

A position has 42 bits (model/relations/identity.py), so a stream may have 2**30 blocks of up to 4096 events.

Takes: the number of a block. Gives: nothing. Never: lets an event without a position be accepted or read.
"""

from __future__ import annotations

from fairlead.errors import LogError
from fairlead.model.relations.identity import POSITIONS_MAX
from fairlead.transport.log.blocks.block import INDEX_BITS

BLOCKS_MAX = POSITIONS_MAX >> INDEX_BITS
"""The first number of a block whose events would have no positions."""
BLOCKS_LEFT = 100_000
"""Blocks before it that publishers leave free: what others have sent meanwhile, and heartbeats."""
FIX = "continue with a new log, as docs/operations.md says"


def require_room(topic: str, last: int, left: int = BLOCKS_LEFT) -> None:
    """Raises LogError if a topic has no positions left, by the sequence of its last known block. `left`: blocks that are not
    used; accepted events may use all."""
    if last >= BLOCKS_MAX - left:
        raise LogError("N026", f"the topic '{topic}' has no positions left: it has had {last:,} blocks", FIX)


def require_position(number: int) -> None:
    """Raises LogError if the events of a block with this number would have no positions."""
    if number >= BLOCKS_MAX:
        raise LogError("N026", f"a stream has block {number:,}, and positions end before block {BLOCKS_MAX:,}", FIX)
