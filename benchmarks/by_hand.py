"""The ceiling: a numba kernel written by hand for each query, which knows everything that can be known about it.

They give the relations of the definition, member for member and in the same order (`python -m benchmarks.by_hand` compares them
with the engine's incremental matcher), but they are no engine: one query each, no nulls, no state to carry over, and they
take from W1 that keys are 1..1000 and that times never fall, so that "older than the window" is a position, not a time.

What each one uses that follows from its query:
- Q1 (and Q4, which has the same relations): within a key every queued A costs at least as much as every queued B. One
  extreme for each queue says whether there is a match; only then is the queue searched, and it is short.
- Q2: the oldest A is always the right one, and a B that no queued A precedes is dead. Queues of positions, popped in front.
- Q3: likewise the oldest A; a match uses the newest B and drops all B. The search is over the B of one key and ten seconds.
- Q5: "the first in queue order below p" from a tree of minima with sixteen children a node.
- Q11: as Q2, with a loop over the A and the B of a key for each C, which stops at ten.
- Q3r, Q7 to Q10: runs_by_hand.py.
- Q6: the band by binary search, then a linked list for each band, of A or of B, never of both.

Takes: a Stream (NumPy columns). Gives: the members' positions, one row for each relation, in signature order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from benchmarks.runs_by_hand import Runs, q3r, q7, q8, q9, q10
from benchmarks.workload import KEYS, QUERIES, SUBSCRIPTIONS, TYPE_NAMES, Stream, bands

Positions = npt.NDArray[np.int64]
WINDOW_US = 10_000_000
FANOUT = 16


@njit(cache=True, nogil=True)
def _doubled(values):  # type: ignore[no-untyped-def]
    wide = np.empty((values.shape[0], 2 * values.shape[1]), values.dtype)
    wide[:, : values.shape[1]] = values
    return wide


@njit(cache=True, nogil=True)
def _q1(kind, key, price, keys):  # type: ignore[no-untyped-def]
    a_price, a_ref, a_count = np.empty((keys, 32)), np.empty((keys, 32), np.int32), np.zeros(keys, np.int32)
    b_price, b_ref, b_count = np.empty((keys, 32)), np.empty((keys, 32), np.int32), np.zeros(keys, np.int32)
    a_least, b_most = np.full(keys, np.inf), np.full(keys, -np.inf)
    out = np.empty((len(kind) // 2 + 1, 2), np.int64)
    found = 0
    for i in range(len(kind)):
        if kind[i] == 2:
            continue
        k, p = key[i] - 1, price[i]
        if kind[i] == 0:
            if p < b_most[k]:
                last = b_count[k] - 1
                j = 0
                while b_price[k, j] <= p:
                    j += 1
                gone = b_price[k, j]
                out[found, 0], out[found, 1] = i, b_ref[k, j]
                found += 1
                for at in range(j, last):
                    b_price[k, at] = b_price[k, at + 1]
                    b_ref[k, at] = b_ref[k, at + 1]
                b_count[k] = last
                if gone == b_most[k]:
                    most = -np.inf
                    for at in range(last):
                        most = max(most, b_price[k, at])
                    b_most[k] = most
            else:
                at = a_count[k]
                if at == a_price.shape[1]:
                    a_price, a_ref = _doubled(a_price), _doubled(a_ref)
                a_price[k, at], a_ref[k, at], a_count[k] = p, i, at + 1
                a_least[k] = min(a_least[k], p)
        elif p > a_least[k]:
            last = a_count[k] - 1
            j = 0
            while a_price[k, j] >= p:
                j += 1
            gone = a_price[k, j]
            out[found, 0], out[found, 1] = a_ref[k, j], i
            found += 1
            for at in range(j, last):
                a_price[k, at] = a_price[k, at + 1]
                a_ref[k, at] = a_ref[k, at + 1]
            a_count[k] = last
            if gone == a_least[k]:
                least = np.inf
                for at in range(last):
                    least = min(least, a_price[k, at])
                a_least[k] = least
        else:
            at = b_count[k]
            if at == b_price.shape[1]:
                b_price, b_ref = _doubled(b_price), _doubled(b_ref)
            b_price[k, at], b_ref[k, at], b_count[k] = p, i, at + 1
            b_most[k] = max(b_most[k], p)
    return out[:found]


@njit(cache=True, nogil=True)
def _shifted(ref, k, head, tail):  # type: ignore[no-untyped-def]
    for at in range(head, tail):
        ref[k, at - head] = ref[k, at]
    return tail - head


@njit(cache=True, nogil=True)
def _q2(kind, key, at_us, within, keys):  # type: ignore[no-untyped-def]
    a_ref, b_ref = np.empty((keys, 16), np.int32), np.empty((keys, 16), np.int32)
    a_head, a_tail = np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    b_head, b_tail = np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    out = np.empty((len(kind) // 3 + 1, 3), np.int64)
    found = 0
    low = 0  # the oldest position within the window
    for i in range(len(kind)):
        k = key[i] - 1
        while at_us[low] < at_us[i] - within:
            low += 1
        if kind[i] == 0:
            tail = a_tail[k]
            if tail == a_ref.shape[1]:
                head = a_head[k]
                while head < tail and a_ref[k, head] < low:
                    head += 1
                tail = _shifted(a_ref, k, head, tail)
                a_head[k] = 0
                if tail == a_ref.shape[1]:
                    a_ref = _doubled(a_ref)
            a_ref[k, tail] = i
            a_tail[k] = tail + 1
        elif kind[i] == 1:
            if a_head[k] == a_tail[k]:
                continue  # no A stands before it
            tail = b_tail[k]
            if tail == b_ref.shape[1]:
                head = b_head[k]
                while head < tail and b_ref[k, head] < low:
                    head += 1
                tail = _shifted(b_ref, k, head, tail)
                b_head[k] = 0
                if tail == b_ref.shape[1]:
                    b_ref = _doubled(b_ref)
            b_ref[k, tail] = i
            b_tail[k] = tail + 1
        else:
            head, tail = a_head[k], a_tail[k]
            while head < tail and a_ref[k, head] < low:
                head += 1
            if head == tail:
                a_head[k] = a_tail[k] = b_head[k] = b_tail[k] = 0
                continue
            a = a_ref[k, head]
            b, end = b_head[k], b_tail[k]
            while b < end and b_ref[k, b] < a:
                b += 1
            if b < end:
                out[found, 0], out[found, 1], out[found, 2] = a, b_ref[k, b], i
                found += 1
                head += 1
                b += 1
            a_head[k] = head
            if b == end:
                b_head[k] = b_tail[k] = 0
            else:
                b_head[k] = b
    return out[:found]


@njit(cache=True, nogil=True)
def _q3(kind, key, price, at_us, within, keys):  # type: ignore[no-untyped-def]
    a_ref, a_head, a_tail = np.empty((keys, 16), np.int32), np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    b_ref, b_price = np.empty((keys, 16), np.int32), np.empty((keys, 16))
    b_count = np.zeros(keys, np.int32)
    out = np.empty((len(kind) // 4 + 1, 4), np.int64)
    found = 0
    low = 0
    for i in range(len(kind)):
        if kind[i] == 2:
            continue
        k = key[i] - 1
        while at_us[low] < at_us[i] - within:
            low += 1
        if kind[i] == 0:
            tail = a_tail[k]
            if tail == a_ref.shape[1]:
                head = a_head[k]
                while head < tail and a_ref[k, head] < low:
                    head += 1
                tail = _shifted(a_ref, k, head, tail)
                a_head[k] = 0
                if tail == a_ref.shape[1]:
                    a_ref = _doubled(a_ref)
            a_ref[k, tail] = i
            a_tail[k] = tail + 1
            continue
        head, tail = a_head[k], a_tail[k]
        while head < tail and a_ref[k, head] < low:
            head += 1
        if head == tail:
            a_head[k] = a_tail[k] = b_count[k] = 0
            continue
        a_head[k] = head
        a, p, count = a_ref[k, head], price[i], b_count[k]
        dead = 0
        while dead < count and b_ref[k, dead] < a:
            dead += 1
        if dead:
            for at in range(dead, count):
                b_ref[k, at - dead] = b_ref[k, at]
                b_price[k, at - dead] = b_price[k, at]
            count -= dead
        hit = False
        for first in range(count - 1):
            low_price = b_price[k, first]
            if low_price < p:
                for second in range(first + 1, count):
                    if low_price < b_price[k, second] < p:
                        out[found, 0], out[found, 1], out[found, 2], out[found, 3] = a, b_ref[k, first], b_ref[k, second], i
                        found += 1
                        hit = True
                        break
            if hit:
                break
        if hit:
            a_head[k] = head + 1
            b_count[k] = 0
        else:
            if count == b_ref.shape[1]:
                b_ref, b_price = _doubled(b_ref), _doubled(b_price)
            b_ref[k, count], b_price[k, count], b_count[k] = i, p, count + 1
    return out[:found]


@njit(cache=True, nogil=True)
def _levels(capacity):  # type: ignore[no-untyped-def]
    """Where each level of a tree of minima begins in one array, leaves first; the last entry is its length."""
    starts = [0]
    width = capacity
    while width > 1:
        starts.append(starts[-1] + width)
        width = (width + FANOUT - 1) // FANOUT
    starts.append(starts[-1] + width)
    return np.array(starts)


@njit(cache=True, nogil=True)
def _first_below(tree, starts, p):  # type: ignore[no-untyped-def]
    """The first leaf whose value is below p; the caller knows that there is one."""
    at = 0
    for level in range(len(starts) - 3, -1, -1):
        at *= FANOUT
        while tree[starts[level] + at] >= p:
            at += 1
    return at


@njit(cache=True, nogil=True)
def _put(tree, starts, at, value):  # type: ignore[no-untyped-def]
    tree[at] = value
    for level in range(1, len(starts) - 1):
        at //= FANOUT
        if tree[starts[level] + at] <= value:
            return
        tree[starts[level] + at] = value


@njit(cache=True, nogil=True)
def _remove(tree, starts, at):  # type: ignore[no-untyped-def]
    gone = tree[at]
    tree[at] = np.inf
    for level in range(1, len(starts) - 1):
        at //= FANOUT
        if tree[starts[level] + at] != gone:
            return
        low = starts[level - 1] + at * FANOUT
        least = np.inf
        for child in range(low, min(low + FANOUT, starts[level])):
            least = min(least, tree[child])
        if least == gone:
            return
        tree[starts[level] + at] = least


@njit(cache=True, nogil=True)
def _q5(kind, price):  # type: ignore[no-untyped-def]
    """The queue of B is kept as a tree of minima too, of the negated prices. Leaves are places in the queue, never reused."""
    n = len(kind)
    starts = _levels(max(n, 2))
    root = starts[-2]
    a_tree, b_tree = np.full(starts[-1], np.inf), np.full(starts[-1], np.inf)
    a_ref, b_ref = np.empty(n, np.int32), np.empty(n, np.int32)
    a_count = b_count = found = 0
    out = np.empty((n // 2 + 1, 2), np.int64)
    for i in range(n):
        p = price[i]
        if kind[i] == 0:
            if b_tree[root] < -p:
                at = _first_below(b_tree, starts, -p)
                _remove(b_tree, starts, at)
                out[found, 0], out[found, 1] = i, b_ref[at]
                found += 1
            else:
                _put(a_tree, starts, a_count, p)
                a_ref[a_count] = i
                a_count += 1
        elif kind[i] == 1:
            if a_tree[root] < p:
                at = _first_below(a_tree, starts, p)
                _remove(a_tree, starts, at)
                out[found, 0], out[found, 1] = a_ref[at], i
                found += 1
            else:
                _put(b_tree, starts, b_count, -p)
                b_ref[b_count] = i
                b_count += 1
    return out[:found]


@njit(cache=True, nogil=True)
def _q6(kind, price, edges):  # type: ignore[no-untyped-def]
    size = len(edges) - 1
    head, tail, side = np.full(size, -1, np.int32), np.full(size, -1, np.int32), np.zeros(size, np.int8)
    following = np.empty(len(kind), np.int32)
    out = np.empty((len(kind) // 2 + 1, 2), np.int64)
    found = 0
    for i in range(len(kind)):
        if kind[i] == 2 or price[i] >= edges[size]:
            continue
        k = np.searchsorted(edges, price[i], side="right") - 1
        if head[k] != -1 and side[k] != kind[i]:
            other = head[k]
            head[k] = following[other]
            out[found, kind[i]], out[found, 1 - kind[i]] = i, other
            found += 1
            continue
        following[i] = -1
        if head[k] == -1:
            head[k], side[k] = i, kind[i]
        else:
            following[tail[k]] = i
        tail[k] = i
    return out[:found]


@njit(cache=True, nogil=True)
def _entered(ref, head, tail, k, i, low):  # type: ignore[no-untyped-def]
    last = tail[k]
    if last == ref.shape[1]:
        first = head[k]
        while first < last and ref[k, first] < low:
            first += 1
        last = _shifted(ref, k, first, last)
        head[k] = 0
        if last == ref.shape[1]:
            ref = _doubled(ref)
    ref[k, last] = i
    tail[k] = last + 1
    return ref


@njit(cache=True, nogil=True)
def _q11(kind, key, at_us, within, keys, limit):  # type: ignore[no-untyped-def]
    a_ref, b_ref = np.empty((keys, 16), np.int32), np.empty((keys, 16), np.int32)
    a_head, a_tail = np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    b_head, b_tail = np.zeros(keys, np.int32), np.zeros(keys, np.int32)
    out = np.empty((len(kind) + limit, 3), np.int64)
    found = low = 0
    for i in range(len(kind)):
        k = key[i] - 1
        while at_us[low] < at_us[i] - within:
            low += 1
        if kind[i] == 0:
            a_ref = _entered(a_ref, a_head, a_tail, k, i, low)
            continue
        if kind[i] == 1:
            if a_head[k] != a_tail[k]:
                b_ref = _entered(b_ref, b_head, b_tail, k, i, low)
            continue
        head, tail, first, end = a_head[k], a_tail[k], b_head[k], b_tail[k]
        while head < tail and a_ref[k, head] < low:
            head += 1
        if head == tail:
            a_head[k] = a_tail[k] = b_head[k] = b_tail[k] = 0
            continue
        if found + limit > len(out):
            wide = np.empty((2 * len(out), 3), np.int64)
            wide[:found] = out[:found]
            out = wide
        while first < end and b_ref[k, first] < a_ref[k, head]:
            first += 1
        most, last_a, last_b = found + limit, head - 1, first - 1
        for a in range(head, tail):
            if found == most:
                break
            for b in range(first, end):
                if b_ref[k, b] > a_ref[k, a]:
                    out[found, 0], out[found, 1], out[found, 2] = a_ref[k, a], b_ref[k, b], i
                    found += 1
                    last_a, last_b = a, max(last_b, b)
                    if found == most:
                        break
        a_head[k] = last_a + 1
        b_head[k] = last_b + 1
        if b_head[k] == b_tail[k]:
            b_head[k] = b_tail[k] = 0
        if a_head[k] == a_tail[k]:
            a_head[k] = a_tail[k] = b_head[k] = b_tail[k] = 0
    return out[:found]


def q1(data: Stream) -> Positions:
    return _q1(data.type, data.key, data.price, KEYS)  # type: ignore[no-any-return]


def q2(data: Stream) -> Positions:
    return _q2(data.type, data.key, data.at_us, WINDOW_US, KEYS)  # type: ignore[no-any-return]


def q11(data: Stream) -> Positions:
    return _q11(data.type, data.key, data.at_us, WINDOW_US, KEYS, 10)  # type: ignore[no-any-return]


def q3(data: Stream) -> Positions:
    return _q3(data.type, data.key, data.price, data.at_us, WINDOW_US, KEYS)  # type: ignore[no-any-return]


def q5(data: Stream) -> Positions:
    return _q5(data.type, data.price)  # type: ignore[no-any-return]


EDGES = np.array(bands(SUBSCRIPTIONS))


def q6(data: Stream) -> Positions:
    return _q6(data.type, data.price, EDGES)  # type: ignore[no-any-return]


BY_HAND: dict[str, Callable[[Stream], Positions | Runs]] = {"Q1": q1, "Q2": q2, "Q3": q3, "Q4": q1, "Q5": q5, "Q6": q6}
BY_HAND |= {"Q3r": q3r, "Q7": q7, "Q8": q8, "Q9": q9, "Q10": q10, "Q11": q11}


def relations_in(found: Positions | Runs) -> int:
    return len(found.lengths) if isinstance(found, Runs) else len(found)


def same(one: Positions | Runs, other: Positions | Runs) -> bool:
    """The same members, in the same order."""
    if isinstance(one, Runs) or isinstance(other, Runs):
        return isinstance(one, Runs) and one.same(other)
    return np.array_equal(one, other)


def columns_of(table: pa.Table) -> Stream:
    """What somebody who writes a kernel by hand does first: NumPy columns of an Arrow table, the type's name as a number."""
    kind = pc.index_in(table["type"], value_set=pa.array(TYPE_NAMES)).combine_chunks().to_numpy(zero_copy_only=False)
    plain: dict[str, Any] = {name: table[name].to_numpy() for name in ("key", "price", "volume")}
    at_us = table["at"].cast(pa.int64()).to_numpy()
    return Stream(kind.astype(np.int8), plain["key"], plain["price"], plain["volume"], at_us)


def check(events: int = 50_000) -> None:
    """Every kernel equals the engine's incremental matcher, member for member and in order."""
    from benchmarks import python_loop, workload
    from fairlead.errors import LanguageError

    for query in QUERIES.values():
        size = {"Q4": events // 5, "Q5": events // 5, "Q6": events // 20}.get(query.name, events)
        data = workload.stream(size, query.backlog_of(size))
        got = BY_HAND[query.name](data)
        try:
            wanted = python_loop.positions(query.rules(), workload.table(data), got)
        except LanguageError as error:
            print(f"{query.name}: {relations_in(got):,} relations of {size:,} events, not compared: {error.code}")
            continue
        if not same(wanted, got):
            raise SystemExit(f"{query.name}: the kernel differs from the incremental matcher")
        print(f"{query.name}: {relations_in(got):,} relations of {size:,} events equal, member for member")


if __name__ == "__main__":
    check()
