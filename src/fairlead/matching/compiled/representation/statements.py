"""The statements of a kernel, its functions, and the program they make.

A block is a tuple of statements. `Program` is what is compiled: functions, one of them named `kernel`. Its text (text.py) is
what runs as plain Python and what tells two programs apart.

Takes: expressions. Gives: nodes. Never: changes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.representation.expressions import Array, Call, Element, Expression, Variable

Place = Variable | Element
"""What can be assigned."""


class Statement:
    pass


Block = Sequence[Statement]


@dataclass(frozen=True, eq=False)
class Assign(Statement):
    """All values are evaluated before the first is assigned."""

    targets: tuple[Place, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Change(Statement):
    """`target += value`, with any of the operators."""

    target: Place
    operator: str
    value: Expression


@dataclass(frozen=True, eq=False)
class If(Statement):
    test: Expression
    body: Block
    otherwise: Block = ()


@dataclass(frozen=True, eq=False)
class While(Statement):
    test: Expression
    body: Block


@dataclass(frozen=True, eq=False)
class For(Statement):
    """The variable goes from `first` up to `end`, which is evaluated once and not reached."""

    variable: Variable
    first: Expression | None
    end: Expression
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

    values: tuple[Expression, ...] = ()
    several: bool = False


@dataclass(frozen=True, eq=False)
class Evaluate(Statement):
    """A call for what it changes."""

    call: Call


@dataclass(frozen=True, eq=False)
class Prefetch(Statement):
    """The memory of an element will be needed soon."""

    place: Element


@dataclass(frozen=True, eq=False)
class Function:
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

    def __init__(self, functions: Iterable[Function]) -> None:
        self.functions = tuple(functions)

    @cached_property
    def text(self) -> str:
        """As Python."""
        return "\n\n".join([each.text for each in self.functions])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)
