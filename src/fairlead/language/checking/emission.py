"""EMIT: the derived type that a subscription defines, and its fields in each branch.

Takes: the clause, one scope per branch (aliases of other branches read as NULL), the catalogue so far. Gives: the derived
type and one Emission per branch, fields in the order of the type's attributes.
Never: changes the catalogue (compiler.py does).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairlead.language.checking.type_declarations import PRECISION_MAX, check_attribute_names, check_time
from fairlead.language.checking.typing import kinds
from fairlead.language.checking.typing.expressions import typed
from fairlead.language.checking.typing.scope import Scope
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.model.events.types import HEARTBEAT, NUMERIC, Attribute, Catalogue, DataType, EventType, Kind
from fairlead.model.events.values import canonical
from fairlead.model.expressions.data_types import data_type_of
from fairlead.model.expressions.expression import (
    Aggregate,
    Arithmetic,
    Call,
    CaseWhen,
    Cast,
    Expression,
    Field,
    Literal,
    StructField,
)
from fairlead.model.plans.pattern import Emission


def emission(
    clause: syntax.Emit, scopes: Sequence[Scope], catalogue: Catalogue, declared: bool
) -> tuple[EventType, tuple[Emission, ...]]:
    name = clause.type.text
    existing = catalogue.get(name)
    if name == HEARTBEAT.name or (existing and existing.is_union):
        kind = "a table" if existing and existing.table else "a union or built in"
        raise Fault("L064", clause.type.span, f"EMIT does not accept '{name}': it is {kind}", "use another type name")
    check_attribute_names(each.name for each in clause.assignments)
    if existing and declared:
        _check_names(clause, existing)
    rows = [[_value(each, scope, existing if declared else None) for each in clause.assignments] for scope in scopes]
    made = _fitted(existing, scopes) if existing and declared else _made(clause, scopes, rows)
    if existing and not declared:
        made = _merged(clause, existing, made)
    return made, tuple(_emission(clause, made, scope, row) for scope, row in zip(scopes, rows, strict=True))


def _value(each: syntax.Assignment, scope: Scope, declared: EventType | None) -> Expression:
    attribute = declared.attribute(each.name.text) if declared else None
    if isinstance(each.value, syntax.Null) and attribute is None:
        problem = f"the type of '{each.name.text}' is unknown: its only value is NULL"
        raise Fault("L060", each.value.span, problem, "declare the emitted TYPE, or leave the attribute out")
    return typed(each.value, scope, attribute.type.kind if attribute else None)


def _made(clause: syntax.Emit, scopes: Sequence[Scope], rows: Sequence[Sequence[Expression]]) -> EventType:
    """The type that the fields of all branches define."""
    attributes = []
    for at, each in enumerate(clause.assignments):
        types = [data_type_of(row[at], scope.types) for row, scope in zip(rows, scopes, strict=True)]
        if any(each.is_nested for each in types) and len(set(types)) == 1:
            attributes.append(Attribute(each.name.text, types[0]))
            continue
        kind = None if any(each.is_nested for each in types) else kinds.widest([row[at].kind for row in rows])
        if kind is None:
            found = listed(dict.fromkeys(map(str, types)), "and")
            problem = f"'{each.name.text}' has different types in the branches of the pattern: {found}"
            raise Fault("L061", each.value.span, problem, "use a different name for one of the aliases")
        scale = max(_scale(row[at], scope) for row, scope in zip(rows, scopes, strict=True))
        attributes.append(
            Attribute(each.name.text, DataType(kind, PRECISION_MAX, scale) if kind is Kind.DECIMAL else DataType(kind))
        )
    if clause.time:
        check_time(clause.time, tuple(attributes))
    time = clause.time.text if clause.time else None
    return EventType(
        clause.type.text, tuple(attributes), time_attribute=time, derived=True, implicit_time=not time and _timed(scopes)
    )


def _timed(scopes: Sequence[Scope]) -> bool:
    """Every member has a time, so a derived event has the largest of them."""
    return all(member.type.timed for scope in scopes for member in scope.members.values())


def _scale(value: Expression, scope: Scope) -> int:
    """Decimal places of an exact result: products add them up, other operations keep the most."""
    if isinstance(value, Field | Aggregate | StructField) or (isinstance(value, Call) and value.function == "element_at"):
        known = data_type_of(value, scope.types)
        if isinstance(value, Aggregate) and value.attribute and value.function in ("sum", "avg"):
            known = scope.types[value.slots[0]].type_of(value.attribute)
        return known.scale if value.kind is known.kind is Kind.DECIMAL else 0
    if isinstance(value, Cast):
        return value.type.scale if value.kind is Kind.DECIMAL else 0
    scales = [_scale(child, scope) for child in (value.values if isinstance(value, CaseWhen) else value.parts)]
    if isinstance(value, Arithmetic) and value.operator == "*":
        return min(sum(scales), PRECISION_MAX)
    return max(scales, default=0)


def _merged(clause: syntax.Emit, existing: EventType, made: EventType) -> EventType:
    """Two subscriptions emit one type: their attributes are the same."""
    same = {each.name: each for each in existing.attributes} == {each.name: each for each in made.attributes}
    if not same or existing.time_attribute != made.time_attribute:
        problem = f"another subscription emits '{existing.name}' as ({', '.join(map(str, existing.attributes))})"
        shown = f"{problem} TIME {existing.time_attribute}" if existing.time_attribute else problem
        raise Fault("L061", clause.type.span, shown, "emit the same attributes, or give this type another name")
    return replace(existing, implicit_time=made.implicit_time)


def _fitted(existing: EventType, scopes: Sequence[Scope]) -> EventType:
    """A declared type; without its own TIME its events have a time if all members do."""
    return existing if existing.time_attribute else replace(existing, implicit_time=_timed(scopes))


def _check_names(clause: syntax.Emit, declared: EventType) -> None:
    names = [each.name for each in declared.attributes]
    given = [each.name.text for each in clause.assignments]
    for each in clause.assignments:
        if each.name.text not in names:
            fix = did_you_mean(each.name.text, names, f"it has {listed(names, 'and')}" if names else "it has none")
            raise Fault("L012", each.name.span, f"event type '{declared.name}' has no attribute '{each.name.text}'", fix)
    missing = [name for name in names if name not in given]
    if missing:
        problem = f"'{declared.name}' also has {listed(missing, 'and')}"
        raise Fault("L061", clause.type.span, problem, f"add {missing[0]} = …")
    if clause.time and clause.time.text != declared.time_attribute:
        problem = (
            f"'{declared.name}' is declared with {f'TIME {declared.time_attribute}' if declared.time_attribute else 'no TIME'}"
        )
        raise Fault("L061", clause.time.span, problem, "leave out TIME")


def _emission(clause: syntax.Emit, made: EventType, scope: Scope, row: Sequence[Expression]) -> Emission:
    given = {each.name.text: (each, value) for each, value in zip(clause.assignments, row, strict=True)}
    fields = []
    for attribute in made.attributes:
        assignment, value = given[attribute.name]
        fields.append((attribute.name, _assigned(assignment, attribute, value, scope)))
    return Emission(made.name, tuple(fields))


def _assigned(assignment: syntax.Assignment, attribute: Attribute, value: Expression, scope: Scope) -> Expression:
    wanted = attribute.type
    if isinstance(value, Literal) and value.value is not None and wanted.kind is Kind.DECIMAL and value.kind in NUMERIC:
        try:
            return Literal(canonical(value.value, wanted), Kind.DECIMAL)
        except ValueError as error:
            raise Fault("L061", assignment.value.span, str(error), "use a number that fits the type") from None
    found_type = data_type_of(value, scope.types)
    is_null = isinstance(value, Literal) and value.value is None
    if (wanted.is_nested or found_type.is_nested) and wanted != found_type and not (is_null and wanted.kind is value.kind):
        problem = f"'{attribute.name}' is declared {wanted}, the value is {found_type}"
        raise Fault("L061", assignment.value.span, problem, f"declare {attribute.name} {found_type}, or change the expression")
    fits = kinds.widens(value.kind, wanted.kind)
    if not fits or (wanted.kind is Kind.DECIMAL and _scale(value, scope) > wanted.scale):
        found = f"DECIMAL with {_scale(value, scope)} decimal places" if fits else value.kind
        problem = f"'{attribute.name}' is declared {wanted}, the value is {found}"
        raise Fault("L061", assignment.value.span, problem, f"declare {attribute.name} {value.kind}, or change the expression")
    return kinds.widened(value, wanted.kind)
