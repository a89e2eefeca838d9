"""A protocol of one's own as a simulation: subclass `SimulatedProtocol`, and say what its processes do and what must hold.

Takes: a protocol. Gives: cases by seed, runs, simpler cases. Never: keeps anything between two runs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from fairlead.testing.simulator.links import LinkDelay, LinkKind, LinkPlan
from fairlead.testing.simulator.outcome import Outcome
from fairlead.testing.simulator.processes import Given, Produced
from fairlead.testing.simulator.world import PlannedRequest, ProcessCase, ProcessFault, ProcessRun, SimulatedWorld

SPAN_SECONDS = 2.0
"""Requests and failures of a run fall into this time; a message takes about a hundredth of a second."""


class SimulatedProtocol:
    """What to override. `processes`: how many there are, at least and at most. `links`, `faults`: what may happen; see links.py
    and world.py."""

    name = "protocol"
    processes = (2, 4)
    requests_max = 8
    links: Sequence[LinkKind] = tuple(LinkKind)
    delays: Sequence[LinkDelay] = (LinkDelay(), LinkDelay(tail=0.5))
    faults: Sequence[str] = ("restart", "pause", "partition", "skew")
    faults_max = 3

    def begin(self, name: str, names: Sequence[str]) -> Any:
        """The first state of a process. `names`: of all processes."""
        raise NotImplementedError

    def step(self, state: Any, given: Given, now: float) -> tuple[Any, Sequence[Produced]]:
        raise NotImplementedError

    def request(self, rolls: random.Random, number: int, names: Sequence[str]) -> tuple[str, Any]:
        """A process, and what it is asked. `number`: of the request; use it to make bodies unique."""
        raise NotImplementedError

    def problems(self, run: ProcessRun) -> Iterable[str]:
        """What is wrong with a run, in words."""
        raise NotImplementedError

    def waiting(self, name: str, state: Any) -> str | None:
        """What a process still waits for in the end, in words; it will wait for ever."""
        return None

    def case(self, seed: int) -> ProcessCase:
        rolls = random.Random(f"case {seed}")
        names = tuple(f"p{number}" for number in range(rolls.randint(*self.processes)))
        requests = [
            PlannedRequest(round(rolls.random() * SPAN_SECONDS, 3), *self.request(rolls, number, names))
            for number in range(rolls.randint(1, self.requests_max))
        ]
        link = LinkPlan(rolls.choice(self.links), rolls.choice(self.delays), rolls.choice((0.1, 0.4)), rolls.choice((0.1, 0.4)))
        faults = [self._fault(rolls, names) for _ in range(rolls.randint(0, self.faults_max) if self.faults else 0)]
        return ProcessCase(seed, names, tuple(sorted(requests, key=lambda each: each.at)), tuple(faults), link)

    def _fault(self, rolls: random.Random, names: Sequence[str]) -> ProcessFault:
        kind, at = rolls.choice(self.faults), round(rolls.random() * SPAN_SECONDS, 3)
        some = tuple(sorted(rolls.sample(names, rolls.randint(1, max(1, len(names) - 1)))))
        seconds = rolls.uniform(-60, 60) if kind == "skew" else rolls.choice((0.01, 0.3, 1.0))
        return ProcessFault(kind, at, some if kind == "partition" else some[:1], round(seconds, 3))

    def run(self, case: ProcessCase) -> Outcome:
        run = SimulatedWorld(case, lambda name: self.begin(name, case.processes), self.step).run()
        problems = list(self.problems(run))
        if not run.rested:
            problems.append("the run does not come to rest")
        else:
            told = ((name, self.waiting(name, run.states[name])) for name in run.correct)
            problems += [f"{name} waits for {what}, and nothing is on its way" for name, what in told if what]
        return Outcome(tuple(problems), run.lines)

    def size(self, case: ProcessCase) -> int:
        return 3 * len(case.processes) + 2 * len(case.requests) + 3 * len(case.faults) + (case.link.delay.tail > 0)

    def smaller(self, case: ProcessCase) -> Iterator[ProcessCase]:
        for name in reversed(case.processes[self.processes[0] - 1 :]):
            if len(case.processes) > self.processes[0]:
                requests = tuple(each for each in case.requests if each.process != name and name not in str(each.body))
                faults = tuple(each for each in case.faults if name not in each.processes)
                others = tuple(each for each in case.processes if each != name)
                yield replace(case, processes=others, requests=requests, faults=faults)
        half = len(case.requests) // 2
        if half:
            yield replace(case, requests=case.requests[:half])
            yield replace(case, requests=case.requests[half:])
        for at in range(len(case.requests)):
            yield replace(case, requests=case.requests[:at] + case.requests[at + 1 :])
        for at in range(len(case.faults)):
            yield replace(case, faults=case.faults[:at] + case.faults[at + 1 :])
        yield replace(case, link=replace(case.link, delay=LinkDelay()))
