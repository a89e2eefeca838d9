"""Expressions compiled to Python closures over the bound events, one list entry per slot.

Takes: an expression and the type of each slot. Gives: a function of the binding. Equal to testing/interpreter.py, node for
node; the attribute look-ups, the NULL checks that cannot fail and the operators are resolved once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fairlead.matching.expressions.casts import cast
from fairlead.matching.expressions.functions import aggregate, arithmetic, comparison, like_pattern, negative, scalar, unknown
from fairlead.matching.folded_run import FoldedRun
from fairlead.model.events.event import Event
from fairlead.model.events.nested_values import inner
from fairlead.model.events.types import Catalogue, EventType, Kind
from fairlead.model.expressions.expression import (
    Aggregate,
    Arithmetic,
    Atom,
    Call,
    CaseWhen,
    Cast,
    Compare,
    Condition,
    Expression,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Logic,
    Negative,
    PositionOf,
    Previous,
    StructField,
    TimeOf,
    Truth,
)
from fairlead.model.plans.plan import Branch

Binding = Sequence[Event | None]
Evaluator = Callable[[Any], Any]
Check = Callable[[Any], bool]


def slot_types(branch: Branch, catalogue: Catalogue) -> list[EventType]:
    """The type of every slot of a branch, members first, then those of noted events."""
    return [catalogue[name] for name in (*branch.signature, *(each.type for each in branch.noting))]


def compile_condition(condition: Condition, types: Sequence[EventType]) -> Check:
    """True, as opposed to false or unknown."""
    terms = [[compile_atom(atom, types) for atom in term] for term in condition.terms]
    if len(terms) == 1 and len(terms[0]) == 1:
        only = terms[0][0]
        return lambda binding: only(binding) is True
    return lambda binding: any(all(atom(binding) is True for atom in term) for term in terms)


def compile_atom(atom: Atom, types: Sequence[EventType]) -> Evaluator:
    match atom:
        case Compare():
            test = comparison(atom.operator, atom.left.kind, atom.right.kind)
            return _compare(test, compile_value(atom.left, types), compile_value(atom.right, types))
        case IsNull():
            operand, negated = compile_value(atom.operand, types), atom.negated
            return lambda binding: (operand(binding) is None) != negated
        case In():
            return _in(atom, types)
        case Like():
            text, pattern, wanted = compile_value(atom.operand, types), like_pattern(atom.pattern), not atom.negated

            def like(binding: Binding) -> bool | None:
                found = text(binding)
                return None if found is None else pattern.fullmatch(found) == wanted

            return like
        case Truth():
            inner, flip = compile_value(atom.operand, types), atom.negated
            return (lambda binding: None if (truth := inner(binding)) is None else not truth) if flip else inner


def compile_value(node: Expression, types: Sequence[EventType]) -> Evaluator:
    match node:
        case Literal():
            constant = node.value
            return lambda binding: constant
        case Field():
            return _field(node.slot, node.attribute, types[node.slot])
        case Previous():
            raise AssertionError("it is asked in the form of model/plans/sequence.py, as_asked")
        case PositionOf():
            slot = node.slot
            return lambda binding: binding[slot].position.major
        case TimeOf():
            slot = node.slot
            return lambda binding: binding[slot].time
        case Arithmetic():
            return _strict(arithmetic(node.operator, node.kind), [node.left, node.right], types)
        case Negative():
            kind = node.kind
            return _strict(lambda value: negative(value, kind), [node.operand], types)
        case Call(function="coalesce"):
            arguments = [compile_value(each, types) for each in node.arguments]
            return lambda binding: next((v for v in (each(binding) for each in arguments) if v is not None), None)
        case Call():
            return _strict(scalar(node.function, node.kind), node.arguments, types)
        case StructField():
            at = node.at
            return _strict(lambda value: value[at], [node.operand], types)
        case Logic():
            return _logic(node, types)
        case CaseWhen():
            return _case(node, types)
        case Cast():
            return _strict(cast(node.operand.kind, node.type), [node.operand], types)
        case Aggregate():
            return _aggregate(node, types)
        case _:
            return compile_atom(node, types)


def _logic(node: Logic, types: Sequence[EventType]) -> Evaluator:
    """OR is true as soon as one part is, AND false; otherwise NULL if a part is."""
    operands, decisive = [compile_value(each, types) for each in node.operands], node.operator == "OR"

    def logic(binding: Binding) -> bool | None:
        result: bool | None = not decisive
        for each in operands:
            found: bool | None = each(binding)
            if found is decisive:
                return decisive
            if found is None:
                result = None
        return result

    return logic


def _case(node: CaseWhen, types: Sequence[EventType]) -> Evaluator:
    conditions = [compile_value(each, types) for each in node.conditions]
    *values, otherwise = [compile_value(each, types) for each in node.values]
    steps = list(zip(conditions, values, strict=True))

    def case(binding: Binding) -> Any:
        for condition, value in steps:
            if condition(binding) is True:
                return value(binding)
        return otherwise(binding)

    return case


def _field(slot: int, attribute: str, schema: EventType) -> Evaluator:
    if schema.is_union:  # members keep the attribute at different places
        return lambda binding: binding[slot].raw(attribute)
    at, *fields = schema.place(attribute)
    if fields:
        place = (at, *fields)
        return lambda binding: inner(binding[slot].row, place)
    return lambda binding: binding[slot].row[at]


def _strict(function: Callable[..., Any], nodes: Sequence[Expression], types: Sequence[EventType]) -> Evaluator:
    """A function that returns NULL as soon as one argument is NULL."""
    arguments = [compile_value(each, types) for each in nodes]
    if len(arguments) == 2:
        left, right = arguments

        def two(binding: Binding) -> Any:
            a, b = left(binding), right(binding)
            return None if a is None or b is None else function(a, b)

        return two

    def any_number(binding: Binding) -> Any:
        values = [each(binding) for each in arguments]
        return None if None in values else function(*values)

    return any_number


def _compare(test: Callable[[Any, Any], bool], left: Evaluator, right: Evaluator) -> Evaluator:
    def compare(binding: Binding) -> bool | None:
        a, b = left(binding), right(binding)
        return None if a is None or b is None or a != a or b != b else test(a, b)

    return compare


def _are_plain(node: In) -> bool:
    """Known constants for which Python's equality is right (not DECIMALs beside DOUBLEs, see `comparison`)."""
    kinds = {node.operand.kind, *(each.kind for each in node.options)}
    known = all(isinstance(each, Literal) and not unknown(each.value) for each in node.options)
    return known and not {Kind.DECIMAL, Kind.DOUBLE} <= kinds


