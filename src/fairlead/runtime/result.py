"""What `match` found: relations in memory, as objects or as a table.

Takes: batches of relations and their plan. Gives: `Result`. Never: matches anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.deliver.receipt import Receipt
from fairlead.matching.results.relation_batches import only, relation_table
from fairlead.model.arguments import subscription_named
from fairlead.model.html import table
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.layout import layout_of
from fairlead.model.relations.relation import Relation

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Result:
    """The relations of a finite input, in the order of delivery. Iterate over it, or use `to_arrow`.

    Relations become Python objects when you access them.
    """

    plan: Plan
    batches: tuple[Sequence[Relation], ...]
    receipt: Receipt
    events: int
    duplicates: int

    def __repr__(self) -> str:
        return f"Result({len(self)} relations of {self.events} events, receipt {self.receipt.digest})"

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        return tuple(chain.from_iterable(self.batches))

    def __iter__(self) -> Iterator[Relation]:
        return chain.from_iterable(self.batches)

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    @overload
    def __getitem__(self, at: int) -> Relation: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Relation, ...]: ...
    def __getitem__(self, at: int | slice) -> Relation | tuple[Relation, ...]:
        """Only the requested relations, and their neighbours, become objects."""
        wanted = range(len(self))[at]
        if isinstance(wanted, int):
            return self._at(wanted)
        return tuple(map(self._at, wanted))

    def _at(self, number: int) -> Relation:
        batch = bisect_right(self._starts, number) - 1
        return self.batches[batch][number - self._starts[batch]]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(map(len, self.batches))][:-1]

    def of(self, subscription: str) -> tuple[Relation, ...]:
        """The relations of one subscription."""
        subscription_named(self.plan, subscription)
        return tuple(chain.from_iterable(only(batch, subscription) for batch in self.batches))

    def to_arrow(self, subscription: str | None = None) -> pa.Table:
        """All relations as a pyarrow table, or those of one subscription.

        The table of one subscription also has a column for each attribute that it emits.
        """
        if subscription is not None:
            subscription_named(self.plan, subscription)
        layout = layout_of(self.plan, subscription)
        batches = self.batches if subscription is None else [only(batch, subscription) for batch in self.batches]
        found = relation_table(batches, layout)
        if subscription is not None and layout.derived:
            import pyarrow.compute as pc

            emitted = found.column("emitted")
            for each in layout.emitted:
                name = f"{layout.derived[0]}.{each.name}" if each.name in found.column_names else each.name
                found = found.append_column(name, pc.struct_field(emitted, [each.name]))
        return found

    def _repr_html_(self) -> str:
        rows = [
            (each.subscription, each.completed_at, ", ".join(map(str, each.positions)), each.emitted or "", each.id[:12])
            for each in self[:20]
        ]
        more = f"<p>… and {len(self) - 20:,} more</p>" if len(self) > 20 else ""
        counted = f"<p>{len(self):,} relations from {self.events:,} events · receipt <code>{self.receipt.digest}</code></p>"
        return counted + table(("subscription", "completed at", "positions", "emitted", "id"), rows) + more
