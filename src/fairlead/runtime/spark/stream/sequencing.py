"""The one order of a stream: a stateful task for the whole of it.

Arrivals are held back until the frontier has passed them (order/holdback.py), then take their positions, as the log does
elsewhere. Rows of each target are passed on to it. A repeat of a row, by source and sequence, is dropped, and reported once.

With LATE REVISE, a late row that is not too late is passed on, too, marked (LATE_OF), and takes the next position. A round is a
micro-batch with such rows, and has a number. The row's identity is not decided here: equal rows have equal keys, so they are
all in one target, which places the late row among them. What is kept for repeats reaches as far back as late rows are accepted.

Takes: arrivals, micro-batch after micro-batch. Gives: numbered rows for each target, and rows for the output. Never: reads a
clock.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.model.blobs import packed
from fairlead.model.events.columns import arrow_schema
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.relations.identity import Words
from fairlead.order.event_identity import sequence_identities
from fairlead.order.holdback import HoldBack, ReleasedRows, with_head
from fairlead.order.repeats import behind, later
from fairlead.order.seen_sequences import SeenSequences
from fairlead.order.total import SEQUENCE, SOURCE, in_order, order_column, sortable
from fairlead.runtime.spark.input.arrivals import REJECTED
from fairlead.runtime.spark.input.sequences import Sequenced, lasts_in
from fairlead.runtime.spark.job.shuffle import ordered_rows, shares
from fairlead.runtime.spark.stream.resumption import RuleChange, agree_in_buckets, changed, head
from fairlead.runtime.spark.stream.spreading import key_of
from fairlead.runtime.spark.stream.stream_job import APART, LATE_OF, Setup, opened, pieces

BLIND = "\0"
"""Suffix of a type's name: rows of it that arrived when no subscription read it."""
LATE_REASON = "late: later events of the order were already released"


@dataclass(frozen=True)
class Begun:
    """A group in a stream: the first of its targets, and by digest the number of the rule change that added each
    subscription."""

    first: int
    since: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class LateRows:
    """Late rows of a type that are accepted, in their order; and which of them are repeats."""

    name: str
    table: pa.Table
    positions: npt.NDArray[np.int64]
    again: npt.NDArray[np.bool_]


