"""Runs simulated processes: messages travel, alarms ring, processes fail, and in the end everything is drained.

What fails: a process crashes and never returns (crash), or returns with the state that it stored last (restart), or does
nothing for a while and then continues (pause); the processes of one side of a partition and the others do not reach each other;
a clock is wrong (skew). On reliable links, what is sent to a process that is away arrives when it is back, and what is sent
across a partition when that is healed; on lossy ones it is lost. A crashed process has no alarms when it returns.

In the end the world is drained: there are no more requests, everything is healed, links lose nothing, and the run continues
until nothing is on its way. What still waits then waits for ever.

Takes: a case. Gives: the run: steps, deliveries, last states. Never: depends on anything but the case.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.testing.simulator.links import LinkPlan
from fairlead.testing.simulator.processes import (
    Alarm,
    Deliver,
    Given,
    Message,
    ProcessStep,
    Produced,
    Request,
    Restart,
    Send,
    SetAlarm,
    StoreState,
)

STEPS_MAX = 20_000
"""A run that takes more does not come to rest: alarms that ring for ever, or messages that breed."""


@dataclass(frozen=True)
class PlannedRequest:
    at: float
    process: str
    body: Any


@dataclass(frozen=True)
class ProcessFault:
    """`kind`: crash, restart, pause, partition or skew. `processes`: which; of a partition, one of its sides. `seconds`: how
    long; of a skew, how far the clock is ahead from then on."""

    kind: str
    at: float
    processes: tuple[str, ...]
    seconds: float = 0.0

    def __str__(self) -> str:
        who = ", ".join(self.processes)
        return f"{self.at:9.3f}  {who:6} {self.kind}" + ("" if self.kind == "crash" else f" of {self.seconds:g} s")


@dataclass(frozen=True)
class ProcessCase:
    seed: int
    processes: tuple[str, ...]
    requests: tuple[PlannedRequest, ...]
    faults: tuple[ProcessFault, ...] = ()
    link: LinkPlan = LinkPlan()


@dataclass(frozen=True, eq=False)
class ProcessRun:
    """`states`: the last state of each process. `crashed`: those that never returned. `rested`: nothing was on its way in the
    end."""

    case: ProcessCase
    steps: Sequence[ProcessStep]
    states: Mapping[str, Any]
    crashed: frozenset[str]
    rested: bool

    @property
    def correct(self) -> tuple[str, ...]:
        """The processes that did not crash, or returned."""
        return tuple(name for name in self.case.processes if name not in self.crashed)

    def deliveries(self, process: str) -> list[Any]:
        return [
            each.body for step in self.steps if step.process == process for each in step.produced if isinstance(each, Deliver)
        ]

    def requests(self, process: str) -> list[Any]:
        """Those that reached it."""
        return [step.given.body for step in self.steps if step.process == process and isinstance(step.given, Request)]

    @property
    def lines(self) -> tuple[str, ...]:
        told = [(step.at, 1, str(step)) for step in self.steps] + [(each.at, 0, str(each)) for each in self.case.faults]
        return tuple(line for _, _, line in sorted(told, key=lambda each: each[:2]))


Stepping = Callable[[Any, Given, float], tuple[Any, Sequence[Produced]]]


class SimulatedWorld:
    def __init__(self, case: ProcessCase, begin: Callable[[str], Any], step: Stepping) -> None:
        self._case, self._step = case, step
        self._now, self._count = 0.0, 0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._states = {name: begin(name) for name in case.processes}
        self._stored = dict(self._states)
        self._crashed: set[str] = set()
        self._away: dict[str, float] = {}
        """Processes that are down or paused, and until when."""
        self._skews = dict.fromkeys(case.processes, 0.0)
        self._lives = dict.fromkeys(case.processes, 0)
        self._partitions: list[tuple[float, float, frozenset[str]]] = []
        self._last: dict[tuple[str, str], float] = {}
        self._sent: dict[tuple[str, str], int] = {}
        self._alarms: dict[tuple[str, Any], int] = {}
        self._steps: list[ProcessStep] = []
        ends = [each.at for each in case.requests]
        ends += [each.at + (0.0 if each.kind == "skew" else each.seconds) for each in case.faults]
        self._drained_from = max(ends, default=0.0)

    def run(self) -> ProcessRun:
        for fault in self._case.faults:
            self._at(fault.at, lambda fault=fault: self._fail(fault))  # type: ignore[misc]
        for each in self._case.requests:
            self._at(each.at, lambda each=each: self._arrive(each.process, Request(each.body), None))  # type: ignore[misc]
        while self._queue and len(self._steps) < STEPS_MAX:
            self._now, _, happens = heappop(self._queue)
            happens()
        return ProcessRun(self._case, self._steps, dict(self._states), frozenset(self._crashed), not self._queue)

    def _at(self, when: float, happens: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._queue, (when, self._count, happens))

    def _fail(self, fault: ProcessFault) -> None:
        for name in fault.processes:
            match fault.kind:
                case "crash":
                    self._crashed.add(name)
                case "restart" if name not in self._crashed:
                    self._lives[name] += 1
                    self._away[name] = max(self._away.get(name, 0.0), self._now + fault.seconds)
                    life = self._lives[name]
                    self._at(self._away[name], lambda name=name, life=life: self._return(name, life))  # type: ignore[misc]
                case "pause":
                    self._away[name] = max(self._away.get(name, 0.0), self._now + fault.seconds)
                case "skew":
                    self._skews[name] = fault.seconds
        if fault.kind == "partition":
            self._partitions.append((self._now, self._now + fault.seconds, frozenset(fault.processes)))

    def _return(self, name: str, life: int) -> None:
        if life == self._lives[name] and name not in self._crashed:
            if self._away.get(name, 0.0) > self._now:  # paused meanwhile
                self._at(self._away[name], lambda: self._return(name, life))
                return
            self._states[name] = self._stored[name]
            self._take(name, Restart())

    def _arrive(self, name: str, given: Given, life: int | None) -> None:
        """`life`: an alarm belongs to one."""
        if name in self._crashed or (life is not None and life != self._lives[name]):
            return
        back = self._away.get(name, 0.0)
        if back > self._now:
            lost = isinstance(given, Message) and self._case.link.kind.loses and self._now < self._drained_from
            if not lost:
                self._at(back, lambda: self._arrive(name, given, life))
            return
        self._take(name, given)

    def _take(self, name: str, given: Given) -> None:
        state, produced = self._step(self._states[name], given, self._now + self._skews[name])
        self._states[name] = state
        self._steps.append(ProcessStep(self._now, name, given, tuple(produced)))
        for each in produced:
            match each:
                case Send(to, body):
                    self._send(name, to, Message(name, body))
                case SetAlarm(what, seconds):
                    self._set(name, what, seconds)
                case StoreState():
                    self._stored[name] = state

    def _set(self, name: str, what: Any, seconds: float) -> None:
        number = self._alarms[name, what] = self._alarms.get((name, what), 0) + 1
        life = self._lives[name]

        def ring() -> None:
            if self._alarms[name, what] == number:
                self._arrive(name, Alarm(what), life)

        self._at(self._now + seconds, ring)

    def _send(self, sender: str, to: str, message: Message) -> None:
        link, number = (sender, to), self._sent.get((sender, to), 0)
        self._sent[link] = number + 1
        rolls, plan, drained = random.Random(f"{self._case.seed} {sender} {to} {number}"), self._case.link, self._is_drained
        leaves = self._now
        for begun, healed, side in self._partitions:
            if begun <= self._now < healed and (sender in side) != (to in side):
                if plan.kind.loses:
                    return
                leaves = max(leaves, healed)
        for at in plan.arrivals(rolls, leaves, self._last.get(link, 0.0), drained=drained):
            self._last[link] = max(self._last.get(link, 0.0), at)
            self._at(at, lambda: self._arrive(to, message, None))

    @property
    def _is_drained(self) -> bool:
        return self._now >= self._drained_from
