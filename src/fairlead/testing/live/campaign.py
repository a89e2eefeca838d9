"""A whole run: a cluster, publishers and subscribers, injected faults by the schedule, then the checks.

    1. the servers, the types, the workers; some subscribers join later
    2. the injected faults, one by one; after each, every worker must make progress again
    3. publishers finish, subscribers receive what is left
    4. the log is copied, and everything is compared

Takes: a folder, steps of a schedule. Gives: a report. Never: leaves a process running.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import fairlead
from fairlead.dataclass import dataclass
from fairlead.errors import LogError
from fairlead.testing.live.actors.processes import Worker
from fairlead.testing.live.actors.setting import (
    BEGINNING,
    GATEWAY,
    JOINING,
    RELAYED,
    RULES,
    SOURCES,
    STARTS,
    STREAMS,
    TYPES,
    WEB,
    WEB_TYPES,
)
from fairlead.testing.live.cluster.faults import FAULTS
from fairlead.testing.live.cluster.operations import OPERATIONS
from fairlead.testing.live.cluster.ports import free_ports
from fairlead.testing.live.cluster.schedule import ScheduledFaults
from fairlead.testing.live.cluster.servers import Cluster
from fairlead.testing.live.run_journal import RunJournal, Say
from fairlead.testing.live.soak.usage import shortage
from fairlead.testing.live.verdict.comparison import (
    Counts,
    judged,
    judged_joined,
    the_exports,
    the_log,
    the_rest,
    wait_for_deliveries,
    wait_for_derived,
    wait_for_joined,
)
from fairlead.transport.log.names import merged_stream, topic_stream

GET_ON_SECONDS_MAX = 90.0
"""After an injected fault is undone: elections, reconnections, new consumers. On a machine that has more to do than it can, as
many times as long (usage.py)."""

JOINING_AFTER = 3
"""Steps after which late subscribers join, unless a failure has started them with all others."""


@dataclass(frozen=True, eq=False)
class Report:
    """`told`: what happened, with the seconds since the beginning. `counts`: by check, how many items it has seen."""

    problems: list[str]
    told: list[str]
    counts: Counts

    @property
    def outcome(self) -> str:
        lines = [
            f"{check:10} {', '.join(f'{count:,} {what}' for what, count in seen.items())}"
            for check, seen in self.counts.items()
        ]
        verdict = [f"PROBLEM: {each}" for each in self.problems] or ["all of it holds"]
        return "\n".join([*lines, *verdict])

    def __str__(self) -> str:
        return "\n".join([*self.told, self.outcome])


class Campaign:
    """`pause`: seconds between a publisher's small bursts. `say` is called with progress messages."""

    def __init__(self, folder: Path, pause: float = 0.25, say: Say = lambda line: None) -> None:
        self._folder, self._pause, self.journal = folder, pause, RunJournal(say)
        self.say = self.journal.say
        self._faults: Counter[str] = Counter()
        self.streams = [topic_stream(each[0]) if len(each) == 1 else merged_stream(each) for each in STREAMS]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.cluster = stack.enter_context(Cluster(self._folder))  # 1
            asyncio.run(self._declare())
            url_of = self.cluster.url_of
            self.publishers = [
                Worker(name, self._folder, "actors.publisher", "stored", [url_of(name), name, types, str(self._pause)])
                for name, types in SOURCES.items()
            ]
            (port,) = free_ports(1)
            self.publishers.append(self._web_publisher(port))
            self.subscribers = [self._subscriber(name, rules, port) for name, rules in RULES.items()]
            self.joiners = [
                Worker(name, self._folder, "actors.subscriber", "acked", [url_of(name), name, RULES["one"], "", start])
                for name, start in STARTS.items()
            ]
            for each in self.workers:
                stack.callback(each.kill)
                if each.name not in (*JOINING, *STARTS):
                    each.start()
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _subscriber(self, name: str, rules: str, port: int) -> Worker:
        """`port`: of the gateway, if it is that."""
        given = [self.cluster.url_of(name), name, rules]
        if name == GATEWAY:
            return Worker(name, self._folder, "actors.gateway_process", "acked", [*given, str(port)])
        more = [RELAYED.get(name, ""), BEGINNING.get(name, "earliest")]
        return Worker(name, self._folder, "actors.subscriber", "acked", [*given, *more])

    def _web_publisher(self, port: int) -> Worker:
        """Its link to the gateway is cut as those of others to servers are."""
        address = f"http://127.0.0.1:{self.cluster.links.between(WEB, 0, port)}"
        return Worker(WEB, self._folder, "actors.web_publisher", "stored", [address, WEB, WEB_TYPES, str(self._pause)])

    @property
    def workers(self) -> list[Worker]:
        return [*self.publishers, *self.subscribers, *self.joiners]

    async def _declare(self) -> None:
        async with fairlead.connect(self.cluster.url, replicas=3) as fl:
            await fl.declare(TYPES)

    def run(self, steps: Iterable[ScheduledFaults]) -> Report:
        """Raises LogError if a worker makes no progress after an injected fault."""
        self.get_on("at the beginning")
        for number, step in enumerate(steps):  # 2
            if number == JOINING_AFTER:
                self._join()
            with self._broken(step):
                time.sleep(step.hold)
            self.get_on(f"after {', '.join(step.faults)}")
        self._join()
        return self._finished()

    def _join(self) -> None:
        """The late subscribers start, if they have not."""
        for each in (*self.subscribers, *self.joiners):
            if not each.started:
                each.start()
                self.say(f"subscriber {each.name} joins")

    @contextmanager
    def _broken(self, step: ScheduledFaults) -> Iterator[None]:
        rolls = random.Random(step.seed)
        with ExitStack() as stack:
            for name in step.faults:
                self._faults[name] += 1
                self.say(stack.enter_context((FAULTS | OPERATIONS)[name](self, rolls)))
            yield
        self.say("  repaired")

    def get_on(self, when: str) -> None:
        """Waits until every worker has made progress."""
        since, begun = time.monotonic_ns(), time.monotonic()
        waiting = [each for each in self.workers if each.started]
        while waiting := [each for each in waiting if each.record.last(each.key) < since]:
            for each in self.workers:
                if each.ended:
                    raise LogError("N040", f"{when}, {each.ended}", "see its record")
            if time.monotonic() > begun + GET_ON_SECONDS_MAX * shortage():
                names = ", ".join(each.name for each in waiting)
                history = "\n".join([*self.journal.told, *(each.tasks() for each in waiting)])
                raise LogError("N040", f"{when}, {names} made no progress\n{history}", f"see the records in {self._folder}")
            time.sleep(0.05)
        self.say("  all get on")

    def _finished(self) -> Report:
        problems = self._stopped(self.publishers)  # 3
        self.say("publishers are done")
        copy = asyncio.run(the_log(self.cluster.url, GET_ON_SECONDS_MAX * shortage()))
        while wait_for_deliveries(copy, self.subscribers, GET_ON_SECONDS_MAX * shortage()):
            later = asyncio.run(the_log(self.cluster.url, GET_ON_SECONDS_MAX * shortage()))
            if later.count == copy.count:  # there are no more answers
                break
            copy = later
        self.say("the log is copied")
        wait_for_joined(self.joiners, self._of("one"), GET_ON_SECONDS_MAX * shortage())
        exported = asyncio.run(the_exports(self.cluster.url, self._folder))
        asyncio.run(wait_for_derived(self.cluster.url, exported))
        problems += self._stopped([*self.subscribers, *self.joiners])
        self.say("subscribers are done")
        outcome = asyncio.run(the_rest(self.cluster.url, copy, exported))  # 4
        found, counts = judged(outcome, self.workers, self.subscribers)
        found += judged_joined(self.joiners, self._of("one"))
        counts["joined"] = {each.name: sum("number" in line for line in each.record.lines) for each in self.joiners}
        troubles = [line["trouble"] for each in self.workers for line in each.record.lines if "trouble" in line]
        codes = Counter(sorted(each[:4] for each in troubles))
        self.say("judged")
        return Report(problems + found, self.journal.told, {"faults": dict(self._faults), **counts, "survived": dict(codes)})

    def _of(self, name: str) -> Worker:
        return next(each for each in self.subscribers if each.name == name)

    def _stopped(self, workers: list[Worker]) -> list[str]:
        for each in workers:
            each.ask_to_stop()
        return [said for each in workers if (said := each.wait())]
