"""The hash index: the events of a queue that have the same value, chained in queue order.

Values of an equality between events are numbered before the kernel runs (keys.py); BUCKET of a node is the number of its
value, -1 for an event without one (NULL, NaN), which is in no chain. CHAINS has the first and the last node of the chain of
each number and queue. Links along a chain are in CHAIN_LINKS.

Where partners are compared too (`a.k = b.k AND a.x < b.x`), CHAIN_LEAST has a number that no key of the chain is below
(ordered_index.py has what a key is): a chain in which nothing can satisfy the comparison is not walked. It is lowered when an
event enters, and set to the least key whenever a search has walked the whole chain. After a state was loaded it is the lowest.
SHORT, beside the links, is the key as far as 32 bits hold it: mostly a walk need not look at the nodes themselves.

Takes: a shape, its accesses and the layout of a node. Gives: code that links, drops and walks. Never: numbers a value.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.kernel_names import CHAIN_LEAST, CHAINS, HEAD, TAIL, e
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.planning.access import Accesses, ShortKey
from fairlead.matching.compiled.planning.shape import Bound, Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import (
    NONE,
    WHOLE,
    ArrayElement,
    Formula,
    NumberComparison,
    Variable,
    any_of,
    choice,
)


class HashIndex:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout) -> None:
        self.shape, self.accesses, self.layout = shape, accesses, layout

    def link(self, code: Code, e: Variable, at: Variable) -> None:
        """Node e, at the end of the chain of its number in queue `at`. A node in no chain has no links."""
        BUCKET, BNEXT, BPREV = self.layout.take("BUCKET BNEXT BPREV")
        n = Variable("chain", WHOLE)
        code.assign(n, BUCKET[e])
        with code.when(n >= 0):
            code.assign(n, n * self.shape.stride + at % self.shape.stride)
            code.assign(BPREV[e], CHAINS[n, TAIL])
            code.assign(BNEXT[e], NONE)
            with code.when(CHAINS[n, TAIL] == NONE):
                code.assign(CHAINS[n, HEAD], e)
            with code.otherwise():
                code.assign(BNEXT[CHAINS[n, TAIL]], e)
            code.assign(CHAINS[n, TAIL], e)
        with code.otherwise():
            self.unlink(code, e)

    def unlink(self, code: Code, e: Variable) -> None:
        BNEXT, BPREV = self.layout.take("BNEXT BPREV")
        code.assign(BPREV[e], NONE)
        code.assign(BNEXT[e], NONE)

    def drop(self, code: Code, c: Variable, at: Variable) -> None:
        """Node c leaves its chain."""
        BUCKET, BNEXT, BPREV = self.layout.take("BUCKET BNEXT BPREV")
        n = Variable("chain", WHOLE)
        code.assign(n, BUCKET[c])
        with code.when(n >= 0):
            code.assign(n, n * self.shape.stride + at % self.shape.stride)
            with code.when(BPREV[c] == NONE):
                code.assign(CHAINS[n, HEAD], BNEXT[c])
            with code.otherwise():
                code.assign(BNEXT[BPREV[c]], BNEXT[c])
            with code.when(BNEXT[c] == NONE):
                code.assign(CHAINS[n, TAIL], BPREV[c])
            with code.otherwise():
                code.assign(BPREV[BNEXT[c]], BPREV[c])

    def key_at(self, node: Formula, stored: Formula, form: ShortKey | None) -> Formula:
        """A number that the key of a node is not below. `stored`: the key itself, of the node's value."""
        short = self.layout.field("SHORT")[node]
        return stored if form is None else short << 32 if form is ShortKey.UPPER else short

    def may_satisfy(self, node: Formula, x: Formula, bound: Bound, form: ShortKey) -> Formula:
        """Whether the key of a node can be below x, by as much of it as stands beside the links."""
        short = self.layout.field("SHORT")[node]
        return (
            short <= x >> 32
            if form is ShortKey.UPPER
            else NumberComparison(short, "<=" if bound.sign.endswith("=") else "<", x)
        )

    def number_of(self, node: Formula) -> ArrayElement:
        return self.layout.field("BUCKET")[node]

    def step(self, node: Formula) -> ArrayElement:
        """The next node of the chain, in the direction of the matching."""
        return self.layout.field("BPREV" if self.shape.recent else "BNEXT")[node]

    def start(self, code: Code, node: Variable, number: Formula, queue: int, chain: Variable) -> None:
        """The first node of the chain of a number, in the direction of the matching; `chain` becomes the chain's own number."""
        code.assign(chain, choice(number * self.shape.stride + queue, number >= 0, NONE))
        code.assign(node, choice(CHAINS[chain, TAIL if self.shape.recent else HEAD], chain >= 0, NONE))

    def note_key(self, code: Code, number: Formula, queue: int, key: Formula) -> None:
        """Before the newest event's node, which has this key, enters: CHAIN_LEAST stays at most the least key of its chain."""
        n = Variable("chain", WHOLE)
        form = self.accesses.chained[queue].form
        if form is not None:
            code.assign(self.layout.field("SHORT")[e], key >> 32 if form is ShortKey.UPPER else key)
        code.assign(n, number)
        with code.when(n >= 0):
            code.assign(n, n * self.shape.stride + queue)
            with code.when(any_of(CHAINS[n, HEAD] == NONE, key < CHAIN_LEAST[n])):
                code.assign(CHAIN_LEAST[n], key)
