"""The fourteen properties as checkers: each accepts a trace and returns None, or the first violation in words.

The formulas are those of the dissertation (chapters 2 and 4), over processes i and j, conjunctions Φ and events e:

    safety and agreement    safety.py
    order                   order.py
    validity (liveness)     validity.py: on a finite trace, with the horizon stated there

Gives: `CHECKERS`, one function per property, and `violations`. Never: runs a matcher.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.model.guarantee import Property
from fairlead.testing.properties.order import (
    conjunction_total_order,
    disjunction_total_order,
    type_causal_order,
    type_fifo_order,
    type_local_order,
    type_total_order,
)
from fairlead.testing.properties.safety import (
    Violation,
    admission,
    conjunction_agreement,
    covering_agreement,
    no_creation,
    no_duplication,
    no_duplication_in_place,
)
from fairlead.testing.properties.trace import Trace
from fairlead.testing.properties.validity import HORIZON, conjunction_validity, event_validity

CHECKERS: dict[Property, Callable[[Trace], Violation | None]] = {
    Property.NO_DUPLICATION: no_duplication,
    Property.NO_DUPLICATION_IN_PLACE: no_duplication_in_place,
    Property.NO_CREATION: no_creation,
    Property.ADMISSION: admission,
    Property.CONJUNCTION_VALIDITY: conjunction_validity,
    Property.EVENT_VALIDITY: event_validity,
    Property.CONJUNCTION_AGREEMENT: conjunction_agreement,
    Property.COVERING_AGREEMENT: covering_agreement,
    Property.TYPE_TOTAL_ORDER: type_total_order,
    Property.CONJUNCTION_TOTAL_ORDER: conjunction_total_order,
    Property.DISJUNCTION_TOTAL_ORDER: disjunction_total_order,
    Property.TYPE_FIFO_ORDER: type_fifo_order,
    Property.TYPE_LOCAL_ORDER: type_local_order,
    Property.TYPE_CAUSAL_ORDER: type_causal_order,
}


def violations(trace: Trace) -> list[Violation]:
    """The violations of the trace, in the order of the properties."""
    return [found for check in CHECKERS.values() if (found := check(trace)) is not None]


__all__ = ["CHECKERS", "HORIZON", "Violation", "violations"]
