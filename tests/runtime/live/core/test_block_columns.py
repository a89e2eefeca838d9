"""Blocks become columns: once for all who are given them, unless they know the types differently or begin within them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from fairlead.engine import compile
from fairlead.model.events.types import Catalogue
from fairlead.runtime.live.core.block_columns import REMEMBERED, ColumnCache, portions
from fairlead.runtime.live.publisher.event_check import EventCheck
from fairlead.runtime.live.subscriber.stream_reader import report
from fairlead.transport.log.blocks.block import INDEX_BITS, Block, pieces
from fairlead.transport.log.protocol import Stored, Stream


def known(text: str) -> Catalogue:
    return compile(f"{text} SUBSCRIPTION S MATCH A a").catalogue


NARROW, SAME, WIDE = known("TYPE A (x INT)"), known("TYPE A (x INT)"), known("TYPE A (x INT, y STRING)")


HERE, THERE = Stream("FL_TOPIC_main", "1"), Stream("FL_TOPIC_main", "2")


def prepared(cache: ColumnCache, *given: Any, **more: Any) -> Any:
    """Without the counts of rejected blocks."""
    return cache.prepared(*given, **more)[0]


def blocks_of(*sizes: int, first: int = 1) -> list[Stored]:
    check = EventCheck(NARROW["A"], frozenset())
    made = []
    for at, size in enumerate(sizes):
        ((count, payload),) = pieces(check.batch([(value,) for value in range(size)]))
        made.append(Stored(first + at, 0, Block("A", "s", at, sum(sizes[:at]), count, check.schema, payload)))
    return made


def test_all_who_know_the_types_alike_are_given_the_same_columns() -> None:
    cache = ColumnCache(report, nullcontext())
    first, second = (
        prepared(cache, (HERE,), blocks_of(3, 2), NARROW, ["A"], 0),
        prepared(cache, (HERE,), blocks_of(3, 2), SAME, ["A"], 0),
    )
    assert first is second
    assert prepared(cache, (THERE,), blocks_of(3, 2), NARROW, ["A"], 0) is not first
    assert prepared(cache, (HERE,), blocks_of(3), NARROW, ["A"], 0) is not first
    assert list(first.columns.positions) == [4096, 4097, 4098, 8192, 8193]


def test_who_knows_an_attribute_more_gets_columns_of_its_own() -> None:
    cache, blocks = ColumnCache(report, nullcontext()), blocks_of(3)
    narrow, wide = prepared(cache, (HERE,), blocks, NARROW, ["A"], 0), prepared(cache, (HERE,), blocks, WIDE, ["A"], 0)
    assert narrow.columns.tables["A"].column_names == ["x"]
    assert wide.columns.tables["A"].to_pydict() == {"x": [0, 1, 2], "y": [None, None, None]}
    assert prepared(cache, (HERE,), blocks, NARROW, ["A"], 0) is narrow
    assert prepared(cache, (HERE,), blocks, WIDE, ["A"], 0) is wide


def test_who_begins_within_the_blocks_gets_the_rest_of_them() -> None:
    cache, blocks = ColumnCache(report, nullcontext()), blocks_of(3, 2, first=7)
    whole, rest = (prepared(cache, (HERE,), blocks, NARROW, ["A"], (7 << INDEX_BITS) + at) for at in (0, 2))
    assert len(whole.columns) == 5
    assert rest.columns.tables["A"].to_pydict() == {"x": [2, 0, 1]}
    assert prepared(cache, (HERE,), blocks, NARROW, ["A"], 0) is whole


def test_what_is_remembered_is_little() -> None:
    cache = ColumnCache(report, nullcontext())
    for first in range(1, 10 * REMEMBERED):
        prepared(cache, (HERE,), blocks_of(1, first=first), NARROW, ["A"], 0)
    assert len(cache._made) == REMEMBERED


def test_a_portion_of_everything_is_what_was_given() -> None:
    blocks = blocks_of(3, 2, first=7)
    (all_of_it,) = portions(blocks, ())
    assert all_of_it is blocks
    assert [[each.sequence for each in some] for some in portions(blocks, {0, 7})] == [[7], [8]]


def test_portions_that_began_at_different_blocks_end_at_the_same_one() -> None:
    blocks = blocks_of(*[2] * 40, first=3)
    ends = [{some[-1].sequence for some in portions(blocks[start:], (), 10)} for start in range(4)]
    assert ends[0] - {3, 4, 5} == ends[1] - {3, 4, 5} == ends[2] - {3, 4, 5} == ends[3] - {3, 4, 5}
    for some in portions(blocks, (), 10):
        assert sum(each.block.count for each in some) <= 10
    assert [each for some in portions(blocks, (), 10) for each in some] == list(blocks)


def test_blocks_of_several_topics_are_numbered_anew_and_not_mixed_up_with_those_of_one() -> None:
    cache, blocks = ColumnCache(report, nullcontext()), blocks_of(3, first=7)
    alone = prepared(cache, (HERE,), blocks, NARROW, ["A"], 0)
    counted = [prepared(cache, (HERE,), blocks, NARROW, ["A"], 0, numbers=np.array([number])) for number in (2, 5)]
    places = [each.columns.position_array.tolist() for each in (alone, *counted)]
    assert places == [[(number << INDEX_BITS) + at for at in range(3)] for number in (7, 2, 5)]
