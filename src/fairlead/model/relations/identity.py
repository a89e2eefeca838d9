"""Ids and receipts as 128-bit numbers, computed one by one or for whole columns, with the same outcome.

Two 64-bit lanes are mixed by the finaliser of SplitMix64, in which every input bit reaches every output bit. This keeps
accidents apart (two relations share an id with probability 2**-128), not an adversary who may choose positions.

    id       lanes seeded by the subscription's digest; then the branch and the words of each member mixed in: its position, or
             if the events are in an order by value its identity, two words (order/event_identity.py);
             where a pattern does not tell how many members a slot holds, each run is followed by its length (after it, so
             that a run that grows needs no more than the two lanes)
    delivery the id of its relation, or the complement of the id if the delivery takes the relation back
    receipt  sum over the deliveries n = 1, 2, … of mix(delivery + mix(n)): equal after n deliveries means equal in each of
             them, in this order, and the sum runs, so every prefix has its own
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Iterable, Sequence
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from fairlead.model.events.position import Position
from fairlead.model.limits import LIMITS

Words = npt.NDArray[np.uint64]
Signs = npt.NDArray[np.int8]
"""Of deliveries: 1, or -1 where a relation is taken back (model/relations/relation.py)."""
ID_BYTES = 16
MASK = (1 << 64) - 1
Lanes = tuple[int, int]
"""The two lanes of an id, before all of its words are mixed in."""
STEP = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
MINOR_BITS = 21
"""Places beside one event: twice the limit of derived events, 2,000,000, fit into 21 bits."""
MINOR_MASK = (1 << MINOR_BITS) - 1
POSITIONS_MAX = (1 << (63 - MINOR_BITS)) - 1
"""A position and its places beside it are one 64-bit number. The very last is left free: what `until` decides stands before the
position after the last event."""
BLOCK = 8_192
"""Ids mixed at a time: the three pairs of lanes, 128 kB each, stay in the processor's cache."""


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * FIRST) & MASK
    z = ((z ^ (z >> 27)) * SECOND) & MASK
    return z ^ (z >> 31)


def mix_all(z: Words) -> Words:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    return z ^ (z >> np.uint64(31))


def unmixed(z: Words) -> Words:
    """The inverse of `mix_all`."""
    z = z ^ (z >> np.uint64(31)) ^ (z >> np.uint64(62))
    z = z * np.uint64(pow(SECOND, -1, MASK + 1))
    z = z ^ (z >> np.uint64(27)) ^ (z >> np.uint64(54))
    z = z * np.uint64(pow(FIRST, -1, MASK + 1))
    made: Words = z ^ (z >> np.uint64(30)) ^ (z >> np.uint64(60))
    return made


def position_word(position: Position) -> int:
    return ((position.major << MINOR_BITS) + position.minor + LIMITS.derived_per_event_max) & MASK


def position_of(word: int) -> Position:
    """The inverse of `position_word`."""
    return Position(word >> MINOR_BITS, (word & MINOR_MASK) - LIMITS.derived_per_event_max)


