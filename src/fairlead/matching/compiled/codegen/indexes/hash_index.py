"""The hash index: the events of a queue that have the same value, chained in queue order.

Values of an equality between events are numbered before the kernel runs (keys.py); BUCKET of a node is the number of its
value, -1 for an event without one (NULL, NaN), which is in no chain. CHAINS has the first and the last node of the chain of
each number and queue. Links along a chain are in CHAIN_LINKS.

Takes: a shape and the layout of a node. Gives: code that links, drops and walks. Never: numbers a value.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.kernel_names import CHAINS, HEAD, TAIL
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import NONE, WHOLE, ArrayElement, Formula, Variable, choice


class HashIndex:
    def __init__(self, shape: Shape, layout: Layout) -> None:
        self.shape, self.layout = shape, layout

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

    def number_of(self, node: Formula) -> ArrayElement:
        return self.layout.field("BUCKET")[node]

    def step(self, node: Formula) -> ArrayElement:
        """The next node of the chain, in the direction of the matching."""
        return self.layout.field("BPREV" if self.shape.recent else "BNEXT")[node]

    def start(self, code: Code, node: Variable, number: Formula, queue: int) -> None:
        """The first node of the chain of a number, in the direction of the matching."""
        n = Variable("chain", WHOLE)
        code.assign(n, number)
        first = CHAINS[n * self.shape.stride + queue, TAIL if self.shape.recent else HEAD]
        code.assign(node, choice(first, n >= 0, NONE))
