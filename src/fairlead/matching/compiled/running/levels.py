"""Hierarchies and absences on kernels: where derived events stand, and in which order everything is delivered.

Kernels run one level after the other over whole batches. Every event and relation of a batch has a path, and sorting by path is
the order of the engine (paths.py); what absences decide has the path of its turn (rounds.py). A derived event gets its final
place only when all kernels are done; until then each kernel counts its own, which keeps the order, and is renumbered.

Takes: what each kernel found in a batch. Gives: batches with derived events for those downstream, and final places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.running.batch import UNTOLD, KernelBatch
from fairlead.matching.compiled.running.branch import BranchMatches, KernelBranch
from fairlead.matching.compiled.running.delivery_limit import DeliveryLimit
from fairlead.matching.compiled.running.paths import (
    COMPLETED,
    DERIVED,
    ITSELF,
    Mask,
    Paths,
    extended,
    inverse,
    placed,
    sorted_by_path,
    steps,
    together,
)
from fairlead.matching.compiled.running.rounds import Emitters, Rounds
from fairlead.matching.expressions.emission import emitted_columns
from fairlead.matching.results.chunk import Chunk, Words
from fairlead.matching.results.event_store import Store, View
from fairlead.matching.results.relations import MatchBlock, identities_of
from fairlead.model.events.columns import Columns, arrow_schema, record_batch
from fairlead.model.events.types import NO_TIME, EventType
from fairlead.model.plans.plan import Plan, Subscription
from fairlead.model.relations.identity import Words as Ids
from fairlead.model.relations.identity import majors_of


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

    block: MatchBlock
    found: BranchMatches
    paths: Paths
    places: Paths
    """The paths of the events that the relations derive."""
    merged: Merged | None
    first: int = -1

    def taken(self, mask: Mask) -> Node:
        """Some of its relations."""
        found = self.found.taken(mask)
        block = replace(self.block, at=found.at, refs=found.refs, deadlines=found.due)
        return Node(block, found, self.paths[mask], self.places[mask], self.merged)


@dataclass(frozen=True)
class Derived:
    """Events of one type, with their paths."""

    type: str
    table: pa.RecordBatch
    times: npt.NDArray[np.int64] | None
    paths: Paths
    first: int
    identities: Ids | None = None


class Levels:
    """`read` are the derived types that somebody reads."""

    def __init__(self, plan: Plan, read: frozenset[str]) -> None:
        self.plan, self.read, self.emitters = plan, read, Emitters(plan)
        self.needed = bool(read) or any(each.waits for each in plan.subscriptions)

    def begin(self, logged: KernelBatch, view: View) -> Level:
        return Level(self, logged, view)


class Level:
    """One batch."""

    def __init__(self, levels: Levels, logged: KernelBatch, view: View) -> None:
        self.plan, self.read, self.emitters, self.logged, self.view = levels.plan, levels.read, levels.emitters, logged, view
        self.derived: list[Derived] = []
        self.places: list[tuple[int, Paths]] = []
        """All derived events: the number of the first of each block, and their paths."""
        self.count = 0
        self.cells = 0
        """Numbers in all paths, once they are settled."""
        self.numbered: list[tuple[KernelBranch, Merged]] = []

    def batch_of(self, reads: frozenset[str], waits: bool) -> tuple[KernelBatch, Merged | None]:
        """The batch for a subscription that reads these types, or has them as its clock. `waits`: and has absences."""
        mine = [each for each in self.derived if each.type in reads]
        if not mine:
            return self.logged, None
        batch, merged = self._merged(mine, reads)
        if waits:
            batch.told = np.full(len(batch), UNTOLD)
            batch.told[np.searchsorted(batch.words, merged.words)] = self._rounds(reads).told(merged.paths)
        return batch, merged

    def _rounds(self, clock: frozenset[str]) -> Rounds:
        return Rounds(self.emitters, self.logged, clock)

    def _merged(self, mine: list[Derived], reads: frozenset[str]) -> tuple[KernelBatch, Merged]:
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
            inside = order if len(parts) == len(mine) else sorted_by_path(together([each.paths for each in parts]))
            tables[name] = pa.concat_batches([each.table for each in parts]).take(pa.array(inside))
            if all(each.times is not None for each in parts):
                times[name] = np.concatenate([each.times for each in parts])[inside]
        given = both[by_word]
        columns = Columns(tuple(types), codes[by_word].astype(np.int32), majors_of(given), tables)  # type: ignore[arg-type]
        alone = _columns_of(types, derived_codes, words, tables, {each.type for each in mine}, _joined_identities(mine, order))
        view = View([*self.view.layers, [Chunk(alone, words, times)]])
        return KernelBatch(columns, self.plan.catalogue, given, times), Merged(words, paths, numbers, view)

    def add(self, subscription: Subscription, number: int, branch: int, found: BranchMatches, merged: Merged | None) -> Node:
        """Relations that events completed."""
        at, turn = self._paths_of(found.at, merged), _turns(found.at)
        block = MatchBlock(subscription, number, branch, found.at, found.refs, 1, found.due)
        paths = extended(at, steps(len(at), COMPLETED, number + 1, branch, turn, 0))
        return Node(block, found, paths, extended(at, steps(len(at), DERIVED, number, branch, turn, 0)), merged)

    def decide(
        self,
        subscription: Subscription,
        branch: int,
        clock: frozenset[str],
        found: BranchMatches,
        turn: tuple[int, int, Words],
        merged: Merged | None,
    ) -> Node:
        """Relations that absences decided. `clock`: the types that tell the subscription the time. `turn`: its depth and
        number, and their order among those of the subscription."""
        assert found.due is not None
        assert found.born is not None
        at, born = self._paths_of(found.at, merged), self._paths_of(found.born, merged)
        paths = self._rounds(clock).decided(at, born, found.due, *turn)
        block = MatchBlock(subscription, turn[1], branch, found.at, found.refs, 0, found.due)
        return Node(block, found, extended(paths, steps(len(at), ITSELF, 0, 0, 0, 0)), paths, merged)

    def limited(self, nodes: list[Node], limit: DeliveryLimit) -> list[Node]:
        """Of all relations of a subscription those that its LIMIT lets through: the first ones in the order of decision."""
        numbers = [limit.numbers(each.block.branch, each.found.refs, self._view(each.merged)) for each in nodes]
        order = sorted_by_path(together([each.paths for each in nodes]))
        mask = np.zeros(len(order), dtype=bool)
        mask[order] = limit.admitted(np.concatenate(numbers)[order])
        parts = np.split(mask, np.cumsum([len(each.paths) for each in nodes])[:-1])
        return [node.taken(part) for node, part in zip(nodes, parts, strict=True) if part.any()]

    def emitted(self, node: Node) -> Node:
        """With the events that the relations derive: those that nobody reads take no place."""
        if node.block.subscription.emits in self.read:
            node.first = self.count
            self.places.append((self.count, node.places))
            self._derive(node.block.subscription, node.block.branch, node.found, node.places, node.merged)
            self.count += len(node.places)
        return node

    def _view(self, merged: Merged | None) -> View:
        return self.view if merged is None else merged.view

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

    def _derive(
        self, subscription: Subscription, branch: int, found: BranchMatches, paths: Paths, merged: Merged | None
    ) -> None:
        assert subscription.emits is not None
        schema, view = self.plan.catalogue[subscription.emits], self._view(merged)
        columns = emitted_columns(subscription.branches[branch], self.plan.catalogue, view, found.refs)
        table = record_batch(columns, arrow_schema(schema), len(paths))
        own = found if subscription.branches[branch].sequence is None else replace(found, due=None)
        times = _times(self.plan, schema, columns, view, own)
        identities = None if subscription.order is None else _identities(subscription, branch, view, found)
        self.derived.append(Derived(schema.name, table, times, paths, self.count, identities))

    def moved(self, kernel: KernelBranch, merged: Merged) -> None:
        """The kernel has counted derived events by itself."""
        self.numbered.append((kernel, merged))

    def settle(self, nodes: list[Node], store: Store) -> list[MatchBlock]:
        """Final places: of derived events, in the kernels, and of relations; and the order of delivery."""
        width = max((node.paths.shape[1] for node in nodes), default=0)
        self.cells = (self.count + sum(len(node.paths) for node in nodes)) * width
        final = self._final()
        for kernel, own in self.numbered:
            kernel.renumber(own.words, final[own.events])
        self._store(store, final)
        places = self._decided_at(nodes)
        ranks = inverse(sorted_by_path(together([node.paths for node in nodes]))) if nodes else np.zeros(0, dtype=np.int64)
        blocks, start = [], 0
        for number, node in enumerate(nodes):
            at, refs, merged = node.block.at, node.block.refs, node.merged
            if merged is not None:
                settled = partial(_renumbered, old=merged.words, new=final[merged.events])
                at, refs = settled(at), refs.mapped(settled)
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
        columns = _columns_of(types, codes[order], words[order], tables, set(types), _joined_identities(self.derived, order))
        store.add(columns, words[order], times)

    def _decided_at(self, nodes: list[Node]) -> dict[int, Words]:
        """A decided relation stands at the first place that was free: after the last event before it."""
        decided = [number for number, node in enumerate(nodes) if node.block.phase == 0]
        if not decided:
            return {}
        paths = together([*(nodes[number].paths for number in decided), *(paths for _, paths in self.places)])
        order = sorted_by_path(paths)
        relations = sum(len(nodes[number].paths) for number in decided)
        words = placed(paths[order], order >= relations)[inverse(order)]
        ends = np.cumsum([len(nodes[number].paths) for number in decided]).tolist()
        return {number: words[low:high] for number, low, high in zip(decided, [0, *ends], ends, strict=False)}


def _turns(at: Words) -> npt.NDArray[np.int64]:
    """How many relations of the same block stand at the same place before each."""
    if not len(at):
        return np.zeros(0, dtype=np.int64)
    fresh = np.concatenate(([True], at[1:] != at[:-1]))
    starts = np.flatnonzero(fresh)
    return np.arange(len(at)) - np.repeat(starts, np.diff(np.append(starts, len(at))))


def _renumbered(words: Words, old: Words, new: Words) -> Words:
    at = np.minimum(np.searchsorted(old, words), len(old) - 1)
    return np.where(old[at] == words, new[at], words)


def _identities(subscription: Subscription, branch: int, view: View, found: BranchMatches) -> Ids:
    """Derived events are identified by the relations that derive them."""
    asked = [(subscription.id_digest, subscription.number(branch), len(found.refs))]
    return found.refs.ids(asked, identities_of(found.refs, view))


def _joined_identities(derived: Sequence[Derived], order: npt.NDArray[np.int64]) -> Ids | None:
    known = [each.identities for each in derived if each.identities is not None]
    return np.concatenate(known)[order] if known else None


def _columns_of(
    types: list[str],
    codes: npt.NDArray[Any],
    words: Words,
    tables: dict[str, pa.RecordBatch],
    wanted: set[str],
    identities: Ids | None,
) -> Columns:
    chosen = {name: table for name, table in tables.items() if name in wanted}
    return Columns(tuple(types), codes.astype(np.int32), majors_of(words), chosen, identities=identities)  # type: ignore[arg-type]


def _times(
    plan: Plan, schema: EventType, columns: list[pa.Array], view: View, found: BranchMatches
) -> npt.NDArray[np.int64] | None:
    """The TIME attribute where it is not NULL; else the deadline of an absence; else the largest time of the members. None for
    a type whose events have no time, whatever the members of some of them (interpreted/event_lane.py has the same)."""
    if not schema.timed:
        return None
    if found.due is not None:
        times = found.due
    elif found.refs.folds is not None:
        latest = found.refs.folds.role("latest")
        values, known = view.take(np.where(latest < 0, found.refs.folds.role("first"), latest)).times(plan.catalogue)
        times = np.where(known & (latest >= 0), values, NO_TIME)
    else:
        values, known = view.take(found.refs.flat).times(plan.catalogue)
        times = found.refs.largest(np.where(known, values, np.iinfo(np.int64).min))
        times = np.where(found.refs.largest(known), times, NO_TIME)
    if schema.time_index is not None:
        own = columns[schema.time_index].cast(pa.int64())
        times = np.where(own.is_valid().to_numpy(zero_copy_only=False), own.fill_null(0).to_numpy(), times)
    return times
