"""A subscription means what it means alone with its upstream: its relations, their ids and order, its receipt and its state,
whatever else is in the file, however it and its aliases are called, wherever it stands, on both lanes and across dumps."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairlead.deliver.receipt import ReceiptBook
from fairlead.engine import Engine
from fairlead.errors import LanguageError, UnsupportedError
from fairlead.language import compile_text
from fairlead.model.events.columns import Columns
from fairlead.model.plans.partition import alone, partition
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import from_hex
from fairlead.model.relations.relation import Relation
from fairlead.runtime.embedded import until_microseconds
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.marks import sample_size
from tests.matching.equality.test_lanes import interpreted
from tests.matching.generators.generated import Case
from tests.matching.generators.nested import nested_cases
from tests.matching.generators.plans import plan_cases

__all__ = ["interpreted"]

EACH = int(os.environ.get("COMPANION_CASES", sample_size(20)))
ALL = st.one_of(nested_cases(14), plan_cases(16))
UNUSED = re.compile(r"(TYPE \w+ \()(?=\w)")


def compiled(rules: str) -> Plan:
    try:
        return compile_text(rules)
    except LanguageError:
        assume(False)
        raise


def parts_of(rules: str) -> tuple[str, list[str]]:
    types, *texts = re.split(r"(?=SUBSCRIPTION )", rules)
    return types, texts


def batches(plan: Plan, case: Case, rows: int = 4) -> list[Columns]:
    return list(read_events(case.events, plan.catalogue, batch_rows=rows))


def run(engine: Engine, given: Sequence[Columns], case: Case) -> list[Relation]:
    found = [relation for columns in given for relation in engine.feed(columns)]
    return [*found, *engine.finish(until_microseconds(case.until))]


def told(relations: Sequence[Relation], digests: dict[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """By digest: what was delivered of it."""
    found: dict[str, list[tuple[Any, ...]]] = {digest: [] for digest in digests.values()}
    for each in relations:
        row = (each.id, each.branch, each.positions, str(each.completed_at), str(each.emitted_row))
        found[digests[each.subscription]].append(row)
    return found


def digests_of(plan: Plan) -> dict[str, str]:
    return {each.name: each.digest for each in plan.subscriptions}


def unlike(plan: Plan) -> bool:
    return len(set(digests_of(plan).values())) == len(plan.subscriptions)


def receipt(rows: list[tuple[Any, ...]]) -> str:
    book = ReceiptBook("")
    if rows:
        book.note(from_hex([row[0] for row in rows]))
    return book.receipt().digest


@pytest.mark.slow
@settings(max_examples=EACH, deadline=None)
@given(ALL)
def test_the_engine_delivers_what_the_definition_does(case: Case) -> None:
    """Each alone with its upstream, literally; then in one order."""
    plan = compiled(case.rules)
    given = batches(plan, case)
    events = [event for columns in given for event in columns.events(plan.catalogue)]
    expected = [(each.subscription, each.id) for each in ReferenceMatcher(plan).run(events, until_microseconds(case.until))]
    for kernels_from in (None, -1):
        assert [(each.subscription, each.id) for each in run(Engine(plan, kernels_from=kernels_from), given, case)] == expected


@settings(max_examples=EACH, deadline=None)
@given(ALL, st.randoms(use_true_random=False))
def test_permuted_renamed_and_widened_texts_find_the_same(case: Case, chosen: random.Random) -> None:
    plan = compiled(case.rules)
    types, texts = parts_of(case.rules)
    chosen.shuffle(texts)
    renamed = "\n".join(texts)
    for number, each in enumerate(plan.subscriptions):
        renamed = re.sub(rf"\b{each.name}\b", f"Renamed{number}", renamed)
    other = compiled(UNUSED.sub(r"\1unused STRING, ", types) + "\n" + renamed)
    assert sorted(digests_of(plan).values()) == sorted(digests_of(other).values())
    wider = [event | ({"unused": "!"} if event["type"] != "Heartbeat" else {}) for event in case.events]
    lanes = chosen.choice((None, -1)), chosen.choice((None, -1))
    mine = run(Engine(plan, kernels_from=lanes[0]), batches(plan, case), case)
    theirs = run(Engine(other, kernels_from=lanes[1]), batches(other, Case(case.rules, wider, case.until)), case)
    if unlike(plan):
        assert told(mine, digests_of(plan)) == told(theirs, digests_of(other))


@pytest.mark.slow
@settings(max_examples=EACH, deadline=None)
@given(ALL, st.randoms(use_true_random=False))
def test_a_state_is_taken_up_by_another_file(case: Case, chosen: random.Random) -> None:
    """Run all, dump anywhere, go on with some of the subscriptions beside others, on either lane: what they deliver, their
    receipts and the state in the end are those of an undisturbed run of these alone."""
    plan = compiled(case.rules)
    given, names = batches(plan, case, 2), [each.name for each in plan.subscriptions]
    kept = chosen.sample(names, chosen.randint(1, len(names)))
    some = alone(plan, kept)
    cut = chosen.randint(0, len(given))
    lanes = [chosen.choice((None, -1)) for _ in range(3)]
    first = Engine(plan, kernels_from=lanes[0])
    before = [relation for columns in given[:cut] for relation in first.feed(columns)]
    second = Engine.load(some, first.dump(), kernels_from=lanes[1])
    whole = Engine(some, kernels_from=lanes[2])
    expected = [relation for columns in given[:cut] for relation in whole.feed(columns)]
    assert second.dump() == whole.dump()
    assert sorted(second.change.resumed) == sorted(kept)
    assert not second.change.started
    assert {plan[name].digest for name in names if name not in kept} >= set(second.change.dropped)
    found, rest = run(second, given[cut:], case), run(whole, given[cut:], case)
    digests = digests_of(plan)
    mine = told([each for each in (*before, *found) if each.subscription in kept], digests)
    theirs = told([*expected, *rest], digests)
    if unlike(plan):
        assert mine == theirs
        assert {name: receipt(rows) for name, rows in mine.items()} == {name: receipt(rows) for name, rows in theirs.items()}
    assert [each.id for each in found] == [each.id for each in rest]
    assert second.dump() == whole.dump()


@pytest.mark.slow
@settings(max_examples=EACH, deadline=None)
@given(ALL, st.randoms(use_true_random=False))
def test_what_is_added_begins_where_it_is_added_and_the_others_go_on(case: Case, chosen: random.Random) -> None:
    """Also what reads derived types: it begins with an upstream of its own, as if nothing had been before."""
    plan = compiled(case.rules)
    given, names = batches(plan, case, 2), [each.name for each in plan.subscriptions]
    old = chosen.sample(names, chosen.randint(1, len(names)))
    cut = chosen.randint(0, len(given))
    lanes = [chosen.choice((None, -1)) for _ in range(4)]
    some, rest = alone(plan, old), alone(plan, [name for name in names if name not in old])
    before, undisturbed = Engine(some, kernels_from=lanes[0]), Engine(some, kernels_from=lanes[1])
    for columns in given[:cut]:
        before.feed(columns)
        undisturbed.feed(columns)
    both = Engine.load(plan, before.dump(), kernels_from=lanes[2])
    again = Engine.load(plan, both.dump(), kernels_from=lanes[3])
    assert again.dump() == both.dump()
    late = Engine(rest, kernels_from=lanes[1])
    found = run(both, given[cut:], case)
    expected = (*run(undisturbed, given[cut:], case), *run(late, given[cut:], case))
    if unlike(plan):
        resumed = {*both.change.resumed}
        mine = told([each for each in found if each.subscription in (*old, *both.change.started)], digests_of(plan))
        theirs = told([each for each in expected if each.subscription in (*old, *both.change.started)], digests_of(plan))
        assert mine == theirs
        assert resumed >= set(old)
    assert [each.id for each in run(again, given[cut:], case)] == [each.id for each in found]


def test_units_are_those_with_the_same_upstream_or_a_chain_without_a_fork() -> None:
    types = "TYPE A (v INT, at TIMESTAMP) TIME at TYPE B (v INT, at TIMESTAMP) TIME at\n"

    def units(rules: str) -> list[tuple[set[str], set[str]]]:
        plan = compile_text(types + rules)
        return [({s.name for s in unit.delivered}, set(unit.plan.silent)) for unit in partition(plan)]

    chain = "SUBSCRIPTION S1 MATCH A EMIT X (v = A.v) SUBSCRIPTION S2 MATCH X EMIT Y (v = X.v) SUBSCRIPTION S3 MATCH Y AND B"
    assert units(chain) == [({"S1", "S2", "S3"}, set())]
    assert units(f"{chain} SUBSCRIPTION T MATCH B EMIT Z (v = B.v)") == [({"S1", "S2", "S3", "T"}, set())]
    fork = chain.replace("MATCH A EMIT", "MATCH A OR (A a AND B b) EMIT")
    assert units(f"{fork} SUBSCRIPTION T MATCH B AND X") == [({"S1", "S2", "T"}, set()), ({"S3"}, {"S1", "S2"})]
    one = "SUBSCRIPTION E1 MATCH A EMIT P (v = A.v) SUBSCRIPTION R1 MATCH P"
    two = "SUBSCRIPTION E2 MATCH A EMIT Q (v = A.v) SUBSCRIPTION R2 MATCH Q"
    assert units(f"{one} {two}") == [({"E1", "R1"}, set()), ({"E2", "R2"}, set())]
    absent = "SUBSCRIPTION N MATCH A WITHOUT B b WITHIN 1 DAY OF A EMIT P (v = A.v) SUBSCRIPTION R MATCH P"
    more = "SUBSCRIPTION R2 MATCH P p[2] SUBSCRIPTION R3 MATCH P AND C"
    assert units(f"TYPE C (v INT) {absent} {more}") == [({"N"}, set()), ({"R", "R2"}, {"N"}), ({"R3"}, {"N"})]
    far = "SUBSCRIPTION M MATCH A EMIT O (v = A.v, at = A.at) TIME at " + absent.replace("MATCH A W", "MATCH O A W")
    upstream = {"M", "N"}
    assert units(f"{far} SUBSCRIPTION R4 MATCH P AND A") == [(upstream, set()), ({"R"}, upstream), ({"R4"}, upstream)]


def test_a_long_chain_is_one_unit_and_too_many_copies_are_refused() -> None:
    links = "\n".join(f"SUBSCRIPTION S{n} MATCH T{n} t EMIT T{n + 1} (a = t.a)" for n in range(600))
    assert len(partition(compile_text(f"TYPE T0 (a INT)\n{links}"))) == 1
    with pytest.raises(UnsupportedError, match="U003"):
        partition(compile_text(f"TYPE T0 (a INT)\n{links.replace('MATCH T0 t', 'MATCH T0 t OR (T0 t AND T0 u)')}"))
