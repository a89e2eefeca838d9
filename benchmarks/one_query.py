"""One query, in a process of its own so that its memory is its own: `python -m benchmarks.one_query Q1` prints JSON.

The order of the steps keeps the numbers comparable:

1. A first pass of each side, not timed: kernels are compiled, and if Fairlead does not get through the stream within the limit,
   a tenth of it is tried, and so on. Every side then gets the same number of events.
2. Timed repeats, the sides in turn, so that a busy neighbour disturbs all of them alike. pyarrow has one thread.
3. The result as a full table (members as text), which is dear, once or a few times.
4. Plain Python on as long a prefix as a fixed time allows.
5. Agreement: relations and members' positions of all sides.
"""

from __future__ import annotations

import argparse
import json
from time import perf_counter
from typing import Any

import pyarrow as pa

import fairlead
from benchmarks import by_hand, python_loop, workload
from benchmarks.fairlead_side import batches, feed, matcher_of, positions
from benchmarks.measure import TimeLimit, Timing, load, peak_mb, time_limit

EVENTS_LEAST = 500
HAND_REPEATS = 3
"""Passes of the kernel by hand for each of Fairlead's: they last milliseconds, so a single lost time slice would show."""


def measure(query: workload.Query, events: int, repeat: int, limit: float, python_seconds: float) -> dict[str, Any]:
    pa.set_cpu_count(1)
    plan = fairlead.compile(query.rules())
    ran_out = []
    while True:  # 1
        data = workload.stream(events, query.backlog_of(events))
        table = workload.table(data)
        loaded_mb = peak_mb()
        given = batches(plan, table)
        try:
            with time_limit(limit):
                first = perf_counter()
                engine, _ = feed(plan, given)
                first = perf_counter() - first
            break
        except TimeLimit:
            ran_out.append(events)
            events //= 10
            if events < EVENTS_LEAST:
                return {"failed": f"not even {events * 10:,} events within {limit:.0f} s", "query": query.name}
    fed_mb = peak_mb()
    hand = by_hand.BY_HAND[query.name]
    hand(data)  # numba compiles anew for Arrow's read-only columns, so both ways are gone once
    wanted = hand(by_hand.columns_of(table))

    timings = {name: Timing(events) for name in ("match", "feed", "result_table", "by_hand", "by_hand_from_arrow")}
    began = perf_counter()
    for done in range(repeat):  # 2
        result = timings["match"].run(lambda: fairlead.match(plan, table))
        _, found = timings["feed"].run(lambda: feed(plan, given))
        for _ in range(HAND_REPEATS):
            timings["by_hand"].run(lambda: hand(data))
            timings["by_hand_from_arrow"].run(lambda: hand(by_hand.columns_of(table)))
        elapsed = perf_counter() - began
        if elapsed / (done + 1) * (done + 2) > 3 * limit:
            break
    matched_mb = peak_mb()
    for _ in range(min(repeat, 2)):  # 3
        wall, cpu = timings["match"].wall_s[-1], timings["match"].cpu_s[-1]
        one = Timing(events)
        one.run(result.to_arrow)
        timings["result_table"].add(wall + one.wall_s[0], cpu + one.cpu_s[0])
        if one.wall_s[0] > limit / 10:
            break
    python = python_loop.timed(query.rules(), table, python_seconds, query.backlog_of(events))  # 4
    got = positions(result, wanted)  # 5
    prefix = data.prefix(int(python["fed"]))
    agree = found == len(result) and by_hand.same(got, wanted) and by_hand.relations_in(hand(prefix)) == python["relations"]
    return {
        "query": query.name,
        "says": query.says,
        "events": events,
        "ran_out_at": ran_out,
        "backlog": query.backlog_of(events),
        "matcher": matcher_of(engine),
        "first_pass_s": first,
        "relations": len(result),
        "agree": bool(agree),
        **{name: timing.to_json() for name, timing in timings.items()},
        "python": python,
        "peak_mb": {"stream loaded": loaded_mb, "matcher alone": fed_mb, "match": matched_mb, "with result table": peak_mb()},
        "ratio": {
            "feed / by_hand": _ratios(timings["feed"], timings["by_hand"]),
            "match / by_hand_from_arrow": _ratios(timings["match"], timings["by_hand_from_arrow"]),
        },
        "load": load(),
    }


def _ratios(ours: Timing, hand: Timing) -> list[float]:
    """For each repeat: CPU seconds by hand (the best of its passes in this repeat) over ours; 1 is the ceiling. Sorted."""
    passes = [hand.cpu_s[at : at + HAND_REPEATS] for at in range(0, len(hand.cpu_s), HAND_REPEATS)]
    return sorted(min(each) / mine for each, mine in zip(passes, ours.cpu_s, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="One query; use benchmarks.kernels for all of them.")
    parser.add_argument("query", choices=sorted(workload.QUERIES))
    parser.add_argument("--events", type=int, default=workload.EVENTS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--python-seconds", type=float, default=5.0)
    given = parser.parse_args()
    query = workload.QUERIES[given.query]
    print(json.dumps(measure(query, given.events, given.repeat, given.limit, given.python_seconds)))


if __name__ == "__main__":
    main()
