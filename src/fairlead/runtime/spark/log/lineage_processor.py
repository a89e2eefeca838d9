"""The stateful step of a stream that stores derived blocks, in Spark's form: one for each lineage (lineage_task.py).

When a query starts, Spark starts Python processes that report the state of the steps. They import this module, so it loads the
matcher only when there are rows.

Takes: the end of a micro-batch. Gives: rows of blocks. Never: decides anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from fairlead.runtime.spark.job.parcel import Parcel
from fairlead.runtime.spark.setup.garbage_collection import spare_what_is_loaded
from fairlead.runtime.spark.stream.processors import state_of, update

if TYPE_CHECKING:
    from fairlead.runtime.spark.log.lineage_job import LineageJob


class LineageProcessor(StatefulProcessor):
    def __init__(self, job: Parcel[LineageJob]) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_what_is_loaded()
        self.state = handle.getValueState("lineage", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        from fairlead.runtime.spark.log.lineage_task import TASKS
        from fairlead.runtime.spark.log.link import LogLink

        job = self.job.content
        setup = next(each for each in job.lineages if each.key == key[0])
        task = TASKS.resumed(job.start, setup, state_of(self.state))
        with LogLink(job.asked) as link:
            for row in rows:
                for made in task.feed(link.blocks, row.ends):
                    yield Row(**made.row)
        state = TASKS.keep(job.start, task)
        update(self.state, state, "what a subscription remembers", "shorter windows (WITHIN), or a shorter LATE REVISE WITHIN")

    def close(self) -> None:
        pass