def _among(operand: Evaluator, options: frozenset[Any], wanted: bool) -> Evaluator:
    """In one step, however many options there are."""

    def contains(binding: Binding) -> bool | None:
        value = operand(binding)
        return None if unknown(value) else (value in options) is wanted

    return contains


def _in(node: In, types: Sequence[EventType]) -> Evaluator:
    operand, wanted = compile_value(node.operand, types), not node.negated
    if _are_plain(node):
        return _among(operand, frozenset(each.value for each in node.options if isinstance(each, Literal)), wanted)
    options = [(comparison("=", node.operand.kind, each.kind), compile_value(each, types)) for each in node.options]

    def contains(binding: Binding) -> bool | None:
        value = operand(binding)
        if value is None or value != value:
            return None
        found = [(equal, option(binding)) for equal, option in options]
        if any(equal(value, each) for equal, each in found if each is not None and each == each):
            return wanted
        return None if any(each is None or each != each for _, each in found) else not wanted

    return contains


def _aggregate(node: Aggregate, types: Sequence[EventType]) -> Evaluator:
    function, kind, count = node.function, node.kind, len(node.slots)
    if count == 1:
        return _of_run(node, types[node.slots[0]])
    if node.attribute is None:
        return lambda binding: count
    fields = [_field(slot, node.attribute, types[slot]) for slot in node.slots]
    return lambda binding: aggregate(function, [each(binding) for each in fields], kind)


def _of_run(node: Aggregate, schema: EventType) -> Evaluator:
    """Over the events of a run, a tuple in the binding; or over one instance."""
    slot = node.slots[0]
    over_events = _over_events(node, schema)

    def aggregated(binding: Binding) -> Any:
        held: Any = binding[slot]
        return held.value(node) if isinstance(held, FoldedRun) else over_events(binding)

    return aggregated


def _over_events(node: Aggregate, schema: EventType) -> Evaluator:
    slot, function, kind = node.slots[0], node.function, node.kind

    def events(binding: Binding) -> Sequence[Any]:
        held = binding[slot]
        return held if isinstance(held, tuple | list) else (held,)

    if node.attribute is None:
        return lambda binding: len(events(binding))
    field = _field(0, node.attribute, schema)
    if function in ("first", "last"):
        end = 0 if function == "first" else -1
        return lambda binding: field((events(binding)[end],)) if events(binding) else None
    return lambda binding: aggregate(function, [field((event,)) for event in events(binding)], kind)
