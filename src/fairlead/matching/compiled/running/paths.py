"""The order of the engine as numbers: where an event or relation stands in the tree that a logged event grows.

That order (event_lane.py) is that of a tree: at an event, first what absences decide before it, each with all that it
derives; then the event; then the relations that it completes; then what it derived, each with steps 1 to 3. A *path* is
the word of the logged event, then five numbers a level:

    -1, deadline, depth, subscription, rank    decided before the event on the level above
     2, deadline, depth, subscription, rank    decided after such a one, which led to it, though it was due before (rounds.py)
     0, subscription + 1, branch, turn, 0      a relation that the event completes
     1, subscription, branch, turn, 0          an event derived from that
    -2, …                                      a decided relation itself, before all that it derives

Sorting by path is the order of the engine. A path is as long as the hierarchy is deep: lane.py limits how many there are at a
time. Takes: steps. Gives: paths, their order, and the places that events take along it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.matching.results.chunk import Words
from fairlead.model.events.event import too_many
from fairlead.model.limits import LIMITS
from fairlead.model.relations.identity import MINOR_BITS, majors_of

Paths = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
STEP = 5
ITSELF, BEFORE, COMPLETED, DERIVED, FOLLOWS = -2, -1, 0, 1, 2
"""The first number of a step. No event's path has 0 there: it says that the path has ended."""
MIDDLE = LIMITS.derived_per_event_max
"""A logged event's own place, in the lower bits of its word."""


def levels_of(paths: Paths) -> int:
    """How many levels the longest of them can have."""
    return int(paths.shape[1] - 1) // STEP


def widest(depth: int) -> int:
    """How many columns paths have where subscriptions stand so deep; one level more for a relation itself."""
    return 1 + STEP * (depth + 2)


def number(paths: Paths, level: int, which: int = 0) -> Words:
    """One of the five numbers of a level."""
    return paths[:, 1 + STEP * level + which]


def steps(rows: int, *columns: Any) -> Paths:
    """One step for each row; of a number that all of them share, one is enough."""
    return np.stack([np.broadcast_to(np.asarray(each, dtype=np.int64), rows) for each in columns], axis=1)


def together(paths: list[Paths]) -> Paths:
    """Paths of different lengths as one array: what is shorter is filled up with zeros."""
    if len(paths) == 1:
        return paths[0]
    made = np.zeros((sum(map(len, paths)), max(each.shape[1] for each in paths)), dtype=np.int64)
    low = 0
    for each in paths:
        made[low : low + len(each), : each.shape[1]] = each
        low += len(each)
    return made


def extended(paths: Paths, step: Paths) -> Paths:
    """One level more, after the last that is used: paths of logged events have none, those of derived ones some."""
    made = np.zeros((len(paths), paths.shape[1] + STEP), dtype=np.int64)
    made[:, : paths.shape[1]] = paths
    return put(made, used(paths), step)


def put(paths: Paths, level: Words, step: Paths) -> Paths:
    """The same array, with the step of each row written at its level."""
    np.put_along_axis(paths, 1 + STEP * level[:, None] + np.arange(STEP), step, axis=1)
    return paths


def used(paths: Paths) -> Words:
    """How many levels each path has."""
    levels = levels_of(paths)
    if not levels:
        return np.zeros(len(paths), dtype=np.int64)
    there = (paths[:, 1:].reshape(len(paths), levels, STEP) != 0).any(axis=2)
    return np.where(there.any(axis=1), levels - there[:, ::-1].argmax(axis=1), 0)


def earlier(one: Paths, other: Paths) -> Mask:
    """Row by row, whether one stands before the other; the other may be shorter."""
    other = np.pad(other, ((0, 0), (0, one.shape[1] - other.shape[1])))
    first = (one != other).argmax(axis=1)[:, None]
    return (np.take_along_axis(one, first, axis=1) < np.take_along_axis(other, first, axis=1))[:, 0]


def firsts(paths: Paths) -> Iterator[Mask]:
    """Of paths in order, level by level: which rows are the first below their step on that level."""
    new = np.diff(paths[:, 0], prepend=-1) != 0
    for level in range(levels_of(paths)):
        low = 1 + level * STEP
        new[1:] |= (paths[1:, low : low + STEP] != paths[:-1, low : low + STEP]).any(axis=1)
        yield new.copy()


def sorted_by_path(paths: Paths) -> Words:
    unlike = np.flatnonzero((paths != paths[:1]).any(axis=0))  # of a deep hierarchy few: paths begin alike
    return np.lexsort(tuple(reversed(paths[:, unlike].T))) if len(unlike) else np.arange(len(paths))


def inverse(order: Words) -> Words:
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return back


def placed(paths: Paths, counts: Mask | None = None) -> Words:
    """The words of derived events in the order of their paths. `counts`: which of them are events; others take no place."""
    before = paths[:, 1] == BEFORE if paths.shape[1] > 1 else np.zeros(len(paths), dtype=bool)
    majors = majors_of(paths[:, 0])
    fresh = np.concatenate(([True], (majors[1:] != majors[:-1]) | (before[1:] != before[:-1]))) if len(paths) else before
    events = np.ones(len(paths), dtype=np.int64) if counts is None else counts.astype(np.int64)
    running = np.cumsum(events) - events
    starts = np.flatnonzero(fresh)
    within = running - np.repeat(running[starts], np.diff(np.append(starts, len(paths))))
    beyond = np.flatnonzero((within >= MIDDLE) & (events > 0))
    if len(beyond):
        raise too_many(int(majors[beyond[0]]))
    return (majors << MINOR_BITS) + np.where(before, within, within + MIDDLE + 1)
