"""ORDER BY on Spark: the ids and the order of the embedded runtime, in batch and on streams, however the rows arrive."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairlead
import fairlead.spark as fl
from tests.runtime.spark.job.in_process import delivered, shown

pytestmark = pytest.mark.spark

TYPES = "TYPE A (k INT, x DOUBLE, at TIMESTAMP) TIME at TYPE B (k INT, x DOUBLE, at TIMESTAMP) TIME at "
RULES = """
SUBSCRIPTION Pairs MATCH A a THEN B b PER k EMIT D (k = a.k, x = b.x)
SUBSCRIPTION Alone MATCH D d WITHOUT A a WITHIN 3 SECONDS OF d
SUBSCRIPTION Rise MATCH A a[2] WHERE a[1].x < a[2].x MATCHING RECENT
"""


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    made = []
    for number in range(count):
        if number % 17 == 16:
            made.append({"type": "Heartbeat", "k": None, "x": None, "at": f"2026-01-01T00:00:{number // 10:02}Z"})
            continue
        event = {"type": random.choice("AB"), "k": random.randrange(4), "x": random.randrange(6) / 2}
        made.append(event | {"at": f"2026-01-01T00:00:{number // 10:02}.{random.randrange(4)}Z"})
    return made


def table(records: list[dict[str, Any]]) -> pa.Table:
    made = pa.Table.from_pylist(records)
    kinds = {"k": pa.int32(), "at": pa.timestamp("us", tz="UTC")}
    return made.cast(pa.schema([each.with_type(kinds.get(each.name, each.type)) for each in made.schema]))


def written(folder: Path, records: list[dict[str, Any]], parts: int) -> str:
    folder.mkdir()
    for part in range(parts):
        stored(folder, part, records[part * len(records) // parts : (part + 1) * len(records) // parts])
    return str(folder)


def stored(folder: Path, number: int, records: list[dict[str, Any]]) -> None:
    """A file; a stream reads them by the time of their change."""
    path = folder / f"{number}.parquet"
    pq.write_table(table(records), path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


@pytest.mark.parametrize(
    "order", ["ORDER BY at ", "ORDER BY TIME, k, x DESC ", "ORDER BY x DESC, at ", "ORDER BY at DELAY 1 HOUR "]
)
def test_batch_gives_what_sorting_gives(spark: Any, tmp_path: Path, order: str) -> None:
    plan = fairlead.compile(TYPES + order + RULES)
    records = [each for each in rows(600, 3) if each["type"] != "Heartbeat" or not order.startswith("ORDER BY x")]
    wanted = fairlead.match(plan, [{k: v for k, v in each.items() if v is not None} for each in records])
    assert len(wanted) > 50
    mixed = Random(1).sample(records, len(records))
    for given in (records, mixed):
        frame = spark.read.parquet(written(tmp_path / str(id(given)), given, 3))
        with fl.coded_errors():
            assert delivered(fl.match(plan, frame, buckets=3).toArrow()) == shown(plan, wanted.batches)


@pytest.mark.parametrize("delay", ["DELAY 8 SECONDS", "DELAY 8 SECONDS PER SOURCE IDLE 1 MINUTE"])
def test_streams_give_what_sorting_gives_and_tell_what_is_late(spark: Any, tmp_path: Path, delay: str) -> None:
    plan = fairlead.compile(f"{TYPES} ORDER BY at {delay} {RULES}")
    records = [
        each | {"p": "pq"[number % 2], "n": number} for number, each in enumerate(rows(300, 5)) if each["type"] != "Heartbeat"
    ]
    random = Random(2)
    arriving = sorted(records, key=lambda each: each["n"] / 10 + 4 * random.random())
    end = {"type": "Heartbeat", "k": None, "x": None, "at": "2026-01-01T00:10:00Z", "n": None}
    beats = [end | {"p": source, "at": f"2026-01-01T00:{minute}:00Z"} for minute in (10, 20) for source in "pq"]
    late = {"type": "A", "k": 1, "x": 1.0, "at": "2026-01-01T00:00:01Z", "p": "p", "n": 10_000}
    folder = tmp_path / "in"
    schema = written(folder, [*arriving, *beats], 4)
    stored(folder, 9, [late])
    reading = spark.readStream.schema(spark.read.parquet(schema).schema).option("maxFilesPerTrigger", 1)
    found = fl.match(plan, reading.parquet(str(folder)), source="p", sequence="n", buckets=2)
    query = found.writeStream.format("memory").queryName(f"q{abs(hash(delay))}").outputMode("append")
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination(300)
    got = spark.table(f"q{abs(hash(delay))}").toArrow()
    named = [
        {k: v for k, v in each.items() if k not in "pn"} | {"_source": each["p"], "_sequence": each["n"]} for each in records
    ]
    wanted = fairlead.match(plan, named, until="2026-01-01T00:09:59.999999Z")
    assert [row["verdict"] for row in got.to_pylist() if row["verdict"] != "in order"] == ["late"]
    assert delivered(got) == shown(plan, wanted.batches)
