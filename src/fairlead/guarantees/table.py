"""The table that the search found: the losses of each matching × disposal, for which shapes, with a trace of each loss.

Takes: the package's table.json. Gives: `Table` and its counterexamples. Never: searches
(fairlead.testing.counterexamples.search does).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pkgutil import get_data
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.guarantees.shape import ConjunctionShape, is_at_most
from fairlead.model.guarantee import Property
from fairlead.model.plans.options import PAPER_DISPOSALS, PAPER_MATCHINGS, Disposal, Matching


@dataclass(frozen=True)
class Counterexample:
    """A trace that violates a property: two subscribers p1 and p2, the events in order, their publishers, the deliveries."""

    name: str
    violates: Property
    cell: str
    shape: ConjunctionShape
    rules: str
    events: tuple[Mapping[str, Any], ...]
    publishers: tuple[str, ...]
    steps: tuple[str, ...]
    explanation: str
    plain: str = ""
    """For the loss of a clause: the same rules without the clause, where the same events show nothing."""
    orders: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """For the loss of a runtime: by subscriber, the events that it reads, in its order. Otherwise all read all, in one
    order."""
    about: str = ""
    """What it is a case of, in words: a clause, options, a shape, constructs."""

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it, readable: the rules, what happens step by step, and why that is a violation."""
        steps = tuple(f"  {step}" for step in self.steps)
        return (*self.rules.rstrip().splitlines(), "", *steps, "", f"{self.violates} is violated: {self.explanation}")

    def __str__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class LostProperty:
    """A cell loses the property for conjunctions of at least this shape."""

    cell: str
    loses: Property
    shape: ConjunctionShape
    trace: str
    explanation: str

    @property
    def name(self) -> str:
        return f"trace {self.cell}/{self.loses}"

    @property
    def full_name(self) -> str:
        """With the shape: a cell can lose a property for several that are not comparable."""
        return f"{self.cell}/{self.loses}/{self.shape.code}"


class Table:
    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.cases: int = raw["cases"]
        self.seed: int = raw["seed"]
        self.horizon: int = raw["horizon"]

    @cached_property
    def entries(self) -> tuple[LostProperty, ...]:
        shapes = {each.code: each for each in ConjunctionShape}
        return tuple(
            LostProperty(each["cell"], Property(each["property"]), shapes[each["shape"]], each["trace"], each["violation"])
            for each in self.raw["lost"]
        )

    @cached_property
    def _by_cell(self) -> Mapping[tuple[str, Property], tuple[LostProperty, ...]]:
        found: dict[tuple[str, Property], tuple[LostProperty, ...]] = {}
        for entry in self.entries:
            found[entry.cell, entry.loses] = (*found.get((entry.cell, entry.loses), ()), entry)
        return found

    @cached_property
    def by_name(self) -> Mapping[str, LostProperty]:
        return {each.full_name: each for each in self.entries}

    def losses(self, cell: str, wanted: Property) -> tuple[LostProperty, ...]:
        """The simplest shapes that lose the property in the cell; none: kept by every shape, as far as the search saw."""
        return self._by_cell.get((cell, wanted), ())

    def loss(self, cell: str, wanted: Property, shape: ConjunctionShape) -> LostProperty | None:
        """Why a conjunction of this shape loses the property in the cell, or None."""
        return next((each for each in self.losses(cell, wanted) if is_at_most(each.shape, shape)), None)

    def judged(self, wanted: Property) -> int:
        """The number of random cases by which a cell was checked for the property, over all shapes."""
        return self._judged[wanted]

    @cached_property
    def _judged(self) -> Mapping[Property, int]:
        return {each: sum(per_shape.get(str(each), 0) for per_shape in self.raw["judged"].values()) for each in Property}

    def counterexample(self, entry: LostProperty) -> Counterexample:
        trace = self.raw["traces"][entry.trace]
        steps = self.raw["steps"][f"{entry.trace} {entry.cell}"]
        return Counterexample(
            entry.name,
            entry.loses,
            entry.cell,
            entry.shape,
            rules_text(trace["types"], trace["subscriptions"], *cell_options(entry.cell)),
            tuple({name: value for name, value in event.items() if name != "by"} for event in trace["events"]),
            tuple(event["by"] for event in trace["events"]),
            tuple(steps),
            entry.explanation,
            about=f"{options_words(entry.cell)} for {entry.shape.words}",
        )


def options_words(cell: str) -> str:
    """The options of a cell as they are written; KEEP without its elements."""
    matching, disposal, keeps = cell_options(cell)
    return f"MATCHING {matching.words}, DISPOSAL {disposal.words}{', KEEP' if keeps else ''}"


def cell_options(cell: str) -> tuple[Matching, Disposal, bool]:
    """The options of a cell such as `FR-PI`, and whether it has KEEP (`FR-PIK`)."""
    matching, disposal = cell.split("-")
    chosen = next(each for each in Disposal if each.code == disposal.removesuffix("K"))
    return next(each for each in Matching if each.code == matching), chosen, disposal.endswith("K")


def rules_text(
    types: Sequence[str], subscriptions: Sequence[str], matching: Matching, disposal: Disposal, keeps: bool = False
) -> str:
    """The rules of subscribers p1, p2, … ADVANCE goes by two; UPTO and KEEP name the first element of each branch."""
    texts = []
    for at, text in enumerate(subscriptions, 1):
        first = [branch.split()[1].split("[")[0] for branch in text.split("\n")[0].removeprefix("MATCH ").split(" OR ")]
        named = " 2" if disposal is Disposal.ADVANCE else f" {first[0]}" if disposal.upto else ""
        keep = f"\nKEEP {', '.join(first)}" if keeps else ""
        texts.append(f"SUBSCRIPTION p{at}\n{text}\nMATCHING {matching.words}\nDISPOSAL {disposal.words}{named}{keep}")
    return "\n\n".join(["\n".join(types), *texts]) + "\n"


@lru_cache(maxsize=1)
def load_table() -> Table:
    """For the options of the papers."""
    return Table(json.loads(get_data("fairlead.guarantees", "table.json") or b""))


@lru_cache(maxsize=1)
def load_more() -> Table:
    """For all others."""
    return Table(json.loads(get_data("fairlead.guarantees", "more_options.json") or b""))


def table_of(cell: str) -> Table:
    matching, disposal, keeps = cell_options(cell)
    return load_table() if matching in PAPER_MATCHINGS and disposal in PAPER_DISPOSALS and not keeps else load_more()
