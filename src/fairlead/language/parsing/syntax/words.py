"""What nodes are made of: words, whole numbers, durations, data types and columns, each with its span.

Gives: `node`, which makes a class one of the syntax tree.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar, dataclass_transform

from fairlead.dataclass import dataclass
from fairlead.language.parsing.fault import Span

Node = TypeVar("Node")


@dataclass_transform(frozen_default=True)
def node(cls: type[Node]) -> type[Node]:
    """A frozen dataclass for the type checker only: freezing at run time would triple the time of creating a node, and a text
    of ten thousand subscriptions has a quarter of a million nodes."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


class Word(NamedTuple):
    text: str
    span: Span

    @property
    def upper(self) -> str:
        """In upper case, to compare with a word of the language: these are ASCII, and ſ (U+017F) is no S."""
        return self.text.upper() if self.text.isascii() else self.text

    @property
    def lower(self) -> str:
        return self.text.lower() if self.text.isascii() else self.text


@node
class Whole:
    """An integer that counts: `q[3]`, `DECIMAL(10, 2)`."""

    value: int
    span: Span


@node
class Duration:
    amount: str
    unit: Word
    span: Span


@node
class DataType:
    """`DECIMAL(10, 2)`, `ARRAY<STRING>`, `STRUCT<street: STRING, zip: INT>`"""

    name: Word
    parameters: tuple[Whole, ...]
    span: Span
    element: DataType | None = None
    fields: tuple[Column, ...] | None = None


@node
class Column:
    """An attribute of a type, or a field of a STRUCT."""

    name: Word
    type: DataType
