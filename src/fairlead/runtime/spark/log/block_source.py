"""The data sources of a job that stores what rules with ORDER BY emit (lineage_job.py).

    fairlead-blocks    read: the blocks that the lineages of the rules make of the log up to now; write: store blocks
    fairlead-cuts      a stream: the ends of micro-batches, as sequences by stream

Takes: options (options.py). Gives: Arrow record batches. Never: stores anything of a micro-batch that Spark has not computed
completely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
)

from fairlead.runtime.spark.log.block_rows import SPARK_SCHEMA, table_of
from fairlead.runtime.spark.log.lineage_job import BLOCKS, CUTS, ENDS, LineageJob, job_of
from fairlead.runtime.spark.log.link import LogLink
from fairlead.runtime.spark.log.options import LogOptions, log_options
from fairlead.runtime.spark.log.sink import SinkRows, rows_of, store_made
from fairlead.runtime.spark.log.source import LogSource, LogStreamReader

ROWS = 256
"""Blocks of a record batch: half a megabyte each at most."""


class BlockSource(DataSource):
    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.asked: LogOptions = log_options(options)

    @classmethod
    def name(cls) -> str:
        return BLOCKS

    def schema(self) -> str:
        return SPARK_SCHEMA

    def reader(self, schema: Any) -> BlockReader:
        with LogLink(self.asked) as link:
            return BlockReader(link.call(lambda log: job_of(log, self.asked, ends=True)))

    def writer(self, schema: Any, overwrite: bool) -> BlockWriter:
        return BlockWriter(self.asked)

    def streamWriter(self, schema: Any, overwrite: bool) -> BlockStreamWriter:
        return BlockStreamWriter(self.asked)


class LineagePartition(InputPartition):
    """A lineage, by its number."""

    def __init__(self, number: int) -> None:
        self.number = number


class BlockReader(DataSourceReader):
    def __init__(self, job: LineageJob) -> None:
        self.job = job

    def partitions(self) -> Sequence[InputPartition]:
        return [LineagePartition(number) for number in range(len(self.job.lineages))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LineagePartition)
        with LogLink(self.job.asked) as link:
            made = self.job.lineages[partition.number].begun().feed(link.blocks, self.job.ends)
            while some := list(islice(made, ROWS)):
                yield table_of(some)


class BlockWriter(DataSourceArrowWriter):
    def __init__(self, asked: LogOptions) -> None:
        self.asked = asked

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkRows:
        return rows_of(iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        with LogLink(self.asked) as link:
            link.call(lambda log: store_made(log, self.asked, messages))


class BlockStreamWriter(DataSourceStreamArrowWriter):
    """A micro-batch that Spark repeats makes the same blocks, with the same numbers: the log has them already."""

    def __init__(self, asked: LogOptions) -> None:
        self.asked = asked

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkRows:
        return rows_of(iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        with LogLink(self.asked) as link:
            link.call(lambda log: store_made(log, self.asked, messages))


class CutSource(LogSource):
    @classmethod
    def name(cls) -> str:
        return CUTS

    def schema(self) -> Any:
        return ENDS

    def streamReader(self, schema: Any) -> CutReader:
        return CutReader(self.asked, self.extent)


class CutPartition(InputPartition):
    def __init__(self, ends: Sequence[int]) -> None:
        self.ends = ends


class CutReader(LogStreamReader):
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._sequences(start)
        return [CutPartition(self._sequences(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, CutPartition)
        column = pa.array([list(partition.ends)], pa.list_(pa.int64()))
        yield pa.RecordBatch.from_arrays([column], ["ends"])
