"""The sides on a stream, from a source to Spark's Parquet sink.

`python -m benchmarks.spark.stream SIDE QUERY rate|latency PLACE …` runs one side in this process and prints one line of JSON. A
side is a function from the streaming frame to the frame of relations, as its user would write it; source and sink are the
same for all.

`rate`: files of W1, so many to a micro-batch, as fast as they go; the rate is that of the micro-batches after the first.
`latency`: events enter at a given pace (pace.py), and a relation is there when the sink has committed it (sink.py).
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import by_hand, workload
from benchmarks.spark import hand, session, sink
from benchmarks.spark.tree import Watch

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

QUERIES = ("Q1", "Q2", "Q3")


def floor(frame: DataFrame, query: str) -> DataFrame:
    return frame.where("type = 'C'")


def state(frame: DataFrame, query: str) -> DataFrame:
    from pyspark.sql.streaming import StatefulProcessor

    class Queues(StatefulProcessor):
        """One pickled value for each key: a list state would cost a call for each event in it."""

        def init(self, handle: Any) -> None:
            self.queues = handle.getValueState("queues", "value binary")

        def handleInputRows(self, key: tuple[int], rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
            import pandas as pd

            before = self.queues.get()
            queues: hand.State = pickle.loads(before[0]) if before else ([], [])
            yield hand.match(query, key[0], pd.concat(list(rows)), queues)
            self.queues.update((pickle.dumps(queues),))

        def close(self) -> None: ...

    return frame.groupBy("key").transformWithStateInPandas(Queues(), hand.schema(query), "Append", "None")


def join(frame: DataFrame, query: str) -> DataFrame:
    """Every A with every B and every C that follow in time: all combinations."""
    from pyspark.sql import functions as f

    frame = frame.withWatermark("at", "0 seconds")

    def member(name: str) -> DataFrame:
        columns = [f.col(each).alias(f"{name}_{each}") for each in ("key", "at", "price", "volume")]
        return frame.where(f.col("type") == name.upper()).select(*columns)

    def after(one: str, other: str) -> str:
        return f"{other}_at > {one}_at AND {other}_at <= {one}_at + INTERVAL 10 SECONDS"

    pairs = member("a").join(member("b"), f.expr(f"a_key = b_key AND {after('a', 'b')}"))
    pairs = pairs.withColumn("b_at", f.expr("b_at + INTERVAL 0 SECONDS"))  # a stream has one event time, and that is a_at
    triples = pairs.join(member("c"), f.expr(f"a_key = c_key AND {after('a', 'c')} AND {after('b', 'c')}"))
    return triples.drop("b_key", "c_key")


def fairlead_on_spark(frame: DataFrame, query: str) -> DataFrame:
    import fairlead
    from fairlead import spark as fl

    plan = fairlead.compile(workload.QUERIES[query].rules())
    found: DataFrame = fl.match(plan, frame, order_by=["at"], frontier="types")
    return found


@dataclass(frozen=True)
class Side:
    says: str
    relations: Callable[[DataFrame, str], DataFrame]
    queries: tuple[str, ...] = QUERIES
    exact: bool = True


SIDES = {
    "floor": Side("floor: no state, every C is a relation", floor, ("any",), exact=False),
    "state": Side("transformWithStateInPandas by key, plain Python", state),
    "join": Side("stream-stream joins with time bounds, all combinations", join, ("Q2",), exact=False),
    "fairlead": Side("Fairlead on Spark: fl.match(plan, frame, order_by=['at'])", fairlead_on_spark),
}


def start(frame: DataFrame, given: argparse.Namespace) -> StreamingQuery:
    """The user's call."""
    relations = SIDES[given.side].relations(frame, given.query)
    place = Path(given.place)
    writer = relations.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    return writer.start(str(place / "out"))


