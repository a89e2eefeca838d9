"""The stored table: every trace replays, the page is in step, another seed finds nothing new."""

from __future__ import annotations

import json

import pytest

from fairlead.guarantees import load_table
from fairlead.guarantees.paper import PAPER
from fairlead.guarantees.shape import ConjunctionShape, is_at_most, shape_of
from fairlead.guarantees.table import LostProperty, load_more, table_of
from fairlead.model.guarantee import Property
from fairlead.testing.counterexamples.random_scenarios import scenario
from fairlead.testing.counterexamples.scenario_matcher import run
from fairlead.testing.counterexamples.scenarios import events_of
from fairlead.testing.counterexamples.search import CELLS, MORE_CELLS, cell_code, judged, search, violation_in
from fairlead.testing.counterexamples.table_writer import (
    BEGIN,
    END,
    MORE_BEGIN,
    MORE_END,
    MORE_TABLE,
    PAGE,
    TABLE,
    document_section,
    dumped,
    more_section,
    table_json,
)
from fairlead.testing.properties.checkers import CHECKERS
from tests.guarantees.worlds import Runner, by_engine, by_reference, compiled, trace_from

TRACES = load_table().entries
REFERENCE_EVENTS_MAX = 14
"""The reference tries whole assignments only: a long trace of a wide conjunction would take it minutes."""


def named(entry: LostProperty) -> str:
    return f"{entry.cell}/{entry.loses}/{entry.shape.code}"


def replays(entry: LostProperty, runner: Runner) -> None:
    found = table_of(entry.cell).counterexample(entry)
    trace = trace_from(found.rules, [dict(each) for each in found.events], found.publishers, runner)
    assert tuple(trace.lines()) == found.steps
    violation = CHECKERS[entry.loses](trace)
    assert violation is not None
    assert violation.words == entry.explanation


@pytest.mark.parametrize("cell", [cell_code(each) for each in CELLS])
def test_every_counterexample_replays_through_language_and_engine(cell: str) -> None:
    for entry in TRACES:
        if entry.cell == cell:
            replays(entry, by_engine)


@pytest.mark.parametrize("cell", [cell_code(each) for each in CELLS])
def test_every_short_counterexample_replays_through_language_and_reference(cell: str) -> None:
    for entry in TRACES:
        short = len(load_table().counterexample(entry).events) <= REFERENCE_EVENTS_MAX
        if entry.cell == cell and short:
            replays(entry, by_reference)


@pytest.mark.sampled
@pytest.mark.parametrize("cell", [cell_code(each) for each in MORE_CELLS])
def test_every_counterexample_of_further_options_replays(cell: str) -> None:
    entries = [entry for entry in load_more().entries if entry.cell == cell]
    assert entries
    for number, entry in enumerate(entries):
        found = load_more().counterexample(entry)
        short = len(found.events) <= REFERENCE_EVENTS_MAX
        replays(entry, by_reference if short and number % 2 else by_engine)
        assert shape_of(compiled(found.rules)["p1"].branches[0]) is entry.shape, named(entry)


def test_what_further_options_lose_and_keep() -> None:
    """As docs/guarantees.md says: agreement is always kept, no duplication never; ALL keeps more if nothing leaves."""
    table = load_more()
    always = (Property.NO_CREATION, Property.ADMISSION, Property.CONJUNCTION_AGREEMENT, Property.DISJUNCTION_TOTAL_ORDER)
    for cell in (cell_code(each) for each in MORE_CELLS):
        matching, disposal = cell.split("-")
        assert not any(table.losses(cell, each) for each in always), cell
        assert table.losses(cell, Property.NO_DUPLICATION), cell
        assert bool(table.losses(cell, Property.CONJUNCTION_VALIDITY)) is matching.endswith("C"), cell
        if matching in ("AL", "AR"):
            assert bool(table.losses(cell, Property.COVERING_AGREEMENT)) is (disposal != "NO"), cell
        if matching in ("AL", "AR") and disposal == "NO":
            assert not table.losses(cell, Property.EVENT_VALIDITY)
            assert table.losses(cell, Property.CONJUNCTION_TOTAL_ORDER)


def test_every_counterexample_is_of_the_shape_that_it_stands_for() -> None:
    for entry in TRACES:
        plan = compiled(load_table().counterexample(entry).rules)
        assert shape_of(plan["p1"].branches[0]) is entry.shape, named(entry)


def test_no_entry_is_contained_in_a_simpler_one() -> None:
    for entry in TRACES:
        for other in load_table().losses(entry.cell, entry.loses):
            assert other is entry or not is_at_most(other.shape, entry.shape), named(entry)


