"""Which THEN pairs a subscriber finds live, and how much later, without and with ORDER BY.

    python -m benchmarks.live.then_pairs --seconds 3 --rate 1000

Two processes publish, each one type: A at t, its B half a millisecond later, by one clock. The right answer is a pair for each
A. Without ORDER BY the log decides which is first; with ORDER BY the times decide, in one topic and in two, and what arrives
later than DELAY is late. The latency is from the time of B to the delivery, at the median and at 99 of 100; a heartbeat follows
the last event.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime

import numpy as np

import fairlead

TYPES = "TYPE A (n INT, at TIMESTAMP) TIME at TYPE B (n INT, at TIMESTAMP) TIME at"
RULE = "SUBSCRIPTION S MATCH A a THEN B b PER n WITHIN 10 SECONDS"
LAYOUTS = {"one topic": "", "two topics": "TOPIC a (A) TOPIC b (B)"}
ORDERS = ("", "ORDER BY at DELAY 100 MILLISECONDS", "ORDER BY at DELAY 1 SECOND", "ORDER BY at DELAY 5 SECONDS")
WAIT = 5.0
"""Seconds from the start of the publishers' processes to their first event."""


async def publish(url: str, name: str, begin: float, seconds: float, rate: float) -> None:
    async with fairlead.connect(url, source=f"p{name}") as fl:
        lag = 0.0 if name == "A" else 0.0005
        for number in range(int(seconds * rate)):
            due = begin + lag + number / rate
            while (now := time.time()) < due:
                await asyncio.sleep(min(due - now, 0.001))
            await fl.publish(name, n=number, at=datetime.fromtimestamp(due, UTC))
        await fl.flush()


async def trial(layout: str, order: str, seconds: float, rate: float) -> str:
    async with fairlead.connect(data=tempfile.mkdtemp()) as fl:
        await fl.declare(f"{LAYOUTS[layout]} {TYPES}")
        async with fl.subscribe(f"{order} {RULE}", start="earliest") as sub:
            begin = time.time() + WAIT
            command = [sys.executable, "-m", "benchmarks.live.then_pairs", "--url", str(fl.url), "--begin", str(begin)]
            command += ["--seconds", str(seconds), "--rate", str(rate), "--publish"]
            publishers = [subprocess.Popen([*command, name]) for name in "AB"]
            delays: list[float] = []
            ended = False
            while True:
                found = await sub.next_within(0.5)
                if found is not None:
                    delays.append(time.time() - found.members[-1]["at"].timestamp())
                elif ended and await sub.has_passed(await sub.ends()):
                    break
                elif all(each.poll() is not None for each in publishers) and not ended:
                    ended = True
                    await fl.publish("Heartbeat", at=datetime.fromtimestamp(time.time() + 60, UTC), wait=True)
    right, given = int(seconds * rate), len(delays)
    middle, most = np.percentile(delays, [50, 99]) if delays else (0, 0)
    share = f"{given:,} of {right:,} ({given / right:.1%})"
    return f"{layout:12} {order or 'the order of the log':38} {share:>24}   {middle * 1e3:8,.0f} ms {most * 1e3:8,.0f} ms"


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--seconds", type=float, default=3.0)
    given.add_argument("--rate", type=float, default=1_000.0)
    for hidden in ("--url", "--publish"):
        given.add_argument(hidden, help=argparse.SUPPRESS)
    given.add_argument("--begin", type=float, help=argparse.SUPPRESS)
    asked = given.parse_args()
    if asked.publish is not None:
        asyncio.run(publish(asked.url, asked.publish, asked.begin, asked.seconds, asked.rate))
        return
    print(f"{'':12} {'':38} {'pairs found':>24}   {'median':>11} {'99 of 100':>11}")
    for layout in LAYOUTS:
        for order in ORDERS:
            print(asyncio.run(trial(layout, order, asked.seconds, asked.rate)), flush=True)


if __name__ == "__main__":
    main()
