"""Calls: the pure functions, `position` and `time` of an event, and aggregates over the instances of an element.

Takes: the call as written; for pure functions its typed arguments, for the others the scope. Gives: typed expressions.
"""

from __future__ import annotations

from fairlead.language.checking.type_declarations import check_single, check_size
from fairlead.language.checking.typing import kinds
from fairlead.language.checking.typing.scope import Scope, null_of
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span, did_you_mean, listed
from fairlead.language.parsing.keywords import FOREIGN_FUNCTIONS
from fairlead.model.events.types import DataType, Kind
from fairlead.model.expressions.data_types import data_type_of
from fairlead.model.expressions.expression import (
    AGGREGATES,
    COLLECT,
    DISTINCT,
    RUN_AGGREGATES,
    Aggregate,
    Call,
    Expression,
    Field,
    Literal,
    PositionOf,
    Previous,
    TimeOf,
)
from fairlead.model.expressions.function_table import DATE_PARTS, FUNCTIONS
from fairlead.model.expressions.text_tests import PatternTooLong, network, regular_expression
from fairlead.model.limits import LIMITS

OF_EVENTS = (*AGGREGATES, *RUN_AGGREGATES, COLLECT, "position", "time", "prev")
"""Functions whose argument is an event or its instances, not a value."""

CASTS = ("cast", "try_cast")

PATTERN_FIXES = {
    "invalid perl operator": "the syntax is that of RE2: without look-around, atomic groups and comments",
    "invalid escape sequence": "the syntax is that of RE2, without back references; remove the backslash if you mean a letter",
    "invalid repetition size": "repeat a part at most 1,000 times, repetitions within one another multiplied",
    "bad repetition operator": "remove one of the signs: the syntax is that of RE2, without possessive repetition",
    "no argument for repetition operator": "write something before it, or a backslash if you mean the sign",
    "missing )": "add ), or write \\( if you mean the sign",
    "missing ]": "add ], or write \\[ if you mean the sign",
    "unexpected )": "remove it, or write \\) if you mean the sign",
    "trailing": "write \\\\ if you mean a backslash",
}
"""By the first words of what RE2 says."""

FUNCTION_LIKENESS = 0.7
"""How similar an unknown function and a known one are if it is misspelt: `lenght` is 0.83 `length`, `round` 0.6 `count`."""


def check_call(node: syntax.Call) -> None:
    """Checks that the function exists and accepts that many arguments."""
    name = node.function.text
    function = FUNCTIONS.get(node.function.lower)
    if function is None:
        known = (*FUNCTIONS, *OF_EVENTS)
        if node.function.lower in CASTS:
            raise Fault("L044", node.span, f"{name} has no AS before the type", f"write {_with_as(node)}")
        likely = did_you_mean(name, known, f"there are {listed(known, 'and')}", FUNCTION_LIKENESS)
        fix = FOREIGN_FUNCTIONS.get(node.function.lower, likely)
        raise Fault("L044", node.function.span, f"there is no function '{name}'", fix)
    if not function.arity_min <= len(node.arguments) <= function.arity_max:
        least, most = function.arity_min, function.arity_max
        wanted = f"{least}" if least == most else f"{least} to {most}"
        problem = f"{name} accepts {wanted} argument{'' if most == 1 else 's'}, not {len(node.arguments)}"
        raise Fault("L045", node.span, problem, f"{node.function.lower}: {function.help}")


def _with_as(node: syntax.Call) -> str:
    """`cast(a.x AS INT)` for `cast(a.x, INT)`."""
    value, type = "…", "BIGINT"
    if node.arguments and isinstance(node.arguments[0], syntax.Reference):
        value = str(node.arguments[0])
    if len(node.arguments) == 2:
        match node.arguments[1]:
            case syntax.Reference(index=None, attribute=None) as word:
                type = str(word)
            case syntax.Text() as text if text.value.isalpha():
                type = text.value
            case syntax.Call() as word:
                numbers = (each.text for each in word.arguments if isinstance(each, syntax.Number))
                type = f"{word.function.text}({', '.join(numbers)})"
    return f"{node.function.lower}({value} AS {type.upper()})"


