"""The traces of what sequences lose, found by search, by matching, disposal and constructs.

Takes: the package's sequences.json. Gives: for a sequence and a property the entry that shows the loss, and its counterexample.
Never: searches (fairlead.testing.counterexamples.sequence_losses does).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pkgutil import get_data
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.guarantees.constructs import LIMITS_OF_TIME, Construct, Constructs
from fairlead.guarantees.shape import ConjunctionShape
from fairlead.guarantees.table import Counterexample, options_words
from fairlead.model.guarantee import Property

LIVENESS = frozenset({Property.CONJUNCTION_VALIDITY, Property.EVENT_VALIDITY})


@dataclass(frozen=True)
class SequenceLoss:
    """Sequences with at least these constructs lose the property in the cell."""

    cell: str
    loses: Property
    constructs: Constructs
    trace: str
    explanation: str

    @property
    def name(self) -> str:
        return f"sequence/{self.cell}/{self.loses}/{'+'.join(self.codes)}"

    @property
    def title(self) -> str:
        return f"trace {self.name}"

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(each.code for each in Construct if each in self.constructs)


def covers(simple: Constructs, rich: Constructs, wanted: Property) -> bool:
    """What `simple` loses, `rich` loses too. A limit of time ends what waits, so for the validities it is the same in both, or
    one of several."""
    limits, given = simple & LIMITS_OF_TIME, rich & LIMITS_OF_TIME
    return simple <= rich and (wanted not in LIVENESS or bool(limits) == bool(given))


class SequenceTraces:
    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    @cached_property
    def entries(self) -> tuple[SequenceLoss, ...]:
        named = {each.code: each for each in Construct}
        return tuple(
            SequenceLoss(
                *(each["cell"], Property(each["property"]), frozenset(named[code] for code in each["constructs"])),
                *(each["trace"], each["violation"]),
            )
            for each in self.raw["lost"]
        )

    @cached_property
    def by_name(self) -> Mapping[str, SequenceLoss]:
        return {each.name: each for each in self.entries}

    @cached_property
    def _by_cell(self) -> Mapping[tuple[str, Property], tuple[SequenceLoss, ...]]:
        found: dict[tuple[str, Property], tuple[SequenceLoss, ...]] = {}
        for each in self.entries:
            found[each.cell, each.loses] = (*found.get((each.cell, each.loses), ()), each)
        return found

    def losses(self, cell: str, wanted: Property) -> tuple[SequenceLoss, ...]:
        return self._by_cell.get((cell, wanted), ())

    def loss(self, cell: str, wanted: Property, constructs: Constructs) -> SequenceLoss | None:
        return next((each for each in self.losses(cell, wanted) if covers(each.constructs, constructs, wanted)), None)

    def across_keys(self, wanted: Property) -> SequenceLoss | None:
        """Any entry that shows that an order holds within a key only."""
        return next((each for each in self.entries if each.loses is wanted and Construct.PER in each.constructs), None)

    def judged(self, cell: str, wanted: Property) -> int:
        """The number of random cases by which the cell was checked for the property."""
        found: int = self.raw["judged"].get(cell, {}).get(str(wanted), 0)
        return found

    def counterexample(self, entry: SequenceLoss) -> Counterexample:
        trace = self.raw["traces"][entry.trace]
        texts = [f"SUBSCRIPTION p{at}\n{text}" for at, text in enumerate(trace["subscriptions"], 1)]
        return Counterexample(
            entry.title,
            entry.loses,
            entry.cell,
            ConjunctionShape.EVENT,
            "\n\n".join(["\n".join(trace["types"]), *texts]) + "\n",
            tuple({name: value for name, value in event.items() if name != "by"} for event in trace["events"]),
            tuple(event["by"] for event in trace["events"]),
            tuple(trace["steps"]),
            entry.explanation,
            about=f"a sequence of {', '.join(entry.codes) or 'one element'} with {options_words(entry.cell)}",
        )


@lru_cache(maxsize=1)
def load_sequence_traces() -> SequenceTraces:
    return SequenceTraces(json.loads(get_data("fairlead.guarantees", "sequences.json") or b'{"lost": [], "judged": {}}'))
