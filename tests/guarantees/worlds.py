"""Rule texts and terse events, run by a matcher, as traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from fairlead.engine import Engine
from fairlead.language import compile_text
from fairlead.model.event import Event
from fairlead.model.plan import Plan
from fairlead.model.position import Position
from fairlead.model.relation import Relation
from fairlead.testing.reference import ReferenceMatcher
from fairlead.testing.trace import Trace, trace_of

SECOND = 1_000_000


@lru_cache(maxsize=512)
def compiled(text: str) -> Plan:
    return compile_text(text)


def events_from(plan: Plan, records: Iterable[dict[str, int | str]]) -> list[Event]:
    """Values by attribute; a TIMESTAMP is given in seconds."""
    found = []
    for number, record in enumerate(records):
        schema = plan.catalogue[str(record["type"])]
        row = tuple(
            int(record[each.name]) * SECOND if each.name == schema.time_attribute else record[each.name]
            for each in schema.attributes
        )
        found.append(Event(schema, row, Position(number), None if schema.time_index is None else row[schema.time_index]))
    return found


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
    events = events_from(plan, records)
    return trace_of(plan, events, run(plan, events), publishers or ("source",) * len(events))


def terse(text: str, *names: str) -> list[dict[str, int | str]]:
    """`A:1,2 B:3,4` with names x, at as records."""
    found = []
    for word in text.split():
        kind, _, values = word.partition(":")
        found.append({"type": kind} | dict(zip(names, map(int, values.split(",")), strict=True)))
    return found