class Sequencing:
    """The one order of a stream: arrivals in, numbered rows for each target out."""

    def __init__(self, setup: Setup, state: bytes | None) -> None:
        self.setup, self.job = setup, setup.job
        self.back = HoldBack(setup.frontier, setup.job.reading.keys, setup.job.descending)
        self.lasts: dict[str | None, int] = {}
        self.seen = SeenSequences()
        self.ties = self.revision = 0
        self.groups: dict[str, Begun] = {}
        self.next_target = self.changes = 0
        self.change: RuleChange | None = None
        names: dict[str, str] = {}
        if state is not None:
            found, rest = opened(state, setup)
            agree_in_buckets(found["buckets"], setup.asked)
            names = found.get("names", {})
            self.job = replace(setup.job, buckets=found["buckets"])
            self.lasts = dict(found["sequences"])
            self.next_target, self.changes = found["next"], found["changes"]
            self.groups = {name: Begun(first, dict(since)) for name, (first, since) in found["groups"].items()}
            self.back.load(rest)
            self.back.held = self._fitted(self.back.held)
            self.revision = found.get("revision", 0)
            self.seen.load(rest[len(rest) - found.get("seen", 0) :])
            if found.get("forms") != self.setup.forms:
                self.back.forget()
        self._settle(names)

    def _settle(self, names: Mapping[str, str]) -> None:
        """Assigns targets to groups, and records the rule change that added each subscription. A target that was given up is
        never reused, nor is the earlier state of a subscription that was removed and added again. `names`: digests by the names
        of the subscriptions in the last micro-batch."""
        before = {name: sorted(each.since) for name, each in self.groups.items()}
        now = {each.identity: sorted(set(each.digests)) for each in self.job.groups}
        if before == now:
            return
        self.changes += 1
        had = {digest for each in before.values() for digest in each}
        self.change = changed(had, names, self.setup.names, self.back.next_position)
        self.back.forget()  # a target whose rules have changed does not keep what it found before
        kept = self.groups
        self.groups = {}
        for each in self.job.groups:
            old = kept.get(each.identity)
            if old is None:
                old = Begun(self.next_target, {})
                self.next_target += self.job.targets_of(each)
            self.groups[each.identity] = Begun(old.first, {d: old.since.get(d, self.changes) for d in each.digests})

    def _fitted(self, held: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Adapts rows that were held back under other types and rules. Rows that no subscription read then arrived without
        their attributes: such a row keeps its place in the order, and new subscriptions begin after it. Rows that no
        subscription reads any more keep only their place."""
        found = {}
        for name, table in held.items():
            if name == REJECTED or name.endswith(BLIND):
                found[name] = table
                continue
            if name not in self.job.reading.columns:
                found[name] = table.select(list(self.job.reading.reserved))
                continue
            schema, given = arrow_schema(self.job.reading.catalogue[name]), set(table.column_names)
            if len(schema) and not given.intersection(schema.names):
                found[name + BLIND] = table
                continue
            columns = {each.name: _column(table, each) for each in schema}
            columns |= {each: table.column(each) for each in self.job.reading.reserved}
            found[name] = pa.table(columns)
        return found

    @property
    def buckets(self) -> int:
        return self.job.buckets

    @property
    def revises(self) -> bool:
        return self.setup.revises

    def kept(self) -> int | None:
        """The number of released rows before which late ones are accepted; None if none are."""
        return self.back.kept() if self.revises else None

    def key(self, target: int) -> int:
        """The key of a target in Spark."""
        return key_of(target)

    def whose(self, target: int) -> str:
        """The description of its group that a target receives."""
        for name, each in self.groups.items():
            size = next(self.job.targets_of(group) for group in self.job.groups if group.identity == name)
            if each.first <= target < each.first + size:
                told = {"group": name, "since": dict(sorted(each.since.items()))}
                return json.dumps(told | ({"revision": self.revision} if self.revises else {}))
        return ""

    @cached_property
    def _targets(self) -> list[int]:
        """By the number of a target in this job, its number in the checkpoint."""
        sizes = [(self.groups[each.identity].first, self.job.targets_of(each)) for each in self.job.groups]
        return [first + at for first, size in sizes for at in range(size)]

    def step(self, arrivals: Mapping[str, pa.Table]) -> Iterator[tuple[int, str, bytes]]:
        """One micro-batch: blobs for targets, with the type of their rows."""
        given = self.back.step(arrivals)
        late = self._accepted(given) if self.revises else []  # first: every target receives the number of the round
        self.ties = given.order.ties
        for name, table in given.late.items():
            if name != HEARTBEAT.name or self.job.order is None:  # one that says nothing new is no loss
                yield APART, "", packed(self._late(name, table))
        again = np.zeros(len(given.order), dtype=bool)
        if self.job.reading.sourced:
            by_value = self.job.order is not None
            sequenced = Sequenced(given.order, given.tables, self.job.positioned, by_value)
            rows = np.flatnonzero(sequenced.here) if by_value else self._repeats(sequenced)
            again[sequenced.places[rows]] = True
            if len(rows):
                yield APART, "", packed(self._repeated(sequenced, rows, given.first))
        wanted = {REJECTED}.union(*(group.reads for group in self.job.groups))
        for name in (each for each in given.order.types if each in wanted):
            places = given.order.places[name]
            fresh = ~again[places]
            numbers = given.order.rows_of(name)[fresh], places[fresh] + given.first
            yield from self._shared(name, ordered_rows(self.job, name, given.tables[name], *numbers, sourced=self.revises))
        if self.revises:
            yield from self._revising(late, wanted)
            self._see(given)

    def _shared(self, name: str, table: pa.Table, mark: str = "") -> Iterator[tuple[int, str, bytes]]:
        for target, part in shares(self.job, name, table):
            for piece in pieces(part, self.setup.blob_bytes_max):
                yield self._targets[target], mark + name, packed(piece)

    def _accepted(self, given: ReleasedRows) -> list[LateRows]:
        """Late rows that are accepted, by type, in the total order; those that are no repeats make this a round."""
        order = in_order(given.revising, self.job.reading.keys, self.job.descending)
        first, found = given.first + len(given.order), []
        for name in order.types:
            table = given.revising[name].take(pa.array(order.rows_of(name)))
            found.append(LateRows(name, table, order.places[name] + first, self._again(name, table)))
        self.revision += any(not each.again.all() for each in found)
        return found

    def _revising(self, late: Sequence[LateRows], wanted: Collection[str]) -> Iterator[tuple[int, str, bytes]]:
        """For targets: late rows, marked. For the output: repeats."""
        for each in late:
            if each.again.any():
                repeats = each.table.filter(pa.array(each.again))
                columns = (repeats.column(name).combine_chunks() for name in (SOURCE, SEQUENCE))
                yield APART, "", packed(self.setup.outcome.repeated(pa.array(each.positions[each.again]), *columns))
            rows = np.flatnonzero(~each.again)
            if len(rows) and each.name in wanted:
                table = ordered_rows(self.job, each.name, each.table, rows, each.positions[rows], sourced=True)
                yield from self._shared(each.name, table, LATE_OF)

    def _again(self, name: str, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Which late rows repeat one that was released, or one before them; the others count as released."""
        again = np.zeros(len(table), dtype=bool)
        if self.job.reading.sourced:
            identities, numbered = self._identified(name, table)
            values = _first_values(table)[numbered]
            repeats = self.seen.repeats(values, identities)
            again[numbered[repeats]] = True
            self.seen.add(values[~repeats], identities[~repeats])
        return again

    def _see(self, given: ReleasedRows) -> None:
        """Notes which rows have been released, as far back as a late one may repeat them."""
        oldest = self.back.oldest
        if oldest is None or not self.job.reading.sourced:
            return
        self.seen.forget(oldest)
        for name, table in given.tables.items():
            recent = table.filter(pa.array(_first_values(table) >= oldest)) if name != REJECTED else None
            if recent is not None and len(recent):
                identities, numbered = self._identified(name.removesuffix(BLIND), recent)
                self.seen.add(_first_values(recent)[numbered], identities)

    def _identified(self, name: str, table: pa.Table) -> tuple[Words, npt.NDArray[np.int64]]:
        return sequence_identities(name, table, [order_column(key) for key in range(self.job.reading.keys)])

    def _repeats(self, rows: Sequenced) -> npt.NDArray[np.int64]:
        """Which rows repeat a sequence of their source, here or in an earlier micro-batch."""
        found = np.flatnonzero(rows.here | behind(rows.sources, rows.sequences, self.lasts))
        self.lasts = later(self.lasts, lasts_in(rows.lasts))
        return found

    def _repeated(self, rows: Sequenced, chosen: npt.NDArray[np.int64], first: int) -> pa.Table:
        positions = rows.positions[chosen] + (0 if self.job.positioned else first)
        at = pa.array(chosen)
        return self.setup.outcome.repeated(pa.array(positions), rows.sources.take(at), rows.sequences.take(at))

    def _late(self, name: str, table: pa.Table) -> pa.Table:
        if name == REJECTED:
            nothing = pa.nulls(len(table), pa.int64())
            texts = (table.column(each).combine_chunks() for each in ("code", "problem", "record"))
            return self.setup.outcome.rejected(nothing, *texts)
        return self.setup.outcome.late(name, table, LATE_REASON)

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories."""
        sequences = sorted(self.lasts.items(), key=lambda each: (each[0] is not None, each[0] or ""))
        groups = {name: [each.first, dict(sorted(each.since.items()))] for name, each in self.groups.items()}
        more = {"buckets": self.job.buckets, "sequences": sequences, "next": self.next_target, "changes": self.changes}
        more |= {"groups": groups, "names": self.setup.names}
        seen = self.seen.dump() if self.revises else b""
        if self.revises:
            more |= {"revision": self.revision, "seen": len(seen), "forms": self.setup.forms}
        return with_head(head(self.setup.identity) | more, self.back.dump() + seen)


def _first_values(table: pa.Table) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = sortable(table.column(order_column(0)).combine_chunks()).to_numpy()
    return values


def _column(table: pa.Table, wanted: pa.Field) -> Any:
    """An attribute as the type is declared now; NULL if it did not exist, or had another type."""
    if wanted.name in table.column_names and table.schema.field(wanted.name).type == wanted.type:
        return table.column(wanted.name)
    return pa.nulls(len(table), wanted.type)
