"""Patterns as they are written: elements, combined by AND, THEN, NEXT, ELSE and OR.

Gives: their nodes, and `elements`, those of a pattern.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.parsing.fault import Span
from fairlead.language.parsing.syntax.expressions import Expression
from fairlead.language.parsing.syntax.words import Duration, Whole, Word, node


@node
class Repeat:
    """`+`, `*`, `?`, `{2,5}`: how many events a run may have; `most` is None if there is no bound."""

    least: int
    most: int | None
    span: Span
    end: str | None = None
    """LONGEST or SHORTEST, if that is written."""


@node
class Gap:
    """`WITHIN duration OF PREVIOUS`"""

    duration: Duration
    span: Span


@node
class Ending:
    """`UNTIL condition`"""

    condition: Expression
    span: Span


@node
class Element:
    type: Word
    alias: Word
    """The type's own word if no alias is written."""
    count: Whole | None
    repeat: Repeat | None
    span: Span
    gap: Gap | None = None
    until: Ending | None = None


@node
class Group:
    """`( … )+`: a part of the pattern, any number of times."""

    pattern: Pattern
    repeat: Repeat
    span: Span

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return (self.pattern,)


@node
class AllOf:
    """`a AND b`"""

    parts: tuple[Pattern, ...]
    span: Span


@node
class InOrder:
    """`a THEN b`, `a NEXT b`"""

    parts: tuple[Pattern, ...]
    span: Span
    skips: tuple[bool, ...] = ()
    """For each part after the first: whether rows may be skipped before it (THEN). Empty: before all of them."""
    next_span: Span | None = None
    """The first NEXT."""


@node
class OneOf:
    """`a ELSE b`"""

    parts: tuple[Pattern, ...]
    span: Span


@node
class AnyOf:
    """`a OR b`"""

    parts: tuple[Pattern, ...]
    span: Span


Pattern = Element | Group | AllOf | InOrder | OneOf | AnyOf


def elements(pattern: Pattern) -> Iterator[Element]:
    """The elements of a pattern in the order of the text."""
    if isinstance(pattern, Element):
        yield pattern
    else:
        for part in pattern.parts:
            yield from elements(part)


def has_all_of(pattern: Pattern) -> bool:
    """Whether it has an AND."""
    if isinstance(pattern, Element):
        return False
    return isinstance(pattern, AllOf) or any(map(has_all_of, pattern.parts))