def call(node: syntax.Call, arguments: list[Expression]) -> Expression:
    name = node.function.lower
    common = kinds.widest([each.kind for each in arguments]) if name == "coalesce" else None
    if common:
        arguments = [kinds.widened(each, common) for each in arguments]
    elif name in DATE_PARTS:
        arguments = [kinds.midnight(each) for each in arguments]
    kind = FUNCTIONS[name].result([each.kind for each in arguments])
    if kind is None:
        given = listed((each.kind for each in arguments), "and")
        one = "; numbers widen, others need cast(… AS …), so that all have one type" if name == "coalesce" else ""
        raise Fault("L045", node.span, f"{name} does not accept {given}", f"{name}: {FUNCTIONS[name].help}{one}")
    if name == "rlike":
        return rlike(arguments[0], node.arguments[0].span, node.arguments[1])
    if name == "cidr_match":
        _check_networks(node)
    return Call(name, tuple(arguments), kind)


def rlike(operand: Expression, span: Span, pattern: syntax.Expression) -> Call:
    """`operand RLIKE pattern`, with a pattern that RE2 accepts."""
    if operand.kind is not Kind.STRING:
        raise Fault(
            "L049", span, f"RLIKE needs a STRING, got {operand.kind}", "compare it with = or <, or use cast(… AS STRING)"
        )
    if not isinstance(pattern, syntax.Text):
        raise Fault("L049", pattern.span, "the pattern of RLIKE is not a text in quotes", "write the pattern as a text")
    try:
        regular_expression(pattern.value)
    except PatternTooLong as error:
        fix = "split it into several patterns, joined by OR; for a list of texts, use IN"
        raise Fault("L049", pattern.span, f"the pattern of RLIKE is too long: {error}", fix) from None
    except ValueError as error:
        said = str(error)
        fix = next((fix for words, fix in PATTERN_FIXES.items() if said.startswith(words)), "use the syntax of RE2")
        raise Fault("L049", pattern.span, f"RLIKE does not accept this pattern: {said}", fix) from None
    return Call("rlike", (operand, Literal(pattern.value, Kind.STRING)), Kind.BOOLEAN)


def _check_networks(node: syntax.Call) -> None:
    for each in node.arguments[1:]:
        if isinstance(each, syntax.Text) and network(each.value) is None:
            raise Fault(
                "L045", each.span, f"'{each.value[:40]}' is not a network", "write, for example, '10.0.0.0/8' or 'fe80::/10'"
            )


def joined(node: syntax.Arithmetic, left: Expression, right: Expression) -> Expression:
    """`left || right`: one call for a whole chain."""
    for each, value in ((node.left, left), (node.right, right)):
        if value.kind is not Kind.STRING:
            fix = "write OR between conditions" if value.kind is Kind.BOOLEAN else "write cast(… AS STRING)"
            raise Fault("L043", each.span, f"|| joins texts, got {value.kind}", fix)
    texts = left.arguments if isinstance(left, Call) and left.function == "concat" else (left,)
    return Call("concat", (*texts, right), Kind.STRING)


def of_events(name: str, node: syntax.Call, scope: Scope) -> Expression:
    if name == "prev":
        return _previous(node, scope)
    argument = node.arguments[0] if len(node.arguments) == 1 else None
    if not isinstance(argument, syntax.Reference):
        example = f"{name}(q)" if name in ("position", "time", "count") else f"{name}(q.value)"
        raise Fault("L046", node.span, f"{name} accepts one element of the pattern", f"write, for example, {example}")
    if node.distinct:
        if name != "count":
            raise Fault(
                "L046", node.span, f"{name} has no DISTINCT", f"write {name}({argument}), or count(DISTINCT {argument})"
            )
        name = DISTINCT
    if name == COLLECT:
        return _collected(argument, scope)
    if name in AGGREGATES or name in RUN_AGGREGATES:
        return _aggregate(name, argument, scope)
    return _of_one(name, argument, scope)


def _of_one(name: str, argument: syntax.Reference, scope: Scope) -> Expression:
    if argument.attribute:
        raise Fault(
            "L046", argument.span, f"{name} accepts an event, not one of its attributes", f"write {name}({argument.head.text})"
        )
    member, slot = scope.member(argument.head), scope.slot(argument)
    scope.one(member, argument.span, "x")
    if name == "time" and not member.type.timed:
        fix = f"declare it with TIME, or use position({argument})"
        raise Fault("L058", argument.span, f"events of type '{member.type.name}' have no time", fix)
    if slot is None:
        return Literal(None, Kind.BIGINT if name == "position" else Kind.TIMESTAMP)
    return PositionOf(slot) if name == "position" else TimeOf(slot)


