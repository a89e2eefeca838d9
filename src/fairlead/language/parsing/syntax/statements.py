"""Statements as they are written: types, unions, topics, the order, subscriptions; and `Rules`, those of a text."""

from __future__ import annotations

from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.language.parsing.fault import Span
from fairlead.language.parsing.syntax.clauses import Clause, Emit, NotingNode
from fairlead.language.parsing.syntax.patterns import Pattern, elements
from fairlead.language.parsing.syntax.words import Column, Duration, Word, node


@node
class TypeDeclaration:
    name: Word
    supertype: Word | None
    columns: tuple[Column, ...]
    time: Word | None


@node
class UnionDeclaration:
    name: Word
    members: tuple[Word, ...]


@node
class TableDeclaration:
    """`TABLE name KEY (key, …) FROM source`"""

    name: Word
    key: tuple[Word, ...]
    source: Word


@node
class Keep:
    """`limits`: times or sizes, which are written alike. `word`: instead of them, ALL."""

    limits: tuple[Duration, ...]
    word: Word | None
    span: Span


@node
class TopicDeclaration:
    name: Word
    types: tuple[Word, ...]
    keep: Keep | None = None


@node
class OrderKey:
    attribute: Word
    descending: bool


@node
class Delay:
    allowed: Duration
    idle: Duration | None
    """PER SOURCE: behind the latest event by how much a source does not count."""


@node
class Ahead:
    """How far the time of an event may be after that of its storage."""

    allowed: Duration
    span: Span


@node
class Late:
    """What becomes of late events: LATE REVISE, within how much; LATE TAG if None."""

    revised: Duration | None
    span: Span


@node
class Order:
    keys: tuple[OrderKey, ...]
    delay: Delay | None
    ahead: Ahead | None
    late: Late | None
    span: Span


@node
class Subscription:
    name: Word
    pattern: Pattern
    clauses: tuple[Clause, ...]
    span: Span

    @property
    def emit(self) -> Emit | None:
        return next((each for each in self.clauses if isinstance(each, Emit)), None)

    @property
    def noting(self) -> tuple[NotingNode, ...]:
        return tuple(each for each in self.clauses if isinstance(each, NotingNode))

    @property
    def reads(self) -> tuple[Word, ...]:
        """Every type that it names as one that it reads, in the order of the text."""
        return (*(each.type for each in elements(self.pattern)), *(word for each in self.clauses for word in each.reads))


Declaration = TypeDeclaration | UnionDeclaration | TableDeclaration
Statement = Declaration | TopicDeclaration | Order | Subscription


@dataclass(frozen=True)
class Rules:
    """A rule text in any dialect: its statements, in their order."""

    statements: tuple[Statement, ...]

    @cached_property
    def declarations(self) -> tuple[Declaration, ...]:
        return tuple(each for each in self.statements if isinstance(each, Declaration))

    @cached_property
    def topics(self) -> tuple[TopicDeclaration, ...]:
        return tuple(each for each in self.statements if isinstance(each, TopicDeclaration))

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        return tuple(each for each in self.statements if isinstance(each, Order))

    @cached_property
    def subscriptions(self) -> tuple[Subscription, ...]:
        return tuple(each for each in self.statements if isinstance(each, Subscription))
