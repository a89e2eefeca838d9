"""The traces for the losses of clauses (WITHIN, PER, WITHOUT … WITHIN, overlapping types), found by search.

Takes: the package's clauses.json. Gives: for a clause, a cell, a property and a shape the entry that shows the loss, and its
counterexample, with the rules of the same world without the clause. Never: searches
(fairlead.testing.counterexamples.clause_search does).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pkgutil import get_data
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.guarantees.shape import ConjunctionShape, is_at_most
from fairlead.guarantees.table import Counterexample, cell_options, options_words, rules_text
from fairlead.model.guarantee import Property


@dataclass(frozen=True)
class ClauseEntry:
    """The clause takes the property from conjunctions of at least this shape, in this cell."""

    clause: str
    loses: Property
    cell: str
    shape: ConjunctionShape
    trace: str
    steps: str
    explanation: str

    @property
    def name(self) -> str:
        return f"{self.clause}/{self.cell}/{self.loses}/{self.shape.code}"


class ClauseTraces:
    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    @cached_property
    def entries(self) -> tuple[ClauseEntry, ...]:
        shapes = {each.code: each for each in ConjunctionShape}
        return tuple(
            ClauseEntry(
                *(each["clause"], Property(each["property"]), cell, shapes[each["shape"]]),
                *(each["trace"], each["steps"], each["violation"]),
            )
            for each in self.raw["lost"]
            for cell in each["cells"]
        )

    @cached_property
    def _by_claim(self) -> Mapping[tuple[str, str, Property], tuple[ClauseEntry, ...]]:
        found: dict[tuple[str, str, Property], tuple[ClauseEntry, ...]] = {}
        for each in self.entries:
            key = (each.clause, each.cell, each.loses)
            found[key] = (*found.get(key, ()), each)
        return found

    @cached_property
    def by_name(self) -> Mapping[str, ClauseEntry]:
        return {each.name: each for each in self.entries}

    def loss(self, clause: str, cell: str, wanted: Property, shape: ConjunctionShape) -> ClauseEntry | None:
        """The entry that shows that the clause takes the property from a conjunction of this shape, or None."""
        return next((each for each in self._by_claim.get((clause, cell, wanted), ()) if is_at_most(each.shape, shape)), None)

    def loss_anywhere(self, clause: str, wanted: Property, shape: ConjunctionShape) -> ClauseEntry | None:
        """The same in any cell, for options that are not searched with clauses."""
        mine = (each for each in self.entries if each.clause == clause and each.loses is wanted)
        return next((each for each in mine if is_at_most(each.shape, shape)), None)

    def judged(self, wanted: Property) -> int:
        """The number of random cases with runs by which a cell was checked for the property."""
        found: int = self.raw.get("judged", {}).get(str(wanted), 0)
        return found

    def counterexample(self, entry: ClauseEntry) -> Counterexample:
        trace, options = self.raw["traces"][entry.trace], cell_options(entry.cell)
        plain = trace["plain"]
        return Counterexample(
            f"trace {entry.name}",
            entry.loses,
            entry.cell,
            entry.shape,
            rules_text(trace["types"], trace["subscriptions"], *options),
            tuple({name: value for name, value in event.items() if name != "by"} for event in trace["events"]),
            tuple(event["by"] for event in trace["events"]),
            tuple(self.raw["steps"][entry.steps]),
            entry.explanation,
            rules_text(plain["types"], plain["subscriptions"], *options),
            about=f"{entry.clause} with {options_words(entry.cell)} for {entry.shape.words}",
        )


@lru_cache(maxsize=1)
def load_clause_traces() -> ClauseTraces:
    return ClauseTraces(json.loads(get_data("fairlead.guarantees", "clauses.json") or b'{"lost": []}'))
