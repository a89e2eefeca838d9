"""The sides on a table: from a folder of Parquet files to a folder of Parquet files.

`python -m benchmarks.spark.batch SIDE QUERY SOURCE OUT --repeat 3 --seconds 100` runs one side in this process and prints one
line of JSON. A side is a function that does what its user would write, from `spark.read` to `write`: all of it is timed, and
nothing else is. The session has started before; the first run (code is generated and compiled, Python workers start) is
reported apart from the repeats.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks import workload
from benchmarks.measure import Timing
from benchmarks.spark import hand, session
from benchmarks.spark.tree import Watch

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

QUERIES = ("Q1", "Q2", "Q3")
ANY = "any"
"""The query of a floor: it does not look at one."""


def ordered(spark: SparkSession, source: str) -> DataFrame:
    return spark.read.parquet(source).repartition("key").sortWithinPartitions("at")


def floor_noop(spark: SparkSession, query: str, source: str, out: str) -> None:
    ordered(spark, source).write.format("noop").mode("overwrite").save()


def floor_parquet(spark: SparkSession, query: str, source: str, out: str) -> None:
    ordered(spark, source).write.parquet(out)


def floor_python(spark: SparkSession, query: str, source: str, out: str) -> None:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows], pa.int64())})

    ordered(spark, source).mapInArrow(count, "rows long").write.parquet(out)


def pandas(spark: SparkSession, query: str, source: str, out: str) -> None:
    def of_key(key: tuple[int], frame: pd.DataFrame) -> pd.DataFrame:
        return hand.match(query, key[0], frame, ([], []))

    spark.read.parquet(source).groupBy("key").applyInPandas(of_key, hand.schema(query)).write.parquet(out)


def kernel(spark: SparkSession, query: str, source: str, out: str) -> None:
    members = hand.MEMBERS[query]

    def of_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from benchmarks import by_hand

        given = list(batches)
        if not given:
            return
        table = pa.Table.from_batches(given)
        found = by_hand.BY_HAND[query](by_hand.columns_of(table))
        columns = {"key": table["key"].take(pa.array(found[:, 0]))}
        for index, name in enumerate(members):
            one = table.select(["at", "price", "volume"]).take(pa.array(found[:, index]))
            columns |= {f"{name}_{each}": one[each] for each in one.column_names}
        yield from pa.table(columns).combine_chunks().to_batches()

    ordered(spark, source).mapInArrow(of_partition, hand.schema(query)).write.parquet(out)


def window(spark: SparkSession, query: str, source: str, out: str) -> None:
    """Every A with the next B and the next C after it: an event may be in several relations."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    events = spark.read.parquet(source).withColumn("us", f.unix_micros("at"))
    later = Window.partitionBy("key").orderBy("us").rangeBetween(1, hand.WINDOW_US)
    member = f.struct("at", "price", "volume", "us")

    def following(kind: str, value: Any) -> Any:
        return f.first(f.when(f.col("type") == kind, value), ignorenulls=True).over(later)

    events = events.withColumn("c", following("C", member))
    events = events.withColumn("b", following("B", f.struct(member.alias("b"), "c")))
    events = events.where("type = 'A' AND b.c.us <= us + 10000000")
    events.select("key", member.alias("a"), f.col("b.b").alias("b"), f.col("b.c").alias("c")).write.parquet(out)


def join(spark: SparkSession, query: str, source: str, out: str) -> None:
    """Every A with every B and every C (Q3: every three rising B) that follow in time: all combinations."""
    from pyspark.sql import functions as f

    events = spark.read.parquet(source)

    def member(name: str) -> DataFrame:
        columns = [f.col(each).alias(f"{name}_{each}") for each in ("at", "price", "volume")]
        return events.where(f.col("type") == name[0].upper()).select("key", *columns)

    names = hand.MEMBERS[query]
    found = member(names[0])
    for before, name in itertools.pairwise(names):
        found = found.join(member(name), "key").where(
            f"{name}_at > {before}_at AND {name}_at <= {names[0]}_at + INTERVAL 10 SECONDS"
            + (f" AND {name}_price > {before}_price" if before.startswith("b") and name.startswith("b") else "")
        )
    found.write.parquet(out)


