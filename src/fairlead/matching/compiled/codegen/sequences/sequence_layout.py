"""The row of a key as a node: the next row, what the path says of it, its place, time, bits and value columns.

Takes: the shape of a sequence. Gives: a layout, as node_layout.py has it for other branches. Never: trees and chains.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.kernel_names import LINKS, NODES
from fairlead.matching.compiled.codegen.node_layout import Fields, Layout, NodeField
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.formulas import Constant

LINKED = ("NEXT", "BEFORE", "TAKEN", "LANE")
"""Halves of words: the row after it; of the path, the row that was taken before it and for which slot; and its lane."""


def failed_name(slot: int) -> str:
    """Where the run of the slot failed: how many rows it had, after this one, at most up to its smallest number."""
    return f"FAILED{slot}"


class SequenceLayout(Layout):
    def __init__(self, shape: Shape) -> None:
        self.keyed, self.rowed, self.chain_keyed, self.kept_width = False, False, False, 0
        assert shape.sequence is not None
        words = ["links", "marks", "REF", "BITS", *(["TIME"] if shape.timed else [])]
        self.failed = [failed_name(slot) for slot in sorted({*shape.sequence.remembered.values()})]
        words += self.failed
        self.place_of_column = {number: len(words) + number for number in range(len(shape.columns))}
        if not shape.overlapping:  # rows of different types share the places of their columns
            counts = [0] * shape.stride
            for number, column in enumerate(shape.columns):
                self.place_of_column[number] = len(words) + counts[column.queue]
                counts[column.queue] += 1
        self.fields = {name: at for at, name in enumerate(words)}
        width = 1 + max([len(words) - 1, *self.place_of_column.values()])
        self.width = width if width <= 4 else -(-width // 8) * 8
        self.linked = {"links": 2 * self.width, "trees": 0, "chain_links": 0}
        self.links = Fields(tuple(self.fields.items()))
        self._halves = {name: NodeField(LINKS, Constant(at, name)) for at, name in enumerate(LINKED)}

    @property
    def queue_width(self) -> int:
        return 4

    def field(self, name: str) -> NodeField:
        return self._halves.get(name) or NodeField(NODES, Constant(self.fields[name], name))
