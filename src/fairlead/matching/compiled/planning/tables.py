"""Tables of a branch: how a kernel finds the event that a new one replaces.

It looks in the hash index of the table's queue, which is therefore on an attribute of the table's key: on one that WHERE joins,
where there is one, so that the search has the same index. What else the key has is compared along the chain.

Takes: a shape with its class of equal values. Gives: the shape with an index for every table, or raises `Refused`.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.matching.compiled.planning.decimal_values import DecimalValues
from fairlead.matching.compiled.planning.shape import Refused, Shape
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.plans.expression import Expression, Field

TEXTS = frozenset({Kind.STRING, Kind.BINARY, Kind.DECIMAL})
"""Numbered apart from whole numbers and what is counted as them (keys.py)."""
COMPARED = frozenset({Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.STRING, Kind.BINARY, Kind.DOUBLE})
"""Kinds of value columns."""


def finds_rows(shape: Shape, equal: Mapping[int, Expression]) -> bool:
    """Whether an index on these values is on an attribute of the key, where it is on a table."""
    tables = shape.branch.table_queues
    return all(isinstance(each, Field) and each.attribute in tables[queue] for queue, each in equal.items() if queue in tables)


def add_tables(shape: Shape, values: DecimalValues, catalogue: Catalogue) -> None:
    for queue, key in shape.branch.table_queues.items():
        schema, slot = catalogue[shape.branch.queue_types[queue]], shape.slots_of(queue)[0]
        kinds = {name: schema.attributes[schema.index[name]].type.kind for name in key}
        if queue not in shape.equal:
            shape.equal = {**shape.equal, queue: Field(0, key[0], kinds[key[0]])}
        indexed = shape.equal[queue]
        rest = [name for name in key if not (isinstance(indexed, Field) and indexed.attribute == name)]
        for name in rest:
            if kinds[name] not in COMPARED:
                raise Refused(f"a table whose key has an attribute of type {kinds[name]} after the first")
        shape.table_columns[queue] = tuple(values.column_of(Field(slot, name, kinds[name])) for name in rest)
    if shape.table_columns and len({each.kind in TEXTS for each in shape.equal.values()}) > 1:
        raise Refused("tables with keys of different kinds, of text and of numbers")
