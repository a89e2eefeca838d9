"""Which changes of a type's declaration are allowed.

A new declaration may add attributes at the end; they are null in older events. Repeating an older declaration changes nothing.
Any other difference would change the meaning of stored events, and is rejected.

Takes: two declarations of a type. Gives: its text, whether one may follow the other, and if not, why. Never: does I/O.
"""

from __future__ import annotations

from fairlead.model.types import MAIN, Attribute, Catalogue, EventType


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


def declarations(catalogue: Catalogue) -> str:
    """The text of all declared types, with their topics, one per line."""
    declared = [each for each in catalogue if not each.derived]
    topics = [f"TOPIC {each.topic} ({each.name})" for each in declared if each.topic != MAIN and not each.is_union]
    return "\n".join([*(declaration(each, catalogue) for each in declared), *topics])


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
