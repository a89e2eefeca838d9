"""TOPIC statements: which types of a catalogue share a stream of a log.

Types without a statement are in the topic `main`; subtypes are in that of their supertype. A subscriber of a supertype or a
union receives events of several types in one order, so these have to be in one topic.

KEEP says how much of a topic a log keeps. It belongs to the log, not to what a subscription asks for.

Takes: the catalogue of a text, and its statements. Gives: the catalogue with the topics; how much of each is kept. Never:
changes anything else of a type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from fairlead.dataclass import dataclass
from fairlead.language.checking.type_declarations import unknown_type
from fairlead.language.checking.typing.literals import DIGITS_MAX, UNITS, duration
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.model.events.types import HEARTBEAT, MAIN, Catalogue, EventType

SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
KEEP_FIX = "write KEEP 30 DAYS, KEEP 200 GB, KEEP 30 DAYS, 200 GB or KEEP ALL"


@dataclass(frozen=True)
class KeepPolicy:
    """How much of a topic is kept: events of so many microseconds, and at most so many bytes; None: of any age, any size."""

    age_us: int | None = None
    bytes: int | None = None

    def __str__(self) -> str:
        age = [] if self.age_us is None else [_words(self.age_us, UNITS)]
        size = [] if self.bytes is None else [_words(self.bytes, SIZES)]
        return ", ".join(age + size) or "ALL"


def keeps_of(rules: syntax.Rules) -> dict[str, KeepPolicy]:
    """By topic, what its KEEP says."""
    found: dict[str, KeepPolicy] = {}
    for each in rules.topics:
        if each.keep is not None:
            kept = _keep(each.keep)
            if found.setdefault(each.name.text, kept) != kept:
                raise Fault("L088", each.keep.span, f"'{each.name.text}' has another KEEP already", "write it once")
    return found


def _keep(node: syntax.Keep) -> KeepPolicy:
    if node.word is not None:
        if node.word.upper != "ALL":
            raise Fault("L088", node.span, f"KEEP '{node.word.text}' is no limit", KEEP_FIX)
        return KeepPolicy()
    sizes = [_size(each) for each in node.limits if each.unit.upper in SIZES]
    ages = [duration(each) for each in node.limits if each.unit.upper not in SIZES]
    if len(sizes) > 1 or len(ages) > 1:
        raise Fault("L088", node.span, "KEEP has two limits of one kind", KEEP_FIX)
    return KeepPolicy(ages[0] if ages else None, sizes[0] if sizes else None)


def _size(node: syntax.Duration) -> int:
    if len(node.amount) > DIGITS_MAX or not 0 < (size := Decimal(node.amount) * SIZES[node.unit.upper]) < 2**63:
        raise Fault("L088", node.span, "the size is out of range", KEEP_FIX)
    return int(size)


def _words(amount: int, units: Mapping[str, int]) -> str:
    """In the largest unit of which it is a whole number."""
    unit, size = max(((unit, size) for unit, size in units.items() if amount % size == 0), key=lambda each: each[1])
    count = amount // size
    return f"{count} {unit}{'S' if units is UNITS and count > 1 else ''}"


def with_topics(catalogue: Catalogue, rules: syntax.Rules) -> Catalogue:
    if not rules.topics:
        return catalogue
    keeps_of(rules)
    named = _named(catalogue, rules)
    found: dict[str, EventType] = {}
    for each in catalogue:
        if not each.is_union:
            found[each.name] = replace(each, topic=_topic(each, named, found))
    for union in (each for each in rules.declarations if isinstance(each, syntax.UnionDeclaration | syntax.TableDeclaration)):
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


def _one_topic(
    union: syntax.UnionDeclaration | syntax.TableDeclaration, each: EventType, known: Mapping[str, EventType]
) -> EventType:
    first = known[each.members[0]]
    for member in each.members:
        if known[member].topic != first.topic:
            problem = f"'{first.name}' is in the topic '{first.topic}', '{member}' in '{known[member].topic}'"
            raise Fault("L082", union.name.span, f"the union is in several topics: {problem}", "name all members in one TOPIC")
    return replace(each, topic=first.topic)
