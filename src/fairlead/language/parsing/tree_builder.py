"""The nodes of the syntax tree, one builder for each rule of the grammar, called bottom-up.

Takes: the span of a rule, and its parts: leaves and built nodes. Gives: a node, or a `Fault` for a number that is too
large. Never: looks up or down the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fairlead.language.clauses import registry as clauses
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.model.limits import LIMITS

STATEMENT_LEVELS = 6
"""Levels of the tree above an expression or pattern: start, subscription, clause, list, item, and the leaf."""

DEPTH_MAX = LIMITS.nesting_max + STATEMENT_LEVELS

WHOLE_DIGITS_MAX = 9
"""Counts and indexes: no limit of the language is near a billion."""


class TooDeep(Fault):
    """Nested deeper than the recursive walks go."""

    def __init__(self, span: Span, parts: Sequence[Any] = ()) -> None:
        """`parts`: those of the node that is too deep."""
        if parts and _chained(parts[0]) > DEPTH_MAX // 2:
            super().__init__(*_long_chain(span))
            return
        problem = f"nested deeper than {LIMITS.nesting_max} levels"
        fix = "remove parentheses, NOTs or CASEs within one another, or compute a part in another subscription (EMIT)"
        super().__init__("L004", span, problem, fix)


class LongChain(TooDeep):
    """`a + b + c + …`: each operator is nested in the next, since each takes what those before it make."""

    def __init__(self, span: Span) -> None:
        Fault.__init__(self, *_long_chain(span))


def _long_chain(span: Span) -> tuple[str, Span, str, str]:
    problem = f"a chain of more than {LIMITS.nesting_max} operators"
    return "L004", span, problem, "put parts of it in parentheses, (a + b + …) + (c + d + …); of texts, use concat(a, b, …)"


def _chained(node: Any) -> int:
    """How many operators a chain has that ends with this one."""
    count = 0
    while isinstance(node, syntax.Arithmetic):
        node, count = node.left, count + 1
    return count


class Leaf(NamedTuple):
    """A word, number, text or sign as written, and its terminal in the grammar."""

    terminal: str
    text: str
    start: int
    end: int


def _word(leaf: Leaf) -> syntax.Word:
    return syntax.Word(leaf.text, Span(leaf.start, leaf.end))


def _span(leaf: Leaf) -> Span:
    return Span(leaf.start, leaf.end)


def _whole(leaf: Leaf) -> syntax.Whole:
    if len(leaf.text) > WHOLE_DIGITS_MAX:
        raise Fault("L006", _span(leaf), "the number is too large", "use a smaller whole number")
    return syntax.Whole(int(leaf.text), _span(leaf))


def _names(parts: list[Any]) -> list[syntax.Word]:
    return [_word(each) for each in parts if isinstance(each, Leaf) and each.terminal in ("NAME", "ANY")]


def _text(leaf: Leaf) -> syntax.Text:
    return syntax.Text(leaf.text[1:-1].replace("''", "'"), _span(leaf))


def _negated(parts: list[Any]) -> bool:
    return any(isinstance(each, Leaf) and each.terminal == "NOT" for each in parts)


def _start(span: Span, parts: list[Any]) -> syntax.Rules:
    return syntax.Rules(tuple(parts))


class _Supertype(tuple[syntax.Word]):
    """Distinguishes EXTENDS from TIME among the optional parts of a declaration."""


def _type(span: Span, parts: list[Any]) -> syntax.TypeDeclaration:
    supertype = next((each[0] for each in parts if isinstance(each, _Supertype)), None)
    columns = next(each for each in parts if isinstance(each, list))
    return syntax.TypeDeclaration(_word(parts[0]), supertype, tuple(columns), _optional_word(parts))


def _optional_word(parts: list[Any]) -> syntax.Word | None:
    return next((each for each in parts if isinstance(each, syntax.Word)), None)


def _optional_whole(parts: list[Any]) -> syntax.Whole | None:
    return next((each for each in parts if isinstance(each, syntax.Whole)), None)


def _column(span: Span, parts: list[Any]) -> syntax.Column:
    return syntax.Column(_word(parts[0]), parts[-1])


def _plain_type(span: Span, parts: list[Any]) -> syntax.DataType:
    return syntax.DataType(_word(parts[0]), tuple(parts[1]) if len(parts) > 1 else (), span)


def _array_type(span: Span, parts: list[Any]) -> syntax.DataType:
    name, _, element, _ = parts
    return syntax.DataType(_word(name), (), span, element=element)


def _struct_type(span: Span, parts: list[Any]) -> syntax.DataType:
    name, _, *fields, _ = parts
    return syntax.DataType(_word(name), (), span, fields=tuple(fields))


def _union(span: Span, parts: list[Any]) -> syntax.UnionDeclaration:
    name, *members = _names(parts)
    return syntax.UnionDeclaration(name, tuple(members))


def _table(span: Span, parts: list[Any]) -> syntax.TableDeclaration:
    name, *key, source = _names(parts)
    return syntax.TableDeclaration(name, tuple(key), source)


def _topic(span: Span, parts: list[Any]) -> syntax.TopicDeclaration:
    keep = next((each for each in parts if isinstance(each, syntax.Keep)), None)
    name, *types = _names([each for each in parts if each is not keep])
    return syntax.TopicDeclaration(name, tuple(types), keep)


def _keep(span: Span, parts: list[Any]) -> syntax.Keep:
    limits = tuple(each for each in parts if isinstance(each, syntax.Duration))
    return syntax.Keep(limits, None if limits else _word(parts[0]), span)


def _order(span: Span, parts: list[Any]) -> syntax.Order:
    keys = tuple(each for each in parts if isinstance(each, syntax.OrderKey))
    said = {type(each): each for each in parts[len(keys) :]}
    return syntax.Order(keys, said.get(syntax.Delay), said.get(syntax.Ahead), said.get(syntax.Late), span)


def _order_key(span: Span, parts: list[Any]) -> syntax.OrderKey:
    return syntax.OrderKey(_word(parts[0]), len(parts) > 1)


def _delay(span: Span, parts: list[Any]) -> syntax.Delay:
    return syntax.Delay(parts[0], parts[1] if len(parts) > 1 else None)


def _late(span: Span, parts: list[Any]) -> syntax.Late:
    return syntax.Late(next((each for each in parts if isinstance(each, syntax.Duration)), None), span)


def _element(span: Span, parts: list[Any]) -> syntax.Element:
    alias = _optional_word(parts)
    repeat = next((each for each in parts if isinstance(each, syntax.Repeat)), None)
    said: dict[type, Any] = {}
    for each in parts:
        if isinstance(each, syntax.Gap | syntax.Ending) and said.setdefault(type(each), each) is not each:
            raise Fault("L050", each.span, "the element has this twice", "remove one")
    gap, until = said.get(syntax.Gap), said.get(syntax.Ending)
    return syntax.Element(_word(parts[0]), alias or _word(parts[0]), _optional_whole(parts), repeat, span, gap, until)


def _in_order(span: Span, parts: list[Any]) -> syntax.InOrder:
    """NEXT is the only word among the parts: THEN is what is meant otherwise."""
    nexts = [each for each in parts if isinstance(each, Leaf)]
    skips, made = [], list[Any]()
    for at, each in enumerate(parts):
        if not isinstance(each, Leaf):
            skips += [not isinstance(parts[at - 1], Leaf)] if made else []
            made.append(each)
    return syntax.InOrder(tuple(made), span, tuple(skips), _span(nexts[0]) if nexts else None)


def _quantifier(span: Span, parts: list[Any]) -> syntax.Repeat:
    repeat: syntax.Repeat = parts[0]
    return replace(repeat, end=parts[1].terminal, span=span) if len(parts) > 1 else repeat


SIGNS: dict[str, tuple[int, int | None]] = {"PLUS": (1, None), "STAR": (0, None), "QUESTION": (0, 1)}


def _repeat(span: Span, least: Leaf | None, most: Leaf | None) -> syntax.Repeat:
    return syntax.Repeat(_whole(least).value if least else 0, _whole(most).value if most else None, span)


def _subscription(span: Span, parts: list[Any]) -> syntax.Subscription:
    made: list[syntax.Clause] = []
    for each in parts[2:]:
        last = made[-1] if made else None
        more = last.followed_by(each) if isinstance(last, syntax.NotingNode) else None
        if more is not None:
            made[-1] = more
        else:
            made.append(each)
    return syntax.Subscription(_word(parts[0]), parts[1], tuple(made), span)


def _key_part(span: Span, parts: list[Any]) -> syntax.KeyPart:
    first, *names = _names(parts)
    if not names:
        return syntax.KeyPart(None, first)
    return syntax.KeyPart(first, names[0], fields=tuple(names[1:]))


def _emit(span: Span, parts: list[Any]) -> syntax.Emit:
    return syntax.Emit(_word(parts[0]), tuple(parts[1]), _optional_word(parts), span)


def _reference(span: Span, parts: list[Any]) -> syntax.Reference:
    head, *names = _names(parts)
    return syntax.Reference(head, _optional_whole(parts), names[0] if names else None, span, tuple(names[1:]))


def _field_of_call(span: Span, parts: list[Any]) -> syntax.FieldOf:
    function, arguments, *fields = parts
    end = max((each.span.end for each in arguments), default=function.end)
    call = syntax.Call(_word(function), tuple(arguments), Span(span.start, end + 1))
    return syntax.FieldOf(call, tuple(map(_word, fields)), span)


def _cast(span: Span, parts: list[Any]) -> syntax.Cast:
    function, type = _word(parts[0]), _word(parts[2])
    wanted = syntax.DataType(type, tuple(parts[3]) if len(parts) > 3 else (), type.span)
    return syntax.Cast(function, parts[1], wanted, span)


def _case(span: Span, parts: list[Any]) -> syntax.Case:
    steps = tuple(each for each in parts if type(each) is tuple)
    return syntax.Case(steps, None if len(steps) == len(parts) else parts[-1], span)


def _upto(span: Span, parts: list[Any]) -> syntax.DisposalClause:
    *end, alias = map(_word, parts)
    return syntax.DisposalClause("UPTO", span, upto=alias, end=end[0] if end else None)


def _words(parts: list[Any]) -> str:
    return " ".join(each.text.upper() for each in parts)


BUILDERS: dict[str, Callable[[Span, list[Any]], Any]] = {
    "start": _start,
    "type": _type,
    "supertype": lambda span, parts: _Supertype((_word(parts[0]),)),
    "columns": lambda span, parts: parts,
    "column": _column,
    "field": _column,
    "plain_type": _plain_type,
    "array_type": _array_type,
    "struct_type": _struct_type,
    "parameters": lambda span, parts: [_whole(each) for each in parts],
    "time": lambda span, parts: _word(parts[0]),
    "union": _union,
    "table": _table,
    "topic": _topic,
    "keep": _keep,
    "order": _order,
    "order_key": _order_key,
    "delay": _delay,
    "idle": lambda span, parts: parts[0],
    "ahead": lambda span, parts: syntax.Ahead(parts[0], span),
    "late": _late,
    "subscription": _subscription,
    "any_of": lambda span, parts: syntax.AnyOf(tuple(parts), span),
    "one_of": lambda span, parts: syntax.OneOf(tuple(parts), span),
    "in_order": _in_order,
    "repeated_group": lambda span, parts: syntax.Group(parts[0], parts[1], span),
    "quantifier": _quantifier,
    "gap": lambda span, parts: syntax.Gap(parts[0], span),
    "ending": lambda span, parts: syntax.Ending(parts[0], span),
    "all_of": lambda span, parts: syntax.AllOf(tuple(parts), span),
    "group": lambda span, parts: parts[0],
    "element": _element,
    "alias": lambda span, parts: _word(parts[0]),
    "count": lambda span, parts: _whole(parts[0]),
    "repeated": lambda span, parts: syntax.Repeat(*SIGNS[parts[0].terminal], span),
    "exactly": lambda span, parts: _repeat(span, parts[0], parts[0]),
    "at_least": lambda span, parts: _repeat(span, parts[0], None),
    "at_most": lambda span, parts: _repeat(span, None, parts[0]),
    "from_to": lambda span, parts: _repeat(span, parts[0], parts[1]),
    "where": lambda span, parts: syntax.Where(parts[0], span),
    "having": lambda span, parts: syntax.Having(parts[0], span),
    "per": lambda span, parts: syntax.Per(tuple(parts), span),
    "key": lambda span, parts: syntax.Key(tuple(each for each in parts if isinstance(each, syntax.KeyPart)), span),
    "plain_key": _key_part,
    "bucket": lambda span, parts: replace(parts[1], function=_word(parts[0]), duration=parts[2]),
    "within": lambda span, parts: syntax.Within(parts[0], span),
    "matching": lambda span, parts: syntax.MatchingClause(_words(parts), span),
    "disposal": lambda span, parts: syntax.DisposalClause(_words(parts), span),
    "advance": lambda span, parts: syntax.DisposalClause("ADVANCE", span, advance=_whole(parts[1])),
    "upto": _upto,
    "keeping": lambda span, parts: syntax.Keeping(tuple(map(_word, parts[1:])), span),
    "folding": lambda span, parts: syntax.Fold(tuple(map(_word, parts[1:])), span),
    "retaining": lambda span, parts: syntax.Retaining(tuple(parts[1:]), span),
    "bound": lambda span, parts: syntax.QueueBound(_word(parts[0]), parts[1], len(parts) > 2),
    "limit_per_event": lambda span, parts: syntax.EventLimit(_whole(parts[0]), span),
    "emit": _emit,
    "assignments": lambda span, parts: parts,
    "assignment": lambda span, parts: syntax.Assignment(_word(parts[0]), parts[2]),
    "member": _reference,
    "or_": lambda span, parts: syntax.Or(tuple(parts), span),
    "and_": lambda span, parts: syntax.And(tuple(parts), span),
    "not_": lambda span, parts: syntax.Not(parts[1], span),
    "compare": lambda span, parts: syntax.Compare(_word(parts[1]), parts[0], parts[2], span),
    "is_null": lambda span, parts: syntax.IsNull(parts[0], _negated(parts), span),
    "is_truth": lambda span, parts: syntax.IsTruth(parts[0], parts[-1].terminal == "TRUE", _negated(parts), span),
    "is_in": lambda span, parts: syntax.In(parts[0], tuple(parts[-1]), _negated(parts), span),
    "between": lambda span, parts: syntax.Between(parts[0], parts[-2], parts[-1], _negated(parts), span),
    "like": lambda span, parts: syntax.Like(parts[0], _text(parts[-1]), _negated(parts), span),
    "rlike": lambda span, parts: syntax.Rlike(parts[0], _text(parts[-1]), _negated(parts), span),
    "arithmetic": lambda span, parts: syntax.Arithmetic(_word(parts[1]), parts[0], parts[2], span),
    "negative": lambda span, parts: syntax.Negative(parts[1], span),
    "number": lambda span, parts: syntax.Number(parts[0].text, span),
    "text": lambda span, parts: _text(parts[0]),
    "boolean": lambda span, parts: syntax.Boolean(parts[0].text.upper() == "TRUE", span),
    "null": lambda span, parts: syntax.Null(span),
    "duration": lambda span, parts: syntax.Duration(parts[0].text, _word(parts[1]), span),
    "interval": lambda span, parts: syntax.Prefixed(_word(parts[0]), parts[1], span),
    "timestamp": lambda span, parts: syntax.Prefixed(_word(parts[0]), _text(parts[1]), span),
    "call": lambda span, parts: syntax.Call(_word(parts[0]), tuple(parts[1]), span),
    "field_of_call": _field_of_call,
    "distinct": lambda span, parts: syntax.Call(_word(parts[0]), (parts[1],), span, distinct=True),
    "cast": _cast,
    "case": _case,
    "step": lambda span, parts: (parts[0], parts[1]),
    "reference": _reference,
    "arguments": lambda span, parts: parts,
    **clauses.BUILDERS,
}
"""One builder for each rule of the grammar, by the rule's name."""
