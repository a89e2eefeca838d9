"""The relations of several engines in one order: the same, looked at in any way, as the objects in that order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine import Engine, compile
from fairlead.matching.results import delivery_order as module
from fairlead.matching.results.delivery_order import Interleaved, completed, interleaved
from fairlead.matching.results.delivery_order import ids_of as id_words
from fairlead.matching.results.relation_batches import counts_of, only, relation_table
from fairlead.model.relations.identity import position_word, to_hex
from fairlead.model.relations.layout import layout_of
from fairlead.model.relations.relation import Relation
from fairlead.transport.events import read_events

RULES = """
TYPE A (x INT, s STRING)
TYPE B (x INT, s STRING)
SUBSCRIPTION Pairs MATCH A a AND B b WHERE a.x < b.x
SUBSCRIPTION Alone MATCH A a OR B b WHERE a.x = 1 AND b.x = 2
"""
PLAN = compile(RULES)
ROW = st.tuples(st.sampled_from("AB"), st.integers(0, 3), st.sampled_from(["one", "two"]))


def found_by(rows: Sequence[tuple[str, int, str]], compiled: bool) -> Sequence[Relation]:
    """By an engine of its own: each numbers its events from 0 on, so the same position means another event in each."""
    engine = Engine(PLAN, kernels_from=0 if compiled else None)
    (columns,) = read_events([{"type": name, "x": x, "s": s} for name, x, s in rows], PLAN.catalogue)
    return engine.feed(columns)


def shown(relations: Iterable[Relation]) -> list[str]:
    return [repr(each) for each in relations]


@given(
    inputs=st.lists(st.tuples(st.lists(ROW, min_size=1, max_size=30), st.booleans()), min_size=1, max_size=3),
    data=st.data(),
)
def test_they_are_the_objects_in_that_order(inputs: list[tuple[list[tuple[str, int, str]], bool]], data: st.DataObject) -> None:
    parts = [found_by(rows, compiled) for rows, compiled in inputs]
    assert [completed(part).tolist() for part in parts] == [[position_word(each.completed_at) for each in p] for p in parts]
    # every completing event has a turn, rising within its part
    turns, expected = [], []
    for number, part in enumerate(parts):
        places = [each.completed_at.major for each in part]
        gaps = data.draw(st.lists(st.integers(0, 3), min_size=31, max_size=31))
        turn = np.cumsum(gaps)[places] * len(parts) + number if places else np.zeros(0, dtype=np.int64)
        turns.append(turn.astype(np.int64))
        expected += [(int(at), number, place, each) for place, (at, each) in enumerate(zip(turn, part, strict=True))]
    objects = [each for *_, each in sorted(expected, key=lambda one: one[:3])]

    made = interleaved(parts, turns)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "PAGE", 4)
        assert shown(made) == shown(objects)
        assert shown(made[at] for at in range(len(made))) == shown(objects)
    assert shown(made[1::2]) == shown(objects[1::2])
    assert to_hex(id_words(made)) == [each.id for each in objects]
    assert counts_of(made) == Counter(each.subscription for each in objects)
    for name in ("Pairs", "Alone"):
        mine = only(made, name)
        assert isinstance(mine, Interleaved)
        assert shown(mine) == shown(each for each in objects if each.subscription == name)
    for some, wanted in ((made, objects), (made[2:], objects[2:])):
        alone = [relation_table([[each]], layout_of(PLAN)) for each in wanted]
        assert relation_table([some], layout_of(PLAN)).to_pylist() == [row for table in alone for row in table.to_pylist()]


def test_there_may_be_many_engines() -> None:
    parts = [found_by([("A", 1, "one")], compiled=False) for _ in range(300)]
    made = interleaved(parts, [np.array([300 - number]) for number in range(300)])
    assert made.owner.tolist() == list(range(299, -1, -1))
    assert shown(made) == shown(each for part in reversed(parts) for each in part)
