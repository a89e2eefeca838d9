"""Which rows of an order by value have been released, as far back as late rows are accepted (LATE REVISE).

A late row that repeats a released one has its type, source, sequence and order keys. What is kept of a released row is its
first order key and the identity of the rest, 24 bytes.

Takes: first order keys and identities of rows that their sources have numbered. Gives: which of them repeat an earlier one;
bytes. Never: keeps a row before the value that its caller names.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.model.relations.identity import Words

Numbers = npt.NDArray[np.int64]
ROW_BYTES = 24


class SeenSequences:
    """`values`: increasing; `identities`: beside them."""

    def __init__(self) -> None:
        self.values: Numbers = np.zeros(0, dtype=np.int64)
        self.identities: Words = np.zeros((0, 2), dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.values)

    def repeats(self, values: Numbers, identities: Words) -> npt.NDArray[np.bool_]:
        """Which of these rows repeat one that was added, or one before them."""
        found = np.zeros(len(values), dtype=bool)
        low, high = (np.searchsorted(self.values, values, side) for side in ("left", "right"))
        here: set[bytes] = set()
        for at, (start, end) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            word = identities[at].tobytes()
            found[at] = word in here or bool((self.identities[start:end] == identities[at]).all(axis=1).any())
            here.add(word)
        return found

    def add(self, values: Numbers, identities: Words) -> None:
        joined = np.concatenate([self.values, values])
        order = np.argsort(joined, kind="stable")
        self.values, self.identities = joined[order], np.concatenate([self.identities, identities])[order]

    def forget(self, before: int) -> None:
        """Rows before this value."""
        start = int(np.searchsorted(self.values, before))
        self.values, self.identities = self.values[start:], self.identities[start:]

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories."""
        order = np.lexsort((self.identities[:, 1], self.identities[:, 0], self.values))
        return self.values[order].astype("<i8").tobytes() + self.identities[order].astype("<u8").tobytes()

    def load(self, state: bytes | memoryview) -> None:
        """The inverse of `dump`."""
        rows = len(state) // ROW_BYTES
        self.values = np.frombuffer(state, dtype="<i8", count=rows).astype(np.int64)
        self.identities = np.frombuffer(state, dtype="<u8", offset=8 * rows).astype(np.uint64).reshape(-1, 2)
