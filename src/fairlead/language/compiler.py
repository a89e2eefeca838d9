"""The whole front end on one page: text in, Plan out.

Takes: the text of a rule set, in a dialect (dialects.py). Gives: a Plan with types, subscriptions in the order of the text,
their digests and the lint warnings; `guarantees` stays empty (fairlead.guarantees fills it). Raises LanguageError, and nothing
else, on bad text.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.language.checking.event_order import event_order
from fairlead.language.checking.hierarchy import Emitters, emitters, order
from fairlead.language.checking.subscription import Checked, checked
from fairlead.language.checking.topics import with_topics
from fairlead.language.checking.type_declarations import catalogue_of, with_type
from fairlead.language.dialects import DIALECTS, FAIRLEAD, FrontEnd
from fairlead.language.lint.pipeline import lint
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.language.parsing.text import RuleText
from fairlead.model.events.types import Catalogue, EventType
from fairlead.model.plans.buckets import in_order
from fairlead.model.plans.canonical import Identity, identified, identity_of, in_canonical_order
from fairlead.model.plans.plan import Plan, Subscription


def compile_text(text: str, file: str | None = None, dialect: str = FAIRLEAD) -> Plan:
    source = RuleText(text, file)
    try:
        return _compile(source, DIALECTS[dialect])
    except Fault as fault:
        raise source.error(fault) from None


def _compile(source: RuleText, parse: FrontEnd) -> Plan:
    """1. parse, by the dialect · 2. declared types · 3. emitters before readers · 4. each subscription, its derived type then
    known to those after it · 5. branches in canonical order, digests, upstream ones first · 6. lint."""
    rules = parse(source.text)  # 1
    _refuse_repeats(rules)
    emitting = emitters(rules.subscriptions)
    declared = catalogue_of(rules.declarations, emitting)  # 2
    sequence = order(rules.subscriptions, declared, emitting)  # 3
    catalogue, found = _check_all(rules, sequence, declared, source)  # 4
    catalogue = with_topics(_in_order(catalogue, declared, emitting), rules)
    read = {name for each in found.values() for name in each.subscription.reads(catalogue)}
    stated = event_order(rules, catalogue, read)
    if stated is not None:
        found = {at: replace(each, subscription=replace(each.subscription, order=stated)) for at, each in found.items()}
    subscriptions = _with_digests(sequence, found, catalogue, emitting)  # 5
    ordered = [found[at] for at in range(len(subscriptions))]
    warnings = lint(ordered, catalogue, rules, source)  # 6
    return Plan(catalogue, subscriptions, warnings, text=source.text, file=source.file)


def _refuse_repeats(rules: syntax.Rules) -> None:
    seen: set[str] = set()
    for each in rules.subscriptions:
        if each.name.text in seen:
            raise Fault("L013", each.name.span, f"subscription '{each.name.text}' is defined twice", "give it another name")
        seen.add(each.name.text)


def _check_all(
    rules: syntax.Rules, sequence: list[int], declared: Catalogue, source: RuleText
) -> tuple[Catalogue, dict[int, Checked]]:
    catalogue, found = declared, dict[int, Checked]()
    names, emitted = frozenset(each.name for each in declared), set[str]()
    for at in sequence:
        found[at] = checked(rules.subscriptions[at], catalogue, names, source)
        made = found[at].emitted
        if made:
            catalogue = with_type(catalogue, _settled(made, catalogue, again=made.name in emitted))
            emitted.add(made.name)
    return catalogue, found


def _settled(made: EventType, catalogue: Catalogue, again: bool) -> EventType:
    """A type has its members' time only if every emitter's members have one and no untimed subtype shares its queue."""
    if made.name not in catalogue:
        return made  # only a declared type has subtypes
    untimed = any(each.supertype == made.name and not each.timed for each in catalogue)
    before = catalogue[made.name].implicit_time if again else True
    return replace(made, implicit_time=made.implicit_time and before and not untimed)


def _in_order(catalogue: Catalogue, declared: Catalogue, emitting: Emitters) -> Catalogue:
    """Declared types first, then the derived ones in the order in which the text emits them."""
    names = dict.fromkeys((*(each.name for each in declared), *emitting))
    return Catalogue(tuple(catalogue[name] for name in names))


def _with_digests(
    sequence: list[int], found: dict[int, Checked], catalogue: Catalogue, emitting: Emitters
) -> tuple[Subscription, ...]:
    done: dict[int, tuple[Subscription, Identity]] = {}
    for at in sequence:
        asked = found[at].subscription
        plain = in_canonical_order(asked if asked.order is None else in_order(asked, asked.order, catalogue), catalogue)
        read = plain.reads(catalogue) & emitting.keys()
        identity = identity_of(plain, catalogue, {name: [done[each][1] for each in emitting[name]] for name in read})
        done[at] = identified(plain, identity), identity
    return tuple(done[at][0] for at in range(len(done)))
