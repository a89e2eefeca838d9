"""Kernels by hand for queries whose relations hold runs, of any length: Q3r, Q7, Q8, Q9, Q10.

As those of by_hand.py they give the relations of the definition in its order, and know everything about their query and W1:
keys are 1..1000, volumes 1..1000, times never fall.

- Q3r, Q7: what has not failed of a key is one run and its last price. A row that breaks the run delivers it or begins the next.
- Q8: by key the positions of a minute, and how often each volume is among them.
- Q9: by key the positions of a window; the count is their number.
- Q10: sessions stand in the order of their last event, which is the order in which they end. Before an event, all end whose
  last event is longer ago than the gap.

Takes: a Stream (NumPy columns). Gives: the members' positions of all relations one after the other, and how many each has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from benchmarks.workload import (
    COUNT_MOST,
    COUNT_WINDOW_US,
    DISTINCT_LEAST,
    DISTINCT_WINDOW_US,
    FALLS_LEAST,
    GAP_US,
    KEYS,
    Stream,
)

Numbers = npt.NDArray[np.int64]


class Runs(NamedTuple):
    """Relations of different lengths."""

    members: Numbers
    lengths: Numbers

    def same(self, other: Any) -> bool:
        return np.array_equal(self.members, other.members) and np.array_equal(self.lengths, other.lengths)


@njit(cache=True, nogil=True)
def _wide(values, least):  # type: ignore[no-untyped-def]
    made = np.empty(max(2 * len(values), least), values.dtype)
    made[: len(values)] = values
    return made


@njit(cache=True, nogil=True)
def _linked(following, first, count, out, filled):  # type: ignore[no-untyped-def]
    """Writes the events of a linked list."""
    if filled + count > len(out):
        out = _wide(out, filled + count)
    at = first
    for number in range(count):
        out[filled + number] = at
        at = following[at]
    return out


@njit(cache=True, nogil=True)
def _rising(kind, key, price, keys):  # type: ignore[no-untyped-def]
    """The oldest A, and the rising B after it that stand next to each other among the A and B of the key."""
    begun, first, last = np.full(keys, -1, np.int32), np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    count = np.zeros(keys, np.int32)
    following = np.empty(len(kind), np.int32)
    out, lengths = np.empty(len(kind), np.int64), np.empty(len(kind) // 2 + 1, np.int64)
    filled = found = 0
    for i in range(len(kind)):
        if kind[i] == 2:
            continue
        k = key[i] - 1
        a, so_far = begun[k], count[k]
        if kind[i] == 1 and so_far and price[i] > price[last[k]]:
            following[last[k]] = i
            last[k], count[k] = i, so_far + 1
            continue
        if so_far:
            if filled + so_far + 1 > len(out):
                out = _wide(out, filled + so_far + 1)
            out[filled] = a
            out = _linked(following, first[k], so_far, out, filled + 1)
            filled += so_far + 1
            lengths[found] = so_far + 1
            found += 1
            count[k] = 0
            a = begun[k] = -1
        if kind[i] == 0:
            if a == -1:
                begun[k] = i
        elif a != -1:
            first[k] = last[k] = i
            count[k] = 1
    return out[:filled], lengths[:found]


@njit(cache=True, nogil=True)
def _valleys(kind, key, price, keys, least):  # type: ignore[no-untyped-def]
    """A fall of at least so many A, then a rise of at least as many. `falls` and `rises`: how many of each there are so far."""
    first, last = np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    falls, rises = np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    following = np.empty(len(kind), np.int32)
    out, lengths = np.empty(len(kind) + 1, np.int64), np.empty(len(kind) // (2 * least) + 1, np.int64)
    filled = found = 0
    for i in range(len(kind)):
        if kind[i] != 0:
            continue
        k = key[i] - 1
        before, fallen = last[k], falls[k]
        last[k] = i
        if fallen == 0:
            first[k], falls[k] = i, 1
            continue
        following[before] = i
        if rises[k] == 0:
            if price[i] < price[before]:
                falls[k] = fallen + 1
            elif price[i] > price[before] and fallen >= least:
                rises[k] = 1
            else:
                first[k], falls[k] = i, 1
            continue
        if price[i] > price[before]:
            rises[k] += 1
            continue
        if rises[k] >= least:
            size = fallen + rises[k]
            out = _linked(following, first[k], size, out, filled)
            filled += size
            lengths[found] = size
            found += 1
            first[k], falls[k] = i, 1
        elif price[i] < price[before]:
            first[k], falls[k] = before, 2
        else:
            first[k], falls[k] = i, 1
        rises[k] = 0
    return out[:filled], lengths[:found]


@njit(cache=True, nogil=True)
def _distinct(key, volume, at_us, within, keys, least, volumes):  # type: ignore[no-untyped-def]
    first, count, last = np.zeros(keys, np.int32), np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    different, often = np.zeros(keys, np.int32), np.zeros((keys, volumes + 1), np.int16)
    following = np.empty(len(key), np.int32)
    out, lengths = np.empty(len(key), np.int64), np.empty(len(key) // least + 1, np.int64)
    filled = found = low = 0
    for i in range(len(key)):
        k = key[i] - 1
        while at_us[low] < at_us[i] - within:
            low += 1
        while count[k] and first[k] < low:
            gone = volume[first[k]]
            often[k, gone] -= 1
            if often[k, gone] == 0:
                different[k] -= 1
            first[k] = following[first[k]]
            count[k] -= 1
        if count[k]:
            following[last[k]] = i
        else:
            first[k] = i
        last[k] = i
        count[k] += 1
        often[k, volume[i]] += 1
        if often[k, volume[i]] == 1:
            different[k] += 1
        if different[k] >= least:
            out = _linked(following, first[k], count[k], out, filled)
            for at in range(filled, filled + count[k]):
                often[k, volume[out[at]]] = 0
            filled += count[k]
            lengths[found] = count[k]
            found += 1
            count[k] = different[k] = 0
    return out[:filled], lengths[:found]


@njit(cache=True, nogil=True)
def _many(key, at_us, within, keys, most):  # type: ignore[no-untyped-def]
    first, count, last = np.zeros(keys, np.int32), np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    following = np.empty(len(key), np.int32)
    out, lengths = np.empty(len(key), np.int64), np.empty(len(key) // most + 1, np.int64)
    filled = found = low = 0
    for i in range(len(key)):
        k = key[i] - 1
        while at_us[low] < at_us[i] - within:
            low += 1
        while count[k] and first[k] < low:
            first[k] = following[first[k]]
            count[k] -= 1
        if count[k]:
            following[last[k]] = i
        else:
            first[k] = i
        last[k] = i
        count[k] += 1
        if count[k] > most:
            out = _linked(following, first[k], count[k], out, filled)
            filled += count[k]
            lengths[found] = count[k]
            found += 1
            count[k] = 0
    return out[:filled], lengths[:found]


@njit(cache=True, nogil=True)
def _sessions(key, at_us, gap, keys):  # type: ignore[no-untyped-def]
    """`later` and `earlier`: open sessions in a ring by their last event, with the number of keys as its head."""
    first, count, last = np.zeros(keys, np.int32), np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    later, earlier = np.full(keys + 1, keys, np.int32), np.full(keys + 1, keys, np.int32)
    following = np.empty(len(key), np.int32)
    out, lengths = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
    filled = found = 0
    for i in range(len(key)):
        while later[keys] != keys and at_us[last[later[keys]]] < at_us[i] - gap:
            k = later[keys]
            out = _linked(following, first[k], count[k], out, filled)
            filled += count[k]
            lengths[found] = count[k]
            found += 1
            count[k] = 0
            later[keys] = later[k]
            earlier[later[k]] = keys
        k = key[i] - 1
        if count[k]:
            following[last[k]] = i
            later[earlier[k]] = later[k]
            earlier[later[k]] = earlier[k]
        else:
            first[k] = i
        last[k] = i
        count[k] += 1
        newest = earlier[keys]
        later[newest] = earlier[keys] = k
        earlier[k], later[k] = newest, keys
    return out[:filled], lengths[:found]


def q3r(data: Stream) -> Runs:
    return Runs(*_rising(data.type, data.key, data.price, KEYS))


def q7(data: Stream) -> Runs:
    return Runs(*_valleys(data.type, data.key, data.price, KEYS, FALLS_LEAST))


def q8(data: Stream) -> Runs:
    return Runs(*_distinct(data.key, data.volume, data.at_us, DISTINCT_WINDOW_US, KEYS, DISTINCT_LEAST, 1_000))


def q9(data: Stream) -> Runs:
    return Runs(*_many(data.key, data.at_us, COUNT_WINDOW_US, KEYS, COUNT_MOST))


def q10(data: Stream) -> Runs:
    return Runs(*_sessions(data.key, data.at_us, GAP_US, KEYS))
