"""Which relations are only in one of two lists: by their ids, as columns.

Most of two lists are equal from the first and from the last on, so only what lies between is sorted. Ids are sorted by their
first word alone: that two different ids have it in common is possible, so then the ids are compared as bytes, one by one.

Takes: the ids of two lists. Gives: places in them. Never: makes an object for each of many ids.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.model.relations.identity import ID_BYTES, Words, to_bytes

Numbers = npt.NDArray[np.int64]
FEW = 32
"""Ids for which sets are as fast."""


def differences(before: Words, now: Words) -> tuple[Numbers, Numbers]:
    """The places of the ids that are only in the one, and of those that are only in the other."""
    head = _alike(before, now)
    tail = _alike(before[head:][::-1], now[head:][::-1])
    one, other = before[head : len(before) - tail], now[head : len(now) - tail]
    return head + places_without(one, other), head + places_without(other, one)


def places_without(ids: Words, others: Words) -> Numbers:
    """The places of the ids that are not among the others."""
    if not len(ids) or not len(others):
        return np.arange(len(ids))
    if len(ids) + len(others) <= FEW:
        return _compared_as_bytes(ids, others)
    order = np.argsort(others[:, 0])
    known = others[order]
    if bool(((known[1:, 0] == known[:-1, 0]) & (known[1:, 1] != known[:-1, 1])).any()):
        return _compared_as_bytes(ids, others)
    found = np.minimum(np.searchsorted(known[:, 0], ids[:, 0]), len(known) - 1)
    return np.flatnonzero((known[found] != ids).any(axis=1))


def _compared_as_bytes(ids: Words, others: Words) -> Numbers:
    known = set(_texts(others))
    return np.array([at for at, each in enumerate(_texts(ids)) if each not in known], dtype=np.int64)


def _texts(ids: Words) -> list[bytes]:
    text = to_bytes(ids)
    return [text[at : at + ID_BYTES] for at in range(0, len(text), ID_BYTES)]


def _alike(one: Words, other: Words) -> int:
    """How many of the first are equal."""
    shorter = min(len(one), len(other))
    unlike = np.flatnonzero((one[:shorter] != other[:shorter]).any(axis=1))
    return int(unlike[0]) if len(unlike) else shorter
