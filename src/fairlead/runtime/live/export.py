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
from fairlead.model.arguments import subscription_named
from fairlead.runtime.live.core.event_table import EventTable, Selection, selection_of, selection_of_group
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.runtime.live.merged_streams import Lease, caught_up, open_streams
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.live.subscriber.stream_reader import blocks_until, report
from fairlead.transport.admission.problems import not_published, unknown_type
from fairlead.transport.files.parquet import EXPORTED
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.log_place import place_of
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Log, Stream
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
    if selection.ordered:
        selection = selection.by_topic()
    lease = Lease(log, [each for each in selection.topics if len(each) > 1])
    try:
        return await _written(log, selection, path, position, lease)
    finally:
        await lease.give_up()


async def _written(log: Log, selection: Selection, path: str | os.PathLike[str], position: str, lease: Lease) -> Exported:
    table = EventTable(selection, report, position, origin=_origin(selection))
    if any(len(each) > 1 for each in selection.topics):
        await lease.take(patience=PATIENCE_SECONDS)
    streams, events = await open_streams(log, selection.topics), 0
    ends = await complete(log, streams, selection)
    left_out = [position] if selection.ordered else []
    schema = pa.schema([each for each in table.schema if each.name not in left_out], {EXPORTED: fairlead.__version__})
    target = OutputFile(path)
    try:
        with target.guarded(), pq.ParquetWriter(target.file, schema) as writer:
            async for part, blocks in blocks_until(log, streams, selection.topics, ends, heartbeats=selection.ordered):
                for batch in table.batches(blocks, part=part):
                    writer.write_batch(batch.drop_columns(left_out) if left_out else batch)
                    events += batch.num_rows
        with target.guarded():
            target.commit()
    except BaseException:
        target.discard()
        raise
    return Exported(events, selection.types, {each.name: end for each, end in zip(streams, ends, strict=True)})


async def select(log: Log, what: str | Sequence[str], *, heartbeats: bool = False) -> Selection:
    """The selection of rules (a text) or of types (their names). Raises DataError, LanguageError, UsageError."""
    registry = Registry(log)
    if isinstance(what, str):
        return selection_of(await registry.read_plan(what))
    await registry.refresh()
    known = [each.name for each in registry.catalogue if not each.is_union]
    if not what:
        raise UsageError("A261", "no event type is named", f"use some of: {', '.join(known)}")
    for name in what:
        if name in registry.catalogue and registry.catalogue[name].is_union:
            raise not_published(registry.catalogue[name])
        if name not in known:
            raise unknown_type(name, known)
    return Selection((tuple(sorted(set(what))),), heartbeats, registry.catalogue)


async def selected(log: Log, rules: str, subscription: str | None) -> Selection:
    """The selection of the events that the rules read, or of the stream of one of their subscriptions."""
    plan = await Registry(log).read_plan(rules)
    if subscription is None:
        return selection_of(plan)
    name = subscription_named(plan, subscription).name
    return next(selection_of_group(group) for group in groups_of(plan) if name in group.names)


async def complete(log: Log, streams: Sequence[Stream], selection: Selection) -> list[int]:
    """The last sequence of each stream, once it contains everything that its topics hold now."""
    return [await caught_up(log, stream, topics) for stream, topics in zip(streams, selection.topics, strict=True)]


def _origin(selection: Selection) -> tuple[str, ...]:
    """The columns that say where events come from, if the order is not that of the log."""
    return ("_source", "_sequence", *(["_stored"] if selection.stored else [])) if selection.ordered else ()
