"""PER: the key attributes of each type.

    PER symbol               every type of the pattern has `symbol`
    PER bucket(at, 1 HOUR)   every type has the TIMESTAMP `at`; the key is the hour in which it lies
    PER address.zip          every type has `address`, a STRUCT with `zip`; so does PER r.address.zip
    PER r.symbol = q.ticker  the type of r has `symbol`, that of q `ticker`; any other type has one of these names

Takes: the clause and the branches' members (negated ones too). Gives: for each branch its keys, and their display names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairlead.language.checking.type_declarations import check_single
from fairlead.language.checking.typing.literals import duration
from fairlead.language.checking.typing.scope import AliasMember, attribute_of
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span, did_you_mean, listed
from fairlead.model.events.types import INTEGER, PATH, EventType, Kind
from fairlead.model.events.values import duration_words
from fairlead.model.plans.key_parts import KeyPart

BranchTypes = tuple[Mapping[str, AliasMember], tuple[EventType, ...]]
"""A branch's members by alias, and every type that it reads."""


def keys(clause: syntax.Per, branches: Sequence[BranchTypes]) -> list[tuple[tuple[str, tuple[str, ...]], ...]]:
    seen: set[str] = set()
    clause = replace(clause, keys=tuple(_resolved(key, branches) for key in clause.keys))
    for key in clause.keys:
        if display(key) in seen:
            raise Fault("L053", key.span, f"the key '{display(key)}' is named twice", "name it once")
        seen.add(display(key))
        _check_buckets(key)
        _check_aliases(key, branches)
    found = [[_attributes(key, *branch) for key in clause.keys] for branch in branches]
    for at, key in enumerate(clause.keys):
        _check_kinds(
            key, [(type_, parts[at][type_.name]) for (_, types), parts in zip(branches, found, strict=True) for type_ in types]
        )
    return [
        tuple(
            (type_.name, tuple(_name(key, part[type_.name]) for key, part in zip(clause.keys, parts, strict=True)))
            for type_ in types
        )
        for (_, types), parts in zip(branches, found, strict=True)
    ]


def display(key: syntax.Key) -> str:
    return " = ".join(map(_display, key.parts))


def _display(part: syntax.KeyPart) -> str:
    return f"bucket({part.written}, {duration_words(duration(part.duration))})" if part.duration else part.written


def _resolved(key: syntax.Key, branches: Sequence[BranchTypes]) -> syntax.Key:
    """With each attribute and its fields as one path, and an alias only where the first name is one."""
    aliases = {alias for members, _ in branches for alias in members}
    heads = {each.name for _, types in branches for type_ in types for each in type_.attributes}
    parts = []
    for part in key.parts:
        names = [part.attribute, *part.fields]
        alias = part.alias
        if alias is not None and alias.text not in aliases and alias.text in heads:
            names, alias = [alias, *names], None
        path = syntax.Word(PATH.join(each.text for each in names), Span(names[0].span.start, names[-1].span.end))
        parts.append(replace(part, alias=alias, attribute=path, fields=()))
    return replace(key, parts=tuple(parts))


def _check_buckets(key: syntax.Key) -> None:
    """All parts are buckets of one length, or none is."""
    for part in key.parts:
        if part.function is not None and part.function.lower != "bucket":
            problem = f"'{part.function.text}' is no function of a key"
            raise Fault("L125", part.function.span, problem, f"write bucket({part.attribute.text}, 1 HOUR)")
    if len({None if part.duration is None else duration(part.duration) for part in key.parts}) > 1:
        problem = "the attributes of a key are cut into unlike buckets"
        raise Fault("L125", key.span, problem, "write bucket(…) of one length for each of them")


def _name(key: syntax.Key, attribute: str) -> str:
    """Of the attribute in a key."""
    span = key.parts[0].duration
    return KeyPart(attribute, None if span is None else duration(span)).name


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
    if PATH in word.text and type_.attribute(word.text.partition(PATH)[0]):
        attribute_of(type_, word)
    names = [each.name for each in type_.attributes]
    meant = did_you_mean(word.text, names)
    fix = meant or f"where the names differ, write PER x.{word.text} = y.{names[0] if names else 'key'}"
    raise Fault("L051", word.span, f"type '{type_.name}' has no attribute '{word.text}' for the key", fix)


def _check_kinds(key: syntax.Key, used: Sequence[tuple[EventType, str]]) -> None:
    kinds: dict[Kind, str] = {}
    for type_, name in used:
        attribute = type_.attribute(name)
        if attribute:
            check_single(attribute.type, key.span, f"the key {type_.name}.{name}")
            kind = Kind.BIGINT if attribute.type.kind in INTEGER else attribute.type.kind
            kinds.setdefault(kind, f"{type_.name}.{name} is {attribute.type.kind}")
    if key.parts[0].duration is not None and [*kinds] != [Kind.TIMESTAMP]:
        problem = f"bucket() cuts time, and {listed(kinds.values(), 'and')}"
        raise Fault("L125", key.span, problem, "name a TIMESTAMP")
    if len(kinds) > 1:
        raise Fault(
            "L052", key.span, f"the key has different types: {listed(kinds.values(), 'and')}", "use attributes of one type"
        )
