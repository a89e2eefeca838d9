"""The data source `fairlead`: the events of a log as a DataFrame, with their positions, and relations back into it.

    spark.read.format("fairlead").option("url", …).option("types", "A,B").load()          current events
    spark.readStream.format("fairlead").option("url", …).option("types", "A,B").load()    and later ones

A frame reads the stream that live subscribers of the same types read. An offset is the sequence of a block in it; a task reads
a range of sequences. A batch frame ends where the log ended when it was loaded, however often it is computed.

Takes: options (options.py). Gives: Arrow record batches (runtime/live/core/event_table.py). Never: makes an object of an event;
continues if blocks were removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from fairlead.runtime.live.core.event_table import EventTable
from fairlead.runtime.live.export import complete
from fairlead.runtime.live.subscriber.stream_reader import report
from fairlead.runtime.spark.input.arrivals import STORED
from fairlead.runtime.spark.log.link import Extent, LogLink, extent_of, gone, same_stream
from fairlead.runtime.spark.log.options import LogOptions, log_options

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2: every micro-batch reads everything available

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


BLOCKS_MIN = 16
"""Blocks of a task: for fewer it is not worth starting one."""


class LogPartition(InputPartition):
    """The blocks after `after`, up to `last`."""

    def __init__(self, after: int, last: int) -> None:
        self.after, self.last = after, last


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
                link.lease(self._extent.topics)
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
        return parts(self.extent.after, self.extent.last, self.asked.partitions) or [LogPartition(0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPartition)
        return batches(self.asked, self.extent, partition)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, asked: LogOptions, extent: Extent) -> None:
        self.asked, self.extent = asked, extent
        self._link: LogLink | None = None
        self._end: int | None = None

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

    def _offset(self, sequence: int) -> dict[str, Any]:
        return {"sequence": sequence, "stream": self.extent.stream.name, "made": self.extent.stream.made}

    def _sequence(self, offset: dict[str, Any]) -> int:
        if (offset["stream"], offset["made"]) != tuple(self.extent.stream):
            raise gone(offset["stream"])
        return int(offset["sequence"])

    def getDefaultReadLimit(self) -> ReadLimit:
        """A block is to a log what a file is to a folder."""
        return ReadAllAvailable() if self.asked.blocks is None else ReadMaxFiles(self.asked.blocks)

    def prepareForTriggerAvailableNow(self) -> None:
        (self._end,) = self.link.call(lambda log: complete(log, [self.extent.stream], self.extent.selection))

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        last = self._last() if self._end is None else self._end
        if start is not None:
            after = self._sequence(start)
            if last < after and self._end is None and self._last() < after:
                raise gone(self.extent.stream.name)
            if isinstance(limit, ReadMaxFiles):
                last = min(last, after + limit.max_files)
            last = max(last, after)
        return self._offset(last)

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._offset(self._last())

    def _last(self) -> int:
        self.link.lease(self.extent.topics)
        return self.link.call(lambda log: log.last(self.extent.stream))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return parts(self._sequence(start), self._sequence(end), self.asked.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPartition)
        return batches(self.asked, self.extent, partition)

    def stop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def parts(after: int, last: int, most: int) -> list[InputPartition]:
    """About equal ranges of sequences."""
    blocks = last - after
    count = min(most, -(-blocks // BLOCKS_MIN))
    return [LogPartition(after + blocks * at // count, after + blocks * (at + 1) // count) for at in range(count)]


def batches(asked: LogOptions, extent: Extent, part: LogPartition) -> Iterator[pa.RecordBatch]:
    """What a task reads."""
    if part.after >= part.last:
        return
    table = _table(extent, asked)
    with LogLink(asked) as link:
        link.call(lambda log: same_stream(log, extent))
        for some in link.blocks(extent.stream, part.after, part.last):
            yield from table.batches(some, extent.first)


def _table(extent: Extent, asked: LogOptions) -> EventTable:
    stored = (STORED,) if extent.selection.stored else ()
    return EventTable(extent.selection, report, asked.position, origin=("source", "sequence", *stored))
