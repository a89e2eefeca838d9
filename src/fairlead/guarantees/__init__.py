"""Which of the fourteen properties a plan keeps and loses, and why."""

from fairlead.guarantees.derive import counterexample, counterexample_named, derive, derive_on
from fairlead.guarantees.runtimes import Runtime, SourceOrder, source_order
from fairlead.guarantees.shape import ConjunctionShape, shape_of
from fairlead.guarantees.table import Counterexample, Table, load_table

__all__ = [
    "ConjunctionShape",
    "Counterexample",
    "Runtime",
    "SourceOrder",
    "Table",
    "counterexample",
    "counterexample_named",
    "derive",
    "derive_on",
    "load_table",
    "shape_of",
    "source_order",
]
