"""TOPIC statements: which types of a catalogue share a stream of a log.

Types without a statement are in the topic `main`; subtypes are in that of their supertype. A subscriber of a supertype or a
union receives events of several types in one order, so these have to be in one topic.

Takes: the catalogue of a text, and its statements. Gives: the catalogue with the topics. Never: changes anything else of a
type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fairlead.language.checking.type_declarations import unknown_type
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.model.events.types import HEARTBEAT, MAIN, Catalogue, EventType


def with_topics(catalogue: Catalogue, rules: syntax.Rules) -> Catalogue:
    if not rules.topics:
        return catalogue
    named = _named(catalogue, rules)
    found: dict[str, EventType] = {}
    for each in catalogue:
        if not each.is_union:
            found[each.name] = replace(each, topic=_topic(each, named, found))
    for union in (each for each in rules.declarations if isinstance(each, syntax.UnionDeclaration)):
        found[union.name.text] = _one_topic(union, catalogue[union.name.text], found)
    return Catalogue(tuple(found[each.name] for each in catalogue))


Named = Mapping[str, tuple[str, syntax.Word]]
"""By type, its topic and where the text says so."""


def _named(catalogue: Catalogue, rules: syntax.Rules) -> Named:
    found: dict[str, tuple[str, syntax.Word]] = {}
    for topic in rules.topics:
        for word in topic.types:
            known = catalogue.get(word.text)
            if known is None:
                raise unknown_type(word, (each.name for each in catalogue))
            if word.text == HEARTBEAT.name:
                raise Fault("L080", word.span, "Heartbeat belongs to every topic", "leave it out")
            if known.is_union:
                fix = f"name {' and '.join(known.members)}"
                raise Fault("L080", word.span, f"'{word.text}' is a union, which is in the topic of its members", fix)
            before = found.setdefault(word.text, (topic.name.text, word))[0]
            if before != topic.name.text or found[word.text][1] is not word:
                raise Fault("L081", word.span, f"'{word.text}' is in the topic '{before}' already", "name it once")
    return found


def _topic(each: EventType, named: Named, known: Mapping[str, EventType]) -> str:
    above = known[each.supertype].topic if each.supertype else None
    topic, word = named.get(each.name, (above or MAIN, None))
    if word is not None and above is not None and topic != above:
        problem = f"'{each.name}' extends '{each.supertype}', which is in the topic '{above}'"
        raise Fault("L082", word.span, problem, f"name both in one TOPIC, or remove '{each.name}' here")
    return topic


def _one_topic(union: syntax.UnionDeclaration, each: EventType, known: Mapping[str, EventType]) -> EventType:
    first = known[each.members[0]]
    for member in each.members:
        if known[member].topic != first.topic:
            problem = f"'{first.name}' is in the topic '{first.topic}', '{member}' in '{known[member].topic}'"
            raise Fault("L082", union.name.span, f"the union is in several topics: {problem}", "name all members in one TOPIC")
    return replace(each, topic=first.topic)
