"""What an event costs as queues and subscriptions grow: `python -m benchmarks.growth --plot growth.png`.

- Queues: Q5 over a backlog of n events of type A that no B exceeds. The backlog is fed first, untimed; then W1 continues and
  is timed. An exhaustive search passes the whole backlog at every match, so its cost rises in proportion to n.
- Subscriptions: Q6 with n bands of price. Every A and B is accepted by one of them, however many there are.

Each point is a process of its own with a limit; one that runs into it is given as such. Plain Python gets through as many
events as a few seconds allow. The kernel by hand is timed as the difference of a run with and one without the timed events.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import by_hand, workload
from benchmarks.fairlead_side import batches, matcher_of, python_engine
from benchmarks.measure import load, machine, module, peak_mb, spawn

BATCH_ROWS = 65_536
BATCHES = 3
PROBE_ROWS = 512
GROWN = 4
SIZES = {"queue": (1_000, 10_000, 100_000, 1_000_000), "subscriptions": (1, 10, 100, 1_000, 10_000)}


def plan_for(axis: str, size: int) -> Any:
    import fairlead

    if axis == "queue":
        return fairlead.compile(workload.QUERIES["Q5"].rules())
    return fairlead.compile(f"{workload.TYPES}\n{workload.q6(size)}\n")


def fairlead_point(axis: str, size: int, seconds: float) -> dict[str, Any]:
    from fairlead.engine import Engine
    from fairlead.transport.events import read_events

    plan = plan_for(axis, size)
    backlog = size if axis == "queue" else 0
    table = workload.table(workload.stream(backlog + (BATCHES + 2) * BATCH_ROWS, backlog))
    engine, place = Engine(plan), 0

    def fed(part: pa.Table) -> tuple[float, float]:
        """Seconds on the wall and of the processor in the engine for these events, which stand next in the order."""
        nonlocal place
        wall = cpu = 0.0
        for columns in read_events(part, plan.catalogue, start=place):
            began, began_cpu = perf_counter(), process_time()
            engine.feed(columns)
            wall, cpu = wall + perf_counter() - began, cpu + process_time() - began_cpu
        place += part.num_rows
        return wall, cpu

    fed(_unread(table))
    fed(table.slice(0, backlog))
    taken, rows = backlog, PROBE_ROWS
    while True:  # a batch has a price of its own, so it is made as large as the time allows before anything is timed
        wall = fed(table.slice(taken, rows))[0]
        taken += rows
        if rows == BATCH_ROWS or wall * GROWN > seconds / 2:
            break
        rows = min(BATCH_ROWS, rows * GROWN)
    times = [fed(table.slice(taken + at * rows, rows)) for at in range(BATCHES)]
    walls, cpus = [wall for wall, _ in times], [cpu for _, cpu in times]
    return {
        "matcher": matcher_of(engine),
        "batch_rows": rows,
        "us_per_event": 1e6 * min(walls) / rows,
        "us_cpu_per_event": 1e6 * min(cpus) / rows,
        "spread": max(walls) / min(walls),
        "peak_mb": peak_mb(),
    }


def _unread(table: pa.Table) -> pa.Table:
    """Two batches of events that neither Q5 nor Q6 reads, earlier than all others: the engine moves to machine code after some
    number of events, and should have done so before anything is timed."""
    rows = table.slice(0, 1).take([0] * 2 * BATCH_ROWS)
    return rows.set_column(0, "type", pa.array(["C"] * rows.num_rows))


def python_point(axis: str, size: int, seconds: float) -> dict[str, Any]:
    plan = plan_for(axis, size)
    backlog = size if axis == "queue" else 0
    table = workload.table(workload.stream(backlog + 3 * BATCH_ROWS, backlog))
    engine = python_engine(plan)
    done, wall, cpu = 0, 0.0, 0.0
    for columns in batches(plan, table):
        for event in columns.events(plan.catalogue):
            if done == backlog:
                wall, cpu = perf_counter(), process_time()
            engine.arrive(event)
            done += 1
            if done > backlog and done % 16 == 0 and perf_counter() - wall > seconds:
                break
        else:
            continue
        break
    timed = done - backlog
    return {
        "events": timed,
        "us_per_event": 1e6 * (perf_counter() - wall) / timed,
        "us_cpu_per_event": 1e6 * (process_time() - cpu) / timed,
        "peak_mb": peak_mb(),
    }


def hand_point(axis: str, size: int, seconds: float) -> dict[str, Any]:
    backlog = size if axis == "queue" else 0
    rows = 4 * BATCH_ROWS
    whole = workload.stream(backlog + rows, backlog)
    if axis == "queue":
        kernel: Callable[[workload.Stream], Any] = by_hand.q5
    else:
        edges = np.array(workload.bands(size))

        def kernel(data: workload.Stream) -> Any:
            return by_hand._q6(data.type, data.price, edges)

    def best(data: workload.Stream) -> float:
        times = []
        for _ in range(7):
            began = process_time()
            kernel(data)
            times.append(process_time() - began)
        return min(times)

    before = whole.prefix(backlog)
    return {"events": rows, "us_cpu_per_event": 1e6 * (best(whole) - (best(before) if backlog else 0.0)) / rows}


SIDES = {"fairlead": fairlead_point, "python": python_point, "by_hand": hand_point}


def measure(axis: str, sizes: tuple[int, ...], limit: float, seconds: float) -> list[dict[str, Any]]:
    points = []
    for size in sizes:
        point: dict[str, Any] = {"axis": axis, "size": size}
        for side in SIDES:
            child = spawn(module("growth", "--point", side, axis, size, "--seconds", seconds), limit)
            point[side] = child.json()
        points.append(point)
        print(row(point), flush=True)
    return points


def row(point: dict[str, Any]) -> str:
    def cost(side: str) -> str:
        found = point[side]
        return found["failed"] if "failed" in found else f"{found['us_cpu_per_event']:.3f}"

    return (
        f"| {point['size']:,} {point['axis']} | {cost('fairlead')} | {cost('python')} | {cost('by_hand')} "
        f"| {point['fairlead'].get('matcher', '–')} | {point['fairlead'].get('batch_rows', 0):,} "
        f"| {point['fairlead'].get('peak_mb', float('nan')):.0f} |"
    )


HEADER = (
    "| at | fairlead, µs CPU an event | plain Python | by hand | matcher | rows a batch | peak memory, MB |\n"
    "|---|---|---|---|---|---|---|"
)


def plot(points: list[dict[str, Any]], path: str) -> None:
    try:
        import matplotlib
    except ImportError:
        print(f"no plot: matplotlib is not installed; `pip install matplotlib` and repeat to get {path}")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    axes_names = [axis for axis in SIZES if any(point["axis"] == axis for point in points)]
    figure, panes = pyplot.subplots(1, len(axes_names), figsize=(6 * len(axes_names), 4.2), squeeze=False)
    titles = {"queue": "events queued (Q5)", "subscriptions": "subscriptions (Q6)"}
    names = {"fairlead": "Fairlead", "python": "plain Python", "by_hand": "kernel by hand"}
    for pane, axis in zip(panes[0], axes_names, strict=True):
        for side, marker in zip(SIDES, "os^", strict=True):
            found = [(p["size"], p[side]["us_cpu_per_event"]) for p in points if p["axis"] == axis and "failed" not in p[side]]
            if found:
                pane.plot(*zip(*found, strict=True), marker=marker, label=names[side])
        pane.set(xscale="log", yscale="log", xlabel=titles[axis], ylabel="µs CPU per event")
        pane.grid(True, which="major", alpha=0.3)
        pane.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost per event as queues and subscriptions grow.")
    parser.add_argument(
        "--point", nargs=3, metavar=("SIDE", "AXIS", "SIZE"), help="one point, as JSON (used by this command itself)"
    )
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for a point, then it is given up")
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds of timed events aimed at for a point")
    parser.add_argument("--subscriptions-most", type=int, default=1_000)
    parser.add_argument("--queue-most", type=int, default=1_000_000)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="PNG")
    given = parser.parse_args()
    if given.point:
        side, axis, size = given.point
        print(json.dumps(SIDES[side](axis, int(size), given.seconds)))
        return
    points = everything(given.limit, given.seconds, given.queue_most, given.subscriptions_most)
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"machine": machine(), "load": load(), "growth": points}, file, indent=1)
    if given.plot:
        plot(points, given.plot)


def everything(limit: float, seconds: float, queue_most: int, subscriptions_most: int) -> list[dict[str, Any]]:
    print(HEADER)
    most = {"queue": queue_most, "subscriptions": subscriptions_most}
    return [
        point
        for axis, sizes in SIZES.items()
        for point in measure(axis, tuple(size for size in sizes if size <= most[axis]), limit, seconds)
    ]


if __name__ == "__main__":
    main()
