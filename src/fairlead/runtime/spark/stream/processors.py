"""The stateful steps of a stream in Spark's form: they read rows and state, call stream_job.py and return rows and state.

When a query starts, Spark starts two Python processes that report the state of the steps. They import this module, so it loads
the modules that handle rows only when there are rows: each process starts in a third of the time.

Takes: rows of blobs. Gives: rows of blobs. Never: decides anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, ValueState

from fairlead.errors import StateError
from fairlead.runtime.spark.job.parcel import Parcel
from fairlead.runtime.spark.setup.garbage_collection import spare_what_is_loaded

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead.runtime.spark.stream.stream_job import Setup

STATE_BYTES_MAX = 2**31 - 2**20
"""A value of a state store is one array of Java."""


class Sequencer(StatefulProcessor):
    """One for the whole stream; its state is the orders so far and the held rows."""

    def __init__(self, setup: Parcel[Setup]) -> None:
        self.setup = setup

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_what_is_loaded()
        self.state = handle.getValueState("order", "held binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        import pyarrow as pa

        from fairlead.model.blobs import unpacked
        from fairlead.runtime.spark.input.arrivals import UNPLACED
        from fairlead.runtime.spark.stream.sequencing import Sequencing
        from fairlead.runtime.spark.stream.stream_job import APART, COUNTED

        sequencing = Sequencing(self.setup.content, state_of(self.state))
        arrivals: dict[str, list[pa.Table]] = {}
        for row in rows:
            if row.type == UNPLACED:
                yield _blob(APART, bytes(row.blob))
            else:
                arrivals.setdefault(row.type, []).append(unpacked(bytes(row.blob)))
        for target, name, blob in sequencing.step({name: pa.concat_tables(arrivals[name]) for name in sorted(arrivals)}):
            yield _blob(sequencing.key(target), blob, sequencing.buckets, sequencing.whose(target), name)
        change = None if sequencing.change is None else json.dumps(asdict(sequencing.change))
        counts = {"held": sequencing.held(), "kept": sequencing.kept(), "ties": sequencing.ties, "change": change}
        yield Row(target=COUNTED, buckets=0, whose="", type="", blob=b"", **counts)
        update(self.state, sequencing.dump(), "what is held back", "a smaller delay, or heartbeats")

    def close(self) -> None:
        pass


def _blob(target: int, blob: bytes, buckets: int = 0, whose: str = "", name: str = "") -> Row:
    nothing = {"held": None, "kept": None, "ties": None, "change": None}
    return Row(target=target, buckets=buckets, whose=whose, type=name, blob=blob, **nothing)


class MatchProcessor(StatefulProcessor):
    """One for each target; its state is that of the engine."""

    def __init__(self, setup: Parcel[Setup]) -> None:
        self.setup = setup

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_what_is_loaded()
        self.state = handle.getValueState("matcher", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        from fairlead.model.blobs import unpacked
        from fairlead.runtime.spark.stream.spreading import task_of
        from fairlead.runtime.spark.stream.stream_job import APART
        from fairlead.runtime.spark.stream.target_task import fed, kept, resumed

        target, buckets, whose = task_of(int(key[0])), 0, ""
        if target == APART:
            for row in rows:
                yield Row(blob=bytes(row.blob))
            return
        tables: dict[str, list[pa.Table]] = {}
        for row in rows:
            buckets, whose = row.buckets, row.whose
            tables.setdefault(row.type, []).append(unpacked(bytes(row.blob)))
        setup = self.setup.content
        task = resumed(setup, target, buckets, state_of(self.state), whose)
        for blob in fed(setup, task, tables):
            yield Row(blob=blob)
        update(
            self.state,
            kept(setup, target, task),
            "what the matcher remembers",
            "shorter windows (WITHIN), a shorter LATE REVISE WITHIN, or more buckets",
        )

    def close(self) -> None:
        pass


def state_of(held: ValueState) -> bytes | None:
    found = held.get() if held.exists() else None
    return None if found is None else bytes(found[0])


def update(held: ValueState, state: bytes, what: str, fix: str) -> None:
    if len(state) > STATE_BYTES_MAX:
        raise StateError("S113", f"{what} has {len(state):,} bytes, and the limit is {STATE_BYTES_MAX:,}", fix)
    held.update((state,))
