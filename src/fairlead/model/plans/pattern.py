"""What a pattern is made of: elements as written, the places of its signature, and what it emits.

    MATCH StockQuote q[3], News n      two elements ─ four slots, types by name: News[1], StockQuote[1], [2], [3]

Gives: frozen values. Never: sees an event.
"""

from __future__ import annotations

from fairlead.dataclass import dataclass
from fairlead.model.expressions.expression import Expression


@dataclass(frozen=True)
class Quantifier:
    """How many events an element takes: a fixed count, or with a run from `least` to `most` of them, None for any number."""

    least: int = 1
    most: int | None = 1
    run: bool = False

    @property
    def several(self) -> bool:
        """More than one event, or any number of them."""
        return self.run or self.least > 1

    @property
    def canonical(self) -> str:
        return f"{{{self.least},{'' if self.most is None else self.most}}}"


@dataclass(frozen=True)
class Element:
    """`StockQuote q[3]`: one named item of the pattern, in the order of the text."""

    alias: str
    type: str
    quantifier: Quantifier = Quantifier()


@dataclass(frozen=True)
class Slot:
    """One place of the signature: instance `instance` of `type`; users know it as `alias[alias_index]`. A run is one place."""

    type: str
    instance: int
    alias: str
    alias_index: int = 1
    run: Quantifier | None = None
    """How many events it takes, if it is a run; otherwise one."""


@dataclass(frozen=True)
class Emission:
    """`EMIT type(name = expression, …)`"""

    type: str
    fields: tuple[tuple[str, Expression], ...]
