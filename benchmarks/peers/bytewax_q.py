"""bytewax: has no pattern language, so Q1 to Q3 are stateful operators written by hand in Python, with Fairlead's meaning.

`python bytewax_q.py W1.parquet Q2` in bytewax's own environment prints one line of JSON. One worker; the events are Python
tuples in memory before the clock starts; the clock stops when the flow has ended.
"""

import json
import sys
from time import perf_counter, process_time

import bytewax.operators as op
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

WINDOW_US = 10_000_000


def q1(state, event):
    """Queues of A and of B: the first in queue order that fits, both leave."""
    state = state or ([], [])
    kind, _, price, position = event
    mine, others = (state[0], state[1]) if kind == "A" else (state[1], state[0])
    for index, other in enumerate(others):
        if (price < other[0]) if kind == "A" else (other[0] < price):
            del others[index]
            return state, [(position, other[1])]
    mine.append((price, position))
    return state, []


def q2(state, event):
    """The oldest A, the first B after it."""
    a, b = state or ([], [])
    kind, at, _, position = event
    a, b = [x for x in a if x[0] >= at - WINDOW_US], [x for x in b if x[0] >= at - WINDOW_US]
    found = []
    if kind == "A":
        a.append((at, position))
    elif kind == "B":
        b.append((at, position))
    elif a:
        after = [x for x in b if x[1] > a[0][1]]
        if after:
            found = [(a[0][1], after[0][1], position)]
            a, b = a[1:], after[1:]
    return (a, b), found


def q3(state, event):
    """The oldest A, then the first rising pair of B below this one."""
    a, b = state or ([], [])
    kind, at, price, position = event
    a, b = [x for x in a if x[0] >= at - WINDOW_US], [x for x in b if x[0] >= at - WINDOW_US]
    if kind == "A":
        return ([*a, (at, position)], b), []
    if a:
        b = [x for x in b if x[1] > a[0][1]]
        for one, first in enumerate(b):
            for second in b[one + 1 :]:
                if first[2] < second[2] < price:
                    return (a[1:], []), [(a[0][1], first[1], second[1], position)]
    return (a, [*b, (at, position, price)]), []


TYPES = {"Q1": "AB", "Q2": "ABC", "Q3": "AB"}


def main(path, query):
    table = pq.read_table(path)
    columns = [table[name].to_pylist() for name in ("type", "key", "price")]
    times = table["at"].cast("int64").to_pylist()
    events = [
        (str(key), (kind, at, price, position))
        for position, (kind, key, price, at) in enumerate(zip(*columns, times, strict=True))
        if kind in TYPES[query]
    ]
    found = []
    step = {"Q1": q1, "Q2": q2, "Q3": q3}[query]
    flow = Dataflow("peer")
    stream = op.input("in", flow, TestingSource(events, batch_size=1_000))
    keyed = op.stateful_map("match", stream, step)
    op.output("out", op.flat_map("relations", keyed, lambda item: item[1]), TestingSink(found))
    wall, cpu = perf_counter(), process_time()
    run_main(flow)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    print(json.dumps({"events": table.num_rows, "relations": len(found), "wall_s": wall, "cpu_s": cpu}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
