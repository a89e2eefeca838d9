"""What a caller may do, by the policy: publish types and sources, read types, own names, declare.

Takes: a caller and what it asks for. Gives: nothing, or an error. Never: stores or reads anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairlead.errors import UsageError
from fairlead.model.events.types import HEARTBEAT, Catalogue, EventType
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.runtime.rights.policy import PolicyUser


def check_records(caller: PolicyUser, catalogue: Catalogue, records: Iterable[tuple[str, Any]]) -> None:
    """Types that are not known, and records that are none, are reported by the check of their values."""
    if caller.manage:
        return
    seen: set[tuple[Any, Any]] = set()
    for place, record in records:
        asked = (record.get("type"), record.get("_source")) if isinstance(record, dict) else (None, None)
        if not all(each is None or isinstance(each, str) for each in asked) or asked in seen:
            continue
        seen.add(asked)
        name, source = asked
        known = catalogue.get(name) if isinstance(name, str) else None
        if known is not None:
            check_type(caller, known, place)
        if source is not None and not caller.owns_source(source):
            raise not_granted(caller, f"publish as source '{source}'", f"sources: [{source}]", place)


def check_type(caller: PolicyUser, type: EventType, place: str | None = None) -> None:
    if not caller.may_publish(type.topic, type.name):
        raise not_granted(caller, f"publish '{type.name}'", f"publish: [{type.topic}.{type.name}]", place)


def check_name(caller: PolicyUser, name: str) -> None:
    if not caller.owns_name(name):
        raise not_granted(caller, f"use the subscriber '{name}'", f"names: [{name}]")


def check_plan(caller: PolicyUser, plan: Plan, declared: Sequence[str], known: Catalogue) -> None:
    """`declared`: the types that the rules declare themselves. `known`: those that are declared already."""
    if caller.manage:
        return
    for name in declared:
        check_declare(caller, f"declare '{name}'")
    check_declarations(caller, known, [plan.catalogue[name] for name in declared])
    for group in groups_of(plan):
        for each in group.types:
            topic = plan.catalogue[each].topic
            if each != HEARTBEAT.name and not caller.may_read(topic, each):
                raise not_granted(caller, f"read '{each}'", f"subscribe: [{topic}.{each}]")
    for subscription in plan.subscriptions:
        emitted = subscription.emits
        if emitted is not None and not caller.may_emit(plan.catalogue[emitted].topic, emitted):
            raise not_granted(caller, f"emit '{emitted}'", f"emit: [{plan.catalogue[emitted].topic}.{emitted}]")


def check_declare(caller: PolicyUser, what: str = "declare types") -> None:
    if not (caller.declare or caller.manage):
        raise not_granted(caller, what, "declare: true")


def check_declarations(caller: PolicyUser, known: Catalogue, types: Iterable[EventType], kept: Iterable[str] = ()) -> None:
    """A new subtype changes what subscribers of its supertype read, and which rights they need for it. How long a topic is kept
    decides what others lose."""
    if caller.manage:
        return
    for topic in kept:
        raise not_granted(caller, f"say how much of the topic '{topic}' is kept", "manage: true")
    for each in types:
        was = known.get(each.name)
        if each.supertype in known and (was is None or was.supertype != each.supertype):
            what = f"declare '{each.name}' as a subtype of '{each.supertype}', which others read"
            raise not_granted(caller, what, "manage: true")


def check_operator(caller: PolicyUser) -> None:
    if not (caller.gateway or caller.manage):
        raise not_granted(caller, "read the metrics", "gateway: true")


def not_granted(caller: PolicyUser, what: str, line: str, place: str | None = None) -> UsageError:
    return UsageError("A284", f"the token of '{caller.name}' does not allow it to {what}", f"add to the policy: {line}", place)
