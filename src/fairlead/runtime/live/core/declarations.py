"""The declarations of types that clients of a log share: their texts, and which changes of them are allowed.

A new declaration may add attributes at the end; they are null in older events. Repeating an older declaration changes nothing.
Any other difference would change the meaning of stored events, and is rejected.

Takes: declarations of types, as they are stored. Gives: a text of all; whether one may follow another, and if not, why. Never:
reads or writes a log.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from fairlead.dataclass import dataclass
from fairlead.engine import compile
from fairlead.language.checking.topics import KeepPolicy, keeps_of
from fairlead.language.compiler import compile_text
from fairlead.language.parsing.parser import parse
from fairlead.model.events.types import HEARTBEAT, MAIN, Attribute, Catalogue, EventType

PLANS_KEPT = 32
"""Subscribers of one process often have equal rules, and every one of them reads all types. Plans are values, so they share."""
compiled, compiled_types = lru_cache(PLANS_KEPT)(compile), lru_cache(PLANS_KEPT)(compile_text)


@dataclass(frozen=True)
class Declared:
    """`required`: how many of its own attributes existed from the beginning; the others may be omitted. `derived`: only a
    subscription that emits it declared it."""

    name: str
    text: str
    version: int = 1
    required: int = 0
    derived: bool = False
    revision: int = 0
    topic: str = ""

    def value(self) -> bytes:
        fields = ("name", "text", "version", "required", "derived", "topic")
        return json.dumps({name: getattr(self, name) for name in fields}).encode()


def own_attributes(each: EventType, catalogue: Catalogue) -> tuple[Attribute, ...]:
    return each.attributes[len(catalogue[each.supertype].attributes) if each.supertype else 0 :]


def declaration(each: EventType, catalogue: Catalogue) -> str:
    """The text of a declared type; compiling it returns the same type."""
    if each.is_union:
        return f"EVENT UNION {each.name} = {' + '.join(each.members)}"
    extends = f" EXTENDS {each.supertype}" if each.supertype else ""
    above = catalogue[each.supertype].time_attribute if each.supertype else None
    time = f" TIME {each.time_attribute}" if each.time_attribute and not above else ""
    return f"TYPE {each.name}{extends} ({', '.join(map(str, own_attributes(each, catalogue)))}){time}"


def declarations(catalogue: Catalogue, kept: Mapping[str, KeepPolicy] | None = None) -> str:
    """The text of all declared types, with their topics, one per line. `kept`: by topic, how much of it."""
    declared = [each for each in catalogue if not each.derived]
    topics = [f"TOPIC {each.topic} ({each.name})" for each in declared if each.topic != MAIN and not each.is_union]
    keeps = [f"TOPIC {name} KEEP {each}" for name, each in sorted((kept or {}).items())]
    return "\n".join([*(declaration(each, catalogue) for each in declared), *topics, *keeps])


def difference(old: EventType, new: EventType, old_types: Catalogue, new_types: Catalogue) -> str | None:
    """The reason why `new` may not follow `old`, in words; None if it may."""
    if old.topic != new.topic:
        return f"it is in the topic '{old.topic}'"
    if old.is_union != new.is_union:
        return "it was a union" if old.is_union else "it was no union"
    if old.is_union:
        return None if old.members == new.members else f"its members were {' + '.join(old.members)}"
    if old.supertype != new.supertype:
        return f"it extended {old.supertype}" if old.supertype else "it extended no type"
    if old.time_attribute != new.time_attribute:
        return f"its TIME was {old.time_attribute}" if old.time_attribute else "it had no TIME"
    before, after = own_attributes(old, old_types), own_attributes(new, new_types)
    for was, now in zip(before, after, strict=False):
        if was != now:
            return f"attribute '{was}' stood where '{now}' stands"
    return None


def is_older(old: EventType, new: EventType) -> bool:
    """Whether `new` adds nothing to `old`, provided that one may follow the other."""
    return len(new.attributes) <= len(old.attributes)


@dataclass(frozen=True)
class DeclaredNames:
    declared: tuple[str, ...]
    emitted: tuple[str, ...]
    subscriptions: tuple[str, ...]
    placed: tuple[str, ...]
    """The types that its TOPIC statements name."""
    kept: Mapping[str, KeepPolicy]
    """By topic, how much of it is kept, if the text says so."""


@lru_cache(PLANS_KEPT)
def compile_names(text: str) -> DeclaredNames:
    """The names that a text declares, emits and subscribes to, before its types are known. Raises LanguageError."""
    from fairlead.language.parsing.fault import Fault
    from fairlead.language.parsing.text import RuleText

    try:
        rules = parse(text)
        kept = keeps_of(rules)
    except Fault as fault:
        raise RuleText(text, None).error(fault) from None
    emitted = dict.fromkeys(each.emit.type.text for each in rules.subscriptions if each.emit)
    return DeclaredNames(
        tuple(each.name.text for each in rules.declarations),
        tuple(emitted),
        tuple(each.name.text for each in rules.subscriptions),
        tuple(word.text for each in rules.topics for word in each.types),
        kept,
    )


def dependents_of(declared: Mapping[str, Declared], names: Collection[str]) -> dict[str, Declared]:
    """Declared subtypes and unions of these names, transitively: they must follow a text that declares the names itself."""
    found: dict[str, Declared] = {}
    while True:
        above = {*names, *found}
        more = {name: each for name, each in declared.items() if name not in above and not above.isdisjoint(_named(each.text))}
        if not more:
            return found
        found |= more


def _named(text: str) -> list[str]:
    """The supertype of a declaration, or the members of a union."""
    words = text.split()
    if words[0] != "TYPE":
        return [each for each in words[4:] if each != "+"]
    return words[3:4] if words[2] == "EXTENDS" else []


def is_declaration(text: str, name: str) -> bool:
    """Whether the text begins as the declaration of the type of this name does."""
    words = text.split(maxsplit=5)
    if words[:1] != ["TYPE"]:
        return words[:2] == ["EVENT", "UNION"] and words[2:3] == [name] and len(words) > 4
    return words[1:2] == [name] and len(words) > (3 if words[2:3] == ["EXTENDS"] else 2)


def declaration_text(declared: Mapping[str, Declared], left_out: Iterable[str] = ()) -> str:
    """The declarations, one per line, supertypes first and unions last."""
    skipped = {*left_out, HEARTBEAT.name}
    chosen = {name: each.text for name, each in sorted(declared.items()) if name not in skipped}
    done: dict[str, str] = {}
    begun: set[str] = set()

    def add(name: str) -> None:
        begun.add(name)  # types that extend one another are an error of the compiler
        text = chosen[name]
        words = text.split(maxsplit=4)
        if words[0] == "TYPE" and words[2] == "EXTENDS" and words[3] in chosen and words[3] not in begun:
            add(words[3])
        done.setdefault(name, text)

    for name, text in chosen.items():
        if text.startswith("TYPE") and name not in begun:
            add(name)
    unions = [text for text in chosen.values() if not text.startswith("TYPE")]
    return "".join(f"{each}\n" for each in (*done.values(), *unions))


def topic_text(declared: Mapping[str, Declared], placed: Collection[str]) -> str:
    """The topics of all types but those in `placed`, one per line."""
    found: dict[str, list[str]] = {}
    for name, each in sorted(declared.items()):
        if name not in placed and each.topic != MAIN and each.text.startswith("TYPE"):
            found.setdefault(each.topic, []).append(name)
    return "".join(f"TOPIC {topic} ({', '.join(names)})\n" for topic, names in sorted(found.items()))
