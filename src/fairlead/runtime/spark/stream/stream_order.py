"""One order of a stream: that of the subscriptions with one frontier.

Arrivals are held back until the frontier has passed them (order/holdback.py), then take their positions, as the log does
elsewhere. Rows of each target are passed on to it. A repeat of a row, by source and sequence, is dropped, and reported once.

With LATE REVISE, a late row that is not too late is passed on, too, marked (LATE_OF), and takes the next position. A round is a
micro-batch with such rows, or a block of a log with such rows, and has a number. The row's identity is not decided here: equal
rows have equal keys, so they are all in one target, which places the late row among them. What is kept for repeats reaches as
far back as late rows are accepted.

Takes: arrivals of the types that it reads, micro-batch after micro-batch. Gives: numbered rows for each target, and rows for
the output. Never: reads a clock; depends on rows that its subscriptions do not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.model.blobs import packed
from fairlead.model.events.columns import arrow_schema
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.relations.identity import Words
from fairlead.order.event_identity import sequence_identities
from fairlead.order.holdback import HoldBack, ReleasedRows, head_and_rest, with_head
from fairlead.order.log_holdback import LogHoldBack
from fairlead.order.repeats import behind, later
from fairlead.order.seen_sequences import SeenSequences
from fairlead.order.total import SEQUENCE, SOURCE, in_order, order_column, sortable
from fairlead.runtime.spark.input.arrivals import REJECTED
from fairlead.runtime.spark.input.sequences import Sequenced, lasts_in
from fairlead.runtime.spark.job.shuffle import Job, ordered_rows, shares
from fairlead.runtime.spark.stream.stream_job import APART, LATE_OF, FrontierShare, Setup, pieces

BLIND = "\0"
"""Suffix of a type's name: rows of it that arrived when no subscription read it."""
LATE_REASON = "late: later events of the order were already released"
Blobs = Iterator[tuple[int, str, bytes]]
"""Blobs for targets, with the type of their rows."""


@dataclass(frozen=True, eq=False)
class LateRows:
    """Late rows of a type that are accepted, in their order; and which of them are repeats."""

    name: str
    table: pa.Table
    positions: npt.NDArray[np.int64]
    again: npt.NDArray[np.bool_]