def words_of(majors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The position words of logged events."""
    return (majors << MINOR_BITS) + LIMITS.derived_per_event_max


def majors_of(words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return words >> MINOR_BITS


def places_of(words: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Which place beside its logged event each is: 0 its own, 1, 2 … (7+1, 7+2) after it, -1, -2 … (7-1, 7-2) before it."""
    minors = (words & MINOR_MASK) - LIMITS.derived_per_event_max
    before = minors < 0
    minors[before] = -(minors[before] + LIMITS.derived_per_event_max + 1)
    return minors.astype(np.int32)


def relation_id(
    subscription_digest: str, branch: int, members: Iterable[Sequence[int]], runs: Iterable[int] | None = None
) -> str:
    """The same on every replica, in every replay and on every runtime: 32 hexadecimal digits. `members`: the words of each.
    `runs`: how many of them each slot holds, where the pattern does not tell it."""
    if runs is None:
        words = [word for each in members for word in each]
    else:
        rest = iter(members)
        words = [word for length in runs for word in (*chain.from_iterable(islice(rest, length)), length)]
    lanes = seeds_of_branch(subscription_digest, branch)
    for word in words:
        lanes = rolled(lanes, word)
    return id_of_lanes(lanes)


def rolled(lanes: Lanes, word: int) -> Lanes:
    """With one word more."""
    a, b = lanes
    return mix(a ^ mix((word + STEP) & MASK)), mix((b + mix(word ^ STEP)) & MASK)


def id_of_lanes(lanes: Lanes) -> str:
    return f"{lanes[0]:016x}{lanes[1]:016x}"


def relation_ids(asked: Sequence[tuple[str, int, int]], words: npt.NDArray[np.int64] | Words) -> Words:
    """The ids of relations, one a row of their members' words, as pairs of words. `asked`: digest of the subscription, branch
    and number of rows, one after the other."""
    seeds = np.array([seeds_of_branch(digest, branch) for digest, branch, _ in asked], dtype=np.uint64).reshape(-1, 2)
    if len(asked) > 1:
        seeds = np.repeat(seeds, [rows for _, _, rows in asked], axis=0)
    return mixed_in(seeds, words)


def mixed_in(seeds: Words, words: npt.NDArray[np.int64] | Words) -> Words:
    """A pair of words for each row of words, which starts from its seeds, or from those of all rows."""
    return mixed_columns(seeds, [*words.astype(np.uint64, copy=False).T], len(words))


def mixed_columns(seeds: Words, columns: Sequence[Words | int], rows: int) -> Words:
    """`mixed_in` by columns of words. A number is a column of this number: it costs half of a column."""
    made = np.empty((rows, 2), dtype=np.uint64)
    size = min(rows, BLOCK)
    lanes, inner, spare = (np.empty((2, size), dtype=np.uint64) for _ in range(3))
    for low in range(0, rows, BLOCK):
        high = min(low + BLOCK, rows)
        if high - low < size:
            lanes, inner, spare = (each[:, : high - low] for each in (lanes, inner, spare))
        lanes[:] = (seeds if len(seeds) == 1 else seeds[low:high]).T
        for column in columns:
            if isinstance(column, int):
                first, second = mix((column + STEP) & MASK), mix(column ^ STEP)
                lanes[0] ^= np.uint64(first)
                lanes[1] += np.uint64(second)
            else:
                part = column[low:high]
                np.add(part, np.uint64(STEP), out=inner[0])
                np.bitwise_xor(part, np.uint64(STEP), out=inner[1])
                _mix_here(inner, spare)
                lanes[0] ^= inner[0]
                lanes[1] += inner[1]
            _mix_here(lanes, spare)
        made[low:high] = lanes.T
    return made


def _mix_here(z: Words, spare: Words) -> None:
    """`mix_all`, in place."""
    for shift, factor in ((30, FIRST), (27, SECOND)):
        np.right_shift(z, np.uint64(shift), out=spare)
        np.bitwise_xor(z, spare, out=z)
        np.multiply(z, np.uint64(factor), out=z)
    np.right_shift(z, np.uint64(31), out=spare)
    np.bitwise_xor(z, spare, out=z)


def pair_of(identity: str) -> tuple[int, int]:
    """The two words of an id."""
    return int(identity[:16], 16), int(identity[16:], 16)


def seeds_of_branch(subscription_digest: str, branch: int) -> Lanes:
    """Before the first member."""
    return rolled(_seeds(subscription_digest), branch)


def to_hex(words: Words) -> list[str]:
    text = to_bytes(words).hex()
    return [text[at : at + 32] for at in range(0, len(text), 32)]


def hex_digits(words: Words) -> npt.NDArray[np.uint8]:
    """`to_hex` as ASCII codes, 32 to an id, one id after the other."""
    return np.frombuffer(hexlify(to_bytes(words)), dtype=np.uint8)


def _seeds(subscription_digest: str) -> Lanes:
    """Two words of the digest; zeros for a subscription made by hand without one."""
    filled = f"{subscription_digest:0<32}"
    return int(filled[:16], 16), int(filled[16:32], 16)


def to_bytes(words: Words) -> bytes:
    return words.astype(">u8").tobytes()


def from_hex(ids: Sequence[str]) -> Words:
    return np.frombuffer(bytes.fromhex("".join(ids)), dtype=">u8").astype(np.uint64).reshape(-1, 2)


def signed(ids: Words, signs: Signs | None) -> Words:
    """The words of deliveries, by the ids of their relations and their signs; None if no relation is taken back."""
    return ids if signs is None else np.where(signs[:, None] < 0, ~ids, ids)


def running(words: Words, count: int, total: Words) -> Words:
    """The receipt's sum after each of these deliveries, which follow `count` others that came to `total`."""
    sums = np.empty((len(words), 2), dtype=np.uint64)
    for low in range(0, len(words), BLOCK):
        part = words[low : low + BLOCK]
        numbers = np.arange(count + low + 1, count + low + 1 + len(part), dtype=np.uint64)
        mixed = mix_all(part + mix_all(numbers)[:, None])
        sums[low : low + BLOCK] = np.cumsum(mixed, axis=0, dtype=np.uint64) + total
        total = sums[low + len(part) - 1]
    return sums
