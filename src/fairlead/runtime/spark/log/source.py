"""The data source `fairlead`: the events of a log as a DataFrame, with their positions, and relations back into it.

    spark.read.format("fairlead").option("url", …).option("types", "A,B").load()          current events
    spark.readStream.format("fairlead").option("url", …).option("types", "A,B").load()    and later ones

A frame reads the stream that live subscribers of the same types read. An offset is the sequence of a block in it; a task reads
a range of sequences. A batch frame ends where the log ended when it was loaded, however often it is computed.

For rules with ORDER BY, the streams of all their topics are read, as live subscribers do (runtime/live/core/strand.py). An
offset has a sequence for each of them, and every micro-batch is a stretch of their one order (cuts.py). Rows say where in the
log they are (`_topic`, `_offset`, `_stored`), so that the order of a stream can follow them one by one.

Takes: options (options.py). Gives: Arrow record batches (runtime/live/core/event_table.py). Never: makes an object of an event;
continues if blocks were removed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from operator import gt
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from fairlead.order.log_holdback import OFFSET, STORED, TOPIC
from fairlead.order.total import SEQUENCE, SOURCE
from fairlead.runtime.live.core.event_table import EventTable
from fairlead.runtime.live.export import complete
from fairlead.runtime.live.subscriber.stream_reader import PULSE_SECONDS, report
from fairlead.runtime.spark.log.cuts import advance, certain_cut, complete_cut, limited_cut
from fairlead.runtime.spark.log.link import Extent, LogLink, extent_of, gone, same_stream
from fairlead.runtime.spark.log.options import LogOptions, log_options
from fairlead.transport.log.protocol import Stream

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2: every micro-batch reads everything available

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


BLOCKS_MIN = 16
"""Blocks of a task: for fewer it is not worth starting one."""


class LogPartition(InputPartition):
    """The blocks of a stream after `after`, up to `last`. `stream`: its number."""

    def __init__(self, after: int, last: int, stream: int = 0) -> None:
        self.after, self.last, self.stream = after, last, stream


class LogSource(DataSource):
    """One object per frame; Spark copies it to the processes that need it."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.asked: LogOptions = log_options(options)
        self._extent: Extent | None = None

    @classmethod
    def name(cls) -> str:
        return "fairlead"

    def schema(self) -> StructType:
        """Spark calls this when the frame is loaded; then its extent is fixed."""
        return from_arrow_schema(_table(self.extent, self.asked).schema)

    @property
    def extent(self) -> Extent:
        if self._extent is None:
            with LogLink(self.asked) as link:
                self._extent = link.call(lambda log: extent_of(log, self.asked))
                link.lease(self._extent.merged)
        return self._extent

    def reader(self, schema: StructType) -> LogReader:
        return LogReader(self.asked, self.extent)

    def streamReader(self, schema: StructType) -> LogStreamReader:
        return LogStreamReader(self.asked, self.extent)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        from fairlead.runtime.spark.log.sink import LogStreamWriter

        return LogStreamWriter(self.asked)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from fairlead.runtime.spark.log.sink import LogWriter

        return LogWriter(self.asked)


