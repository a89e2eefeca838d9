"""Apache Flink in event time: A THEN B THEN C in MATCH_RECOGNIZE over a file whose events are out of order.

`python flink_event_time.py EVENTS.parquet DELAY_MS 1,2,4 REPEATS [FILES]` in Flink's own environment prints one line of JSON:
for every degree of parallelism and repeat the seconds and the matches, as triples of row numbers. The watermark is the time
less the delay; later rows are dropped, as is Flink's default. With several FILES the rows are dealt
out to them in turn, as if each were what one publisher has written.

The pattern is that of flink_q.py, with what it says about its meaning: no row is in two matches.
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
from flink_q import PATTERNS


def declare(environment, name, place, delay_ms):
    environment.execute_sql(f"""CREATE TABLE {name}_events (
        n BIGINT, kind STRING, k INT, price DOUBLE, ms BIGINT,
        rowtime AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR rowtime AS rowtime - INTERVAL '{delay_ms / 1000:.3f}' SECOND
    ) WITH ('connector' = 'filesystem', 'path' = '{place / "in"}', 'format' = 'csv')""")
    environment.execute_sql(f"""CREATE TABLE {name}_found (a BIGINT, b BIGINT, c BIGINT)
        WITH ('connector' = 'filesystem', 'path' = '{place / "out"}', 'format' = 'csv')""")


def run(environment, name, rows, files, delay_ms):
    """Seconds, CPU seconds, and the matches in order of their last row."""
    place = Path(tempfile.mkdtemp())
    (place / "in").mkdir()
    plain = pc.WriteOptions(include_header=False, quoting_style="none")
    for at in range(files):
        mine = rows if files == 1 else rows.take(pa.array(range(at, rows.num_rows, files)))
        pc.write_csv(mine, place / "in" / f"{at}.csv", plain)
    declare(environment, name, place, delay_ms)
    with Watch() as watch:
        cpu, began = watch.cpu_s(), perf_counter()
        environment.execute_sql(f"""INSERT INTO {name}_found SELECT a, b, c FROM {name}_events
            MATCH_RECOGNIZE (PARTITION BY k ORDER BY rowtime {PATTERNS["Q2"]})""").wait()
        wall, cpu = perf_counter() - began, watch.cpu_s() - cpu
    found = []
    for each in (each for each in (place / "out").rglob("*") if each.is_file()):
        found += [[int(value) for value in line.split(",")] for line in each.read_text().splitlines()]
    shutil.rmtree(place)
    return wall, cpu, sorted(found)


def main(path, delay_ms, degrees, repeats, files="1"):
    table = pq.read_table(path)
    rows = pa.table(
        {
            "n": pa.array(range(table.num_rows), pa.int64()),
            "kind": table["type"],
            "k": table["key"],
            "price": table["price"],
            "ms": pa.array([each // 1000 for each in table["at"].cast("int64").to_pylist()], pa.int64()),
        }
    )
    made = []
    for degree in degrees.split(","):
        environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        environment.get_config().set("parallelism.default", degree)
        environment.get_config().set("pipeline.object-reuse", "true")
        run(environment, "warm", rows.slice(0, 1_000), int(files), int(delay_ms))
        for repeat in range(int(repeats)):
            wall, cpu, found = run(environment, f"timed{repeat}", rows, int(files), int(delay_ms))
            made.append({"parallelism": int(degree), "wall_s": wall, "cpu_s": cpu, "matches": found})
    print(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
