"""The statements of a kernel, its functions, and the program they make.

A block is a tuple of statements. `Program` is what is compiled: functions, one of them named `kernel`. Its text (text.py) is
what runs as plain Python and what distinguishes two programs.

Takes: formulas. Gives: nodes. Never: changes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.representation.formulas import Array, ArrayElement, Formula, FunctionCall, Variable

Place = Variable | ArrayElement
"""What can be assigned."""


class Statement:
    pass


Block = Sequence[Statement]


@dataclass(frozen=True, eq=False)
class Assign(Statement):
    """All values are evaluated before the first is assigned."""

    targets: tuple[Place, ...]
    values: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class Update(Statement):
    """`target += value`, with any of the operators."""

    target: Place
    operator: str
    value: Formula


@dataclass(frozen=True, eq=False)
class If(Statement):
    test: Formula
    body: Block
    otherwise: Block = ()


@dataclass(frozen=True, eq=False)
class While(Statement):
    test: Formula
    body: Block


@dataclass(frozen=True, eq=False)
class For(Statement):
    """The variable goes from `first` up to `end`, which is evaluated once and not reached."""

    variable: Variable
    first: Formula | None
    end: Formula
    body: Block


@dataclass(frozen=True, eq=False)
class Leave(Statement):
    """Ends the loop: `break`."""


@dataclass(frozen=True, eq=False)
class Proceed(Statement):
    """Goes to the next round of the loop: `continue`."""


@dataclass(frozen=True, eq=False)
class Return(Statement):
    """A value, none, or of `kernel` several."""

    values: tuple[Formula, ...] = ()
    several: bool = False


@dataclass(frozen=True, eq=False)
class Evaluate(Statement):
    """A call for what it changes."""

    call: FunctionCall


@dataclass(frozen=True, eq=False)
class Prefetch(Statement):
    """The memory of an element will be needed soon."""

    place: ArrayElement


@dataclass(frozen=True, eq=False)
class KernelFunction:
    name: str
    parameters: tuple[Variable | Array, ...]
    body: Block
    rare: bool = False
    """Few events reach it: it is kept out of the loop. (Otherwise registers run short there: 5 % slower.)"""

    @cached_property
    def text(self) -> str:
        """As Python."""
        from fairlead.matching.compiled.representation.text import function_text

        return function_text(self)


class Program:
    """Functions; equal to another program of the same text."""

    def __init__(self, functions: Iterable[KernelFunction]) -> None:
        self.functions = tuple(functions)

    @cached_property
    def text(self) -> str:
        """As Python."""
        return "\n\n".join([each.text for each in self.functions])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)
