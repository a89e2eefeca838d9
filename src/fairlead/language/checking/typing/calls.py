"""Calls: the pure functions, `position` and `time` of an event, and aggregates over the instances of an element.

Takes: the call as written; for pure functions its typed arguments, for the others the scope. Gives: typed expressions.
"""

from __future__ import annotations

from fairlead.language.checking.typing import kinds
from fairlead.language.checking.typing.scope import Scope
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.model.events.types import Kind
from fairlead.model.plans.expression import AGGREGATES, FUNCTIONS, Aggregate, Call, Expression, Literal, PositionOf, TimeOf

OF_EVENTS = (*AGGREGATES, "position", "time")
"""Functions whose argument is an event or its instances, not a value."""

FUNCTION_LIKENESS = 0.7
"""How similar an unknown function and a known one are if it is misspelt: `lenght` is 0.83 `length`, `round` 0.6 `count`."""


def check_call(node: syntax.Call) -> None:
    """Checks that the function exists and accepts that many arguments."""
    name = node.function.text
    function = FUNCTIONS.get(name.lower())
    if function is None:
        known = (*FUNCTIONS, *OF_EVENTS)
        fix = did_you_mean(name, known, f"there are {listed(known, 'and')}", FUNCTION_LIKENESS)
        raise Fault("L044", node.function.span, f"there is no function '{name}'", fix)
    if not function.arity_min <= len(node.arguments) <= function.arity_max:
        least, most = function.arity_min, function.arity_max
        wanted = f"{least}" if least == most else f"{least} to {most}"
        problem = f"{name} accepts {wanted} argument{'' if most == 1 else 's'}, not {len(node.arguments)}"
        raise Fault("L045", node.span, problem, f"{name.lower()}: {function.help}")


def call(node: syntax.Call, arguments: list[Expression]) -> Expression:
    name = node.function.text.lower()
    common = kinds.widest([each.kind for each in arguments]) if name == "coalesce" else None
    if common:
        arguments = [kinds.widened(each, common) for each in arguments]
    kind = FUNCTIONS[name].result([each.kind for each in arguments])
    if kind is None:
        given = listed((each.kind for each in arguments), "and")
        raise Fault("L045", node.span, f"{name} does not accept {given}", f"{name}: {FUNCTIONS[name].help}")
    return Call(name, tuple(arguments), kind)


def of_events(name: str, node: syntax.Call, scope: Scope) -> Expression:
    argument = node.arguments[0] if len(node.arguments) == 1 else None
    if not isinstance(argument, syntax.Reference):
        example = f"{name}(q)" if name in ("position", "time", "count") else f"{name}(q.value)"
        raise Fault("L046", node.span, f"{name} accepts one element of the pattern", f"write, for example, {example}")
    if name in AGGREGATES:
        return _aggregate(name, argument, scope)
    return _of_one(name, argument, scope)


def _of_one(name: str, argument: syntax.Reference, scope: Scope) -> Expression:
    if argument.attribute:
        raise Fault(
            "L046", argument.span, f"{name} accepts an event, not one of its attributes", f"write {name}({argument.head.text})"
        )
    member, slot = scope.member(argument.head), scope.slot(argument)
    if name == "time" and not member.type.timed:
        fix = f"declare it with TIME, or use position({argument})"
        raise Fault("L058", argument.span, f"events of type '{member.type.name}' have no time", fix)
    if slot is None:
        return Literal(None, Kind.BIGINT if name == "position" else Kind.TIMESTAMP)
    return PositionOf(slot) if name == "position" else TimeOf(slot)


def _aggregate(name: str, argument: syntax.Reference, scope: Scope) -> Expression:
    member, attribute = scope.instances(argument)
    if attribute is None:
        if name != "count":
            fitting = (each.name for each in member.type.attributes if kinds.aggregate(name, each.type.kind))
            example = next(fitting, "attribute")
            fix = f"write {name}({member.alias}.{example})"
            raise Fault("L046", argument.span, f"{name} needs an attribute of '{member.alias}'", fix)
        return Aggregate(name, member.slots, None, Kind.BIGINT) if member.present else Literal(0, Kind.BIGINT)
    kind = kinds.aggregate(name, attribute.type.kind)
    if kind is None:
        problem = f"{name} is not defined for {attribute.type.kind}"
        raise Fault(
            "L046", argument.span, problem, "sum and avg accept numbers; min and max accept numbers, STRING and TIMESTAMP"
        )
    if not member.present:
        return Literal(0 if name == "count" else None, kind)
    return Aggregate(name, member.slots, attribute.name, kind)
