"""Apache Flink: Q2 and Q3 in MATCH_RECOGNIZE, as near as possible to Fairlead's meaning.

`python flink_q.py W1.parquet Q2 [2]` in Flink's own environment prints one line of JSON. One task slot or as many as said,
streaming mode, a CSV file in (the Python package has no Parquet format) and CSV out; W1 may be a folder of Parquet files.
Timed is the second job of the process; a first one over 1,000 events has warmed it up.

Row patterns are contiguous, so what may lie between the events is said too. No row is used by two matches: AFTER MATCH SKIP
PAST LAST ROW also drops an A that came before the C of a match, which PREFIX INFIX keeps. So there are fewer relations. Q1
(A AND B in any order, with events that stay behind) is not expressible.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from pyflink.table import EnvironmentSettings, TableEnvironment

sys.path.append(str(Path(__file__).resolve().parents[2]))
from benchmarks.spark.tree import Watch

PATTERNS = {
    "Q2": """
        MEASURES A.n AS a, B.n AS b, C.n AS c
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A X*? B Y*? C) WITHIN INTERVAL '10' SECOND
        DEFINE A AS A.kind = 'A', B AS B.kind = 'B', C AS C.kind = 'C'""",
    "Q3": """
        MEASURES A.n AS a, P.n AS b, R.n AS c
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A X*? P Y*? Q Z*? R) WITHIN INTERVAL '10' SECOND
        DEFINE A AS A.kind = 'A', P AS P.kind = 'B', Q AS Q.kind = 'B' AND Q.price > P.price,
               R AS R.kind = 'B' AND R.price > Q.price""",
}


def table_of(environment, name, place):
    environment.execute_sql(f"""CREATE TABLE {name}_events (
        n BIGINT, kind STRING, k INT, price DOUBLE, ms BIGINT,
        rowtime AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR rowtime AS rowtime
    ) WITH ('connector' = 'filesystem', 'path' = '{place / name}.csv', 'format' = 'csv')""")
    environment.execute_sql(f"""CREATE TABLE {name}_found (a BIGINT, b BIGINT, c BIGINT)
        WITH ('connector' = 'filesystem', 'path' = '{place / name}.out', 'format' = 'csv')""")


def seconds(environment, name, query):
    began = perf_counter()
    environment.execute_sql(f"""INSERT INTO {name}_found SELECT a, b, c FROM {name}_events
        MATCH_RECOGNIZE (PARTITION BY k ORDER BY rowtime {PATTERNS[query]})""").wait()
    return perf_counter() - began


def main(path, query, slots="1"):
    table = pq.read_table(path)
    place = Path(tempfile.mkdtemp())
    rows = pa.table(
        {
            "n": pa.array(range(table.num_rows), pa.int64()),
            "kind": table["type"],
            "k": table["key"],
            "price": table["price"],
            "ms": pa.array([each // 1000 for each in table["at"].cast("int64").to_pylist()], pa.int64()),
        }
    )
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", slots)
    environment.get_config().set("pipeline.object-reuse", "true")
    for name, size in (("warm", 1_000), ("timed", rows.num_rows)):
        plain = pc.WriteOptions(include_header=False, quoting_style="none")
        pc.write_csv(rows.slice(0, size), place / f"{name}.csv", plain)
        table_of(environment, name, place)
        with Watch() as watch:
            cpu = watch.cpu_s()
            wall = seconds(environment, name, query)
            cpu = watch.cpu_s() - cpu
    files = [each for each in (place / "timed.out").rglob("*") if each.is_file()]
    relations = sum(len(each.read_text().splitlines()) for each in files)
    shutil.rmtree(place)
    print(json.dumps({"events": table.num_rows, "relations": relations, "wall_s": wall, "cpu_s": cpu}))


if __name__ == "__main__":
    main(*sys.argv[1:])
