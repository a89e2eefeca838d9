"""FOLD: what is kept of a run in place of its events.

    MATCH Quote q+ HAVING count(q) >= 1000000 FOLD q EMIT Many (low = min(q.price), n = count(q))

    numbers    how many events there are, the id so far, and for each count, sum and average its total
    events     the first, the last, for each min and max the first event that has it; for `count(DISTINCT q.x)` the first event
               of each value; the latest, if the derived event has its time

An aggregate over these is the aggregate over the run, because a run that is folded only grows until all of it leaves.

Takes: a branch. Gives: `Folding`, what HAVING and EMIT read of its folded run. Never: sees an event.
"""

from __future__ import annotations

from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.model.events.types import Catalogue, DataType, Kind
from fairlead.model.expressions.expression import DISTINCT, Aggregate, Expression, leaves
from fairlead.model.plans.plan import Branch
from fairlead.model.plans.sequence import takes

HEAD = 3
"""Numbers of every folded run: its length, and the two lanes of its id so far."""
HALF = 32
"""A sum of whole numbers is kept exactly, as two numbers: high * 2**32 + low, where low is below 2**32."""
DIGITS_MAX = 18
"""Of a DECIMAL that is summed: its values fit into 64 bits, so the sums of 2**31 of them into two numbers."""
Key = tuple[str, str]
"""An aggregate function and the attribute that it is of."""


@dataclass(frozen=True)
class Total:
    """`count(q.x)`, `sum(q.x)` or `avg(q.x)`: what is added up of a run. `type` is that of the attribute."""

    function: str
    attribute: str
    type: DataType

    @property
    def key(self) -> Key:
        return self.function, self.attribute

    @property
    def is_double(self) -> bool:
        return self.function == "avg" or self.type.kind is Kind.DOUBLE

    @property
    def width(self) -> int:
        """Numbers: how many values there are that are not NULL, and but for a count what they come to."""
        return 1 if self.function == "count" else 2 if self.is_double else 3


@dataclass(frozen=True)
class Folding:
    slot: int
    type: str
    totals: tuple[Total, ...]
    extremes: tuple[Key, ...]
    different: tuple[str, ...]
    """The attributes whose different values are counted."""
    timed: bool
    """The largest time of the events matters: it is that of the derived event, or can end the run (OF PREVIOUS)."""

    @cached_property
    def width(self) -> int:
        """How many numbers a state has of a run."""
        return HEAD + sum(each.width for each in self.totals)

    @cached_property
    def roles(self) -> tuple[str | Key, ...]:
        """The events that a relation refers to in place of the run."""
        return ("first", "last", *(["latest"] if self.timed else []), *self.extremes)


def folding_of(branch: Branch, catalogue: Catalogue) -> Folding | None:
    """Of the folded run of a branch; None if nothing is folded."""
    if not branch.folded:
        return None
    (slot,) = branch.folded
    schema = catalogue[branch.slots[slot].type]
    read = {
        (leaf.function, leaf.attribute)
        for node in _read(branch)
        for leaf in leaves(node)
        if isinstance(leaf, Aggregate) and leaf.slots == (slot,) and leaf.attribute is not None
    }
    keys = sorted(read)
    totals = (Total(*key, schema.type_of(key[1])) for key in keys if key[0] in ("count", "sum", "avg"))
    extremes = (key for key in keys if key[0] in ("min", "max"))
    different = (attribute for function, attribute in keys if function == DISTINCT)
    emits_time = branch.emission is not None and catalogue[branch.emission.type].timed
    limited = branch.sequence is not None and any(each.gap_us is not None for each in takes(branch.sequence))
    return Folding(slot, schema.name, tuple(totals), tuple(extremes), tuple(different), emits_time or limited)


def _read(branch: Branch) -> list[Expression]:
    made: list[Expression] = [atom for each in branch.having for term in each.condition.terms for atom in term]
    return made + ([value for _, value in branch.emission.fields] if branch.emission is not None else [])
