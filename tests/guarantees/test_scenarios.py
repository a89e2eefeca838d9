"""The search's own matcher is the reference matcher, and a scenario's text means what its plan means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead.guarantees.shape import ConjunctionShape, shape_of
from fairlead.model.guarantee import Property
from fairlead.model.plans.canonical import in_canonical_order
from fairlead.testing.counterexamples.directed_scenarios import THEOREMS, Theorem
from fairlead.testing.counterexamples.random_scenarios import scenario
from fairlead.testing.counterexamples.scenario_matcher import run
from fairlead.testing.counterexamples.scenarios import branch_of, events_of, plan_of, rules_text, subscription_texts, type_names
from fairlead.testing.counterexamples.search import CELLS, MORE_CELLS, cell_code
from fairlead.testing.counterexamples.shrinking import is_sound, shrink, size
from fairlead.testing.properties.checkers import CHECKERS
from fairlead.testing.properties.trace import trace_of
from tests.guarantees.worlds import by_engine, by_reference, compiled, trace_from

SEED = 20_000


@pytest.mark.sampled
@pytest.mark.parametrize("shape", ConjunctionShape, ids=lambda each: each.code)
def test_the_quick_matcher_equals_the_reference(shape: ConjunctionShape) -> None:
    for number in range(14):
        world = scenario(shape, SEED, number)
        if world.period:
            continue  # long; the reference tests whole assignments only
        events = events_of(world)
        publishers = [step.publisher for step in world.unrolled]
        for cell in (*CELLS, *MORE_CELLS[number::7]):
            plan = plan_of(world, *cell)
            expected = trace_of(plan, events, by_reference(plan, events), publishers)
            assert run(world, *cell).lines() == expected.lines(), (SEED, shape, number, cell_code(cell))


@pytest.mark.parametrize("shape", ConjunctionShape, ids=lambda each: each.code)
def test_the_text_of_a_scenario_compiles_to_its_plan(shape: ConjunctionShape) -> None:
    for number in range(12):
        world = scenario(shape, SEED, number)
        cell = CELLS[number % len(CELLS)] if number < 6 else MORE_CELLS[number * 17 % len(MORE_CELLS)]
        if cell[1].upto and world.kind == "disjunction":
            continue
        plan = compiled(rules_text(type_names(world), subscription_texts(world), *cell))
        for subscription, patterns in zip(plan.subscriptions, world.processes, strict=True):
            written = [subscription.branches[at] for at in subscription.in_text_order]
            assert [shape_of(branch) for branch in written] == [shape_of(branch_of(p)) for p in patterns]
        events = events_of(world)
        if not world.period:
            made = plan_of(world, *cell)
            ordered = tuple(in_canonical_order(each, made.catalogue) for each in made.subscriptions)
            built = [r.positions for r in by_reference(replace(made, subscriptions=ordered), events)]
            assert [r.positions for r in by_engine(plan, events)] == built


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda each: str(each.number))
def test_the_traces_of_the_theorems_show_what_they_are_said_to_show(theorem: Theorem) -> None:
    """Those of theorems 5 and 8 do not: see docs/guarantees.md. (Other traces show what these theorems state.)"""
    for cell in CELLS:
        if cell_code(cell) in theorem.cells:
            for wanted in theorem.properties:
                found = CHECKERS[wanted](run(theorem.scenario, *cell))
                assert (found is not None) == theorem.shown, (theorem.number, cell_code(cell), str(wanted), found)


def test_shrinking_keeps_the_violation_and_never_grows() -> None:
    cell = next(each for each in CELLS if cell_code(each) == "MR-I")
    check = CHECKERS[Property.TYPE_FIFO_ORDER]
    worlds = [scenario(ConjunctionShape.SEVERAL_ALIKE, 5, number) for number in range(60)]
    violating = [world for world in worlds if check(run(world, *cell)) is not None][:3]
    assert violating
    for world in violating:
        small = shrink(world, lambda each: check(run(each, *cell)) is not None)
        assert check(run(small, *cell)) is not None
        assert is_sound(small)
        assert size(small) <= size(world)


def test_a_scenario_is_a_function_of_seed_shape_and_number() -> None:
    assert scenario(ConjunctionShape.SEVERAL_ACROSS, 3, 4) == scenario(ConjunctionShape.SEVERAL_ACROSS, 3, 4)
    assert scenario(ConjunctionShape.SEVERAL_ACROSS, 3, 4) != scenario(ConjunctionShape.SEVERAL_ACROSS, 3, 5)


def test_a_trace_from_the_language_equals_the_trace_of_the_search() -> None:
    world = THEOREMS[1].scenario
    cell = next(each for each in CELLS if cell_code(each) == "MR-PI")
    text = rules_text(type_names(world), subscription_texts(world), *cell)
    records = [{"type": step.type, "x": step.x} for step in world.unrolled]
    publishers = tuple(step.publisher for step in world.unrolled)
    assert trace_from(text, records, publishers).lines() == run(world, *cell).lines()
