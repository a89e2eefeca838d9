"""Apache Flink: queries in MATCH_RECOGNIZE, as near as possible to Fairlead's meaning.

`python flink_q.py W1.parquet Q2 [2]` in Flink's own environment prints one line of JSON. One task slot or as many as said,
streaming mode, a CSV file in (the Python package has no Parquet format) and CSV out; W1 may be a folder of Parquet files.
Timed is the second job of the process; a first one over 1,000 events has warmed it up.

Row patterns are contiguous, so what may lie between the events is said too. No row is used by two matches: AFTER MATCH SKIP
PAST LAST ROW also drops an A that came before the C of a match, which PREFIX INFIX keeps. So there are fewer relations. Q1
(A AND B in any order, with events that stay behind) is not expressible.

A pattern must not end with a greedy quantifier, so a run has the row that ends it after it, and the next match begins there:
Q3r and Q7 have the same relations, but for those that the end of the stream leaves open. A session (Q10) ends with the next row
of its key. DEFINE knows no count(DISTINCT), so Q8 is not expressible, and neither is Q11, since only one match begins at a row.
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
    "Q3r": """
        MEASURES A.n AS a, FIRST(R.n) AS b, LAST(R.n) AS c
        AFTER MATCH SKIP TO FIRST E
        PATTERN (A X*? R+ E)
        DEFINE A AS A.kind = 'A', R AS R.kind = 'B' AND (LAST(R.price, 1) IS NULL OR R.price > LAST(R.price, 1)),
               E AS E.kind = 'A' OR E.price <= LAST(R.price)""",
    "Q7": """
        MEASURES FIRST(D.n) AS a, LAST(D.n) AS b, LAST(U.n) AS c
        AFTER MATCH SKIP TO FIRST E
        PATTERN (D{3,} U{3,} E)
        DEFINE D AS LAST(D.price, 1) IS NULL OR D.price < LAST(D.price, 1),
               U AS U.price > LAST(D.price) AND (LAST(U.price, 1) IS NULL OR U.price > LAST(U.price, 1)),
               E AS E.price <= LAST(U.price)""",
    "Q9": """
        MEASURES FIRST(A.n) AS a, LAST(A.n) AS b, L.n AS c
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A{100} L) WITHIN INTERVAL '100.001' SECOND
        DEFINE L AS TRUE""",
    "Q10": """
        MEASURES FIRST(S.n) AS a, LAST(S.n) AS b, E.n AS c
        AFTER MATCH SKIP TO FIRST E
        PATTERN (S+ E)
        DEFINE S AS LAST(S.ms, 1) IS NULL OR S.ms - LAST(S.ms, 1) <= 2000,
               E AS E.ms - LAST(S.ms) > 2000""",
}
KINDS = {"Q3r": "WHERE kind <> 'C'", "Q7": "WHERE kind = 'A'"}


def table_of(environment, name, place):
    environment.execute_sql(f"""CREATE TABLE {name}_events (
        n BIGINT, kind STRING, k INT, price DOUBLE, ms BIGINT,
        rowtime AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR rowtime AS rowtime
    ) WITH ('connector' = 'filesystem', 'path' = '{place / name}.csv', 'format' = 'csv')""")
    environment.execute_sql(f"""CREATE TABLE {name}_found (a BIGINT, b BIGINT, c BIGINT)
        WITH ('connector' = 'filesystem', 'path' = '{place / name}.out', 'format' = 'csv')""")


def seconds(environment, name, query):
    began = perf_counter()
    rows = f"(SELECT * FROM {name}_events {KINDS.get(query, '')})"
    environment.execute_sql(f"""INSERT INTO {name}_found SELECT a, b, c FROM {rows}
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