class StreamOrder:
    """`share`: whose order it is; `names`: theirs, if others have another order. `job`: with their groups alone. `targets`: by
    the number of a target there, its number in the checkpoint. `revision`: the number of the last round with late rows."""

    def __init__(self, setup: Setup, share: FrontierShare, job: Job, targets: Sequence[int]) -> None:
        self.setup, self.share, self.job, self.targets = setup, share, job, targets
        hold_back = LogHoldBack if job.reading.logged else HoldBack
        self.back: HoldBack = hold_back(share.frontier, job.reading.keys, job.descending)
        self.lasts: dict[str | None, int] = {}
        self.seen = SeenSequences()
        self.ties = self.revision = 0
        self.names = share.names if setup.outcome.by_frontier else ()

    @property
    def revises(self) -> bool:
        return self.setup.revises

    def step(self, arrivals: Mapping[str, pa.Table]) -> Blobs:
        """One micro-batch."""
        self.ties = 0
        for given in self.back.steps(arrivals):
            yield from self._passed_on(given)

    def _passed_on(self, given: ReleasedRows) -> Blobs:
        """One round."""
        late = self._late_rows(given) if self.revises else []
        self.ties += given.order.ties
        for name, table in given.late.items():
            if name != HEARTBEAT.name or self.job.order is None:  # one that says nothing new is no loss
                yield APART, "", packed(self._late(name, table))
        again = np.zeros(len(given.order), dtype=bool)
        if self.job.reading.sourced:
            by_value = self.job.order is not None
            sequenced = Sequenced(given.order, given.tables, self.job.positioned, by_value)
            rows = np.flatnonzero(sequenced.here) if by_value else self._repeats(sequenced)
            again[sequenced.places[rows]] = True
            if by_value:  # a heartbeat is stored in every topic
                rows = rows[~np.isin(sequenced.places[rows], given.order.places.get(HEARTBEAT.name, ()))]
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

    def _shared(self, name: str, table: pa.Table, mark: str = "") -> Blobs:
        for target, part in shares(self.job, name, table):
            for piece in pieces(part, self.setup.blob_bytes_max):
                yield self.targets[target], mark + name, packed(piece)

    def _late_rows(self, given: ReleasedRows) -> list[LateRows]:
        """Late rows that are accepted. They may repeat rows of the same round, if it is one of a log: the frontier moves in it,
        and passed these before."""
        oldest = self.back.oldest
        if oldest is None or not self.job.reading.sourced:
            return self._accepted(given)
        reached = [int(_first_values(each).min()) for each in given.revising.values()]
        self._see(given, min([oldest, *reached]))
        found = self._accepted(given)
        self.seen.forget(oldest)
        return found

    def _accepted(self, given: ReleasedRows) -> list[LateRows]:
        """By type, in the total order; those that are no repeats make this a round."""
        order = in_order(given.revising, self.job.reading.keys, self.job.descending)
        first, found = given.first + len(given.order), []
        for name in order.types:
            table = given.revising[name].take(pa.array(order.rows_of(name)))
            found.append(LateRows(name, table, order.places[name] + first, self._again(name, table)))
        self.revision += any(not each.again.all() for each in found)
        return found

    def _revising(self, late: Sequence[LateRows], wanted: Collection[str]) -> Blobs:
        """For targets: late rows, marked. For the output: repeats."""
        for each in late:
            if each.again.any():
                repeats = each.table.filter(pa.array(each.again))
                sources, sequences = (repeats.column(name).combine_chunks() for name in (SOURCE, SEQUENCE))
                positions = pa.array(each.positions[each.again])
                yield APART, "", packed(self.setup.outcome.repeated(positions, sources, sequences, self.names))
            rows = np.flatnonzero(~each.again)
            if len(rows) and each.name in wanted:
                table = ordered_rows(self.job, each.name, each.table, rows, each.positions[rows], sourced=True)
                yield from self._shared(each.name, table, f"{LATE_OF}{self.revision} ")

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

    def _see(self, given: ReleasedRows, oldest: int) -> None:
        """Notes which rows have been released, as far back as a late one may repeat them."""
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
        return self.setup.outcome.repeated(pa.array(positions), rows.sources.take(at), rows.sequences.take(at), self.names)

    def _late(self, name: str, table: pa.Table) -> pa.Table:
        if name == REJECTED:
            return refused(self.setup, table)
        return self.setup.outcome.late(name, table, LATE_REASON, self.names)

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

    def dump(self) -> bytes:
        """The state as bytes; equal for equal histories."""
        sequences = sorted(self.lasts.items(), key=lambda each: (each[0] is not None, each[0] or ""))
        seen = self.seen.dump() if self.revises else b""
        head: dict[str, Any] = {"sequences": sequences, "seen": len(seen), "digests": self.share.digests}
        if self.revises:
            head |= {"revision": self.revision, "forms": self.setup.forms(self.share.types)}
        return with_head(head, b"".join([self.back.dump(), seen]))

    def load(self, state: bytes | memoryview) -> None:
        """The inverse of `dump`. If its subscriptions have changed since, or attributes of their types, nothing that was
        released is revised any more: targets do not keep what led to it."""
        head, rest = head_and_rest(state)
        self.lasts, self.revision = dict(head["sequences"]), head.get("revision", 0)
        self.back.load(rest)
        self.back.held = self._fitted(self.back.held)
        self.seen.load(rest[len(rest) - head["seen"] :])
        if self.revises and (head["forms"], head["digests"]) != (self.setup.forms(self.share.types), self.share.digests):
            self.back.forget()


def refused(setup: Setup, table: pa.Table) -> pa.Table:
    """Rejected rows that have no place in the order, as rows of the output."""
    texts = (table.column(each).combine_chunks() for each in ("code", "problem", "record"))
    return setup.outcome.rejected(pa.nulls(len(table), pa.int64()), *texts)


def _first_values(table: pa.Table) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = sortable(table.column(order_column(0)).combine_chunks()).to_numpy()
    return values


def _column(table: pa.Table, wanted: pa.Field) -> Any:
    """An attribute as the type is declared now; NULL if it did not exist, or had another type."""
    if wanted.name in table.column_names and table.schema.field(wanted.name).type == wanted.type:
        return table.column(wanted.name)
    return pa.nulls(len(table), wanted.type)
