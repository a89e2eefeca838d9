"""Patterns as they are written: elements, combined by AND, THEN and OR.

Gives: their nodes, and `elements`, those of a pattern.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.parsing.fault import Span
from fairlead.language.parsing.syntax.words import Whole, Word, node


@node
class Repeat:
    """`+`, `*`, `?`, `{2,5}`: how many events a run may have; `most` is None if there is no bound."""

    least: int
    most: int | None
    span: Span


@node
class Element:
    type: Word
    alias: Word
    """The type's own word if no alias is written."""
    count: Whole | None
    repeat: Repeat | None
    span: Span


@node
class AllOf:
    """`a AND b`"""

    parts: tuple[Pattern, ...]
    span: Span


@node
class InOrder:
    """`a THEN b`"""

    parts: tuple[Pattern, ...]
    span: Span


@node
class AnyOf:
    """`a OR b`"""

    parts: tuple[Pattern, ...]
    span: Span


Pattern = Element | AllOf | InOrder | AnyOf


def elements(pattern: Pattern) -> Iterator[Element]:
    """The elements of a pattern in the order of the text."""
    if isinstance(pattern, Element):
        yield pattern
    else:
        for part in pattern.parts:
            yield from elements(part)
