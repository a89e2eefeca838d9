"""A kernel that runs for long asks whether to go on, whatever its search looks like, and ends where it may not."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.language import compile_text
from fairlead.matching.compiled.machine_code import interruption
from fairlead.matching.compiled.running import lane
from fairlead.model.events.columns import Columns
from fairlead.model.plans.plan import Plan
from fairlead.transport.events import read_events
from tests.matching.equality.test_lanes import shown
from tests.matching.equality.test_plans import compiled
from tests.matching.generators.generated import START, Case
from tests.matching.generators.plans import plan_cases

TYPES = "\n".join(f"TYPE {name} (x INT, y INT, f DOUBLE, at TIMESTAMP) TIME at" for name in "ABCD")
SUM = "a.x + b.x + c.x > 1000000"
LONG = {
    "walk": f"MATCH A a AND B b AND C c WHERE {SUM}",
    "hash": f"MATCH A a AND B b AND C c WHERE a.y = b.y AND b.y = c.y AND {SUM}",
    "tree": f"MATCH A a AND B b AND C c WHERE a.x > c.x AND b.x > c.x AND {SUM}",
    "recent": f"MATCH A a AND B b AND C c WHERE {SUM} MATCHING RECENT",
    "keyed": f"MATCH A a AND B b AND C c WHERE {SUM} PER y",
    "then": f"MATCH A a THEN B b THEN C c WHERE {SUM}",
    "instances": "MATCH A a[3] AND C c WHERE a[1].x + a[2].x + a[3].x > 1000000",
    "decimals": "MATCH A a AND B b AND C c WHERE a.x * 1.5 + b.x * 2.25 + c.x > 1000000",
    "between": "MATCH A a THEN C c WITHOUT B b BETWEEN a AND c WHERE b.x + a.x + c.x > 240",
    "absence": "MATCH A a WITHOUT B b WITHIN 10 HOURS OF a WHERE b.x > a.x + 1000",
    "overlap": "MATCH U u AND A a AND C c WHERE u.x + a.x + c.x > 1000000",
    "runs": "MATCH A a AND B b+ AND C c WHERE b.y = a.y HAVING first(b.x) > 1000000",
    "late": "MATCH A a AND D d WHERE a.x > d.x WITHIN 100 SECONDS",
}


@pytest.fixture(params=["1", "0"], ids=["machine code", "plain Python"])
def often(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every 500 steps."""
    monkeypatch.setenv("FAIRLEAD_JIT", request.param)
    every(500, monkeypatch)
    yield
    lane._FORMS.clear()


def every(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "EVERY", steps)
    lane._FORMS.clear()


def plan_of(rules: str) -> Plan:
    return compile_text(f"{TYPES}\nEVENT UNION U = A + B\nSUBSCRIPTION S {rules}")


def batch(plan: Plan, rows: int = 240) -> Columns:
    """A and B in turn, their times going back and forth, then a C and a D: the search is theirs."""
    events: list[dict[str, Any]] = [
        {"type": "AB"[n % 2], "x": n, "y": 1, "f": 1.0, "at": START + timedelta(seconds=n ^ 2)} for n in range(rows)
    ]
    last = {"x": 7, "y": 1, "f": 1.0, "at": START + timedelta(seconds=rows)}
    (columns,) = read_events([*events, {"type": "C"} | last, {"type": "D"} | last], plan.catalogue)
    return columns


class Unwanted(Exception):
    pass


def raising_at(number: int, error: BaseException | Callable[[], None]) -> tuple[list[int], Callable[[], None]]:
    """A check that refuses the so many-th time, and how often it was asked."""
    asked = [0]

    def check() -> None:
        asked[0] += 1
        if asked[0] == number:
            if isinstance(error, BaseException):
                raise error
            error()

    return asked, check


@pytest.mark.sampled
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("rules", LONG.values(), ids=LONG)
def test_every_long_loop_asks_and_ends(rules: str) -> None:
    plan = plan_of(rules)
    rows = 80 if "a[3]" in rules else 240  # a cube of them
    asked, check = raising_at(0, Unwanted())
    whole = Engine(plan, kernels_from=0, check=check)
    whole.feed(batch(plan, rows))
    assert asked[0] >= 3
    assert whole.dump() == fed_plainly(plan, rows).dump()
    asked, check = raising_at(3, Unwanted())
    engine = Engine(plan, kernels_from=0, check=check)
    with pytest.raises(Unwanted):
        engine.feed(batch(plan, rows))
    assert asked[0] == 3
    refuses(engine, batch(plan, rows))


def fed_plainly(plan: Plan, rows: int = 240) -> Engine:
    engine = Engine(plan, kernels_from=None)
    engine.feed(batch(plan, rows))
    return engine


def refuses(engine: Engine, columns: Columns) -> None:
    """Half a batch is never dumped, and nothing follows it."""
    (event,) = list(columns.events(engine.plan.catalogue))[:1]
    for call in (engine.dump, lambda: engine.feed(columns), lambda: engine.arrive(event), lambda: engine.finish(10)):
        with pytest.raises(StateError, match="S114"):
            call()


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_handler_runs_and_what_it_raises_goes_on_from_the_call(
    capfd: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    def handler(*_: object) -> None:
        raise KeyboardInterrupt(number)

    before = signal.signal(number, handler)
    try:
        plan = plan_of(LONG["walk"])
        asked, check = raising_at(2, lambda: signal.raise_signal(number))
        engine = Engine(plan, kernels_from=0, check=check)
        with pytest.raises(KeyboardInterrupt):
            engine.feed(batch(plan))
        assert asked[0] == 2
    finally:
        signal.signal(number, before)
    assert capfd.readouterr() == ("", "")


def test_a_handler_that_only_notes_lets_the_kernel_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    every(500, monkeypatch)
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        plan = plan_of(LONG["walk"])
        _, check = raising_at(2, lambda: signal.raise_signal(signal.SIGINT))
        engine = Engine(plan, kernels_from=0, check=check)
        engine.feed(batch(plan))
    finally:
        signal.signal(signal.SIGINT, before)
        lane._FORMS.clear()
    assert came == [signal.SIGINT]
    assert engine.dump() == fed_plainly(plan).dump()


def test_an_engine_that_goes_event_by_event_is_torn_by_an_interrupt_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    plan = plan_of(LONG["walk"])
    engine = Engine(plan, kernels_from=None)
    monkeypatch.setattr("fairlead.matching.interpreted.search.Search._fill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.feed(batch(plan))
    refuses(engine, batch(plan))


@pytest.mark.slow
def test_asking_at_every_step_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    every(1, monkeypatch)

    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(plan_cases(), st.integers(1, 9))
    def holds(case: Case, rows: int) -> None:
        plan = compiled(case.rules)
        _, check = raising_at(0, Unwanted())
        plain, asking = Engine(plan, kernels_from=None), Engine(plan, kernels_from=0, check=check)
        for columns in read_events(case.events, plan.catalogue, batch_rows=rows):
            assert shown(list(asking.feed(columns))) == shown(list(plain.feed(columns)))
            assert asking.dump() == plain.dump()

    holds()
    lane._FORMS.clear()
