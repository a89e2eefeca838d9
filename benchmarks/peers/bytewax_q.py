"""bytewax: has no pattern language, so the queries are stateful operators written by hand in Python, with Fairlead's meaning.

`python bytewax_q.py W1.parquet Q2` in bytewax's own environment prints one line of JSON. One worker; the events are Python
tuples in memory before the clock starts; the clock stops when the flow has ended. An operator sees one key, so a session (Q10)
ends with the next event of its key: those that only the events of other keys could end are missing.
"""

import json
import sys
from collections import Counter, deque
from time import perf_counter, process_time

import bytewax.operators as op
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

WINDOW_US = 10_000_000
MINUTE_US = 60_000_000


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


def q3r(state, event):
    """The oldest A, and the rising B after it that stand next to each other."""
    begun, run, last = state or (None, [], 0.0)
    kind, _, price, position = event
    if kind == "B" and run and price > last:
        run.append(position)
        return (begun, run, price), []
    found = [(begun, *run)] if run else []
    if run:
        begun, run = None, []
    if kind == "A":
        begun = position if begun is None else begun
    elif begun is not None:
        run, last = [position], price
    return (begun, run, last), found


def q7(state, event):
    """A fall of at least three A, then a rise of at least three."""
    falls, rises, last = state or ([], [], 0.0)
    _, _, price, position = event
    found = []
    if rises:
        if price > last:
            rises.append(position)
        else:
            found = [(*falls, *rises)] if len(rises) >= 3 else []
            bottom = rises[-1]
            falls = [bottom, position] if not found and price < last else [position]
            rises = []
    elif falls and price < last:
        falls.append(position)
    elif len(falls) >= 3 and price > last:
        rises = [position]
    else:
        falls = [position]
    return (falls, rises, price), found


def q8(state, event):
    """Twenty different volumes within a minute."""
    queue, often = state or (deque(), Counter())
    _, at, volume, position = event
    while queue and queue[0][0] < at - MINUTE_US:
        gone = queue.popleft()[1]
        often[gone] -= 1
        if not often[gone]:
            del often[gone]
    queue.append((at, volume, position))
    often[volume] += 1
    if len(often) < 20:
        return (queue, often), []
    return None, [tuple(each[2] for each in queue)]


def q9(state, event):
    """More than a hundred events within a hundred seconds."""
    queue = state or deque()
    _, at, _, position = event
    while queue and queue[0][0] < at - 100_000_000:
        queue.popleft()
    queue.append((at, position))
    if len(queue) <= 100:
        return queue, []
    return None, [tuple(each[1] for each in queue)]


def q10(state, event):
    """A session ends after two seconds without an event."""
    run, last = state or ([], 0)
    _, at, _, position = event
    if run and last < at - 2_000_000:
        return ([position], at), [tuple(run)]
    run.append(position)
    return (run, at), []


STEPS = {"Q1": q1, "Q2": q2, "Q3": q3, "Q3r": q3r, "Q7": q7, "Q8": q8, "Q9": q9, "Q10": q10}
TYPES = {"Q1": "AB", "Q3": "AB", "Q3r": "AB", "Q7": "A"}


def main(path, query):
    table = pq.read_table(path)
    columns = [table[name].to_pylist() for name in ("type", "key", "volume" if query == "Q8" else "price")]
    times = table["at"].cast("int64").to_pylist()
    events = [
        (str(key), (kind, at, value, position))
        for position, (kind, key, value, at) in enumerate(zip(*columns, times, strict=True))
        if kind in TYPES.get(query, "ABC")
    ]
    found = []
    flow = Dataflow("peer")
    stream = op.input("in", flow, TestingSource(events, batch_size=1_000))
    keyed = op.stateful_map("match", stream, STEPS[query])
    op.output("out", op.flat_map("relations", keyed, lambda item: item[1]), TestingSink(found))
    wall, cpu = perf_counter(), process_time()
    run_main(flow)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    print(json.dumps({"events": table.num_rows, "relations": len(found), "wall_s": wall, "cpu_s": cpu}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
