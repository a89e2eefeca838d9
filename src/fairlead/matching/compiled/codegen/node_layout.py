"""The fields of a queued event: one row of 64-bit words for each, with only what the branch needs.

Floats are kept by their bits. Links to other nodes (-1 for none): those along a queue (`links`, 32 bits) stand in front of
the words in the same row, so that a step touches one line of memory. Those of trees (`trees`, 64 bits where trees have keys:
the least one below stands there too) and of hash chains (`chain_links`) are in arrays of their own. `links` and `nodes` are
two views of one memory that never meet: words begin at REF, links end before it.
"""

from __future__ import annotations

from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.codegen.kernel_names import CHAIN_LINKS, LINKS, NODES, TREES
from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.contents import fields_read
from fairlead.matching.compiled.representation.formulas import Array, ArrayElement, Constant, Formula

VIEWS = {
    "links": ("NEXT", "PREV", "HIGH"),
    "trees": ("LEFT", "RIGHT", "UP", "AGG"),
    "chain_links": ("BUCKET", "BNEXT", "BPREV", "SHORT"),
}
"""Fields that are not words of the row, by the array that has them: links between nodes, and what is read along with them. HIGH
is the upper half of the key, AGG the least key of a tree, SHORT what is compared along a chain (hash_index.py)."""


class Layout:
    def __init__(self, shape: Shape, accesses: Accesses) -> None:
        self.keyed = any(tree.column is not None for tree in accesses.trees.values())
        self.rowed = self.keyed and not shape.recent
        """Whether the first nodes of a queue lie side by side (ordered_index.py); loop.py says no where no search begins
        there."""
        words = ["links", *(["high"] if self.keyed else []), "REF"]
        if self.keyed:
            words.append("KEY")
        if shape.timed:
            words.append("TIME")
        if accesses.chosen_bits or _reads_bits(shape):
            words.append("BITS")
        counts = [0] * shape.stride
        self.place_of_column = {}
        """Of the columns that some search reads."""
        for number in sorted(accesses.stored):
            queue = shape.columns[number].queue
            self.place_of_column[number] = len(words) + counts[queue]
            counts[queue] += 1
        self.fields = {name: at for at, name in enumerate(words)}
        width = len(words) + max(counts)
        self.width = width if width in (1, 2, 4) else -(-width // 8) * 8 if width > 4 else 4
        """A power of two: a node lies in one line of the processor's cache."""
        self.linked = {"links": 2 * self.width, "trees": 4 if accesses.trees else 0, "chain_links": 4 if shape.equal else 0}
        for view, names in VIEWS.items():
            if self.linked[view]:
                self.fields |= {name: at for at, name in enumerate(names)}
        self.chain_keyed = bool(accesses.chained)
        """Whether the least key of each chain of the hash index is known."""
        self.kept_width = accesses.kept.width
        """Of what is kept of each queue."""
        self.links = Fields(tuple(self.fields.items()))

    @property
    def bytes(self) -> int:
        """Of one queued event."""
        return 8 * self.width + (8 if self.keyed else 4) * self.linked["trees"] + 4 * self.linked["chain_links"]

    @property
    def queue_width(self) -> int:
        return 8 if self.rowed else 4

    def __getitem__(self, name: str) -> int:
        return self.fields[name]

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def field(self, name: str) -> NodeField:
        return self.links.field(name)

    def take(self, names: str) -> list[NodeField]:
        """Fields by their names."""
        return [self.links.field(name) for name in names.split()]

    def column(self, number: int) -> NodeField:
        """A value column of a queued event."""
        return NodeField(NODES, Constant(self.place_of_column[number], f"VALUE{number}"))


@dataclass(frozen=True)
class NodeField:
    """A field of nodes: `NEXT[node]` is an element of the array that has it."""

    array: Array
    number: Constant

    def __getitem__(self, node: Formula) -> ArrayElement:
        return ArrayElement(self.array, (node, self.number))


@dataclass(frozen=True)
class Fields:
    """The fields of nodes by their names, without value columns: kernels with equal ones share functions."""

    numbers: tuple[tuple[str, int], ...]

    @cached_property
    def _made(self) -> dict[str, NodeField]:
        return {name: NodeField(_ARRAYS[VIEW_OF.get(name, "nodes")], Constant(at, name)) for name, at in self.numbers}

    def __contains__(self, name: str) -> bool:
        return name in self._made

    def field(self, name: str) -> NodeField:
        return self._made[name]

    def take(self, names: str) -> list[NodeField]:
        return [self._made[name] for name in names.split()]


VIEW_OF = {name: view for view, names in VIEWS.items() for name in names}
_ARRAYS = {"nodes": NODES, "links": LINKS, "trees": TREES, "chain_links": CHAIN_LINKS}


def _reads_bits(shape: Shape) -> bool:
    conditions = [*(each.condition for each in shape.tests), *(each.condition for each in shape.noted), *shape.runs.formulas]
    return any("BITS" in fields_read(each) for each in conditions)
