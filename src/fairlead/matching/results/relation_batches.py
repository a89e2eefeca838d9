"""Batches of relations, whichever lane found them: those of one subscription, their counts, all of them as one table.

Takes: batches of relations. Gives: a part of one, counts, tables of a layout (model/relations/layout.py). Never: makes objects
of the kernels' matches; writes anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import pyarrow as pa

from fairlead.matching.results.delivery_order import LAZY, Interleaved
from fairlead.matching.results.relations import Relations, joined
from fairlead.matching.results.result_table import table_of_objects
from fairlead.model.relations.layout import ResultLayout
from fairlead.model.relations.relation import Relation

OBJECTS = 8192
"""Relations that already are objects become columns this many at a time."""


def only(relations: Sequence[Relation], subscription: str) -> Sequence[Relation]:
    """The relations of one subscription."""
    if isinstance(relations, LAZY):
        return relations.only(subscription)
    return [each for each in relations if each.subscription == subscription]


def counts_of(relations: Sequence[Relation]) -> Mapping[str, int]:
    """By subscription, how many of the relations are its own."""
    return relations.counts() if isinstance(relations, LAZY) else Counter(each.subscription for each in relations)


def relation_tables(relations: Sequence[Relation], layout: ResultLayout) -> Iterator[pa.Table]:
    """Relations as tables of the layout. The kernels' matches never become objects on the way."""
    if isinstance(relations, (Relations, Interleaved)):
        yield relations.to_arrow(layout)
    else:
        for low in range(0, len(relations), OBJECTS):
            yield table_of_objects(layout, relations[low : low + OBJECTS])


def relation_table(batches: Sequence[Sequence[Relation]], layout: ResultLayout) -> pa.Table:
    """All relations of batches, in their order."""
    tables = [layout.schema.empty_table()]
    for engine, group in groupby((each for each in batches if len(each)), key=engine_of):
        for relations in [joined(list(group))] if engine is not None else group:  # type: ignore[arg-type]
            tables += relation_tables(relations, layout)
    return pa.concat_tables(tables)


def engine_of(relations: Sequence[Relation]) -> object:
    """Identifies the engine of relations, whose columns can be joined; None if they are objects."""
    return relations.build if isinstance(relations, Relations) else None
