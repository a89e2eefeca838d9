"""The conformance cases of late events on a stream of Spark over a log, without Spark and, some of them, with it. A round is a
block.

A subscription's frontier is that of the events that it reads. Where a case moves it by an event of another type, a heartbeat
takes its place, which bounds as much; cases with several frontiers say what one machine does with all events.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead import spark as fl
from fairlead.runtime.event_time import frontier_groups
from fairlead.testing.revision_cases import RevisionCase, RevisionOutcome, RevisionSuite, load_revision_cases
from fairlead.transport.log.blocks.block import INDEX_BITS
from tests.conformance.test_revisions import label, plain
from tests.root import ROOT
from tests.runtime.event_time.sequences import START, at
from tests.runtime.spark.stream.rounds import Streaming
from tests.runtime.spark.stream.test_log_order import LoggedBlock, logged_rows, setup_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = [
    case
    for case in load_revision_cases(ROOT / "conformance" / "late")
    if len(frontier_groups(fairlead.compile(case.rules))) == 1
]
NEVER = 1_000_000
"""Seconds, after all times of a case: an event then releases all others, and is not released."""
Record = dict[str, Any]


class LogRevisions(RevisionSuite):
    def batch(self, rules: str, events: list[Record]) -> list[str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of events without a time of storage
            return [label(each) for each in fairlead.match(fairlead.compile(rules), plain(events))]


@pytest.mark.parametrize("case", CASES, ids=str)
class TestBlocksOfALog(LogRevisions):
    def run(self, rules: str, rounds: list[list[Record]]) -> RevisionOutcome:
        plan = fairlead.compile(rules)
        assert plan.order is not None
        stored = any("_stored" in each for records in rounds for each in records)
        setup = setup_of(plan, 1, ahead=stored and plan.order.ahead_us is not None)
        query, random = Streaming(setup, Random(1)), Random(2)
        ((*types,),) = (each.types for each in frontier_groups(plan))
        ends = sorted({each.get("_source") or "" for records in rounds for each in records})
        last = [{"type": types[0], "at": NEVER, "k": 0, "n": -1, "_stored": NEVER, "_source": name or None} for name in ends]
        made: list[list[str]] = []
        verdicts: dict[int, str] = {}
        for number, given in enumerate([*rounds, last]):
            records = [each if each["type"] in types else beat_of(each) for each in given]
            before = len(query.found)
            query.batch(logged_rows(setup, plan, list(blocks_of(number, records)), random))
            rows = [row for table in query.found[before:] for row in table.to_pylist()]
            made.append(
                [f"{'-' if row['verdict'] == 'retracted' else '+'} {label_of(plan, row)}" for row in delivered(plan, rows)]
            )
            for row in rows:
                if row["verdict"] in ("late", "ahead"):
                    verdicts[number_of(row["members"][0], records)] = row["verdict"]
                elif row["verdict"] == "repeated":
                    _, sequence, _, _, source, *_ = row["reason"].split()
                    again = [r["_number"] for r in records if (r.get("_source"), r.get("_sequence")) == (source, int(sequence))]
                    verdicts[again[-1]] = row["verdict"]
        return RevisionOutcome(made[:-1], made[-1], verdicts)


def beat_of(record: Record) -> Record:
    """A heartbeat that moves the frontier as far as this event does, which nobody reads."""
    if record["type"] == "Heartbeat":
        return record
    kept = {name: record[name] for name in ("_number", "_stored", "_source") if name in record}
    return kept | {"type": "Heartbeat", "at": record["at"] - 0.000001}


def number_of(member: Record, records: list[Record]) -> int:
    """Of an event in a round. A type that no relation shows has no attributes here, and is in no case twice in a round."""
    return next(each["_number"] for each in records if each["type"] == member["type"] and member["n"] in (None, each["n"]))


def blocks_of(number: int, records: list[Record]) -> Iterator[LoggedBlock]:
    """One block, but for the times of storage that a case gives to its events: rows of a block with the same position would be
    one; each row has its own time here."""
    for index, each in enumerate(records):
        event = {name: value for name, value in each.items() if name not in ("_number", "_stored")}
        time = at(each.get("_stored", number) - 10)
        yield PlacedRecord("main", number + 1, time, (event | {"at": at(each["at"] - 10)},), index)


class PlacedRecord(LoggedBlock):
    def __init__(self, topic: str, number: int, time: Any, records: tuple[Record, ...], index: int) -> None:
        super().__init__(topic, number, time, records)
        object.__setattr__(self, "index", index)

    @property
    def offsets(self) -> list[int]:
        return [super().offsets[0] + self.index]  # type: ignore[attr-defined]


def delivered(plan: fairlead.Plan, rows: list[Record]) -> list[Record]:
    """In the order of delivery: what was released, then what was taken back, then what was added. The turns of revisions count
    the rows of one task, so those of several subscriptions are in the order of the text here."""
    kinds, names = ("in order", "retracted", "added"), [each.name for each in plan.subscriptions]

    def place(row: Record) -> tuple[int, ...]:
        kind = kinds.index(row["verdict"])
        return kind, names.index(row["subscription"]) if kind else row["completed_at"], row["turn"]

    return sorted((row for row in rows if row["verdict"] in kinds), key=place)


def label_of(plan: fairlead.Plan, row: Record) -> str:
    derived = {each.name for each in plan.catalogue if each.derived}
    members = [each["type"] if each["type"] in derived else str(each["n"]) for each in row["members"]]
    return " ".join([row["subscription"], *members])


def test_times_of_cases_are_those_of_sequences() -> None:
    assert at(0) == START


def test_almost_all_cases_run() -> None:
    assert len(CASES) >= 65


# --- on Spark: the rules of several cases are one job, in which each case has types, and so a frontier, of its own


def is_alone(case: RevisionCase) -> bool:
    """Whether nothing but events of its own types moves its frontier; heartbeats are for all."""
    (group,) = frontier_groups(fairlead.compile(case.rules))
    return all(text.split()[0] in group.types for texts in case.rounds for text in texts)


ORDER = "ORDER BY at DELAY 2 SECONDS LATE REVISE WITHIN 60 SECONDS\n"
TOGETHER = [case for case in CASES if ORDER in case.rules and is_alone(case)]


def renamed(text: str, number: int) -> str:
    """With types and subscriptions of its own: they are single letters."""
    return re.sub(r"\b([A-Z])\b", rf"\1_{number}", text)


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, RevisionOutcome]:
    """By case, what one job delivers: a file is a micro-batch, and a block, with a round of every case."""
    declared, rules = zip(*(renamed(case.rules, at).split(ORDER) for at, case in enumerate(TOGETHER)), strict=True)
    plan = fairlead.compile("".join([*declared, ORDER, *rules]))
    folder, size = tmp_path_factory.mktemp("cases") / "in", max(len(case.rounds) for case in TOGETHER)
    folder.mkdir()
    for number in range(size + 1):
        rows = list(block_rows(number, number == size))
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_700_000_000 + number, 1_700_000_000 + number))
    reading = spark.readStream.schema(spark.read.parquet(str(folder)).schema).option("maxFilesPerTrigger", 1)
    batches: list[list[Record]] = []
    query = fl.match(plan, reading.parquet(str(folder)), buckets=1).writeStream.foreachBatch(
        lambda frame, _: batches.append([row.asDict(recursive=True) for row in frame.collect()])
    )
    query = query.option("checkpointLocation", str(folder.with_name("checkpoint"))).trigger(availableNow=True).start()
    with fl.coded_errors():
        assert query.awaitTermination(500)
    assert len(batches) == size + 1
    return {case.name: outcome_of(plan, case, at, batches) for at, case in enumerate(TOGETHER)}


SCHEMA = pa.schema(
    [("type", pa.string()), ("k", pa.int32()), ("n", pa.int32()), ("_topic", pa.string()), ("_offset", pa.int64())]
    + [(name, pa.timestamp("us", "UTC")) for name in ("at", "_stored")]
)


def block_rows(number: int, is_last: bool) -> Iterator[Record]:
    index = 0
    for at_case, case in enumerate(TOGETHER):
        records = case.records[number] if number < len(case.records) else []
        if is_last:
            records = [{"type": case.rounds[0][0].split()[0], "at": NEVER, "k": 0, "n": -1}]
        for each in records:
            place = {"_topic": "main", "_offset": (number + 1 << INDEX_BITS) + index, "_stored": at(number)}
            yield {**each, "type": renamed(each["type"], at_case), "at": at(each["at"] - 10)} | place
            index += 1


def outcome_of(plan: fairlead.Plan, case: RevisionCase, number: int, batches: Sequence[list[Record]]) -> RevisionOutcome:
    made = []
    for rows in batches:
        mine = [row for row in rows if str(row["subscription"]).endswith(f"_{number}")]
        labels = [f"{'-' if row['verdict'] == 'retracted' else '+'} {label_of(plan, row)}" for row in delivered(plan, mine)]
        made.append([re.sub(rf"_{number}\b", "", each) for each in labels])
    assert not [row for rows in batches for row in rows if row["subscription"] is None]
    return RevisionOutcome(made[: len(case.rounds)], made[-1], {})


@pytest.mark.slow
@pytest.mark.parametrize("case", TOGETHER, ids=str)
class TestOnSpark(LogRevisions):
    @pytest.fixture(autouse=True)
    def delivered_by_the_job(self, case: RevisionCase, outcomes: dict[str, RevisionOutcome]) -> None:
        self.outcome = outcomes[case.name]

    def run(self, rules: str, rounds: list[list[Record]]) -> RevisionOutcome:
        return self.outcome


def test_the_sample_has_absences_and_chains_and_several_branches() -> None:
    assert len(TOGETHER) >= 10
    assert all(any(word in case.rules for case in TOGETHER) for word in (" WITHIN 3 SECONDS OF", "EMIT", "OR "))
