"""The command: `.venv/bin/python -m benchmarks.kernels [--events N] [--queries Q1,Q2] [--repeat 5] [--json FILE] [--plot PNG]`.

Prints machine and versions, then for each query events a second of Fairlead, of plain Python and of a kernel by hand, with
spread, CPU seconds, agreement, compile time and memory; then `fairlead run` on a Parquet file; then growth. README.md says
what each number means.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import compile_time, growth, peers, run_command, workload
from benchmarks.measure import load, machine, module, short, spawn

SIDES = {
    "feed": "Fairlead, matcher alone",
    "match": "Fairlead, Arrow table to index columns, ids and receipt (`match`)",
    "result_table": "Fairlead, … and the full result table (`to_arrow`)",
    "by_hand": "kernel by hand, ready columns",
    "by_hand_from_arrow": "kernel by hand, from the Arrow table",
}


def print_machine(found: dict[str, Any]) -> None:
    print(f"{found['processor']}, {found['cores']} cores, {found['memory_gib']} GiB, {found['system']}")
    print(", ".join(f"{name} {found[name]}" for name in ("fairlead", "python", "numba", "llvmlite", "numpy", "pyarrow")))
    print(
        f"commit {found['commit']}; load average {' '.join(map(str, load()))} (above {found['cores']}: the machine is shared)"
    )


def print_query(found: dict[str, Any]) -> None:
    print(f"\n## {found['query']}: {found['says']}")
    stopped = "".join(f"; {events:,} events were not done within the limit" for events in found["ran_out_at"])
    backlog = f", {found['backlog']:,} of them the backlog" if found["backlog"] else ""
    verdict = "all sides agree" if found["agree"] else "THE SIDES DISAGREE"
    print(f"{found['events']:,} events{backlog}; {found['relations']:,} relations, {verdict}{stopped}")
    print(f"matcher: {found['matcher']}; load average {' '.join(map(str, found['load']))}\n")
    print("| | events/s best | median | spread | events per CPU s, best | CPU s, best |\n|---|---|---|---|---|---|")
    for side, title in SIDES.items():
        timing = found[side]
        if timing:
            numbers = [short(timing[f"events_per_{each}"]) for each in ("s_best", "s_median", "cpu_s_best")]
            print(f"| {title} | {numbers[0]} | {numbers[1]} | {repeats(timing)} | {numbers[2]} | {timing['cpu_s_best']:.3f} |")
    python = found["python"]
    where = "after the backlog" if found["backlog"] else "from the start"
    print(
        f"| plain Python, {python['events']:,} events {where} | {short(python['events_per_s'])} | – | 1 run "
        f"| {short(python['events_per_cpu_s'])} | {python['cpu_s']:.3f} |"
    )
    ratio = {side: found[side]["events_per_cpu_s_best"] for side in SIDES if found[side]}
    print(
        f"\nFairlead / kernel by hand, in CPU time, median (range over repeats): {spread(found['ratio']['feed / by_hand'])} "
        f"matcher alone, {spread(found['ratio']['match / by_hand_from_arrow'])} from the Arrow table. "
        f"Fairlead (match) / plain Python: {ratio['match'] / python['events_per_cpu_s']:.1f}"
    )
    print("peak memory: " + ", ".join(f"{name} {size:.0f} MB" for name, size in found["peak_mb"].items()))


def spread(values: list[float]) -> str:
    return f"{median(values):.3f} ({values[0]:.3f} to {values[-1]:.3f})"


def repeats(timing: dict[str, Any]) -> str:
    return "1 run" if timing["repeats"] == 1 else f"{timing['spread']:.2f} of {timing['repeats']} runs"


def print_compile(found: dict[str, Any]) -> None:
    for name, title in (("cold", "empty cache"), ("cached", "from cache")):
        one = found[name]
        if not one or "failed" in one:
            print(f"kernel ready, {title}: {one.get('failed', '–')}")
            continue
        print(
            f"kernel ready, {title}: {one['kernel_ready_s']:.2f} s, after import {one['import_s']:.2f} s and plan "
            f"{one['plan_s']:.2f} s ({one['matcher']})"
        )


def print_run(found: dict[str, Any]) -> None:
    for way in run_command.WAYS:
        one = found[way]
        if "failed" in one:
            print(f"`fairlead run`, {way}: {one['failed']}")
        else:
            print(
                f"`fairlead run`, {way}: {short(one['events_per_s_best'])} events/s best, "
                f"{short(one['events_per_s_median'])} median, {repeats(one)}, "
                f"{one['cpu_s_best']:.2f} CPU s, {one['relations']:,} relations written, "
                f"peak {one['peak_mb']:.0f} MB"
            )
    if all("events_per_s_median" in found[way] for way in ("default", "one core")):
        times = found["default"]["events_per_s_median"] / found["one core"]["events_per_s_median"]
        print(f"`fairlead run`, default / one core, median: {times:.2f}")


def measure(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """One query, all its numbers, printed as soon as they are known."""
    options = ("--events", given.events, "--repeat", given.repeat, "--limit", given.limit)
    found = spawn(module("one_query", name, *options), 12 * given.limit + 60).json()
    if "failed" in found:
        print(f"\n## {name}\n{found['failed']}")
        return {"query": name, **found}
    print_query(found)
    query = workload.QUERIES[name]
    found["compile"] = compile_time.cold_and_cached(query, 2 * given.limit)
    print_compile(found["compile"])
    found["run"] = run_command.measure(query, given.events, min(3, given.repeat), 2 * given.limit)
    print_run(found["run"])
    for way in run_command.WAYS:
        written = found["run"][way].get("relations", found["relations"])
        if found["events"] == given.events and written != found["relations"]:
            print(f"`fairlead run`, {way}: WRITES {written:,} RELATIONS WHERE `match` FINDS {found['relations']:,}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Fairlead beside plain Python and kernels written by hand.")
    parser.add_argument("--events", type=int, default=workload.EVENTS)
    parser.add_argument("--queries", default=",".join(workload.QUERIES), metavar="Q1,Q2,…")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds for one pass over the stream, and for others as stated"
    )
    parser.add_argument("--no-growth", action="store_true", help="leave out the cost as queues and subscriptions grow")
    parser.add_argument("--peers", action="store_true", help="install other engines and measure them on the same stream")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="PNG", help="the growth as a plot (needs matplotlib)")
    given = parser.parse_args()
    names = given.queries.split(",")
    unknown = [name for name in names if name not in workload.QUERIES]
    if unknown:
        parser.error(f"no query {', '.join(unknown)}; there are {', '.join(workload.QUERIES)}")

    everything: dict[str, Any] = {"machine": machine(), "load": load()}
    print_machine(everything["machine"])
    print(f"`fairlead --help`: {(help_s := run_command.help_seconds(5)):.2f} s, best of 5")
    everything["help_s"] = help_s
    everything["queries"] = [measure(name, given) for name in names]
    if not given.no_growth:
        print("\n## Growth")
        everything["growth"] = growth.everything(1.5 * given.limit, 4.0, 1_000_000, 1_000)
        if given.plot:
            growth.plot(everything["growth"], given.plot)
    if given.peers:
        print("\n## Peers")
        everything["peers"] = peers.everything(given.events, 3 * given.limit)
    everything["load_after"] = load()
    print(f"\nload average {' '.join(map(str, load()))}")
    if given.json:
        Path(given.json).write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