def fairlead_on_spark(spark: SparkSession, query: str, source: str, out: str) -> None:
    import fairlead
    from fairlead import spark as fl

    plan = fairlead.compile(workload.QUERIES[query].rules())
    frame = spark.read.parquet(source)
    relations = fl.match(plan, frame, order_by=["at"])
    relations.write.parquet(out)


def embedded(spark: None, query: str, source: str, out: str) -> None:
    import pyarrow.parquet as pq

    import fairlead

    plan = fairlead.compile(workload.QUERIES[query].rules())
    relations = fairlead.match(plan, pq.read_table(source))
    Path(out).mkdir()
    pq.write_table(relations.to_arrow(), f"{out}/relations.parquet")


@dataclass(frozen=True)
class Side:
    """`exact` sides have Fairlead's meaning: their number of relations must be its."""

    says: str
    run: Callable[[Any, str, str, str], None]
    queries: tuple[str, ...] = QUERIES
    exact: bool = True
    on_spark: bool = True


SIDES = {
    "floor-noop": Side("floor: read, shuffle by key, sort by at, noop sink", floor_noop, (ANY,), exact=False),
    "floor-parquet": Side("floor: the same, written as Parquet", floor_parquet, (ANY,), exact=False),
    "floor-python": Side("floor: the same, every event into Python by mapInArrow", floor_python, (ANY,), exact=False),
    "pandas": Side("groupBy(key).applyInPandas, plain Python", pandas),
    "kernel": Side("repartition, sort, mapInArrow with the numba kernel by hand", kernel),
    "window": Side("window functions, an event in several relations", window, ("Q2",), exact=False),
    "join": Side("self joins with time bounds, all combinations", join, ("Q2", "Q3"), exact=False),
    "embedded": Side("Fairlead embedded: read_table, match, to_arrow, write_table; no Spark", embedded, on_spark=False),
    "fairlead": Side("Fairlead on Spark: fl.match(plan, frame, order_by=['at'])", fairlead_on_spark),
}


def missing(side: str) -> str | None:
    """Why a side cannot run here."""
    if side == "fairlead":
        try:
            from fairlead import spark  # noqa: F401
        except ImportError as problem:
            return f"not yet: {problem.msg.partition(' (')[0]}"
    if side == "state":
        try:
            import google.protobuf  # noqa: F401
        except ImportError:
            return "transformWithState needs protobuf, which pip installs with pyspark[connect] or by itself"
    return None


def measure(given: argparse.Namespace) -> dict[str, Any]:
    side = SIDES[given.side]
    began = perf_counter()
    with Watch() as watch:
        spark = session.session(Path(given.out).parent, session.BATCH) if side.on_spark else None
        started_s = perf_counter() - began
        timing, counts = Timing(given.events), []
        for _ in range(1 + given.repeat):
            shutil.rmtree(given.out, ignore_errors=True)
            cpu, wall = watch.cpu_s(), perf_counter()
            side.run(spark, given.query, given.source, given.out)
            wall = perf_counter() - wall
            timing.add(wall, watch.cpu_s() - cpu)
            counts.append(session.rows(Path(given.out)) if Path(given.out).exists() else 0)
            likely = wall * (0.5 if len(counts) == 1 else 1.2)  # a first run takes twice to five times a later one
            if perf_counter() - began + likely > given.seconds:
                break
        if spark is not None:
            spark.stop()
    first = {"first_wall_s": timing.wall_s[0], "first_cpu_s": timing.cpu_s[0], "session_s": started_s}
    warm = len(timing.wall_s) > 1
    if warm:
        timing.wall_s, timing.cpu_s = timing.wall_s[1:], timing.cpu_s[1:]
    if len(set(counts)) > 1:
        raise SystemExit(f"{given.side} {given.query}: repeats differ in their relations: {counts}")
    shutil.rmtree(given.out, ignore_errors=True)
    return {
        **(timing.to_json() or {}),
        **first,
        **watch.memory(),
        "relations": counts[-1],
        "warm": warm,
        "wall_s": timing.wall_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="One side of `python -m benchmarks.spark`.")
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("query")
    parser.add_argument("events", type=int)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=100.0, help="no further repeat after that")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