def test_what_the_arguments_say_of_every_cell_is_what_was_found() -> None:
    """The arguments are in docs/guarantees.md. The four orders of a type stand or fall together."""
    table = load_table()
    orders = (Property.TYPE_TOTAL_ORDER, Property.TYPE_FIFO_ORDER, Property.TYPE_LOCAL_ORDER, Property.TYPE_CAUSAL_ORDER)
    always = (Property.NO_CREATION, Property.ADMISSION, Property.CONJUNCTION_AGREEMENT, Property.DISJUNCTION_TOTAL_ORDER)
    for cell in (cell_code(each) for each in CELLS):
        matching, disposal = cell.split("-")
        assert not any(table.losses(cell, each) for each in always)
        assert len({tuple(entry.shape for entry in table.losses(cell, each)) for each in orders}) == 1, cell
        kept_in_order = disposal == "PI" or cell in ("FRC-FP", "MRC-FP")
        assert bool(table.losses(cell, Property.TYPE_FIFO_ORDER)) is not kept_in_order
        assert bool(table.losses(cell, Property.NO_DUPLICATION)) is (disposal == "FP")
        assert bool(table.losses(cell, Property.NO_DUPLICATION_IN_PLACE)) is (cell in ("FR-FP", "MR-FP"))
        assert bool(table.losses(cell, Property.CONJUNCTION_VALIDITY)) is matching.endswith("C")
        assert bool(table.losses(cell, Property.EVENT_VALIDITY)) is (cell not in ("FR-I", "FR-FP"))
        assert table.losses(cell, Property.COVERING_AGREEMENT)
        lost_parts = disposal == "I" or cell in ("MR-IP", "MRC-IP")
        assert bool(table.losses(cell, Property.CONJUNCTION_TOTAL_ORDER)) is lost_parts
        assert not any(entry.shape is ConjunctionShape.EVENT for each in Property for entry in table.losses(cell, each))


def test_what_table_4_1_lists_as_lost_is_lost_but_for_two_entries() -> None:
    missing = {(cell, str(each)) for cell, lost in PAPER.items() for each in lost if not load_table().losses(cell, each)}
    assert missing == {("MRC-FP", "type FIFO order"), ("MRC-FP", "type causal order")}


def test_the_page_is_in_step_with_the_table() -> None:
    section = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()
    assert section == document_section(load_table().raw).strip(), "run python -m fairlead.testing.counterexamples.search --page"


def test_the_section_on_further_options_is_in_step_with_its_table() -> None:
    section = PAGE.read_text(encoding="utf-8").split(MORE_BEGIN)[1].split(MORE_END)[0].strip()
    assert section == more_section(load_more().raw).strip(), "run python -m fairlead.testing.counterexamples.search --page"
    stored = MORE_TABLE.read_text(encoding="utf-8")
    assert dumped(json.loads(stored)) == stored


def test_the_stored_table_is_written_the_one_way_and_small() -> None:
    stored = TABLE.read_text(encoding="utf-8")
    assert dumped(json.loads(stored)) == stored
    assert len(stored) < 300_000


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_processes() -> None:
    cells = CELLS[1:3]
    once, again = (dumped(table_json(search(2, 4, jobs, cells=cells), 2, 4)) for jobs in (1, 2))
    assert once == again
    assert '"cell": "FR-I"' in once


@pytest.mark.sampled
@pytest.mark.parametrize("shape", ConjunctionShape, ids=lambda each: each.code)
def test_another_seed_finds_no_loss_that_the_table_does_not_have(shape: ConjunctionShape) -> None:
    for number in range(12):
        world = scenario(shape, 77, number)
        events = events_of(world)
        for cell in CELLS:
            wanted = [each for each in judged(world) if not load_table().loss(cell_code(cell), each, shape)]
            trace = run(world, *cell, events=events)
            for each in wanted:
                if CHECKERS[each](trace) is not None:
                    assert violation_in(world, cell, each) is None, (shape, number, cell_code(cell), str(each))


def test_a_counterexample_reads_as_rules_steps_and_a_sentence() -> None:
    entry = next(each for each in TRACES if named(each) == "FR-PI/covering agreement/NSX")
    lines = load_table().counterexample(entry).lines
    assert "SUBSCRIPTION p1" in lines
    assert "MATCHING FIRST" in lines
    assert any(line.startswith("  p2 delivers [") for line in lines)
    assert lines[-1].startswith("covering agreement is violated: p2 delivers [")
