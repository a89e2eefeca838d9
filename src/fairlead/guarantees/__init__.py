"""What a plan keeps and loses of the fourteen properties, and why."""

from fairlead.guarantees.derive import counterexample, derive
from fairlead.guarantees.shape import Shape, shape_of
from fairlead.guarantees.table import Counterexample, Table, load_table

__all__ = ["Counterexample", "Shape", "Table", "counterexample", "derive", "load_table", "shape_of"]
