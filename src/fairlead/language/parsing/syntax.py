"""The syntax tree: the text as written, each node with its span, nothing checked and nothing resolved.

Gives: frozen nodes for declarations, patterns, clauses and expressions, and `references`, the names an expression reads.
Never: knows a type, an alias or a slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar, dataclass_transform

from fairlead.dataclass import dataclass
from fairlead.language.parsing.fault import Span

if TYPE_CHECKING:
    from fairlead.language.checking.typing.scope import AliasMember
    from fairlead.model.clauses.clause import NotingClause
    from fairlead.model.plans.expression import Predicate

Node = TypeVar("Node")


@dataclass_transform(frozen_default=True)
def node(cls: type[Node]) -> type[Node]:
    """A frozen dataclass for the type checker only: freezing at run time would triple the time of creating a node, and a text
    of ten thousand subscriptions has a quarter of a million nodes."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


class Word(NamedTuple):
    text: str
    span: Span


@node
class Whole:
    """An integer that counts: `q[3]`, `DECIMAL(10, 2)`."""

    value: int
    span: Span


# --- declarations


@node
class Column:
    name: Word
    type: Word
    parameters: tuple[Whole, ...]


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
class TopicDeclaration:
    name: Word
    types: tuple[Word, ...]


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


# --- patterns


@node
class Element:
    type: Word
    alias: Word
    """The type's own word if no alias is written."""
    count: Whole | None
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

# --- expressions


@node
class Number:
    text: str
    span: Span


@node
class Text:
    value: str
    span: Span


@node
class Boolean:
    value: bool
    span: Span


@node
class Null:
    span: Span


@node
class Prefixed:
    """`TIMESTAMP '…'` or `INTERVAL 5 MINUTES`: a word and what follows it."""

    word: Word
    operand: Text | Duration
    span: Span


@node
class Duration:
    amount: str
    unit: Word
    span: Span


@node
class Reference:
    """`head`, `head[index]`, `head.attribute` or `head[index].attribute`"""

    head: Word
    index: Whole | None
    attribute: Word | None
    span: Span

    def __str__(self) -> str:
        index = f"[{self.index.value}]" if self.index else ""
        return f"{self.head.text}{index}" + (f".{self.attribute.text}" if self.attribute else "")


@node
class Call:
    function: Word
    arguments: tuple[Expression, ...]
    span: Span


@node
class Negative:
    operand: Expression
    span: Span


@node
class Arithmetic:
    operator: Word
    left: Expression
    right: Expression
    span: Span


@node
class Compare:
    operator: Word
    left: Expression
    right: Expression
    span: Span


@node
class IsNull:
    operand: Expression
    negated: bool
    span: Span


@node
class In:
    operand: Expression
    options: tuple[Expression, ...]
    negated: bool
    span: Span


@node
class Between:
    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span


@node
class Like:
    operand: Expression
    pattern: Text
    negated: bool
    span: Span


@node
class Not:
    operand: Expression
    span: Span


@node
class And:
    parts: tuple[Expression, ...]
    span: Span


@node
class Or:
    parts: tuple[Expression, ...]
    span: Span


Constant = Number | Text | Boolean | Null | Prefixed | Duration
Connective = Not | And | Or | Between
Expression = Constant | Reference | Call | Negative | Arithmetic | Compare | IsNull | In | Like | Connective

# --- clauses and statements


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
class KeyPart:
    """`symbol` or `r.symbol`"""

    alias: Word | None
    attribute: Word


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

    type: Word
    alias: Word
    anchors: tuple[Reference, ...]
    where: Where | None

    @property
    def reads(self) -> tuple[Word, ...]:
        return (self.type,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.where.condition,) if self.where else ()

    def planned(
        self, member: AliasMember, slots: Sequence[int], members: Mapping[str, AliasMember], predicates: tuple[Predicate, ...]
    ) -> NotingClause:
        """The clause, checked: `member` are its events, `slots` those of its anchors, `predicates` its WHERE."""
        raise NotImplementedError


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


Statement = TypeDeclaration | UnionDeclaration | TopicDeclaration | Order | Subscription


@dataclass(frozen=True)
class Rules:
    """A rule text in any dialect: its statements, in their order."""

    statements: tuple[Statement, ...]

    @cached_property
    def declarations(self) -> tuple[TypeDeclaration | UnionDeclaration, ...]:
        return tuple(each for each in self.statements if isinstance(each, TypeDeclaration | UnionDeclaration))

    @cached_property
    def topics(self) -> tuple[TopicDeclaration, ...]:
        return tuple(each for each in self.statements if isinstance(each, TopicDeclaration))

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        return tuple(each for each in self.statements if isinstance(each, Order))

    @cached_property
    def subscriptions(self) -> tuple[Subscription, ...]:
        return tuple(each for each in self.statements if isinstance(each, Subscription))


# --- walks; the parser bounds the depth, so recursion is safe


def elements(pattern: Pattern) -> Iterator[Element]:
    """The elements of a pattern in the order of the text."""
    if isinstance(pattern, Element):
        yield pattern
    else:
        for part in pattern.parts:
            yield from elements(part)


def children(node: Expression) -> tuple[Expression, ...]:
    match node:
        case Call():
            return node.arguments
        case Negative() | IsNull() | Like() | Not():
            return (node.operand,)
        case Arithmetic() | Compare():
            return (node.left, node.right)
        case In():
            return (node.operand, *node.options)
        case Between():
            return (node.operand, node.low, node.high)
        case And() | Or():
            return node.parts
    return ()


def references(node: Expression) -> Iterator[Reference]:
    """Every name that an expression reads, in the order of the text."""
    if isinstance(node, Reference):
        yield node
    for child in children(node):
        yield from references(child)
