"""What sequences lose and keep: every stored trace replays, what is said to be kept is never violated, and a table that claims
too much does not pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from fairlead.errors import FairleadError
from fairlead.guarantees import counterexample, counterexample_named, derive
from fairlead.guarantees.constructs import Construct, constructs_of, free_beginnings, sequence_cell
from fairlead.guarantees.sequence_traces import SequenceLoss, covers, load_sequence_traces
from fairlead.guarantees.sequences import UNSHOWN, is_argued
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.plan import Plan
from fairlead.testing.counterexamples.sequence_losses.sequence_search import (
    confirmed,
    judged_properties,
    search_sequences,
    seen,
)
from fairlead.testing.counterexamples.sequence_losses.sequence_table import (
    SEQUENCES,
    SEQUENCES_BEGIN,
    SEQUENCES_END,
    sequences_json,
    sequences_section,
)
from fairlead.testing.counterexamples.sequence_losses.sequence_worlds import (
    OPTIONS,
    plan_of_sequences,
    sequence_world,
)
from fairlead.testing.counterexamples.table_writer import PAGE, dumped
from fairlead.testing.properties.checkers import CHECKERS, violations
from tests.guarantees.worlds import by_engine, by_reference, compiled, terse, trace_from

Verdicts = Callable[[Plan], Mapping[str, tuple[Guarantee, ...]]]
TRACES = load_sequence_traces()
CELLS = [f"{matching.code}-{disposal.code}" for matching, disposal in OPTIONS]
REFERENCE_EVENTS_MAX = 14
ORDERS = (Property.TYPE_TOTAL_ORDER, Property.TYPE_FIFO_ORDER, Property.TYPE_LOCAL_ORDER, Property.TYPE_CAUSAL_ORDER)
ALWAYS = (Property.NO_CREATION, Property.ADMISSION, Property.CONJUNCTION_AGREEMENT, Property.DISJUNCTION_TOTAL_ORDER)


@pytest.mark.sampled
@pytest.mark.parametrize("cell", CELLS)
def test_every_trace_replays_and_is_what_it_stands_for(cell: str) -> None:
    entries = [each for each in TRACES.entries if each.cell == cell]
    assert entries
    for number, entry in enumerate(entries):
        replays(entry, number)


def replays(entry: SequenceLoss, number: int) -> None:
    found = TRACES.counterexample(entry)
    records = [dict(each) for each in found.events]
    by = by_reference if number % 2 and len(records) <= REFERENCE_EVENTS_MAX else by_engine
    plan = compiled(found.rules)
    trace = trace_from(found.rules, records, found.publishers, lambda plan, events: by(plan, events)[:])
    assert tuple(line for line in trace.lines()) == found.steps, entry.name
    violation = CHECKERS[entry.loses](trace)
    assert violation is not None, entry.name
    assert violation.words == entry.explanation
    asked = [constructs_of(plan["p1"], branch) for branch in plan["p1"].branches]
    assert frozenset().union(*asked) == entry.constructs
    assert sequence_cell(plan["p1"], plan["p1"].branches[0]) == entry.cell


def test_no_trace_shows_what_an_argument_says_is_kept() -> None:
    stored_losses_are_told(derive)


def stored_losses_are_told(verdicts_of: Verdicts) -> None:
    for entry in TRACES.entries:
        plan = compiled(TRACES.counterexample(entry).rules)
        told = next(each for each in verdicts_of(plan)["p1"] if each.property is entry.loses)
        assert told.verdict is (
            Verdict.PER_KEY if is_argued(plan["p1"], plan["p1"].branches[0], entry.loses) else Verdict.LOST
        ), entry.name
        if told.verdict is Verdict.PER_KEY:
            assert Construct.PER in entry.constructs, entry.name


def test_a_verdict_that_claims_too_much_is_found_out() -> None:
    """What promises everything passes neither the stored traces nor the search of another seed."""
    with pytest.raises(AssertionError, match="sequence/FR-PI"):
        stored_losses_are_told(promising_everything)
    with pytest.raises(AssertionError, match="no duplication"):
        kept_is_kept(7, range(20, 26), promising_everything)


def promising_everything(plan: Plan) -> dict[str, tuple[Guarantee, ...]]:
    return {each.name: tuple(Guarantee(wanted, Verdict.KEPT) for wanted in Property) for each in plan.subscriptions}


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(4))
def test_another_seed_violates_nothing_that_is_said_to_be_kept(part: int) -> None:
    kept_is_kept(77, range(part * 25, part * 25 + 25))


def kept_is_kept(seed: int, numbers: range, verdicts_of: Verdicts = derive) -> None:
    for number in numbers:
        world = sequence_world(seed, number)
        for options in OPTIONS:
            here = seen(world, options)
            plan = plan_of_sequences(world, options) if here is not None else None
            if here is None or plan is None:
                continue
            said = {each.property: each for each in verdicts_of(plan)["p1"]}
            for wanted in judged_properties(world):
                if said[wanted].verdict is Verdict.KEPT:
                    found = confirmed(world, options, wanted, here)
                    assert found is None, (number, options, world.texts(options), found)


def test_no_entry_is_contained_in_a_simpler_one() -> None:
    for entry in TRACES.entries:
        for other in TRACES.losses(entry.cell, entry.loses):
            assert other is entry or not covers(other.constructs, entry.constructs, entry.loses), entry.name


def test_what_the_arguments_say_of_every_cell_is_what_was_found() -> None:
    """The arguments are in docs/guarantees.md."""
    for cell in CELLS:
        assert not any(TRACES.losses(cell, each) for each in ALWAYS)
        is_default = cell.endswith("-PI")
        assert bool(TRACES.losses(cell, Property.NO_DUPLICATION)) is not is_default
        assert bool(TRACES.losses(cell, Property.NO_DUPLICATION_IN_PLACE)) is not is_default
        for order in ORDERS:
            within = [each for each in TRACES.losses(cell, order) if Construct.PER not in each.constructs]
            assert bool(within) is not is_default
            assert all(Construct.THEN in each.constructs or cell.startswith("FS") for each in within)
        for each in TRACES.losses(cell, Property.CONJUNCTION_TOTAL_ORDER):
            assert Construct.OPTIONAL in each.constructs or Construct.PER in each.constructs


TYPES = "".join(f"TYPE {name} (x INT, k INT, at TIMESTAMP) TIME at\n" for name in "ABCD")


def verdicts(text: str) -> dict[Property, Guarantee]:
    return {each.property: each for each in derive(compiled(f"{TYPES}SUBSCRIPTION p1\n{text}"))["p1"]}


def lost(text: str) -> set[str]:
    return {str(each.property) for each in verdicts(text).values() if each.verdict is Verdict.LOST}


def test_the_predictions_that_came_true() -> None:
    """NEXT loses event validity, a run covering agreement, UPTO no duplication; STEPWISE both validities."""
    assert "event validity" in lost("MATCH A a NEXT B b")
    assert "covering agreement" in lost("MATCH A a+ SHORTEST NEXT B b DISPOSAL FIRST PREFIX")
    assert "no duplication" in lost("MATCH A a NEXT B b NEXT C c DISPOSAL UPTO b")
    assert {"conjunction validity", "event validity"} <= lost("MATCH A a THEN B b THEN C c WHERE c.x = b.x MATCHING STEPWISE")


def test_the_predictions_that_did_not() -> None:
    """NEXT is part of the pattern, so conjunction validity is kept; STEPWISE keeps covering agreement with FIRST PREFIX
    only."""
    assert verdicts("MATCH A a NEXT B b")[Property.CONJUNCTION_VALIDITY].kept
    stepwise = verdicts("MATCH A a THEN B b MATCHING STEPWISE")[Property.COVERING_AGREEMENT]
    assert stepwise.verdict is Verdict.LOST
    assert counterexample_named(stepwise.trace) is not None
    assert verdicts("MATCH A a THEN B b MATCHING STEPWISE DISPOSAL FIRST PREFIX")[Property.COVERING_AGREEMENT].kept


def test_else_is_no_or() -> None:
    """A subscriber of ELSE does not agree with one of a part of it, and delivers no event in both."""
    rules = f"{TYPES}SUBSCRIPTION p1\nMATCH (A a ELSE A b) NEXT C c\nSUBSCRIPTION p2\nMATCH (A b) NEXT C c"
    by = {each.process: each for each in trace_from(rules, terse("A:1,0,0 C:1,0,0", "x", "k", "at")).deliveries}
    assert {name: len(each.members) for name, each in by.items()} == {"p1": 2, "p2": 2}
    either = f"{TYPES}SUBSCRIPTION p1\nMATCH A a ELSE A a2 NEXT B b\nSUBSCRIPTION p2\nMATCH A a OR A a2 THEN B b"
    trace = trace_from(either, terse("A:1,0,0 B:1,0,0", "x", "k", "at"))
    alone = tuple(each for each in trace.deliveries if each.process == "p1")
    assert violations(replace(trace, processes=trace.processes[:1], deliveries=alone)) == []
    assert len([each for each in trace.deliveries if each.process == "p1"]) == 1, "the second alternative has nothing left"
    assert len([each for each in trace.deliveries if each.process == "p2"]) == 2, "OR delivers the event in both branches"


def test_explain_names_the_construct_and_has_its_trace() -> None:
    text = "MATCH A a NEXT B b THEN C c\nWHERE c.x = a.x"
    found = verdicts(text)[Property.CONJUNCTION_VALIDITY]
    assert found.verdict is Verdict.LOST
    assert found.clause == "THEN, NEXT, LINK"
    assert "holds back" in found.reason
    shown = counterexample(compiled(f"{TYPES}SUBSCRIPTION p1\n{text}"), Property.CONJUNCTION_VALIDITY)
    assert shown is not None
    assert shown.violates is Property.CONJUNCTION_VALIDITY
    assert counterexample(compiled(f"{TYPES}SUBSCRIPTION p1\n{text}")["p1"], Property.CONJUNCTION_VALIDITY) == shown


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("MATCH A a NEXT B b DISPOSAL FIRST PREFIX", "DISPOSAL FIRST PREFIX"),
        ("MATCH A a NEXT B b NEXT C c DISPOSAL UPTO b", "DISPOSAL UPTO LAST b"),
    ],
)
def test_a_disposal_is_to_blame_where_the_default_would_keep_it(text: str, clause: str) -> None:
    assert verdicts(text)[Property.NO_DUPLICATION].clause == clause


CONJUNCTION_VALIDITY, COVERING = Property.CONJUNCTION_VALIDITY, Property.COVERING_AGREEMENT


@pytest.mark.parametrize(
    ("text", "wanted", "argued"),
    [
        ("A a NEXT B b", CONJUNCTION_VALIDITY, True),
        ("A a NEXT B b LIMIT 2", CONJUNCTION_VALIDITY, False),
        ("A a{1,2} LONGEST", CONJUNCTION_VALIDITY, True),
        ("A a{1,2} LONGEST PER k", CONJUNCTION_VALIDITY, False),
        ("A a{1,2} LONGEST WITHIN 5 SECONDS", CONJUNCTION_VALIDITY, False),
        ("(A a ELSE B b) THEN C c NEXT D d", CONJUNCTION_VALIDITY, True),
        ("(A a ELSE B b{1,2}) THEN C c NEXT D d", CONJUNCTION_VALIDITY, False),
        ("(A a THEN B b) ELSE (A a2 THEN C c)", CONJUNCTION_VALIDITY, False),
        ("A a{2} THEN C c NEXT D d", CONJUNCTION_VALIDITY, True),
        ("A a{2} THEN C c WHERE c.x > prev(c.x)", CONJUNCTION_VALIDITY, False),
        ("A a{2} THEN C c MATCHING STEPWISE", CONJUNCTION_VALIDITY, False),
        ("A a THEN B b MATCHING STEPWISE", CONJUNCTION_VALIDITY, True),
        ("A a NEXT B b DISPOSAL UPTO a", COVERING, True),
        ("A a NEXT B b DISPOSAL UPTO b", COVERING, False),
        ("A a NEXT B b THEN C c DISPOSAL FIRST PREFIX", COVERING, False),
        ("A a NEXT B b THEN C c MATCHING STEPWISE DISPOSAL FIRST PREFIX", COVERING, True),
        ("A a{2} THEN B b DISPOSAL FIRST PREFIX MATCHING STEPWISE", Property.TYPE_FIFO_ORDER, False),
        ("A a{2} NEXT B b DISPOSAL FIRST PREFIX MATCHING STEPWISE", Property.TYPE_FIFO_ORDER, False),
        ("A a{2} NEXT B b DISPOSAL FIRST PREFIX", Property.TYPE_FIFO_ORDER, True),
    ],
)
def test_an_argument_covers_no_more_than_it_says(text: str, wanted: Property, argued: bool) -> None:
    subscription = compiled(f"{TYPES}SUBSCRIPTION p1\nMATCH {text}")["p1"]
    assert is_argued(subscription, subscription.branches[0], wanted) is argued


def test_a_limit_of_time_ends_what_waits_so_its_trace_is_another() -> None:
    bare, limited = frozenset({Construct.NEXT}), frozenset({Construct.NEXT, Construct.WITHIN})
    for wanted in (CONJUNCTION_VALIDITY, Property.EVENT_VALIDITY):
        assert not covers(bare, limited, wanted)
        assert covers(limited, limited | {Construct.OF_PREVIOUS}, wanted)
    assert covers(bare, limited, Property.NO_DUPLICATION)


def test_orders_hold_within_a_key() -> None:
    found = verdicts("MATCH A a NEXT B b PER k")
    assert {found[each].verdict for each in ORDERS} == {Verdict.PER_KEY}
    assert all(found[each].clause == "PER k" and found[each].trace for each in ORDERS)


def test_what_neither_a_trace_nor_an_argument_covers_is_not_promised() -> None:
    """With STEPWISE, a run of two leaves out rows: nothing is argued, and this says so."""
    found = verdicts("MATCH A a{2} MATCHING STEPWISE LIMIT 3")[Property.COVERING_AGREEMENT]
    assert found.verdict is Verdict.LOST
    assert found.trace or found.reason == UNSHOWN


def test_an_event_that_others_tie_down_is_promised_nothing() -> None:
    text = "MATCH A a+ NEXT B b WHERE a.x > prev(a.x)"
    plan = compiled(f"{TYPES}SUBSCRIPTION p1\n{text}")
    assert free_beginnings(plan["p1"].branches[0]) == ()
    assert "no single event" in verdicts(text)[Property.EVENT_VALIDITY].reason


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_processes() -> None:
    once, again = (dumped(sequences_json(search_sequences(2, 3, jobs, some=OPTIONS[:1]), 2, 3)) for jobs in (1, 2))
    assert once == again


def test_the_page_is_in_step_with_the_traces() -> None:
    section = PAGE.read_text(encoding="utf-8").split(SEQUENCES_BEGIN)[1].split(SEQUENCES_END)[0].strip()
    assert section == sequences_section(TRACES.raw).strip()
    stored = SEQUENCES.read_text(encoding="utf-8")
    assert dumped(json.loads(stored)) == stored


# What the checkers say of sequences


PATTERN = f"{TYPES}SUBSCRIPTION p1\nMATCH A a+ NEXT B b THEN C c\nWHERE a.x > prev(a.x)"
STORY = "A:1,0,0 A:2,0,0 B:0,0,0 A:9,0,0 C:0,0,0"


def test_a_relation_that_is_no_way_through_the_rows_is_not_admitted() -> None:
    trace = trace_from(PATTERN, terse(STORY, "x", "k", "at"))
    assert len(trace.deliveries) == 1
    assert CHECKERS[Property.ADMISSION](trace) is None
    (delivery,) = trace.deliveries
    a1, a2, b, a9, c = (each.event for each in trace.multicasts)
    for events, runs in (
        ((a1, b, c), (1, 1, 1)),
        ((a2, a1, b, c), (2, 1, 1)),
        ((a1, a2, a9, b, c), (3, 1, 1)),
        ((a2, c, b), (1, 1, 1)),
    ):
        wrong = replace(trace, deliveries=(replace(delivery, events=events, runs=runs),))
        assert CHECKERS[Property.ADMISSION](wrong) is not None, events


def test_rounds_of_a_sequence_have_its_rows_next_to_each_other() -> None:
    text = f"{TYPES}SUBSCRIPTION p1\nMATCH A a NEXT B b"
    apart = trace_from(text, terse("A:0,0,0 A:0,0,0 B:0,0,0 B:0,0,0 " * 5, "x", "k", "at"))
    assert CHECKERS[Property.CONJUNCTION_VALIDITY](replace(apart, deliveries=())) is not None
    never = trace_from(f"{text}\nWHERE b.x > a.x", terse("A:1,0,0 A:0,0,0 A:3,0,0 B:1,0,0 " * 8, "x", "k", "at"))
    assert CHECKERS[Property.CONJUNCTION_VALIDITY](never) is None
    assert never.deliveries == ()


def test_two_sequences_are_the_same_only_if_their_patterns_are() -> None:
    texts = ("A a+ SHORTEST NEXT B b", "A a+ LONGEST NEXT B b", "A a+ THEN B b SHORTEST", "A a* NEXT B b")
    identities = set()
    for text in texts:
        try:
            plan = compiled(f"{TYPES}SUBSCRIPTION p1 MATCH {text}")
        except FairleadError:
            continue
        trace = trace_from(f"{TYPES}SUBSCRIPTION p1 MATCH {text}", [])
        identities.add(trace.processes[0].subscription[0].identity)
        assert plan["p1"].has_sequences
    assert len(identities) == 3
