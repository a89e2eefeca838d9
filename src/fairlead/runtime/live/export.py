"""Export the events of a log to a Parquet file, with their positions in the log.

`fairlead.match(plan, events, position="position")` and `fairlead run --position position` find in the file the relations that
live subscribers find in the log, with the same ids. The file of a disjunction holds the events of several streams, in their one
order: use `stream="stream"` or `--stream stream`. If the rules order events by value (ORDER BY), the file has no positions, but
the sources and sequences of the events: `fairlead.match(plan, events)`.

Takes: a URL, rules or types, a path. Gives: the file, complete or not at all. Never: waits for events that are published later.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq

import fairlead
from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.runtime.live.opening import place_of
from fairlead.runtime.live.ranges import blocks_until
from fairlead.runtime.live.selecting import Selection, select
from fairlead.runtime.live.wide import Wide
from fairlead.transport.files.parquet import EXPORTED
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Log
from fairlead.transport.output.relation_files import OutputFile

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Exported:
    """`streams`: the streams that were read, each with the sequence of its last block at that time."""

    events: int
    types: tuple[str, ...]
    streams: Mapping[str, int]


def export_events(
    url: str | None,
    types_or_rules: str | Sequence[str],
    path: str | os.PathLike[str],
    *,
    position: str = "position",
    access: Credentials | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Exported:
    """Write all current events of a stream to a Parquet file: those that the rules read (a text), or those of the types (a list
    of names). Rules may omit types that are declared. Raises DataError, LanguageError, LogError, UsageError."""
    return asyncio.run(_exported(url, types_or_rules, path, position, access or Credentials(), patience))


async def _exported(
    url: str | None,
    what: str | Sequence[str],
    path: str | os.PathLike[str],
    position: str,
    access: Credentials,
    patience: float,
) -> Exported:
    with ExitStack() as held:
        log, _ = await place_of(url, None, None, access).open(held)
        try:
            return await export(PatientLog(log, patience), what, path, position)
        finally:
            await log.close()


async def export(
    log: Log, what: str | Sequence[str] | Selection, path: str | os.PathLike[str], position: str = "position"
) -> Exported:
    """The same for an open log."""
    if not os.fspath(path).lower().endswith(".parquet"):
        raise UsageError(
            "A103", f"events are exported as Parquet; the file is {os.fspath(path)!r}", "use a name that ends in .parquet"
        )
    selection = what if isinstance(what, Selection) else await select(log, what)
    table = Wide(selection, position, origin=("_source", "_sequence") if selection.ordered else ())
    streams = await selection.streams(log)
    ends, events = await selection.complete(log, streams), 0
    left_out = [position] if selection.ordered else []
    schema = pa.schema([each for each in table.schema if each.name not in left_out], {EXPORTED: fairlead.__version__})
    target = OutputFile(path)
    try:
        with target.guarded(), pq.ParquetWriter(target.file, schema) as writer:
            async for part, blocks in blocks_until(log, streams, selection.topics, ends):
                for batch in table.batches(blocks, part=part):
                    writer.write_batch(batch.drop_columns(left_out) if left_out else batch)
                    events += batch.num_rows
        with target.guarded():
            target.commit()
    except BaseException:
        target.discard()
        raise
    return Exported(events, selection.types, {each.name: end for each, end in zip(streams, ends, strict=True)})
