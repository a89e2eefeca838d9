"""PER: the key attributes of each type.

    PER symbol               every type of the pattern has `symbol`
    PER r.symbol = q.ticker  the type of r has `symbol`, that of q `ticker`; any other type has one of these names

Takes: the clause and the branches' members (negated ones too). Gives: for each branch its keys, and their display names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.language.checking.typing.scope import AliasMember, attribute_of
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.model.events.types import INTEGER, EventType, Kind

BranchTypes = tuple[Mapping[str, AliasMember], tuple[EventType, ...]]
"""A branch's members by alias, and every type that it reads."""


def keys(clause: syntax.Per, branches: Sequence[BranchTypes]) -> list[tuple[tuple[str, tuple[str, ...]], ...]]:
    seen: set[str] = set()
    for key in clause.keys:
        if display(key) in seen:
            raise Fault("L053", key.span, f"the key '{display(key)}' is named twice", "name it once")
        seen.add(display(key))
        _check_aliases(key, branches)
    found = [[_attributes(key, *branch) for key in clause.keys] for branch in branches]
    for at, key in enumerate(clause.keys):
        _check_kinds(
            key, [(type_, parts[at][type_.name]) for (_, types), parts in zip(branches, found, strict=True) for type_ in types]
        )
    return [
        tuple((type_.name, tuple(part[type_.name] for part in parts)) for type_ in types)
        for (_, types), parts in zip(branches, found, strict=True)
    ]


def display(key: syntax.Key) -> str:
    return " = ".join(f"{part.alias.text}.{part.attribute.text}" if part.alias else part.attribute.text for part in key.parts)


def _check_aliases(key: syntax.Key, branches: Sequence[BranchTypes]) -> None:
    known = {alias for members, _ in branches for alias in members}
    for part in key.parts:
        if part.alias is None and len(key.parts) > 1:
            fix = f"write, for example, {sorted(known)[0]}.{part.attribute.text}"
            raise Fault(
                "L031",
                part.attribute.span,
                f"'{part.attribute.text}' is ambiguous: a key of several attributes names the element of each",
                fix,
            )
        if part.alias and part.alias.text not in known:
            meant = did_you_mean(part.alias.text, sorted(known), f"known are {listed(sorted(known), 'and')}")
            raise Fault("L030", part.alias.span, f"there is no element '{part.alias.text}' in the pattern", meant)


def _attributes(key: syntax.Key, members: Mapping[str, AliasMember], types: tuple[EventType, ...]) -> dict[str, str]:
    """For each type of a branch the attribute that is this key."""
    chosen: dict[str, str] = {}
    for part in key.parts:
        member = members.get(part.alias.text) if part.alias else None
        if member is None:
            continue
        attribute_of(member.type, part.attribute)
        if chosen.setdefault(member.type.name, part.attribute.text) != part.attribute.text:
            problem = f"'{member.type.name}' has two keys: '{chosen[member.type.name]}' and '{part.attribute.text}'"
            raise Fault("L053", part.attribute.span, problem, "name one attribute for each type")
    for type_ in types:
        if type_.name not in chosen:
            chosen[type_.name] = _by_name(key, type_)
    return chosen


def _by_name(key: syntax.Key, type_: EventType) -> str:
    for part in key.parts:
        if type_.attribute(part.attribute.text):
            return part.attribute.text
    word = key.parts[0].attribute
    names = [each.name for each in type_.attributes]
    meant = did_you_mean(word.text, names)
    fix = meant or f"where the names differ, write PER x.{word.text} = y.{names[0] if names else 'key'}"
    raise Fault("L051", word.span, f"type '{type_.name}' has no attribute '{word.text}' for the key", fix)


def _check_kinds(key: syntax.Key, used: Sequence[tuple[EventType, str]]) -> None:
    kinds: dict[Kind, str] = {}
    for type_, name in used:
        attribute = type_.attribute(name)
        if attribute:
            kind = Kind.BIGINT if attribute.type.kind in INTEGER else attribute.type.kind
            kinds.setdefault(kind, f"{type_.name}.{name} is {attribute.type.kind}")
    if len(kinds) > 1:
        raise Fault(
            "L052", key.span, f"the key has different types: {listed(kinds.values(), 'and')}", "use attributes of one type"
        )