def _previous(node: syntax.Call, scope: Scope) -> Previous:
    """`prev(q.x)` or `prev(q.x, 2)`"""
    argument, *further = node.arguments or (None,)
    if not isinstance(argument, syntax.Reference) or len(further) > 1 or node.distinct:
        problem = "prev accepts an attribute of an element, and how many events to go back"
        raise Fault("L104", node.span, problem, "write, for example, prev(q.value) or prev(q.value, 2)")
    back = 1
    for each in further:
        back = int(each.text) if isinstance(each, syntax.Number) and each.text.isdigit() and len(each.text) < 9 else 0
        if not 1 <= back <= LIMITS.instances_max:
            problem = f"prev goes back a fixed number of events, 1 to {LIMITS.instances_max}"
            raise Fault("L104", each.span, problem, f"write, for example, prev({argument}, 2)")
    if not scope.steps:
        problem = "prev is about the event before the one that is being taken, so it belongs to WHERE and UNTIL"
        raise Fault("L104", node.span, problem, "move the condition to the WHERE of the pattern, or use first or last")
    field = scope.value(argument)
    check_single(data_type_of(field, scope.types), argument.span, str(argument))
    assert isinstance(field, Field)  # the branch has every element that its conditions name
    return Previous(field.slot, field.attribute, back, field.kind)


def _aggregate(name: str, argument: syntax.Reference, scope: Scope) -> Expression:
    member, attribute = scope.instances(argument)
    if name in RUN_AGGREGATES and not member.run:
        fix = (
            "write it as a run, such as q{3}"
            if name == DISTINCT
            else f"write {member.alias}[1], or the element as a run, {member.alias}{{3}}"
        )
        raise Fault("L046", argument.span, f"{name} is about runs, and '{member.alias}' is none", fix)
    if attribute is None:
        if name != "count":
            fitting = (each.name for each in member.type.attributes if kinds.aggregate(name, each.type.kind))
            example = next(fitting, "attribute")
            fix = f"write {name}({member.alias}.{example})"
            raise Fault("L046", argument.span, f"{name} needs an attribute of '{member.alias}'", fix)
        return Aggregate(name, member.slots, None, Kind.BIGINT) if member.present else Literal(0, Kind.BIGINT)
    kind = kinds.aggregate(name, attribute.type.kind)
    if name == DISTINCT:
        check_single(attribute.type, argument.span, str(argument))
    if kind is None:
        problem = f"{name} is not defined for {attribute.type.kind}"
        raise Fault(
            "L046", argument.span, problem, "sum and avg accept numbers; min and max accept numbers, STRING, TIMESTAMP and DATE"
        )
    if not member.present:
        none = null_of(attribute.type) if name in RUN_AGGREGATES else Literal(None, kind)
        return Literal(0, kind) if name in ("count", DISTINCT) else none
    return Aggregate(name, member.slots, attribute.name, kind)


def _collected(argument: syntax.Reference, scope: Scope) -> Aggregate | Literal:
    """`collect(q.x)`: an ARRAY of the values, in the order of the events."""
    if not scope.collects:
        fix = "use count, min or max here; in EMIT, size(collect(q.x)) is the number of events"
        raise Fault("L128", argument.span, "collect belongs to EMIT", fix)
    member, attribute = scope.instances(argument)
    if attribute is None:
        example = next((each.name for each in member.type.attributes), "attribute")
        fix = f"write collect({member.alias}.{example})"
        raise Fault("L046", argument.span, f"collect needs an attribute of '{member.alias}'", fix)
    if attribute.type.kind is Kind.INTERVAL:
        raise Fault("L046", argument.span, "an ARRAY has no INTERVALs", "collect the times")
    made = DataType(Kind.ARRAY, element=attribute.type)
    check_size(made, argument.span)
    return Aggregate(COLLECT, member.slots, attribute.name, Kind.ARRAY) if member.present else null_of(made)
