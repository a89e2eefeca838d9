"""Relations that another process has found: what the order of delivery, receipts, counts and the outputs need of them.

Takes: the relations of an engine, pickled by the process that has it. Gives: the same relations, with their ids, places, a
table or objects. Never: has the events that they refer to.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.errors import require
from fairlead.matching.results.chunk import Numbers, Words
from fairlead.model.relations.identity import Words as Ids
from fairlead.model.relations.identity import to_hex
from fairlead.model.relations.layout import ResultLayout
from fairlead.model.relations.relation import Relation


@dataclass(frozen=True)
class Wanted:
    """What an output needs of relations that another process finds: a table, lines of JSON, or the first objects."""

    layout: ResultLayout | None = None
    lines: bool = False
    objects: int = 0


@dataclass(frozen=True)
class WrittenRelation:
    """A relation as a line of JSON, without its end."""

    text: str


def json_line(relation: Relation) -> str:
    return json.dumps(relation.to_json(), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, eq=False)
class TransferredRelations(Sequence[Relation]):
    """`at`, `due` and `number`: the place of completion, the deadline, and the number of the subscription in the whole plan, by
    relation. `table`: all of them, if a table is wanted; `objects`: all as lines, or as many of the first as are wanted."""

    words: Ids
    at: Words
    due: Words
    number: Numbers
    subscriptions: Mapping[int, str]
    table: pa.Table | None = None
    objects: Sequence[Relation | WrittenRelation] = ()

    def __len__(self) -> int:
        return len(self.at)

    @overload
    def __getitem__(self, at: int) -> Relation: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Relation]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return self.taken(np.arange(len(self))[at]) if isinstance(at, slice) else self.taken(np.array([at]))[0]

    def taken(self, places: Numbers) -> list[Any]:
        """The relations at some places, which must be among those that were transferred as objects."""
        require(not len(places) or int(places.max()) < len(self.objects), "these relations came as objects")
        return [self.objects[place] for place in places.tolist()]

    def id_words(self) -> Ids:
        return self.words

    def ids(self) -> list[str]:
        return to_hex(self.words)

    def signs(self) -> None:
        """Nothing is taken back: rules with ORDER BY … DELAY run in one process."""
        return

    def counts(self) -> Mapping[str, int]:
        return Counter(self.names(np.arange(len(self))))

    def only(self, subscription: str) -> TransferredRelations:
        raise NotImplementedError("a run in several processes keeps no receipts of single subscriptions")

    def completed(self) -> Words:
        return self.at

    def turns(self) -> tuple[Words, Words, Numbers]:
        """What the order of delivery is made of."""
        return self.at, self.due, self.number

    def names(self, places: Numbers) -> list[str]:
        return [self.subscriptions[number] for number in self.number[places].tolist()]

    @property
    def members(self) -> int:
        return 0

    def narrow(self) -> None:
        """Holds no events."""

    def to_arrow(self, layout: ResultLayout) -> pa.Table:
        return self.table_of(layout, np.arange(len(self)))

    def table_of(self, layout: ResultLayout, places: Numbers) -> pa.Table:
        require(self.table is not None, "these relations came as a table")
        return self.table.take(pa.array(places)) if self.table is not None else layout.schema.empty_table()
