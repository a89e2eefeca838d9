"""Expressions as they are written: constants, names, operators, tests, connectives.

Gives: their nodes, `children`, and `references`, the names that an expression reads. The parser bounds the depth, so recursion
is safe.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.language.parsing.fault import Span
from fairlead.language.parsing.syntax.words import DataType, Duration, Whole, Word, node


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
class Reference:
    """`head`, `head[index]`, `head.attribute` or `head[index].attribute`, with a path after the attribute or not. Whether the
    head is an element or an attribute depends on the pattern."""

    head: Word
    index: Whole | None
    attribute: Word | None
    span: Span
    fields: tuple[Word, ...] = ()
    """`zip` in `o.address.zip`"""

    @property
    def names(self) -> tuple[Word, ...]:
        """All that follows the head."""
        return () if self.attribute is None else (self.attribute, *self.fields)

    def __str__(self) -> str:
        index = f"[{self.index.value}]" if self.index else ""
        return f"{self.head.text}{index}" + "".join(f".{each.text}" for each in self.names)


@node
class Call:
    function: Word
    arguments: tuple[Expression, ...]
    span: Span
    distinct: bool = False
    """`count(DISTINCT q.x)`"""


@node
class FieldOf:
    """`element_at(o.lines, 1).price`: a field of what a call returns."""

    operand: Call
    fields: tuple[Word, ...]
    span: Span


@node
class Cast:
    """`cast(operand AS type)`"""

    function: Word
    operand: Expression
    type: DataType
    span: Span


@node
class Case:
    """`CASE WHEN condition THEN value … ELSE otherwise END`"""

    steps: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
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
class IsTruth:
    """`operand IS [NOT] TRUE` or `FALSE`"""

    operand: Expression
    wanted: bool
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
class Rlike:
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
Test = Compare | IsNull | IsTruth | In | Like | Rlike
Expression = Constant | Reference | Call | FieldOf | Cast | Case | Negative | Arithmetic | Test | Connective


def children(node: Expression) -> tuple[Expression, ...]:
    match node:
        case Call():
            return node.arguments
        case Negative() | FieldOf() | Cast() | IsNull() | IsTruth() | Like() | Rlike() | Not():
            return (node.operand,)
        case Case():
            steps = tuple(each for step in node.steps for each in step)
            return steps if node.otherwise is None else (*steps, node.otherwise)
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
