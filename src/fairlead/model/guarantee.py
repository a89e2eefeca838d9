"""The fourteen properties of composite deliveries, and the verdict on one of them for one subscription."""

from __future__ import annotations

import builtins
from enum import StrEnum

from fairlead.dataclass import dataclass


class Property(StrEnum):
    """The fourteen properties of delivery that a subscription can keep or lose (docs/guarantees.md)."""

    NO_DUPLICATION = "no duplication"
    NO_DUPLICATION_IN_PLACE = "no duplication'"
    NO_CREATION = "no creation"
    ADMISSION = "admission"
    CONJUNCTION_VALIDITY = "conjunction validity"
    EVENT_VALIDITY = "event validity"
    CONJUNCTION_AGREEMENT = "conjunction agreement"
    COVERING_AGREEMENT = "covering agreement"
    TYPE_TOTAL_ORDER = "type total order"
    CONJUNCTION_TOTAL_ORDER = "conjunction total order"
    DISJUNCTION_TOTAL_ORDER = "disjunction total order"
    TYPE_FIFO_ORDER = "type FIFO order"
    TYPE_LOCAL_ORDER = "type local order"
    TYPE_CAUSAL_ORDER = "type causal order"


class Verdict(StrEnum):
    """Whether a property is kept, kept per key, or lost."""

    KEPT = "kept"
    PER_KEY = "kept per key"
    LOST = "lost"


@dataclass(frozen=True)
class Guarantee:
    """One property of one subscription: kept or lost, which clause loses it, and why in one sentence."""

    property: Property
    verdict: Verdict
    clause: str = ""
    reason: str = ""
    source: str = ""
    """Its evidence: a theorem of the papers, or the name of a trace found by search."""
    fix: str = ""
    """What to change, if a runtime loses it and not the subscription itself."""
    trace: str = ""
    """The name of the stored trace that shows the loss (guarantees.counterexample_named)."""

    @builtins.property
    def why(self) -> str:
        """Which clause, why, and what to change, as far as each is known."""
        found = f"{self.clause}: {self.reason}" if self.clause else self.reason
        return f"{found}; fix: {self.fix}" if self.fix else found

    @builtins.property
    def kept(self) -> bool:
        """Whether the property holds."""
        return self.verdict is Verdict.KEPT