def run(query: StreamingQuery, seconds: float, over: Callable[[list[Any]], bool]) -> list[Any]:
    """Progress of the micro-batches with data, until there is no more to come or the time is over."""
    began, seen = perf_counter(), []
    while perf_counter() - began < seconds:
        if query.exception() is not None:
            raise SystemExit(str(query.exception()).splitlines()[0])
        seen = [json.loads(each.json) for each in query.recentProgress]
        if over(seen):
            break
        sleep(0.5)
    query.stop()
    return [each for each in seen if each["numInputRows"] > 0]


def span(batch: dict[str, Any]) -> tuple[float, float]:
    began = datetime.fromisoformat(batch["timestamp"]).timestamp()
    return began, began + batch["durationMs"]["triggerExecution"] / 1000


def rate(spark: SparkSession, given: argparse.Namespace) -> dict[str, Any]:
    frame = spark.readStream.schema(session.SCHEMA).option("maxFilesPerTrigger", given.files_per_trigger).parquet(given.source)
    size = given.files_per_trigger * given.file_events
    wanted = -(-given.events // size)
    batches = run(start(frame, given), given.seconds, lambda seen: sum(each["numInputRows"] > 0 for each in seen) >= wanted)
    if len(batches) < 2:
        raise SystemExit(f"only {len(batches)} micro-batches of {size:,} events in {given.seconds:.0f} s")
    events = min(len(batches) * size, given.events)
    spans = [span(each) for each in batches]
    lasts = [end - begin for begin, end in spans[1:]]
    found = {
        "micro_batches": len(batches),
        "micro_batch_events": size,
        "events": events,
        "events_per_s": (events - size) / (spans[-1][1] - spans[1][0]),
        "first_s": spans[0][1] - spans[0][0],
        "micro_batch_s": {"best": min(lasts), "median": float(np.median(lasts)), "most": max(lasts)},
        "relations": sink.rows(Path(given.place) / "out"),
    }
    if given.query in by_hand.BY_HAND:
        found["wanted"] = by_hand.relations_in(by_hand.BY_HAND[given.query](workload.stream(given.events).prefix(events)))
    return found


def latency(spark: SparkSession, given: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.spark.pace import WARM, Paced

    spark.dataSource.register(Paced)
    place = Path(given.place)
    options = {"path": given.source, "rate": given.rate, "events": given.events, "clock": place / "clock"}
    frame = spark.readStream.format("paced").options(**{name: str(value) for name, value in options.items()}).load()

    def over(seen: list[Any]) -> bool:
        return any((each["sources"][0]["endOffset"] or {}).get("events") == given.events for each in seen[-50:])

    began = perf_counter()
    batches = run(start(frame, given), given.seconds, over)
    clock_s = float((place / "clock").read_text())
    lasts = (given.events - WARM) / given.rate
    found = sink.latencies(place / "out", clock_s, given.rate, lasts / 4)
    if not len(found):
        raise SystemExit(f"no relation of a later event in {given.seconds:.0f} s")
    at = {f"p{each}_ms": float(np.percentile(found, each) * 1000) for each in (50, 95, 99)}
    behind = span(batches[-1])[1] - clock_s - lasts
    return {**at, "relations": len(found), "micro_batches": len(batches), "behind_s": behind, "wall_s": perf_counter() - began}


def measure(given: argparse.Namespace) -> dict[str, Any]:
    settings = {**session.STREAM, **(session.TUNED if given.tuned else {})}
    with Watch() as watch:
        spark = session.session(Path(given.place), settings)
        cpu = watch.cpu_s()
        found = (rate if given.what == "rate" else latency)(spark, given)
        cpu = watch.cpu_s() - cpu
        spark.stop()
    return {**found, "cpu_s": cpu, **watch.memory()}


def main() -> None:
    parser = argparse.ArgumentParser(description="One side of `python -m benchmarks.spark --stream`.")
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("query")
    parser.add_argument("what", choices=("rate", "latency"))
    parser.add_argument("place", help="an empty folder for checkpoint and relations")
    parser.add_argument("source")
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="stop after that")
    parser.add_argument("--files-per-trigger", type=int, default=1)
    parser.add_argument("--file-events", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--tuned", action="store_true")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
