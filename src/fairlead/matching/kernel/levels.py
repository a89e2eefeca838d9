"""Hierarchies and absences on kernels: where derived events stand, and in which order everything is delivered.

The engine's order (engine.py) is that of a tree: at an event, first what absences decide before it, each with all that it
derives; then the event; then the relations that it completes; then what it derived, each with steps 1 to 3. Here every event
and relation of a batch has a *path*: the word of the logged event, then five numbers a level:

    -1, deadline, depth, subscription, rank    decided before the event on the level above
     2, deadline, depth, subscription, rank    decided after such a one, which led to it, though it was due before
     0, subscription + 1, branch, turn, 0      a relation that the event completes
     1, subscription, branch, turn, 0          an event derived from that
    -2, …                                      a decided relation itself, before all that it derives

Sorting by path is the order of the engine. Kernels run one level after the other over whole batches, so a derived event gets
its final place only when all are done; until then each kernel counts its own, which keeps the order, and is renumbered.

Takes: what each kernel found in a batch. Gives: batches with derived events for those downstream, and final places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.errors import require
from fairlead.matching.chunk import Chunk, Words
from fairlead.matching.emission import emitted_columns
from fairlead.matching.kernel.batch import Batch
from fairlead.matching.kernel.branch import Found, KernelBranch
from fairlead.matching.relations import Block
from fairlead.matching.store import Store, View
from fairlead.model.columns import Columns, arrow_schema, record_batch
from fairlead.model.identity import MINOR_BITS, majors_of
from fairlead.model.limits import LIMITS
from fairlead.model.plan import Plan, Subscription

Paths = npt.NDArray[np.int64]
STEP = 5
NOTHING = np.zeros(0, dtype=np.int64)
MIDDLE = LIMITS.derived_per_event_max
"""A logged event's own place, in the lower bits of its word."""


@dataclass(frozen=True)
class Merged:
    """A batch with derived events: their words as its kernel counts them (rising), and their paths."""

    words: Words
    paths: Paths
    events: npt.NDArray[np.int64]
    """Their numbers among the derived events of the batch."""
    view: View


@dataclass
class Node:
    """The relations of one branch and phase: their paths, and if they derive events the number of the first."""

    block: Block
    paths: Paths
    merged: Merged | None
    first: int = -1


@dataclass(frozen=True)
class Derived:
    """Events of one type, with their paths."""

    type: str
    table: pa.RecordBatch
    times: npt.NDArray[np.int64] | None
    paths: Paths
    first: int


class Levels:
    """`read` are the derived types that somebody reads."""

    def __init__(self, plan: Plan, read: frozenset[str]) -> None:
        self.plan, self.read = plan, read
        self.needed = bool(read) or any(branch.absences for each in plan.subscriptions for branch in each.branches)

    def begin(self, logged: Batch, view: View) -> Level:
        return Level(self, logged, view)


