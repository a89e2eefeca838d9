"""Events of a log as a Parquet file, with the positions that they have in the log.

`fairlead.match(plan, events, position="position")` and `fairlead run --position position` find in the file the relations that
live subscribers find in the log, under the same ids.

Takes: a URL, rules or types, a path. Gives: the file, whole or not at all. Never: waits for events that come later.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack

import pyarrow.parquet as pq

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.runtime.live.opening import place_of
from fairlead.runtime.live.ranges import blocks_between
from fairlead.runtime.live.selecting import Selection, select
from fairlead.runtime.live.wide import Wide
from fairlead.transport.log.access import Access
from fairlead.transport.log.patient import PatientLog
from fairlead.transport.log.protocol import Log
from fairlead.transport.write import Target

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Exported:
    """`last`: the sequence of the last block, of the stream that was read."""

    events: int
    types: tuple[str, ...]
    stream: str
    last: int


def export_events(
    url: str | None,
    types_or_rules: str | Sequence[str],
    path: str | os.PathLike[str],
    *,
    position: str = "position",
    access: Access | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Exported:
    """Write all events of a stream, as it is now, to a Parquet file: those that the rules read (a text), or those of the types
    (a list of names). Rules may leave out types that are declared. Raises DataError, LanguageError, LogError, UsageError."""
    return asyncio.run(_exported(url, types_or_rules, path, position, access or Access(), patience))


async def _exported(
    url: str | None,
    what: str | Sequence[str],
    path: str | os.PathLike[str],
    position: str,
    access: Access,
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
    """The same, of an open log."""
    if not os.fspath(path).lower().endswith(".parquet"):
        raise UsageError("A103", f"events are exported as Parquet, not to {os.fspath(path)!r}", "end it in .parquet")
    selection = what if isinstance(what, Selection) else await select(log, what)
    table = Wide(selection, position)
    stream = await selection.stream(log)
    last, events = await selection.complete(log, stream), 0
    target = Target(path)
    try:
        with target.guarded(), pq.ParquetWriter(target.file, table.schema) as writer:
            async for blocks in blocks_between(log, stream, 0, last):
                for batch in table.batches(blocks):
                    writer.write_batch(batch)
                    events += batch.num_rows
        with target.guarded():
            target.commit()
    except BaseException:
        target.discard()
        raise
    return Exported(events, selection.types, stream.name, last)
