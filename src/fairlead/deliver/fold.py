"""What is left of a sequence of deliveries when those that were taken back are gone.

    + a   + b   - a   + c        leaves   + b   + c

A delivery and the one that takes it back have complementary words (model/relations/identity.py), so words are enough to fold.
Folding a part of a sequence first changes nothing: it leaves what the whole leaves.

Takes: the words of deliveries, in order. Gives: the places of those that are left. Never: sees a relation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.model.relations.identity import ID_BYTES, Words, to_bytes


def remaining(words: Words) -> npt.NDArray[np.int64]:
    """The places of the deliveries that are left, in order: each cancels the last one left that is its opposite. One that takes
    back what was delivered before the sequence began is left too."""
    there, opposite = to_bytes(words), to_bytes(~words)
    left: dict[bytes, list[int]] = {}
    for at in range(len(words)):
        mine = slice(at * ID_BYTES, (at + 1) * ID_BYTES)
        if taken := left.get(opposite[mine]):
            taken.pop()
        else:
            left.setdefault(there[mine], []).append(at)
    return np.array(sorted(at for places in left.values() for at in places), dtype=np.int64)