class Level:
    """One batch."""

    def __init__(self, levels: Levels, logged: Batch, view: View) -> None:
        self.plan, self.read, self.logged, self.view = levels.plan, levels.read, logged, view
        self.derived: list[Derived] = []
        self.places: list[tuple[int, Paths]] = []
        """All derived events: the number of the first of each block, and their paths."""
        self.count = 0
        self.numbered: list[tuple[KernelBranch, Merged]] = []

    def batch_of(self, reads: frozenset[str], waits: bool) -> tuple[Batch, Merged | None]:
        """The batch as somebody sees it who reads these types. `waits`: and has absences to decide."""
        mine = [each for each in self.derived if each.type in reads]
        if not mine:
            return self.logged, None
        batch, merged = self._merged(mine, reads)
        if waits:
            batch.told = self._told(batch, merged, reads)
        return batch, merged

    def _told(self, batch: Batch, merged: Merged, reads: frozenset[str]) -> Words:
        """Where an event was derived from a decision before some event that these types contain too, everything that was due
        earlier had its turn first, whatever the time of the derived event."""
        rows = np.flatnonzero((merged.paths[:, 1::STEP] == -1).any(axis=1))
        if not len(rows):
            return NOTHING
        told, known = np.full(len(batch), np.iinfo(np.int64).min), self._timed_paths(reads, merged)
        for row in rows.tolist():
            path = merged.paths[row].tolist()
            due = [key[0] for start, key in _decisions(path) if self._tells(_parent(path, start), known)]
            if due:
                told[np.searchsorted(batch.words, merged.words[row])] = max(due)
        return told

    def _tells(self, path: tuple[int, ...], known: set[tuple[int, ...]]) -> bool:
        """The event at this path tells the time; at the end of the input everybody is told."""
        return path in known or (not len(self.logged) and not any(path[1:]))

    def _merged(self, mine: list[Derived], reads: frozenset[str]) -> tuple[Batch, Merged]:
        logged = self.logged
        names = [name for name in logged.columns.types if name in reads and name in logged.rows]
        kept = np.sort(np.concatenate([logged.places(name) for name in names])) if names else np.zeros(0, dtype=np.int64)
        paths, numbers = (
            together([each.paths for each in mine]),
            np.concatenate([np.arange(len(e.paths)) + e.first for e in mine]),
        )
        order = sorted_by_path(paths)
        paths, numbers = paths[order], numbers[order]
        words = placed(paths)
        types = list(dict.fromkeys([*names, *(each.type for each in mine)]))
        code_of = {name: at for at, name in enumerate(types)}
        old = np.array([code_of.get(name, -1) for name in logged.columns.types], dtype=np.int64)
        derived_codes = np.concatenate([np.full(len(each.paths), code_of[each.type]) for each in mine])[order]
        both = np.concatenate([logged.words[kept], words])
        codes = np.concatenate([old[logged.codes[kept]] if len(kept) else np.zeros(0, dtype=np.int64), derived_codes])
        by_word = np.argsort(both, kind="stable")
        tables = {name: logged.columns.tables[name] for name in names}
        times: dict[str, npt.NDArray[np.int64]] = {}
        for name in dict.fromkeys(each.type for each in mine):
            parts = [each for each in mine if each.type == name]
            inside = sorted_by_path(together([each.paths for each in parts]))
            tables[name] = pa.concat_batches([each.table for each in parts]).take(pa.array(inside))
            if all(each.times is not None for each in parts):
                times[name] = np.concatenate([each.times for each in parts])[inside]
        given = both[by_word]
        columns = Columns(tuple(types), codes[by_word].astype(np.int32), majors_of(given), tables)  # type: ignore[arg-type]
        alone = _columns_of(types, derived_codes, words, tables, {each.type for each in mine})
        view = View([*self.view.layers, [Chunk(alone, words, times)]])
        return Batch(columns, self.plan.catalogue, given, times), Merged(words, paths, numbers, view)

    def add(self, subscription: Subscription, number: int, branch: int, found: Found, merged: Merged | None) -> Node:
        """Relations that events completed."""
        at, turn = self._paths_of(found.at, merged), _turns(found.at)
        block = Block(subscription, number, branch, found.at, found.refs, 1, found.due)
        node = Node(block, extended(at, _step(len(at), 0, number + 1, branch, turn, 0)), merged)
        return self._emitted(node, extended(at, _step(len(at), 1, number, branch, turn, 0)), found)

    def decide(
        self,
        subscription: Subscription,
        number: int,
        depth: int,
        branch: int,
        found: Found,
        ranks: Words,
        merged: Merged | None,
    ) -> Node:
        """Relations that absences decided. `ranks`: their order among those of the subscription."""
        assert found.due is not None
        assert found.born is not None
        at = self._earlier(self._paths_of(found.at, merged), found.due, (depth, number), subscription, merged)
        block = Block(subscription, number, branch, found.at, found.refs, 0, found.due)
        at, kinds = _after_birth(at, self._paths_of(found.born, merged), found.due, (depth, number))
        paths = extended(at, _step(len(at), kinds, found.due, depth, number, ranks))
        node = Node(block, extended(paths, _step(len(at), -2, 0, 0, 0, 0)), merged)
        return self._emitted(node, paths, found)

    def _emitted(self, node: Node, paths: Paths, found: Found) -> Node:
        """With the events that the relations derive, at `paths`."""
        emits = node.block.subscription.emits
        if emits is not None:
            node.first = self.count
            self.places.append((self.count, paths))
            if emits in self.read:
                self._derive(node.block.subscription, node.block.branch, found, paths, node.merged)
            self.count += len(paths)
        return node

    def _earlier(self, at: Paths, due: Words, own: tuple[int, int], subscription: Subscription, merged: Merged | None) -> Paths:
        """A kernel decides what was due at the first event that tells the time. If that was itself derived from a decision
        before some event that the subscription reads too, whatever was due earlier came first, directly before that event."""
        if at.shape[1] == 1:
            return at
        made, rows = at.copy(), np.flatnonzero((at[:, 1::STEP] == -1).any(axis=1))
        known = self._timed_paths(subscription.reads(self.plan.catalogue), merged) if len(rows) else set()
        for row in rows.tolist():
            path, mine = at[row].tolist(), (int(due[row]), *own)
            for start, key in _decisions(path):
                if mine < key and self._tells(_parent(path, start), known):
                    made[row, start:] = 0
                    break
        return made

    def _timed_paths(self, reads: frozenset[str], merged: Merged | None) -> set[tuple[int, ...]]:
        """The paths of the events of these types that tell the time."""
        found: set[tuple[int, ...]] = set() if merged is None else set(map(tuple, merged.paths.tolist()))
        width = 1 if merged is None else merged.paths.shape[1]
        for name, rows in self.logged.rows.items():
            if name in reads and rows.times is not None:
                words = self.logged.words[self.logged.places(name)].tolist()
                found |= {(word, *[0] * (width - 1)) for word in words}
        return found

    def _paths_of(self, words: Words, merged: Merged | None) -> Paths:
        """The paths of the events with these words: a logged event's is its word."""
        if merged is None or not len(merged.words):
            return words[:, None]
        at = np.minimum(np.searchsorted(merged.words, words), len(merged.words) - 1)
        derived = merged.words[at] == words
        paths = np.zeros((len(words), merged.paths.shape[1]), dtype=np.int64)
        paths[:, 0] = words
        paths[derived] = merged.paths[at[derived]]
        return paths

    def _derive(self, subscription: Subscription, branch: int, found: Found, paths: Paths, merged: Merged | None) -> None:
        assert subscription.emits is not None
        schema, view = self.plan.catalogue[subscription.emits], self.view if merged is None else merged.view
        columns = emitted_columns(subscription.branches[branch], self.plan.catalogue, view, found.refs)
        table = record_batch(columns, arrow_schema(schema), len(paths))
        self.derived.append(Derived(schema.name, table, _times(self.plan, schema, columns, view, found), paths, self.count))

    def moved(self, kernel: KernelBranch, merged: Merged) -> None:
        """The kernel has counted derived events by itself."""
        self.numbered.append((kernel, merged))

    def settle(self, nodes: list[Node], store: Store) -> list[Block]:
        """Final places: of derived events, in the kernels, and of relations; and the order of delivery."""
        final = self._final()
        for kernel, own in self.numbered:
            kernel.renumber(own.words, final[own.events])
        self._store(store, final)
        places = self._decided_at(nodes)
        ranks = _inverse(sorted_by_path(together([node.paths for node in nodes]))) if nodes else np.zeros(0, dtype=np.int64)
        blocks, start = [], 0
        for number, node in enumerate(nodes):
            at, refs, merged = node.block.at, node.block.refs, node.merged
            if merged is not None:
                at, refs = (_renumbered(each, merged.words, final[merged.events]) for each in (at, refs))
            end = start + len(at)
            blocks.append(replace(node.block, at=places.get(number, at), refs=refs, ranks=ranks[start:end]))
            start = end
        return blocks

    def _final(self) -> Words:
        """The word of each derived event."""
        final = np.zeros(self.count, dtype=np.int64)
        if self.count:
            paths = together([paths for _, paths in self.places])
            order = sorted_by_path(paths)
            final[np.concatenate([np.arange(len(p)) + first for first, p in self.places])[order]] = placed(paths[order])
        return final

    def _store(self, store: Store, final: Words) -> None:
        if not self.derived:
            return
        words = np.concatenate([final[each.first : each.first + len(each.paths)] for each in self.derived])
        types = list(dict.fromkeys(each.type for each in self.derived))
        codes = np.concatenate([np.full(len(each.paths), types.index(each.type)) for each in self.derived])
        tables, times = {}, {}
        for name in types:
            parts = [each for each in self.derived if each.type == name]
            inside = np.argsort(np.concatenate([final[e.first : e.first + len(e.paths)] for e in parts]), kind="stable")
            tables[name] = pa.concat_batches([each.table for each in parts]).take(pa.array(inside))
            if all(each.times is not None for each in parts):
                times[name] = np.concatenate([each.times for each in parts])[inside]
        order = np.argsort(words, kind="stable")
        store.add(_columns_of(types, codes[order], words[order], tables, set(types)), words[order], times)

    def _decided_at(self, nodes: list[Node]) -> dict[int, Words]:
        """A decided relation stands at the first place that was free: behind the last event before it."""
        decided = [number for number, node in enumerate(nodes) if node.block.phase == 0]
        if not decided:
            return {}
        paths = together([*(nodes[number].paths for number in decided), *(paths for _, paths in self.places)])
        order = sorted_by_path(paths)
        relations = sum(len(nodes[number].paths) for number in decided)
        words = placed(paths[order], order >= relations)[_inverse(order)]
        ends = np.cumsum([len(nodes[number].paths) for number in decided]).tolist()
        return {number: words[low:high] for number, low, high in zip(decided, [0, *ends], ends, strict=False)}