class LogReader(DataSourceReader):
    def __init__(self, asked: LogOptions, extent: Extent) -> None:
        self.asked, self.extent = asked, extent

    def partitions(self) -> Sequence[InputPartition]:
        return parts(self.extent.after, self.extent.lasts, self.asked.partitions) or [LogPartition(0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPartition)
        return batches(self.asked, self.extent, partition)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, asked: LogOptions, extent: Extent) -> None:
        self.asked, self.extent = asked, extent
        self._link: LogLink | None = None
        self._end: Sequence[int] | None = None
        self._certain: Sequence[int] = ()
        self._moved = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_link": None}

    @property
    def link(self) -> LogLink:
        if self._link is None:
            self._link = LogLink(self.asked)
            self._link.call(lambda log: same_stream(log, self.extent))
        return self._link

    def initialOffset(self) -> dict[str, Any]:
        return self._offset(self.extent.after)

    def _offset(self, sequences: Sequence[int]) -> dict[str, Any]:
        streams = self.extent.streams
        if len(streams) == 1:
            return {"sequence": sequences[0], "stream": streams[0].name, "made": streams[0].made}
        told = [list(each) for each in zip(*streams, strict=True)]
        return {"sequence": list(sequences), "stream": told[0], "made": told[1]}

    def _sequences(self, offset: dict[str, Any]) -> list[int]:
        if any(offset[name] != value for name, value in self._offset(self.extent.after).items() if name != "sequence"):
            raise gone(offset["stream"] if isinstance(offset["stream"], str) else " or ".join(offset["stream"]))
        return [offset["sequence"]] if isinstance(offset["sequence"], int) else list(offset["sequence"])

    def getDefaultReadLimit(self) -> ReadLimit:
        """A block is to a log what a file is to a folder."""
        return ReadAllAvailable() if self.asked.blocks is None else ReadMaxFiles(self.asked.blocks)

    def prepareForTriggerAvailableNow(self) -> None:
        extent = self.extent
        if len(extent.streams) > 1:
            self._end = self.link.call(lambda log: complete_cut(log, extent.streams, extent.topics))
        else:
            self._end = self.link.call(lambda log: complete(log, extent.streams, extent.selection))

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        end = self._last() if self._end is None else self._end
        if start is not None:
            after = self._sequences(start)
            if self._end is None and any(map(gt, after, end)):
                for stream, low in zip(self.extent.streams, after, strict=True):
                    if self._last_of(stream) < low:
                        raise gone(stream.name)
            end = list(map(max, end, after))
            if isinstance(limit, ReadMaxFiles):
                end = self._limited(after, end, limit.max_files)
        return self._offset(end)

    def _limited(self, after: Sequence[int], end: Sequence[int], blocks: int) -> Sequence[int]:
        if len(end) == 1:
            return [min(end[0], after[0] + blocks)]
        return self.link.call(lambda log: limited_cut(log, self.extent.streams, after, end, blocks))

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._offset(self._last())

    def _last(self) -> Sequence[int]:
        """How far the stream is there; of several, how far their one order is certain."""
        extent = self.extent
        if len(extent.streams) == 1:
            self.link.lease(extent.merged)
            return [self._last_of(extent.streams[0])]
        found = self.link.call(lambda log: certain_cut(log, extent.streams, extent.topics))
        if found != self._certain:
            self._certain, self._moved = found, time.monotonic()
        elif time.monotonic() - self._moved > PULSE_SECONDS:
            self._moved = time.monotonic()
            self.link.call(lambda log: advance(log, extent.streams, extent.topics, found))
        return found

    def _last_of(self, stream: Stream) -> int:
        return self.link.call(lambda log: log.last(stream))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return parts(self._sequences(start), self._sequences(end), self.asked.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPartition)
        return batches(self.asked, self.extent, partition, pulses=self.extent.selection.ordered)

    def stop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def parts(after: Sequence[int], last: Sequence[int], most: int) -> list[InputPartition]:
    """About equal ranges of sequences, of one stream after the other."""
    made: list[InputPartition] = []
    whole = sum(last) - sum(after)
    for stream, (low, high) in enumerate(zip(after, last, strict=True)):
        blocks = high - low
        count = min(max(1, most * blocks // max(1, whole)), -(-blocks // BLOCKS_MIN))
        made += [LogPartition(low + blocks * at // count, low + blocks * (at + 1) // count, stream) for at in range(count)]
    return made


def batches(asked: LogOptions, extent: Extent, part: LogPartition, *, pulses: bool = False) -> Iterator[pa.RecordBatch]:
    """What a task reads. `pulses`: see EventTable."""
    if part.after >= part.last:
        return
    table, at = _table(extent, asked, pulses), part.stream
    # every other start is that of a block; and a stream that began with new events has come further when it is resumed
    first = extent.firsts[at] if isinstance(asked.start, int) else 0
    with LogLink(asked) as link:
        link.call(lambda log: same_stream(log, extent))
        for some in link.blocks(extent.streams[at], part.after, part.last):
            yield from table.batches(some, first, at)


def _table(extent: Extent, asked: LogOptions, pulses: bool = False) -> EventTable:
    if extent.selection.ordered:
        return EventTable(extent.selection, report, OFFSET, origin=(SOURCE, SEQUENCE, STORED), topic=TOPIC, pulses=pulses)
    return EventTable(extent.selection, report, asked.position, origin=("source", "sequence"))
