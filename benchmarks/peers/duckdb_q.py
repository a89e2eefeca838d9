"""DuckDB: set SQL with window functions, where it can say what a query asks.

`python duckdb_q.py W1.parquet Q10` in DuckDB's own environment prints one line of JSON. One thread; the events are a table in
memory before the clock starts; the clock stops when the result is an Arrow table.

- Q3r, Q10: the same relations. A run is an island of rows between two breaks; what follows the A of a key is the run that
  belongs to it. An island that the end of the stream has cut is left out, as it is not decided.
- Q7: islands of falling and of rising prices. The last row of a rise begins the next fall, too, which PREFIX INFIX disposes of:
  more relations.
- Q8, Q9: a set has no disposal, so every row above the threshold is counted: more relations.
- Q11: a join of three, of which nothing is disposed: more relations.
"""

import json
import sys
from time import perf_counter, process_time

import duckdb
import pyarrow.parquet as pq

ISLANDS = """
    WITH rows AS (SELECT n, key, type, price, lag(type) OVER w AS before_type, lag(price) OVER w AS before,
                         lead(n) OVER w AS next
                  FROM events WHERE type <> 'C' WINDOW w AS (PARTITION BY key ORDER BY n)),
    marked AS (SELECT *, type <> 'B' OR before_type IS DISTINCT FROM 'B' OR price <= before AS breaks FROM rows),
    numbered AS (SELECT *, sum(breaks::INT) OVER (PARTITION BY key ORDER BY n ROWS UNBOUNDED PRECEDING) AS island FROM marked)
    SELECT key, island, list(n ORDER BY n) AS members FROM numbered WHERE type = 'B' GROUP BY key, island
    HAVING bool_or(before_type = 'A') AND bool_and(next IS NOT NULL)"""
VALLEYS = """
    WITH rows AS (SELECT n, key, sign(price - lag(price) OVER w) AS way, lead(n) OVER w AS next
                  FROM events WHERE type = 'A' WINDOW w AS (PARTITION BY key ORDER BY n)),
    marked AS (SELECT *, way IS DISTINCT FROM lag(way) OVER (PARTITION BY key ORDER BY n) AS breaks FROM rows),
    numbered AS (SELECT *, sum(breaks::INT) OVER (PARTITION BY key ORDER BY n ROWS UNBOUNDED PRECEDING) AS island FROM marked),
    islands AS (SELECT key, island, any_value(way) AS way, count(*) AS steps, list(n ORDER BY n) AS members,
                bool_and(next IS NOT NULL) AS over FROM numbered GROUP BY key, island),
    pairs AS (SELECT *, lag(way) OVER w AS way_before, lag(steps) OVER w AS steps_before, lag(members) OVER w AS fallen
              FROM islands WINDOW w AS (PARTITION BY key ORDER BY island))
    SELECT key, fallen || members AS members FROM pairs
    WHERE way = 1 AND steps >= 3 AND way_before = -1 AND steps_before >= 2 AND over"""
SESSIONS = """
    WITH rows AS (SELECT n, key, moment, coalesce(moment - lag(moment) OVER w > INTERVAL 2 SECONDS, false)::INT AS breaks
                  FROM events WINDOW w AS (PARTITION BY key ORDER BY n)),
    numbered AS (SELECT *, sum(breaks) OVER (PARTITION BY key ORDER BY n ROWS UNBOUNDED PRECEDING) AS session FROM rows)
    SELECT key, session, list(n ORDER BY n) AS members FROM numbered GROUP BY key, session
    HAVING max(moment) < (SELECT max(moment) FROM events) - INTERVAL 2 SECONDS"""


def above(counted, seconds, least):
    return f"""SELECT n FROM (SELECT n, count({counted}) OVER (PARTITION BY key ORDER BY moment
        RANGE BETWEEN INTERVAL {seconds} SECONDS PRECEDING AND CURRENT ROW) AS many FROM events) WHERE many >= {least}"""


QUERIES = {
    "Q3r": ISLANDS,
    "Q7": VALLEYS,
    "Q8": above("DISTINCT volume", 60, 20),
    "Q9": above("*", 100, 101),
    "Q10": SESSIONS,
    "Q11": """SELECT a.n, b.n, c.n FROM events a JOIN events b USING (key) JOIN events c USING (key)
        WHERE a.type = 'A' AND b.type = 'B' AND c.type = 'C'
        AND a.n < b.n AND b.n < c.n AND c.moment - a.moment <= INTERVAL 10 SECONDS""",
}


def main(path, query):
    table = pq.read_table(path)
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.register("given", table)
    database.execute('CREATE TABLE events AS SELECT row_number() OVER () - 1 AS n, * RENAME ("at" AS moment) FROM given')
    wall, cpu = perf_counter(), process_time()
    found = database.sql(QUERIES[query]).to_arrow_table()
    wall, cpu = perf_counter() - wall, process_time() - cpu
    print(json.dumps({"events": table.num_rows, "relations": found.num_rows, "wall_s": wall, "cpu_s": cpu}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
