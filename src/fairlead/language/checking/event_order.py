"""The ORDER BY statement: keys that every event of the rules has, and a delay of event time.

Takes: the statement, the catalogue of the text, and the types that its subscriptions read. Gives: the order. Never: orders
anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.language.checking.literals import duration
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.model.event_order import TIME, EventOrder, OrderKey
from fairlead.model.types import HEARTBEAT, Catalogue, EventType, Kind


def event_order(rules: syntax.Rules, catalogue: Catalogue, read: Iterable[str]) -> EventOrder | None:
    """The order of the events, if the text states one. `read`: the concrete types that its subscriptions read."""
    if not rules.orders:
        return None
    asked, *more = rules.orders
    if more:
        raise Fault("L083", more[0].span, "the order is stated twice", "state it once, for all subscriptions of the text")
    types = [catalogue[name] for name in sorted(read) if name != HEARTBEAT.name and not catalogue[name].derived]
    for at, key in enumerate(asked.keys):
        _check(key, types, {each.attribute.text for each in asked.keys[:at]})
    keys = tuple(OrderKey(each.attribute.text, each.descending) for each in asked.keys)
    if asked.delay is None:
        return EventOrder(keys)
    for schema in types:
        if keys[0].descending or _kind(keys[0], schema) is not Kind.TIMESTAMP:
            problem = "events are delayed by the first order key, which must be an ascending TIMESTAMP"
            raise Fault("L085", asked.keys[0].attribute.span, problem, "order by the event time first: ORDER BY at DELAY …")
    idle = asked.delay.idle
    return EventOrder(keys, duration(asked.delay.allowed), None if idle is None else duration(idle))


def _check(key: syntax.OrderKey, types: list[EventType], before: set[str]) -> None:
    word, wanted = key.attribute, OrderKey(key.attribute.text)
    if word.text in before:
        raise Fault("L084", word.span, f"'{word.text}' is an order key already", "name it once")
    for schema in types:
        if wanted.column(schema) is None:
            problem = f"'{schema.name}' has no attribute '{word.text}' to order by"
            fix = did_you_mean(word.text, schema.index) or _without(schema, word.text)
            raise Fault("L084", word.span, problem, fix)
        if _kind(wanted, schema) is not _kind(wanted, types[0]):
            told = [f"{each.name} has {_kind(wanted, each).value}" for each in (types[0], schema)]
            raise Fault(
                "L084", word.span, f"'{word.text}' is not of one data type: {listed(told)}", "declare it alike in all types"
            )


def _without(schema: EventType, name: str) -> str:
    if name.upper() == TIME:
        return f"declare an event time: TYPE {schema.name} (…) TIME attribute"
    return "order by attributes that all types have, or by TIME, the event time of each"


def _kind(key: OrderKey, schema: EventType) -> Kind:
    at = key.column(schema)
    assert at is not None
    return schema.attributes[at].type.kind