def _decisions(path: list[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The decisions that led to an event, the first one first: where their step begins, and deadline, depth, subscription."""
    for start in range(1, len(path), STEP):
        if path[start] == -1:
            follows = path[start + STEP : start + STEP + 1] == [2]
            at = start + STEP if follows else start
            yield start, tuple(path[at + 1 : at + 4])


def _parent(path: list[int], start: int) -> tuple[int, ...]:
    return (*path[:start], *[0] * (len(path) - start))


def _after_birth(at: Paths, born: Paths, due: Words, own: tuple[int, int]) -> tuple[Paths, Words]:
    """What a decision led to, before the same event but due earlier, follows that decision: the paths behind which they stand,
    and the first number of their steps."""
    kinds = np.full(len(at), -1, dtype=np.int64)
    if at.shape[1] == 1:
        return at, kinds
    made, used = at.copy(), _used(at).tolist()
    for row in np.flatnonzero((born[:, 1::STEP] == -1).any(axis=1)).tolist():
        low = 1 + STEP * used[row]
        high = low + STEP
        if high > at.shape[1] or born[row, low] != -1 or (born[row, :low] != at[row, :low]).any():
            continue
        if (int(due[row]), *own) < tuple(born[row, low + 1 : low + 4].tolist()):
            made[row, low:high], kinds[row] = born[row, low:high], 2
    return made, kinds


def together(paths: list[Paths]) -> Paths:
    """Paths of different lengths as one array: what is shorter is filled up with zeros."""
    width = max(each.shape[1] for each in paths)
    return np.concatenate([np.pad(each, ((0, 0), (0, width - each.shape[1]))) for each in paths])


def extended(paths: Paths, step: Paths) -> Paths:
    """One level more, behind the last that is used: paths of logged events have none, those of derived ones some."""
    made = np.zeros((len(paths), paths.shape[1] + STEP), dtype=np.int64)
    made[:, : paths.shape[1]] = paths
    columns = 1 + _used(paths)[:, None] * STEP + np.arange(STEP)
    np.put_along_axis(made, columns, step, axis=1)
    return made


def _used(paths: Paths) -> npt.NDArray[np.int64]:
    """How many levels each path has."""
    used = np.zeros(len(paths), dtype=np.int64)
    for level in range((paths.shape[1] - 1) // STEP):
        used[(paths[:, 1 + level * STEP : 1 + (level + 1) * STEP] != 0).any(axis=1)] = level + 1
    return used


def ranks_of(decisions: list[tuple[int, Found]]) -> list[Words]:
    """What absences decided in the branches of one subscription, ranked together: by members, then by branch."""
    if not decisions:
        return []
    width = max(found.refs.shape[1] for _, found in decisions)
    refs = np.concatenate(
        [np.pad(found.refs, ((0, 0), (0, width - found.refs.shape[1])), constant_values=-1) for _, found in decisions]
    )
    branches = np.concatenate([np.full(len(found.at), branch) for branch, found in decisions])
    ranks = _inverse(np.lexsort((branches, *reversed(refs.T))))
    return np.split(ranks, np.cumsum([len(found.at) for _, found in decisions])[:-1])


def _step(rows: int, *columns: Any) -> Paths:
    return np.stack([np.broadcast_to(np.asarray(each, dtype=np.int64), rows) for each in columns], axis=1)


def _turns(at: Words) -> npt.NDArray[np.int64]:
    """How many relations of the same block stand at the same place before each."""
    if not len(at):
        return np.zeros(0, dtype=np.int64)
    fresh = np.concatenate(([True], at[1:] != at[:-1]))
    starts = np.flatnonzero(fresh)
    return np.arange(len(at)) - np.repeat(starts, np.diff(np.append(starts, len(at))))


def _inverse(order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return back


def sorted_by_path(paths: Paths) -> npt.NDArray[np.int64]:
    return np.lexsort(tuple(reversed(paths.T)))


def placed(paths: Paths, counts: npt.NDArray[np.bool_] | None = None) -> Words:
    """The words of derived events in the order of their paths. `counts`: which of them are events; others take no place."""
    before = paths[:, 1] == -1 if paths.shape[1] > 1 else np.zeros(len(paths), dtype=bool)
    majors = majors_of(paths[:, 0])
    fresh = np.concatenate(([True], (majors[1:] != majors[:-1]) | (before[1:] != before[:-1]))) if len(paths) else before
    events = np.ones(len(paths), dtype=np.int64) if counts is None else counts.astype(np.int64)
    running = np.cumsum(events) - events
    starts = np.flatnonzero(fresh)
    within = running - np.repeat(running[starts], np.diff(np.append(starts, len(paths))))
    require(not len(within) or int(within.max()) < MIDDLE, "too many derived events beside one", most=MIDDLE)
    return (majors << MINOR_BITS) + np.where(before, within, within + MIDDLE + 1)


def _renumbered(words: Words, old: Words, new: Words) -> Words:
    at = np.minimum(np.searchsorted(old, words), len(old) - 1)
    return np.where(old[at] == words, new[at], words)


def _columns_of(
    types: list[str], codes: npt.NDArray[Any], words: Words, tables: dict[str, pa.RecordBatch], wanted: set[str]
) -> Columns:
    chosen = {name: table for name, table in tables.items() if name in wanted}
    return Columns(tuple(types), codes.astype(np.int32), majors_of(words), chosen)  # type: ignore[arg-type]


def _times(plan: Plan, schema: Any, columns: list[pa.Array], view: View, found: Found) -> npt.NDArray[np.int64] | None:
    """The TIME attribute where it is not NULL; else the deadline of an absence; else the largest time of the members."""
    size = found.refs.shape[1]
    values, known = view.take(found.refs.reshape(-1)).times(plan.catalogue)
    latest = np.where(known, values, np.iinfo(np.int64).min).reshape(-1, size).max(axis=1)
    timed = known.reshape(-1, size).any(axis=1)
    if found.due is not None:
        latest, timed = found.due, np.ones(len(found.due), dtype=bool)
    if schema.time_index is not None:
        own = columns[schema.time_index].cast(pa.int64())
        there = own.is_valid().to_numpy(zero_copy_only=False)
        latest = np.where(there, own.fill_null(0).to_numpy(), latest)
        timed = timed | there
    return latest if timed.all() else None
