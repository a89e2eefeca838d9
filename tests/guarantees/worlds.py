"""Rule texts and terse events, run by a matcher, as traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.model.events.event import Event
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.testing.counterexamples.clause_worlds import events_of_records
from fairlead.testing.properties.trace import Trace, trace_of
from fairlead.testing.reference import ReferenceMatcher


@lru_cache(maxsize=512)
def compiled(text: str) -> Plan:
    return compile_text(text)


def by_reference(plan: Plan, events: Iterable[Event]) -> list[Relation]:
    return ReferenceMatcher(plan).run(list(events))


def by_engine(plan: Plan, events: Iterable[Event]) -> list[Relation]:
    engine = Engine(plan)
    delivered = [relation for each in events for relation in engine.arrive(each)]
    return delivered + engine.finish(None)


Runner = Callable[[Plan, Iterable[Event]], list[Relation]]


def trace_from(
    text: str, records: Iterable[dict[str, int | str]], publishers: tuple[str, ...] = (), run: Runner = by_reference
) -> Trace:
    plan = compiled(text)
    events = events_of_records(plan, records)
    return trace_of(plan, events, run(plan, events), publishers or ("source",) * len(events))


def terse(text: str, *names: str) -> list[dict[str, int | str]]:
    """`A:1,2 B:3,4` with names x, at as records."""
    found = []
    for word in text.split():
        kind, _, values = word.partition(":")
        found.append({"type": kind} | dict(zip(names, map(int, values.split(",")), strict=True)))
    return found
