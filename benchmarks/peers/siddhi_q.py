"""Siddhi through PySiddhi: Q2 and Q3 as sequences in its query language, as near as possible to Fairlead's meaning.

`python siddhi_q.py W1.parquet Q2` in Siddhi's own environment prints one line of JSON. Events are sent from Python one by
one with their own times (playback), as PySiddhi does it; the start of the JVM is not counted.

`every` begins a match at each A, and an event may be used by several matches: there is no disposal. So there are more relations
where several A wait for the same B. Q1 (`A and B` in any order with a predicate across them and events that stay queued) has no
equal: a logical pattern waits for one pair at a time.
"""

import json
import sys
from time import perf_counter

import pyarrow.parquet as pq
from PySiddhi.core.SiddhiManager import SiddhiManager

PATTERNS = {
    "Q2": "every e1=W[kind == 'A'] -> e2=W[kind == 'B'] -> e3=W[kind == 'C'] within 10 sec",
    "Q3": "every e1=W[kind == 'A'] -> e2=W[kind == 'B'] -> e3=W[kind == 'B' and price > e2.price]"
    " -> e4=W[kind == 'B' and price > e3.price] within 10 sec",
}


def main(path, query):
    table = pq.read_table(path)
    rows = list(
        zip(
            [each // 1000 for each in table["at"].cast("int64").to_pylist()],
            table["type"].to_pylist(),
            table["key"].to_pylist(),
            table["price"].to_pylist(),
            strict=True,
        )
    )
    app = f"""@app:playback
        define stream W (kind string, key int, price double);
        define table Total (n long);
        partition with (key of W) begin
            from {PATTERNS[query]} select e1.price as a, e2.price as b insert into Found;
        end;
        from Found select count() as n update or insert into Total set Total.n = n on true;"""
    manager = SiddhiManager()
    from jnius import autoclass

    runtime = manager.createSiddhiAppRuntime(app)
    text, whole, decimal = (autoclass(f"java.lang.{name}") for name in ("String", "Integer", "Double"))
    handler = runtime.getInputHandler("W").input_handler_proxy
    runtime.start()
    began = perf_counter()
    for at, kind, key, price in rows:
        handler.send(at, [text(kind), whole(key), decimal(price)])
    wall = perf_counter() - began
    answer = runtime.siddhi_app_runtime_proxy.query("from Total select n")
    found = answer[0].getData(0) if answer else 0
    print(json.dumps({"events": table.num_rows, "relations": int(str(found)), "wall_s": wall}), flush=True)
    manager.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
