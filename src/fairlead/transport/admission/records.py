"""Records: an iterable of dicts becomes Columns.

A record has a `type`, exactly the attributes of that type, and optionally `_source` (text) and `_sequence` (an integer). `type`
may be omitted if only one type can be published. Heartbeats are always allowed.

Takes: records in their order. Gives: Columns batch by batch, in that order. Never: reads further ahead than one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue
from fairlead.transport.admission.gate import BATCH_ROWS, Intake, OnBad, RawRecords
from fairlead.transport.admission.problems import Rejects
from fairlead.transport.admission.sequences import LastSequences


class RecordReader:
    """Reads records in batches; positions continue over all calls of `read`. `position`: the field with the positions, if
    records contain them."""

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        start: int = 0,
        batch_rows: int = BATCH_ROWS,
        allow_nan: bool = True,
        on_bad: OnBad = "stop",
        rejects: Rejects | None = None,
        last_sequences: LastSequences | None = None,
        position: str | None = None,
    ) -> None:
        self.batch_rows = batch_rows
        self.intake = Intake(catalogue, start, allow_nan, on_bad, rejects, last_sequences or LastSequences(), position)

    @property
    def position(self) -> int:
        """The position of the next record; if records contain positions, the smallest allowed one."""
        return self.intake.position

    @property
    def last_sequences(self) -> LastSequences:
        return self.intake.last_sequences

    def read(self, records: Iterable[Mapping[str, Any]]) -> Iterator[Columns]:
        """One Columns for every `batch_rows` records; raises DataError at the first bad one (or skips it)."""
        remaining = iter(records)
        while batch := list(islice(remaining, self.batch_rows)):
            yield self.intake.take(RawRecords(batch), self.intake.typed)


def read_records(records: Iterable[Mapping[str, Any]], catalogue: Catalogue, **options: Any) -> Iterator[Columns]:
    """`RecordReader(catalogue, **options).read(records)`"""
    return RecordReader(catalogue, **options).read(records)
