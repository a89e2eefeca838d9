"""Blocks become columns: once for all who are given them, unless they know the types differently or begin within them."""

from __future__ import annotations

from fairlead.engine import compile
from fairlead.model.types import Catalogue
from fairlead.runtime.live.checking import Checking
from fairlead.runtime.live.gathering import portions, prepared_of
from fairlead.transport.log.block import INDEX_BITS, Block, pieces
from fairlead.transport.log.protocol import Stored
from fairlead.transport.log.sharing import Blocks


def known(text: str) -> Catalogue:
    return compile(f"{text} SUBSCRIPTION S MATCH A a").catalogue


NARROW, SAME, WIDE = known("TYPE A (x INT)"), known("TYPE A (x INT)"), known("TYPE A (x INT, y STRING)")


def blocks_of(*sizes: int, first: int = 1) -> Blocks:
    checking = Checking(NARROW["A"], frozenset())
    made = []
    for at, size in enumerate(sizes):
        ((count, payload),) = pieces(checking.batch([(value,) for value in range(size)]))
        made.append(Stored(first + at, 0, Block("A", "s", at, sum(sizes[:at]), count, checking.schema, payload)))
    return Blocks(made)


def test_all_who_know_the_types_alike_are_given_the_same_columns() -> None:
    blocks = blocks_of(3, 2)
    first, second = prepared_of(blocks, NARROW, 0), prepared_of(blocks, SAME, 0)
    assert first is second
    assert list(first.columns.positions) == [4096, 4097, 4098, 8192, 8193]


def test_who_knows_an_attribute_more_gets_columns_of_its_own() -> None:
    blocks = blocks_of(3)
    narrow, wide = prepared_of(blocks, NARROW, 0), prepared_of(blocks, WIDE, 0)
    assert narrow.columns.tables["A"].column_names == ["x"]
    assert wide.columns.tables["A"].to_pydict() == {"x": [0, 1, 2], "y": [None, None, None]}
    assert prepared_of(blocks, NARROW, 0) is narrow
    assert prepared_of(blocks, WIDE, 0) is wide


def test_who_begins_within_the_blocks_gets_the_rest_of_them() -> None:
    blocks = blocks_of(3, 2, first=7)
    whole, rest = prepared_of(blocks, NARROW, 7 << INDEX_BITS), prepared_of(blocks, NARROW, (7 << INDEX_BITS) + 2)
    assert len(whole.columns) == 5
    assert rest.columns.tables["A"].to_pydict() == {"x": [2, 0, 1]}
    assert prepared_of(blocks, NARROW, 0) is whole


def test_a_portion_of_everything_is_what_was_given() -> None:
    blocks = blocks_of(3, 2, first=7)
    (all_of_it,) = portions(blocks, 0)
    assert all_of_it is blocks
    assert [[each.sequence for each in some] for some in portions(blocks, 7)] == [[7], [8]]
