"""Which THEN pairs a subscriber finds live, and how much later, without and with ORDER BY: by rate, publishers and delay.

    python -m benchmarks.live.then_pairs --seconds 3 --rates 1000 --publishers 2 --delays 100,1000,5000

Half of the publishers, each a process, publish A at t, the others its B half a millisecond later, by one clock. The right
answer is a pair for each A. Without ORDER BY the log decides which is first; with ORDER BY the times decide, in one topic and
in two, and what arrives later than DELAY is late. The latency is from the time of B to the delivery, at the median and at 99 of
100; what the order adds is the difference of the medians to the order of the log. A heartbeat follows the last event.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import product
from subprocess import PIPE

import numpy as np

import fairlead
from benchmarks.measure import load

TYPES = "TYPE A (n INT, at TIMESTAMP) TIME at TYPE B (n INT, at TIMESTAMP) TIME at"
RULE = "SUBSCRIPTION S MATCH A a THEN B b PER n WITHIN 10 SECONDS"
LAYOUTS = {"one topic": "", "two topics": "TOPIC a (A) TOPIC b (B)"}
WAIT = 0.5
"""Seconds until the first event, once all publishers are connected."""
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


async def publish(url: str, name: str, share: int, shares: int, seconds: float, rate: float) -> None:
    """The events of one type whose number is `share` modulo `shares`, from the time that is said when all are connected."""
    async with fairlead.connect(url, source=f"p{name}{share}") as fl:
        await fl.publish("Heartbeat", at=LONG_AGO, wait=True)
        print("connected", flush=True)
        begin = float(await asyncio.to_thread(sys.stdin.readline))
        lag = 0.0 if name == "A" else 0.0005
        for number in range(share, int(seconds * rate), shares):
            due = begin + lag + number / rate
            while (now := time.time()) < due:
                await asyncio.sleep(min(due - now, 0.001))
            await fl.publish(name, n=number, at=datetime.fromtimestamp(due, UTC))
        await fl.flush()


async def trial(layout: str, order: str, seconds: float, rate: float, publishers: int) -> list[float]:
    """The latencies of all pairs that were found."""
    async with fairlead.connect(data=tempfile.mkdtemp()) as fl:
        await fl.declare(f"{LAYOUTS[layout]} {TYPES}")
        async with fl.subscribe(f"{order} {RULE}", start="earliest") as sub:
            command = [sys.executable, "-m", "benchmarks.live.then_pairs", "--url", str(fl.url)]
            command += ["--seconds", str(seconds), "--rates", str(rate), "--publish"]
            children = [
                subprocess.Popen([*command, name, str(at), str(publishers // 2)], stdin=PIPE, stdout=PIPE, text=True)
                for name in "AB"
                for at in range(publishers // 2)
            ]
            await asyncio.to_thread(_begin, children)
            delays: list[float] = []
            ended = False
            while True:
                found = await sub.next_within(0.5)
                if found is not None:
                    delays.append(time.time() - found.members[-1]["at"].timestamp())
                elif ended and await sub.has_passed(await sub.ends()):
                    return delays
                elif all(each.poll() is not None for each in children) and not ended:
                    ended = True
                    await fl.publish("Heartbeat", at=datetime.fromtimestamp(time.time() + 60, UTC), wait=True)


def _begin(children: list[subprocess.Popen[str]]) -> None:
    for each in children:
        assert each.stdout is not None
        each.stdout.readline()
    begin = time.time() + WAIT
    for each in children:
        assert each.stdin is not None
        print(begin, file=each.stdin, flush=True)


def shown(delays: list[float], right: int, before: list[float]) -> str:
    middle, most = (float(each) for each in np.percentile(delays, [50, 99])) if delays else (0.0, 0.0)
    added = f"{1e3 * (middle - float(np.median(before))):,.0f}" if before and before is not delays else "–"
    return f"{len(delays):,} of {right:,} | {len(delays) / right:.1%} | {1e3 * middle:,.0f} | {1e3 * most:,.0f} | {added}"


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--seconds", type=float, default=3.0)
    given.add_argument("--rates", default="1000", help="pairs a second")
    given.add_argument("--publishers", default="2", help="processes; even numbers")
    given.add_argument("--delays", default="100,1000,5000", help="milliseconds")
    given.add_argument("--layouts", default=",".join(LAYOUTS))
    given.add_argument("--url", help=argparse.SUPPRESS)
    given.add_argument("--publish", nargs=3, help=argparse.SUPPRESS)
    asked = given.parse_args()
    rates = [float(each) for each in asked.rates.split(",")]
    if asked.publish is not None:
        name, share, shares = asked.publish
        asyncio.run(publish(asked.url, name, int(share), int(shares), asked.seconds, rates[0]))
        return
    print(f"load average {load()}\n")
    print("| layout | pairs/s | publishers | order | pairs found | share | p50 ms | p99 ms | added, p50 ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    orders = ["", *(f"ORDER BY at DELAY {each} MILLISECONDS" for each in asked.delays.split(",") if each)]
    for layout, rate, publishers in product(asked.layouts.split(","), rates, map(int, asked.publishers.split(","))):
        before: list[float] = []
        for order in orders:
            delays = asyncio.run(trial(layout, order, asked.seconds, rate, publishers))
            before = before or delays
            told = f"| {layout} | {rate:,.0f} | {publishers} | {order or 'the order of the log'} |"
            print(told, shown(delays, int(asked.seconds * rate), before), "|", flush=True)
    print(f"\nload average {load()}")


if __name__ == "__main__":
    main()
