"""Ids and receipts as 128-bit numbers, computed one by one or for whole columns, with the same outcome.

Two 64-bit lanes are mixed by the finaliser of SplitMix64, in which every input bit reaches every output bit. This keeps
accidents apart (two relations share an id with probability 2**-128), not an adversary who may choose positions.

    id       lanes seeded by the subscription's digest; then, for the branch and each member's position, one word mixed in
    receipt  sum over the deliveries n = 1, 2, … of mix(id + mix(n)): equal after n deliveries means equal in each of them,
             in this order, and the sum runs, so every prefix has its own
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from fairlead.model.limits import LIMITS
from fairlead.model.position import Position

Words = npt.NDArray[np.uint64]
ID_BYTES = 16
MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
MINOR_BITS = 21
"""Places beside one event: twice the limit of derived events, 2,000,000, fit into 21 bits."""


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * FIRST) & MASK
    z = ((z ^ (z >> 27)) * SECOND) & MASK
    return z ^ (z >> 31)


def mix_all(z: Words) -> Words:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    return z ^ (z >> np.uint64(31))


def position_word(position: Position) -> int:
    return ((position.major << MINOR_BITS) + position.minor + LIMITS.derived_per_event_max) & MASK


def words_of(majors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The words of logged events, by their numbers."""
    return (majors << MINOR_BITS) + LIMITS.derived_per_event_max


def relation_id(subscription_digest: str, branch: int, positions: Iterable[Position]) -> str:
    """The same on every replica, in every replay and on every runtime: 32 hexadecimal digits."""
    a, b = _seeds(subscription_digest)
    for word in (branch, *map(position_word, positions)):
        a, b = mix(a ^ mix((word + STEP) & MASK)), mix((b + mix(word ^ STEP)) & MASK)
    return f"{a:016x}{b:016x}"


def relation_ids(subscription_digest: str, branch: int, majors: npt.NDArray[np.int64]) -> Words:
    """The ids of relations between logged events, one a row of `majors`, as pairs of words."""
    a, b = (np.full(len(majors), seed, dtype=np.uint64) for seed in _seeds(subscription_digest))
    step = np.uint64(STEP)
    words = (majors.astype(np.uint64) << np.uint64(MINOR_BITS)) + np.uint64(LIMITS.derived_per_event_max)
    for word in (np.full(len(majors), branch, dtype=np.uint64), *words.T):
        a, b = mix_all(a ^ mix_all(word + step)), mix_all(b + mix_all(word ^ step))
    return np.stack([a, b], axis=1)


def to_hex(words: Words) -> list[str]:
    text = to_bytes(words).hex()
    return [text[at : at + 32] for at in range(0, len(text), 32)]


def _seeds(subscription_digest: str) -> tuple[int, int]:
    """Two words of the digest; zeros for a subscription made by hand without one."""
    filled = f"{subscription_digest:0<32}"
    return int(filled[:16], 16), int(filled[16:32], 16)


def to_bytes(words: Words) -> bytes:
    return words.astype(">u8").tobytes()


def from_hex(ids: Sequence[str]) -> Words:
    return np.frombuffer(bytes.fromhex("".join(ids)), dtype=">u8").astype(np.uint64).reshape(-1, 2)


def running(words: Words, count: int, total: Words) -> Words:
    """The receipt's sum after each of these deliveries, which follow `count` others that came to `total`."""
    numbers = np.arange(count + 1, count + 1 + len(words), dtype=np.uint64)
    mixed = mix_all(words + mix_all(numbers)[:, None])
    return np.cumsum(mixed, axis=0, dtype=np.uint64) + total
