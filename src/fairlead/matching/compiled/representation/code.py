"""Code as it is written: statements one after the other, blocks as `with`.

    code = Code()
    code.assign(node, QUEUES[at, HEAD])
    with code.loop(node != NONE):
        code.assign(node, NEXT[node])

Takes: statements, in order. Gives: a block, or a function of it. Never: changes statements of a block that is closed, or
writes a statement that cannot be reached.
"""

from __future__ import annotations

from fairlead.errors import require
from fairlead.matching.compiled.representation.formulas import (
    TRUE,
    Argument,
    Array,
    ArrayElement,
    Formula,
    Operand,
    Variable,
    call,
)
from fairlead.matching.compiled.representation.formulas import formula as made
from fairlead.matching.compiled.representation.statements import (
    Assign,
    Evaluate,
    For,
    If,
    KernelFunction,
    Leave,
    Place,
    Prefetch,
    Proceed,
    Return,
    Statement,
    Update,
    While,
)

LEAVE, PROCEED = Leave(), Proceed()
JUMPS = (Return, Leave, Proceed)


class _Opened:
    """A block that is being written."""

    __slots__ = ("blocks", "body")

    def __init__(self, blocks: list[list[Statement]], body: list[Statement]) -> None:
        self.blocks, self.body = blocks, body

    def __enter__(self) -> None:
        self.blocks.append(self.body)

    def __exit__(self, *_: object) -> None:
        self.blocks.pop()


class Code:
    def __init__(self) -> None:
        self.body: list[Statement] = []
        self._blocks = [self.body]

    def function(self, name: str, *parameters: Variable | Array, rare: bool = False) -> KernelFunction:
        return KernelFunction(name, parameters, self.body, rare)

    @property
    def is_ended(self) -> bool:
        """Whether the block that is being written ends by returning, leaving its loop or going to its next round."""
        block = self._blocks[-1]
        return bool(block) and isinstance(block[-1], JUMPS)

    def _write(self, statement: Statement) -> None:
        require(not self.is_ended, "nothing follows the end of a block", found=type(statement).__name__)
        self._blocks[-1].append(statement)

    # Statements

    def assign(self, target: Place, value: Operand) -> None:
        self._write(Assign((target,), (made(value),)))

    def together(self, *pairs: tuple[Place, Operand]) -> None:
        """All values are evaluated before the first is assigned."""
        self._write(Assign(tuple([target for target, _ in pairs]), tuple([made(value) for _, value in pairs])))

    def change(self, target: Place, operator: str, value: Operand) -> None:
        """`target |= value`, and the like."""
        self._write(Update(target, operator, made(value)))

    def increase(self, target: Place, by: Operand = 1) -> None:
        self._write(Update(target, "+", made(by)))

    def decrease(self, target: Place, by: Operand = 1) -> None:
        self._write(Update(target, "-", made(by)))

    def call(self, function: str, *arguments: Argument | int | float) -> None:
        self._write(Evaluate(call(function, *arguments)))

    def prefetch(self, place: ArrayElement) -> None:
        self._write(Prefetch(place))

    def give(self, value: Operand) -> None:
        self._write(Return((made(value),)))

    def give_results(self, *values: Operand) -> None:
        """What `kernel` ends with."""
        self._write(Return(tuple([made(each) for each in values]), True))

    def leave(self) -> None:
        """Ends the loop."""
        self._write(LEAVE)

    def proceed(self) -> None:
        """Goes to the next round of the loop."""
        self._write(PROCEED)

    # Blocks

    def when(self, test: Formula) -> _Opened:
        body: list[Statement] = []
        self._write(If(test, body, []))
        return _Opened(self._blocks, body)

    def or_when(self, test: Formula) -> _Opened:
        """After `when`: what is done if its test fails and this one does not."""
        body: list[Statement] = []
        self._last_otherwise().append(If(test, body, []))
        return _Opened(self._blocks, body)

    def otherwise(self) -> _Opened:
        return _Opened(self._blocks, self._last_otherwise())

    def _last_otherwise(self) -> list[Statement]:
        block = self._blocks[-1]
        while True:
            last = block[-1]
            require(isinstance(last, If), "a way out follows a condition", found=type(last).__name__)
            assert isinstance(last, If)
            assert isinstance(last.otherwise, list)
            if not last.otherwise:
                return last.otherwise
            block = last.otherwise

    def loop(self, test: Formula = TRUE) -> _Opened:
        body: list[Statement] = []
        self._write(While(test, body))
        return _Opened(self._blocks, body)

    def count(self, variable: Variable, end: Operand, first: Operand | None = None) -> _Opened:
        """From `first` (0) up to `end`, which is not reached."""
        body: list[Statement] = []
        self._write(For(variable, None if first is None else made(first), made(end), body))
        return _Opened(self._blocks, body)
