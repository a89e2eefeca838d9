"""Matches whose slots hold runs: members, ids, tables and JSON. Patterns have fixed counts today, so kernels return rows
without offsets; a block with offsets is made by hand here, and where all runs have one event it must say what rows say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.errors import InvariantError
from fairlead.language import compile_text
from fairlead.matching.outcome import Match
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.event_store import Store
from fairlead.matching.results.member_words import MemberWords, joined_members
from fairlead.matching.results.relations import MatchBlock, Relations, joined
from fairlead.matching.results.result_table import table_of_objects
from fairlead.model.events.position import Position
from fairlead.model.relations.identity import position_word, relation_id
from fairlead.model.relations.layout import layout_of
from fairlead.model.relations.relation import Relation
from fairlead.transport.events import read_events
from tests.matching.compiled.test_kernel import interpreted

__all__ = ["interpreted"]

PLAN = compile_text("TYPE A (x INT) TYPE B (x INT) SUBSCRIPTION S MATCH A a AND B b SUBSCRIPTION T MATCH A a[2]")
EVENTS = [{"type": "AB"[at % 2], "x": at} for at in range(24)]
(COLUMNS,) = read_events(EVENTS, PLAN.catalogue)

Runs = list[list[list[int]]]
"""By match and slot, positions."""


@st.composite
def runs(draw: st.DrawFn, slots: int = 2, least: int = 0) -> Runs:
    run = st.lists(st.integers(0, len(EVENTS) - 1), min_size=least, max_size=4)
    one = st.lists(run, min_size=slots, max_size=slots).filter(any)  # a match has a member
    return draw(st.lists(one, min_size=1, max_size=8))


def members_of(matches: Runs, slots: int = 2) -> MemberWords:
    words = [[[position_word(Position(at)) for at in run] for run in match] for match in matches]
    return MemberWords.of_runs(words, slots)


def block(matches: Runs, number: int = 0) -> MatchBlock:
    at = np.array([position_word(Position(place)) for place in range(len(matches))], dtype=np.int64)
    return MatchBlock(PLAN.subscriptions[number], number, 0, at, members_of(matches, len(matches[0])))


def relations_of(blocks: list[MatchBlock]) -> Relations:
    store = Store()
    store.add(COLUMNS)

    def build(name: str, match: Match, at: Position, identity: str) -> Relation:
        return Relation(name, match.branch, identity, match.members, at, runs=match.runs)

    return Relations(blocks, store.view(), PLAN.catalogue, build)


def test_a_fixed_count_is_a_run_of_known_length_without_offsets() -> None:
    plan = compile_text("TYPE F (x INT) TYPE G (x INT) SUBSCRIPTION S MATCH F f[3] THEN G g")
    engine = Engine(plan, kernels_from=0)
    (columns,) = read_events([{"type": name, "x": 0} for name in "FFFG"], plan.catalogue)
    found = engine.feed(columns)
    assert isinstance(found, Relations)
    (one,) = found.blocks
    assert (one.refs.offsets, one.refs.widths, one.refs.runs(0)) == (None, 4, None)
    assert "runs" not in found[0].to_json()


@given(runs(), runs())
def test_members_ids_and_json_of_runs(first: Runs, second: Runs) -> None:
    """Also with more relations than are made one by one, and in a table beside a block without offsets."""
    fixed = MatchBlock(
        PLAN.subscriptions[1],
        1,
        0,
        np.array([position_word(Position(2))]),
        MemberWords(np.array([[position_word(Position(0)), position_word(Position(2))]])),
    )
    found = relations_of([block(first), fixed])
    objects = list(found)
    assert [repr(found[at]) for at in range(len(found))] == list(map(repr, objects))
    mine = [each for each in objects if each.subscription == "S"]
    for relation, match in zip(mine, first, strict=True):
        flat = [position for run in match for position in run]
        written = json.loads(json.dumps(relation.to_json()))
        assert written["positions"] == flat
        assert [each["x"] for each in written["events"]] == flat
        assert written["runs"] == [len(run) for run in match]
        expected = relation_id(
            PLAN["S"].digest, 0, [(position_word(Position(at)),) for at in flat], [len(run) for run in match]
        )
        assert relation.id == written["id"] == expected
    (plain,) = (each for each in objects if each.subscription == "T")
    assert plain.runs is None
    assert plain.id == relation_id(PLAN["T"].digest, 0, [(position_word(Position(at)),) for at in (0, 2)])
    assert found.ids() == [each.id for each in objects]
    layout = layout_of(PLAN)
    assert found.to_arrow(layout).to_pylist() == table_of_objects(layout, objects).to_pylist()
    assert found.members == sum(len(each.members) for each in objects)
    found.narrow()
    assert list(map(repr, relations_of([block(first), fixed]))) == list(map(repr, found))
    both = joined([relations_of([block(first)]), relations_of([block(second)])])
    assert sorted(map(tuple, (each.positions for each in both))) == sorted(
        tuple(at for run in match for at in run) for match in (*first, *second)
    )


def test_runs_that_are_divided_differently_are_different_relations() -> None:
    divided = [[[1, 2], [3]], [[1], [2, 3]], [[1, 2, 3], []], [[], [1, 2, 3]]]
    assert len(set(relations_of([block(divided)]).ids())) == 4


@given(runs(slots=3), st.data())
def test_some_of_the_matches(matches: Runs, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(matches) - 1), max_size=10))
    whole, low = members_of(matches, 3), data.draw(st.integers(0, len(matches)))
    for rows, expected in (
        (np.array(chosen, dtype=np.int64), [matches[at] for at in chosen]),
        (slice(low, None), matches[low:]),
    ):
        some, made = whole[rows], members_of(expected, 3)
        assert (some.rows(), some.flat.tolist(), len(some)) == (made.rows(), made.flat.tolist(), len(made))
        assert [some.runs(at) for at in range(len(some))] == [tuple(map(len, match)) for match in expected]
        assert [some.row(at) for at in range(len(some))] == some.rows()
    again = joined_members([whole[:low], whole[low:]])
    assert again.rows() == whole.rows()
    assert again.offsets is not None
    assert whole.offsets is not None
    assert again.offsets.tolist() == whole.offsets.tolist()


@given(st.integers(1, 4), st.integers(1, 6), st.data())
def test_runs_of_one_event_are_rows(slots: int, count: int, data: st.DataObject) -> None:
    rows = data.draw(
        st.lists(st.lists(st.integers(0, 1 << 40), min_size=slots, max_size=slots), min_size=count, max_size=count)
    )
    ragged, plain = MemberWords.of_runs([[[word] for word in row] for row in rows], slots), MemberWords(np.array(rows))
    numbers: Numbers = np.arange(count * slots) * 7 % 5
    assert ragged.rows() == plain.rows() == rows
    assert ragged.flat.tolist() == plain.flat.tolist()
    assert ragged.starts.tolist() == plain.starts.tolist()
    assert ragged.largest(numbers).tolist() == plain.largest(numbers).tolist()
    assert ragged.padded(slots + 2).tolist() == plain.padded(slots + 2).tolist()
    for slot in range(slots):
        assert ragged.column(slot).tolist() == plain.column(slot).tolist()


def test_a_run_has_no_single_value() -> None:
    with pytest.raises(InvariantError, match="holds one event"):
        members_of([[[1, 2], [3]]]).column(0)
