"""The world of simulated processes: links, faults, drains; and one seed fixes everything."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fairlead.testing.simulator.links import LinkDelay, LinkKind, LinkPlan
from fairlead.testing.simulator.processes import (
    Alarm,
    Deliver,
    Given,
    Message,
    Produced,
    Request,
    Restart,
    Send,
    SetAlarm,
    StoreState,
)
from fairlead.testing.simulator.protocol import SimulatedProtocol
from fairlead.testing.simulator.world import PlannedRequest, ProcessCase, ProcessFault, ProcessRun, SimulatedWorld

MANY = tuple(PlannedRequest(0.01 * number, "p0", number) for number in range(60))


def step(state: Any, given: Given, now: float) -> tuple[Any, Sequence[Produced]]:
    """Passes on what it is asked, delivers what it gets, and counts both."""
    match given:
        case Request(body):
            return state + 1, [Send("p1", body)]
        case Message(_, body):
            return state + 1, [Deliver(body), *([StoreState()] if body == "store" else [])]
        case Restart():
            return state, [Deliver(f"again with {state}")]
    return state, [Deliver((given, round(now, 3)))]


def ran(case: ProcessCase) -> ProcessRun:
    return SimulatedWorld(case, lambda name: 0, step).run()


def case_of(kind: LinkKind, requests: tuple[PlannedRequest, ...] = MANY, *faults: ProcessFault) -> ProcessCase:
    return ProcessCase(7, ("p0", "p1"), requests, faults, LinkPlan(kind, LinkDelay(0.05, 0.05)))


@pytest.mark.parametrize("kind", LinkKind)
def test_links_keep_what_their_kind_says(kind: LinkKind) -> None:
    run = ran(case_of(kind))
    found, sent = run.deliveries("p1"), list(range(60))
    assert run.rested
    assert (found == sent) == (kind is LinkKind.FIFO)
    assert (set(found) == set(sent)) == (not kind.loses)
    assert (len(found) > len(set(found))) == kind.repeats


def test_a_process_that_crashes_does_nothing_more_and_one_that_restarts_has_what_it_stored() -> None:
    asked = tuple(PlannedRequest(at, "p0", body) for at, body in ((0.0, "a"), (1.0, "store"), (2.0, "b"), (4.0, "c")))
    stopped = ran(case_of(LinkKind.FIFO, asked, ProcessFault("crash", 1.5, ("p1",))))
    assert stopped.deliveries("p1") == ["a", "store"]
    assert stopped.correct == ("p0",)
    back = ran(case_of(LinkKind.FIFO, asked, ProcessFault("restart", 3.0, ("p1",), 2.0)))
    assert back.deliveries("p1") == ["a", "store", "b", "again with 2", "c"]
    assert back.states["p1"] == 3
    assert back.correct == ("p0", "p1")


@pytest.mark.parametrize("fault", [ProcessFault("pause", 0.0, ("p1",), 3.0), ProcessFault("partition", 0.0, ("p1",), 3.0)])
def test_reliable_links_hold_messages_and_lossy_ones_lose_them(fault: ProcessFault) -> None:
    kept = ran(case_of(LinkKind.FIFO, MANY, fault))
    assert kept.deliveries("p1") == list(range(60))
    assert min(step.at for step in kept.steps if step.process == "p1") >= 3.0
    late = (*MANY, PlannedRequest(5.0, "p0", "last"))
    assert ran(case_of(LinkKind.LOSSY, late, fault)).deliveries("p1") in (["last"], [])


def test_nothing_is_lost_while_the_world_is_drained() -> None:
    last = PlannedRequest(9.0, "p0", "last")
    assert all(ran(replace(case_of(LinkKind.LOSSY, (last,)), seed=seed)).deliveries("p1") == ["last"] for seed in range(50))


def test_alarms_ring_by_name_on_a_clock_that_may_be_wrong_and_not_after_a_crash() -> None:
    def setting(state: Any, given: Given, now: float) -> tuple[Any, Sequence[Produced]]:
        if isinstance(given, Request):
            return state, [SetAlarm("one", 1.0), SetAlarm("two", 2.0), SetAlarm("one", 3.0)]
        return step(state, given, now)

    asked = (PlannedRequest(0.0, "p0", "x"),)

    def rung(*faults: ProcessFault) -> list[Any]:
        return SimulatedWorld(case_of(LinkKind.FIFO, asked, *faults), lambda name: 0, setting).run().deliveries("p0")

    assert rung() == [(Alarm("two"), 2.0), (Alarm("one"), 3.0)]
    assert rung(ProcessFault("skew", 1.0, ("p0",), 60.0)) == [(Alarm("two"), 62.0), (Alarm("one"), 63.0)]
    assert rung(ProcessFault("restart", 2.5, ("p0",), 0.1)) == [(Alarm("two"), 2.0), "again with 0"]
    assert rung(ProcessFault("pause", 1.0, ("p0",), 5.0)) == [(Alarm("two"), 6.0), (Alarm("one"), 6.0)]


class Restless(SimulatedProtocol):
    processes = (1, 3)

    def begin(self, name: str, names: Sequence[str]) -> int:
        return 0

    def step(self, state: int, given: Given, now: float) -> tuple[int, Sequence[Produced]]:
        return state + 1, [SetAlarm("again", 0.1)]

    def request(self, rolls: random.Random, number: int, names: Sequence[str]) -> tuple[str, Any]:
        return rolls.choice(names), number

    def problems(self, run: ProcessRun) -> list[str]:
        return []


def test_a_run_that_does_not_come_to_rest_is_a_problem() -> None:
    assert Restless().run(Restless().case(1)).problems == ("the run does not come to rest",)


def test_a_case_is_a_function_of_its_seed_and_a_run_of_its_case() -> None:
    protocol = Restless()
    assert [protocol.case(seed) for seed in range(50)] == [protocol.case(seed) for seed in range(50)]
    assert len({str(protocol.case(seed)) for seed in range(50)}) == 50
    case = case_of(LinkKind.LOSSY_DUPLICATING, MANY, ProcessFault("restart", 0.2, ("p1",), 0.1))
    assert ran(case).lines == ran(case).lines
    assert ran(case).lines != ran(replace(case, seed=8)).lines
