"""Clauses of a subscription as they are written, after its pattern.

Gives: `Clause` and `NotingNode`, what all of them have; the nodes of those that have no module in `language/clauses/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from fairlead.language.parsing.fault import Span
from fairlead.language.parsing.syntax.expressions import Expression, Reference
from fairlead.language.parsing.syntax.words import Duration, Whole, Word, node

if TYPE_CHECKING:
    from fairlead.language.checking.typing.scope import AliasMember
    from fairlead.model.clauses.clause import NotingClause
    from fairlead.model.events.types import Catalogue
    from fairlead.model.expressions.expression import Predicate


class Clause:
    """A clause of a subscription, after its pattern."""

    __slots__ = ()
    word: ClassVar[str]
    several: ClassVar[bool] = False
    """A subscription may have more than one."""

    span: Span

    @property
    def reads(self) -> tuple[Word, ...]:
        """The types that it names, beside those of the pattern, whose events it reads."""
        return ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return ()


@node
class Where(Clause):
    word: ClassVar[str] = "WHERE"

    condition: Expression
    span: Span

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.condition,)


@node
class Having(Clause):
    """A condition on whole runs: what it reads of them are aggregates."""

    word: ClassVar[str] = "HAVING"

    condition: Expression
    span: Span

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.condition,)


@node
class KeyPart:
    """`symbol`, `r.symbol` or `r.address.zip`, or with a function and a duration `bucket(at, 1 HOUR)`. Whether the first of
    several names is an element depends on the pattern."""

    alias: Word | None
    attribute: Word
    function: Word | None = None
    duration: Duration | None = None
    fields: tuple[Word, ...] = ()

    @property
    def written(self) -> str:
        """The names, as in the text."""
        return ".".join(each.text for each in (self.alias, self.attribute, *self.fields) if each is not None)


@node
class Key:
    parts: tuple[KeyPart, ...]
    span: Span


@node
class Per(Clause):
    word: ClassVar[str] = "PER"

    keys: tuple[Key, ...]
    span: Span


@node
class Within(Clause):
    word: ClassVar[str] = "WITHIN"

    duration: Duration
    span: Span


@node
class MatchingClause(Clause):
    word: ClassVar[str] = "MATCHING"

    words: str
    span: Span


@node
class DisposalClause(Clause):
    word: ClassVar[str] = "DISPOSAL"

    words: str
    span: Span
    advance: Whole | None = None
    """ADVANCE advance."""
    upto: Word | None = None
    """UPTO [FIRST | LAST] upto."""
    end: Word | None = None
    """The word before it."""


@node
class Keeping(Clause):
    """`KEEP x, y`"""

    word: ClassVar[str] = "KEEP"

    aliases: tuple[Word, ...]
    span: Span


@node
class Fold(Clause):
    """`FOLD q`"""

    word: ClassVar[str] = "FOLD"

    aliases: tuple[Word, ...]
    span: Span


@node
class QueueBound:
    """`q 10 EVENTS`, `q 5 MINUTES BATCH`"""

    alias: Word
    amount: Duration
    batch: bool


@node
class Retaining(Clause):
    """`RETAIN q 10 EVENTS, o 5 MINUTES BATCH`"""

    word: ClassVar[str] = "RETAIN"

    bounds: tuple[QueueBound, ...]
    span: Span


@node
class EventLimit(Clause):
    """`LIMIT count PER EVENT`"""

    word: ClassVar[str] = "LIMIT"

    count: Whole
    span: Span


@node
class Assignment:
    name: Word
    value: Expression


@node
class Emit(Clause):
    word: ClassVar[str] = "EMIT"

    type: Word
    assignments: tuple[Assignment, ...]
    time: Word | None
    span: Span

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(each.value for each in self.assignments)


class NotingNode(Clause):
    """A clause about events that are no members: `type alias`, in relation to members, its anchors. It can be repeated, and
    a WHERE right after it is about these events."""

    __slots__ = ()
    several: ClassVar[bool] = True

    alias: Word
    anchors: tuple[Reference, ...]
    where: Where | None

    @property
    def awaited(self) -> str:
        """What it is called where relations wait for it."""
        return self.word

    def noted(self, members: Mapping[str, AliasMember]) -> str:
        """The type of the events that it notes."""
        raise NotImplementedError

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.where.condition,) if self.where else ()

    def followed_by(self, clause: Clause) -> NotingNode | None:
        """With the clause right after it, if that is part of it: a WHERE is about its events."""
        if isinstance(clause, Where) and self.where is None:
            return replace(self, where=clause)  # type: ignore[type-var]
        return None

    def check_types(self, catalogue: Catalogue) -> None:
        """What it asks of the types that it names beside that of its events, which exist."""

    def planned(
        self, member: AliasMember, slots: Sequence[int], members: Mapping[str, AliasMember], predicates: tuple[Predicate, ...]
    ) -> NotingClause:
        """The clause, checked: `member` are its events, `slots` those of its anchors, `predicates` its WHERE."""
        raise NotImplementedError
