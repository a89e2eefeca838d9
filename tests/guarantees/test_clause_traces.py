"""What clauses and runtimes lose: every claim has a stored trace, which replays with the clause and not without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

import fairlead
from fairlead.guarantees import Runtime, counterexample_named, derive, source_order
from fairlead.guarantees.bounds import BOUNDS
from fairlead.guarantees.clause_traces import ClauseEntry, load_clause_traces
from fairlead.guarantees.runtime_traces import load_runtime_traces
from fairlead.guarantees.shape import ConjunctionShape, is_at_most, shape_of
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.plan import Plan
from fairlead.testing.counterexamples.clause_search import claims_of
from fairlead.testing.counterexamples.clause_table import CLAUSES
from fairlead.testing.counterexamples.clause_worlds import AddedClause, clause_world, plan_of_world
from fairlead.testing.counterexamples.runtime_worlds import RUNTIMES, dumped_runtimes, run_orders
from fairlead.testing.counterexamples.search import CELLS, cell_code
from fairlead.testing.counterexamples.table_writer import dumped
from fairlead.testing.properties.checkers import CHECKERS
from tests.guarantees.worlds import by_engine, by_reference, compiled, trace_from

TRACES = load_clause_traces()
REFERENCE_EVENTS_MAX = 14
TYPES = """
TYPE A (k INT, x INT, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, at TIMESTAMP) TIME at
TYPE C (k INT, x INT, at TIMESTAMP) TIME at
TYPE N (k INT, x INT, at TIMESTAMP) TIME at
TYPE D EXTENDS A (z INT)
EVENT UNION W = A + C
"""


@pytest.mark.sampled
@pytest.mark.parametrize("clause", AddedClause, ids=lambda each: each.value)
def test_every_trace_shows_the_loss_with_the_clause_and_not_without_it(clause: AddedClause) -> None:
    entries = [each for each in TRACES.entries if each.clause == clause.value]
    assert len(entries) >= len(clause.cells)
    for entry in entries:
        replays(entry)


def replays(entry: ClauseEntry) -> None:
    found = TRACES.counterexample(entry)
    records = [dict(each) for each in found.events]
    for run in (by_engine, by_reference) if len(records) <= REFERENCE_EVENTS_MAX else (by_engine,):
        trace = trace_from(found.rules, records, found.publishers, run)
        assert tuple(trace.lines()) == found.steps, entry.name
        violation = CHECKERS[entry.loses](trace)
        assert violation is not None, entry.name
        assert violation.words == entry.explanation
        assert CHECKERS[entry.loses](trace_from(found.plain, records, found.publishers, run)) is None, entry.name


def test_every_trace_is_of_the_shape_and_cell_that_it_stands_for() -> None:
    for entry in TRACES.entries:
        plan = compiled(TRACES.counterexample(entry).rules)
        assert shape_of(plan["p1"].branches[0], plan.catalogue) is entry.shape, entry.name
        assert f"{plan['p1'].matching.code}-{plan['p1'].disposal.code}" == entry.cell
        for other in TRACES.entries:
            same = (other.clause, other.cell, other.loses) == (entry.clause, entry.cell, entry.loses)
            assert other is entry or not same or not is_at_most(other.shape, entry.shape), entry.name


def test_the_stored_traces_are_written_the_one_way_and_small() -> None:
    stored = CLAUSES.read_text(encoding="utf-8")
    assert dumped(json.loads(stored)) == stored
    assert len(stored) < 300_000


PATTERNS = (
    "A a",
    "A a[2]",
    "A a AND B b",
    "A a THEN B b",
    "A a[2] AND B b",
    "W w",
    "W w AND B b",
    "A a AND D d",
    "B b AND W w[2]",
)
LATER = ("", "PER k", "WITHIN 5 SECONDS", "WITHOUT N n WITHIN 3 SECONDS OF {0}", "WHERE {0}.x = 1", "PER k WITHIN 5 SECONDS")
ENDS = ("", "EMIT E (x = {0}.x)")


def plans() -> Iterator[Plan]:
    """Each pattern with each clause, in all sixteen cells; upstream of another subscription in four of them."""
    for pattern, clause, end in product(PATTERNS, LATER, ENDS):
        anchor = pattern.split(" ")[1].replace("[2]", "[1]")
        reading = "SUBSCRIPTION R MATCH E e AND C c" if end else ""
        text = f"SUBSCRIPTION S MATCH {pattern} {clause} {end}".replace("{0}", anchor)
        plan = compiled(f"{TYPES}{text}\n{reading}")
        for matching, disposal in CELLS[::4] if end else CELLS:
            chosen = tuple(replace(each, matching=matching, disposal=disposal) for each in plan.subscriptions)
            yield replace(plan, subscriptions=chosen)


def test_whatever_is_lost_in_any_plan_on_any_runtime_has_a_trace_of_that_property() -> None:
    said = {each for plan in plans() for runtime in Runtime for verdicts in derive(plan, runtime).values() for each in verdicts}
    assert not any(each.trace for each in said if each.kept)
    lost = {(each.property, each.trace) for each in said if not each.kept}
    assert len(lost) > 150
    for wanted, trace in sorted(lost):
        found = counterexample_named(trace)
        assert found is not None, (wanted, trace)
        assert found.violates is wanted
        assert str(wanted) in str(found)


UNCAUTIOUS = [each for each in AddedClause if not each.of_runs and each.value not in BOUNDS]


@pytest.mark.parametrize("clause", UNCAUTIOUS, ids=lambda each: each.value)
def test_another_seed_finds_no_claim_of_a_simple_shape_that_has_no_trace(clause: AddedClause) -> None:
    """A claim without a trace is not made (derive), so a rule that claims too much would go unnoticed. Of runs and bounds it
    is made, or the property is kept in many cases with runs."""
    unbacked = set()
    for shape, number in product((ConjunctionShape.EVENT, ConjunctionShape.ALIKE, ConjunctionShape.SINGLES), range(12)):
        world = clause_world(clause, shape, 77, number)
        if world is None:
            continue
        for cell in CELLS:
            plan_of_world(world, cell)
            for claim in claims_of(world, cell):
                if TRACES.loss(claim.clause.value, cell_code(cell), claim.property, claim.shape) is None:
                    unbacked.add((str(claim.property), claim.shape.code, cell_code(cell)))
    assert not unbacked, sorted(unbacked)


# Runtimes


@pytest.mark.parametrize("name", load_runtime_traces())
def test_the_traces_of_runtimes_replay(name: str) -> None:
    found = counterexample_named(name)
    assert found is not None
    events = [dict(event) | {"by": by} for event, by in zip(found.events, found.publishers, strict=True)]
    trace = run_orders(found.rules, events, dict(found.orders))
    assert tuple(trace.lines()) == found.steps
    violation = CHECKERS[found.violates](trace)
    assert violation is not None
    assert violation.words == found.explanation
    sent = {process: sorted(order) for process, order in found.orders}
    assert CHECKERS[found.violates](run_orders(found.rules, events, sent)) is None, "in the order of sending nothing is lost"


def test_the_stored_traces_of_runtimes_are_in_step() -> None:
    assert RUNTIMES.read_text(encoding="utf-8") == dumped_runtimes(), (
        "run python -m fairlead.testing.counterexamples.runtime_worlds"
    )


def verdicts(text: str, runtime: Runtime) -> dict[Property, Guarantee]:
    return {each.property: each for each in derive(compiled(TYPES + text), runtime)["S"]}


def lost(text: str, runtime: Runtime) -> set[str]:
    return {str(each.property) for each in verdicts(text, runtime).values() if each.verdict is Verdict.LOST}


@pytest.mark.parametrize("named", ["W w", "A a", "A a AND B b"])
@pytest.mark.parametrize("topic", ["", "TOPIC other (B)"])
def test_live_the_order_across_members_and_subtypes_is_kept(named: str, topic: str) -> None:
    """They are in one topic, whichever it is."""
    text = f"{topic} SUBSCRIPTION S MATCH {named}"
    assert lost(text, Runtime.EMBEDDED) == set()
    assert lost(text, Runtime.LIVE) == set()


def test_on_spark_ties_lose_the_order_across_members_and_nothing_else() -> None:
    text = "SUBSCRIPTION S MATCH W w AND B b"
    assert lost(text, Runtime.SPARK) == {"type FIFO order", "type causal order"}
    assert "order_by" in verdicts(text, Runtime.SPARK)[Property.TYPE_FIFO_ORDER].fix


@pytest.mark.parametrize("runtime", Runtime)
def test_plain_types_keep_everything_on_every_runtime(runtime: Runtime) -> None:
    assert lost("SUBSCRIPTION S MATCH B b AND C c", runtime) == set()
    assert lost("SUBSCRIPTION S MATCH D d AND B b", runtime) == set()


def test_live_agreement_across_topics_is_among_readers_of_the_same_merged_stream() -> None:
    both = (Property.COVERING_AGREEMENT, Property.CONJUNCTION_TOTAL_ORDER)
    for topic, told in (("", False), ("TOPIC other (B)", True)):
        found = verdicts(f"{topic} SUBSCRIPTION S MATCH B b AND C c", Runtime.LIVE)
        assert [found[each].kept for each in both] == [True, True]
        assert ["the same merged stream" in found[each].reason for each in both] == [told, told]


def test_derived_members_have_the_order_of_what_they_come_from() -> None:
    text = "SUBSCRIPTION E1 MATCH B b EMIT E (x = b.x) SUBSCRIPTION S MATCH E e AND C c"
    assert lost(text, Runtime.LIVE) == set()


def test_a_publishers_order_across_types_is_told_for_every_runtime() -> None:
    plan = compiled(TYPES + "SUBSCRIPTION S MATCH B b THEN C c SUBSCRIPTION One MATCH B b")
    found = {each: source_order(plan, plan["S"], each) for each in Runtime}
    assert [each for each, told in found.items() if told.verdict is Verdict.LOST] == [Runtime.SPARK]
    apart = compiled(TYPES + "TOPIC other (B) SUBSCRIPTION S MATCH B b THEN C c")
    found[Runtime.LIVE] = source_order(apart, apart["S"], Runtime.LIVE)
    assert found[Runtime.LIVE].verdict is Verdict.LOST
    assert "B in other, C in main" in found[Runtime.LIVE].reason
    assert all(each.fix for each in found.values() if each.verdict is Verdict.LOST)
    assert all(source_order(plan, plan["One"], each).verdict is Verdict.KEPT for each in Runtime)


def test_rows_that_tie_stand_by_type_whoever_sent_them_first() -> None:
    """The rule behind what is said of Spark; `order_by` is the same there."""
    plan = fairlead.compile("TYPE A (x INT, t INT) TYPE B (x INT, t INT) EVENT UNION W = A + B SUBSCRIPTION S MATCH W w")
    sent = [
        {"type": "B", "x": 0, "t": 5, "_source": "p"},
        {"type": "A", "x": 1, "t": 5, "_source": "p"},
    ]
    delivered = [each.members[0].type for each in fairlead.match(plan, sent, order_by="t")]
    assert delivered == ["A", "B"]
    assert [each.members[0].type for each in fairlead.match(plan, sent)] == ["B", "A"]
