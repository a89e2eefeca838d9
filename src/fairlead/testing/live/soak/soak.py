"""A soak: two publishers at a steady rate, two equal subscribers, retention, and a failure from time to time.

    1. the servers, the types, the workers, and `fairlead retain`
    2. failures one by one, with pauses; memory and disks are measured all the time
    3. publishers finish, subscribers receive what is left
    4. nothing is missing, doubled or different; nothing has grown

Takes: a folder, a rate, a duration, a seed. Gives: a report. Never: leaves a process running.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import fairlead
from fairlead.dataclass import dataclass
from fairlead.errors import LogError
from fairlead.testing.live.actors.processes import Worker
from fairlead.testing.live.cluster.faults import FAULTS
from fairlead.testing.live.cluster.servers import Cluster
from fairlead.testing.live.run_journal import RunJournal, Say
from fairlead.testing.live.soak.subscriber import MODULUS
from fairlead.testing.live.soak.usage import disk, growth, memory
from fairlead.transport.log.names import topic_stream

KEEP = "2 MINUTES"
TYPES = f"TOPIC load (A, B) KEEP {KEEP}; TYPE A (k INT, x INT); TYPE B (k INT, x INT)"
RULES = "SUBSCRIPTION Pair MATCH A a AND B b WHERE a.x = b.x"
CHOSEN = (
    "killed_leader", "paused_leader", "cut_link", "cut_off_leader", "restarted_everything", "unreachable_leader",
    "killed_publisher", "paused_worker", "cut_client", "killed_reader",
)  # fmt: skip
"""Not full disks: they stop the load, so that nothing is measured."""
HOLD_SECONDS = 1.0, 8.0
SAMPLE_SECONDS = 5.0
RETAIN_SECONDS = 10
REST_SECONDS_MAX = 300.0


@dataclass(frozen=True, eq=False)
class SoakReport:
    """`usage`: by what is measured, megabytes every few seconds. `pairs`: as many relations each subscriber received."""

    problems: list[str]
    told: list[str]
    usage: dict[str, list[float]]
    events: int
    seconds: float
    pairs: int

    @property
    def outcome(self) -> str:
        lines = [f"{self.events:,} events in {self.seconds:,.0f} s, {self.pairs:,} pairs to each of two subscribers"]
        for name, series in self.usage.items():
            shown = ", ".join(f"{each:,.0f}" for each in series[:: max(1, len(series) // 8)])
            lines.append(f"{name:14} {shown} MB")
        return "\n".join([*lines, *([f"PROBLEM: {each}" for each in self.problems] or ["all of it holds"])])


class Soak:
    """`rate`: events a second, in all. `calm`: seconds between failures. `say` is called with progress messages."""

    def __init__(self, folder: Path, rate: float, calm: float, seed: int, say: Say = print) -> None:
        self._folder, self._rate, self._calm, self.journal = folder, rate, calm, RunJournal(say)
        self.say = self.journal.say
        self._rolls = random.Random(seed)
        self._began = time.time()
        self._usage: dict[str, list[float]] = {}
        self.streams = [topic_stream("load")]
        self.joiners: list[Worker] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.cluster = stack.enter_context(Cluster(self._folder))  # 1
            asyncio.run(self._declare())
            each = str(self._rate / 2)
            self.publishers = [
                self._worker(f"load-{type}", "publisher", "stored", [f"load-{type}", type, each, str(self._began)])
                for type in "AB"
            ]
            self.subscribers = [self._worker(name, "subscriber", "acked", [name, RULES]) for name in ("one", "other")]
            for worker in self.workers:
                stack.callback(worker.kill)
                worker.start()
            stack.callback(self._stop_retention)
            self._start_retention()
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _worker(self, name: str, module: str, key: str, given: list[str]) -> Worker:
        return Worker(name, self._folder, f"soak.{module}", key, [self.cluster.url_of(name), *given])

    @property
    def workers(self) -> list[Worker]:
        return [*self.publishers, *self.subscribers]

    async def _declare(self) -> None:
        async with fairlead.connect(self.cluster.url, replicas=3) as fl:
            await fl.declare(TYPES)

    def _start_retention(self) -> None:
        command = [
            sys.executable,
            "-m",
            "fairlead",
            "retain",
            "--apply",
            "--every",
            str(RETAIN_SECONDS),
            "--url",
            self.cluster.url,
        ]
        with (self._folder / "retain.err").open("ab") as errors:
            self._retention = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)

    def _stop_retention(self) -> None:
        self._retention.kill()
        self._retention.wait()

    def run(self, seconds: float) -> SoakReport:
        end = time.time() + seconds
        faults = self._faults()
        while time.time() < end:
            self._watch(min(self._calm, end - time.time()))  # 2
            if time.time() < end:
                name = next(faults)
                with FAULTS[name](self, self._rolls) if name in FAULTS else self._killed_reader() as told:
                    self.say(told)
                    self._watch(self._rolls.uniform(*HOLD_SECONDS))
                self.say("  repaired")
        lasted = time.time() - self._began
        problems = [each for each in map(self._stopped, self.publishers) if each]  # 3
        stored = [self._last(each, "stored") for each in self.publishers]
        self.say(f"publishers are done: {stored[0]:,} and {stored[1]:,} events")
        self._wait_for(min(stored))
        problems += [each for each in map(self._stopped, self.subscribers) if each]
        problems += differences(self.subscribers, min(stored))  # 4
        problems += [f"{name} has grown: {why}" for name, each in self._usage.items() if (why := growth(each))]
        return SoakReport(problems, self.journal.told, self._usage, sum(stored), lasted, min(stored))

    def _faults(self) -> Iterator[str]:
        """Every kind once before any is repeated."""
        while True:
            yield from self._rolls.sample(CHOSEN, len(CHOSEN))

    def _watch(self, seconds: float) -> None:
        end = time.time() + seconds
        while (left := end - time.time()) > 0:
            time.sleep(min(left, SAMPLE_SECONDS))
            self._sample()

    def _sample(self) -> None:
        for worker in self.workers:
            self._note(f"memory {worker.name}", memory(worker.pid))
            if worker.ended:
                raise LogError("N040", worker.ended, "see its record")
        for at, server in enumerate(self.cluster.servers):
            self._note(f"memory server {at}", memory(server.pid))
            self._note(f"disk {at}", disk(self._folder / f"server-{at}"))
        self._note("memory retain", memory(self._retention.pid))
        if self._retention.poll() is not None:
            self.say("fairlead retain has ended, and is started again")
            self._start_retention()

    def _note(self, name: str, found: float | None) -> None:
        if found is not None:
            self._usage.setdefault(name, []).append(found)

    def _stopped(self, worker: Worker) -> str | None:
        worker.ask_to_stop()
        return worker.wait()

    def _last(self, worker: Worker, key: str) -> int:
        return max((int(each[key]) for each in worker.record.refresh() if key in each), default=0)

    def _wait_for(self, pairs: int) -> None:
        end = time.time() + REST_SECONDS_MAX
        while any(self._last(each, "acked") < pairs for each in self.subscribers) and time.time() < end:
            time.sleep(0.5)
            self._sample()

    @contextmanager
    def _killed_reader(self) -> Iterator[str]:
        one = self._rolls.choice(self.subscribers)
        one.kill()
        yield f"subscriber {one.name} is killed"
        one.start()


def differences(subscribers: Sequence[Worker], pairs: int) -> Iterator[str]:
    """What is wrong with what two subscribers received. Each number once: by their count and two sums. Equal receipts: the
    same, in the same order."""
    wanted = [sum(range(pairs)) % MODULUS, (pairs - 1) * pairs * (2 * pairs - 1) // 6 % MODULUS]
    receipts = []
    for each in subscribers:
        lines = each.record.refresh()
        received = {int(line["last"]): list(line["sums"]) for line in lines if "sums" in line}
        last = max(received, default=0)
        if (last, received.get(last)) != (pairs, wanted):
            yield f"{each.name} received {last:,} pairs with sums {received.get(last)}, not {pairs:,} with {wanted}"
        receipts.append([line["receipts"] for line in lines if "receipts" in line][-1:])
    if receipts[0] != receipts[1] or not receipts[0]:
        yield f"the receipts differ: {receipts}"
