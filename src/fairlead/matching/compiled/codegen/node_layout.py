"""The fields of a queued event: one row of 64-bit words for each, with only what the branch needs.

Floats are kept by their bits. Links to other nodes (-1 for none): those along a queue (`nn`, 32 bits) stand in front of the
words in the same row, so that a step touches one line of memory. Those of trees (`tt`, 64 bits where trees have keys: the least
one below stands there too) and of hash chains (`bb`) are in arrays of their own. `nn` and `ni` are two views of one memory that
never meet: words begin at REF, links end before it.
"""

from __future__ import annotations

import re

from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.shape import Shape

VIEWS = {
    "nn": ("NEXT", "PREV", "HIGH"),
    "tt": ("LEFT", "RIGHT", "UP", "AGG"),
    "bb": ("BUCKET", "BNEXT", "BPREV"),
}
"""Fields that are not words of the row, by the array that has them: links between nodes, and what is read along with them. HIGH
is the upper half of the key, AGG the least key of a tree."""


class Layout:
    def __init__(self, shape: Shape, accesses: Accesses) -> None:
        self.keyed = any(tree.column is not None for tree in accesses.trees.values())
        self.rowed = self.keyed and not shape.recent
        """Whether the first nodes of a queue lie side by side (ordered_index.py); loop.py says no where no search begins
        there."""
        words = ["links", *(["high"] if self.keyed else []), "REF"]
        if self.keyed:
            words.append("KEY")
        if shape.windowed or shape.waits:
            words.append("TIME")
        if accesses.chosen_bits or any("nbits" in source for source in _sources(shape)):
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
        self.linked = {"nn": 2 * self.width, "tt": 4 if accesses.trees else 0, "bb": 4 if shape.equal else 0}
        for view, names in VIEWS.items():
            if self.linked[view]:
                self.fields |= {name: at for at, name in enumerate(names)}

    @property
    def bytes(self) -> int:
        """Of one queued event."""
        return 8 * self.width + (8 if self.keyed else 4) * self.linked["tt"] + 4 * self.linked["bb"]

    @property
    def queue_width(self) -> int:
        return 8 if self.rowed else 4

    def __getitem__(self, name: str) -> int:
        return self.fields[name]

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def named(self, source: str) -> str:
        """Source in which `ni[node, NAME]` has the field's number, and the view it is in."""
        opened: list[int] = []
        made: list[tuple[int, int, str]] = []
        for found in _BRACKET.finditer(source):
            if found[0] == "[":
                opened.append(found.start())
                continue
            start = opened.pop()
            if found[1]:
                made.append((found.start(1), found.end(1), str(self.fields[found[1]])))
                if source[start - 2 : start] == "ni" and found[1] in VIEW_OF:
                    made.append((start - 2, start, VIEW_OF[found[1]]))
        pieces, at = [], 0
        for low, high, text in sorted(made):
            pieces += [source[at:low], text]
            at = high
        return "".join([*pieces, source[at:]])


VIEW_OF = {name: view for view, names in VIEWS.items() for name in names}
_BRACKET = re.compile(r"\[|(?:(?<=, )([A-Z]+))?\]")


def _sources(shape: Shape) -> list[str]:
    return [*(test.source for test in shape.tests), *(clause.source for clause in shape.clauses)]
