"""The ORDER BY statement: keys that every event of the rules has, a delay of event time, and what becomes of events that are
late or ahead.

Takes: the statement, the catalogue of the text, and the types that its subscriptions read. Gives: the order. Never: orders
anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.language.checking.type_declarations import check_single
from fairlead.language.checking.typing.literals import duration
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.model.events.types import HEARTBEAT, Catalogue, EventType, Kind
from fairlead.model.plans.event_order import TIME, EventOrder, OrderKey


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
    revised = None if asked.late is None else asked.late.revised
    for said, clause in ((asked.delay, "DELAY"), (asked.ahead, "AHEAD"), (revised, "LATE REVISE")):
        if said is not None:
            _require_time(asked.keys[0], keys[0], types, clause)
    if asked.late is not None and revised is not None and asked.delay is None:
        problem = "LATE REVISE needs DELAY, which says when an event is late"
        raise Fault("L086", asked.late.span, problem, "write DELAY before it; DELAY 0 SECONDS releases events at once")
    if revised is not None:
        _refuse_positions(rules)
    return EventOrder(
        keys,
        None if asked.delay is None else duration(asked.delay.allowed, zero=True),
        None if asked.delay is None or asked.delay.idle is None else duration(asked.delay.idle),
        None if asked.ahead is None else duration(asked.ahead.allowed, zero=True),
        None if revised is None else duration(revised),
    )


def _refuse_positions(rules: syntax.Rules) -> None:
    """A late event moves all after it: what was emitted from a position would no longer be so, under the same id."""
    open_nodes: list[object] = [*reversed(rules.subscriptions)]
    while open_nodes:  # texts may be nested deeper than Python calls
        node = open_nodes.pop()
        if isinstance(node, syntax.Call) and node.function.lower == "position":
            problem = "late events that revise change positions, so position() is not supported with LATE REVISE"
            raise Fault("L087", node.span, problem, "compare times instead, or write LATE TAG")
        if isinstance(node, tuple):
            open_nodes += reversed(node)
        else:
            open_nodes += [getattr(node, name) for name in reversed(list(getattr(node, "__dataclass_fields__", ())))]


def _require_time(written: syntax.OrderKey, first: OrderKey, types: list[EventType], clause: str) -> None:
    """What a clause says of event time is about the first order key."""
    for schema in types:
        if first.descending or _kind(first, schema) is not Kind.TIMESTAMP:
            problem = f"{clause} is about the first order key, which must be an ascending TIMESTAMP"
            raise Fault("L085", written.attribute.span, problem, f"order by the event time first: ORDER BY at … {clause} …")


def _check(key: syntax.OrderKey, types: list[EventType], before: set[str]) -> None:
    word, wanted = key.attribute, OrderKey(key.attribute.text)
    if word.text in before:
        raise Fault("L084", word.span, f"'{word.text}' is an order key already", "name it once")
    for schema in types:
        if wanted.column(schema) is None:
            problem = f"'{schema.name}' has no attribute '{word.text}' to order by"
            fix = did_you_mean(word.text, schema.index) or _without(schema, word.text)
            raise Fault("L084", word.span, problem, fix)
        if word.text in schema.index:
            check_single(schema.type_of(word.text), word.span, f"'{word.text}'")
        if _kind(wanted, schema) is not _kind(wanted, types[0]):
            told = [f"{each.name} has {_kind(wanted, each).value}" for each in (types[0], schema)]
            raise Fault(
                "L084", word.span, f"'{word.text}' is not of one data type: {listed(told)}", "declare it alike in all types"
            )


def _without(schema: EventType, name: str) -> str:
    if name.isascii() and name.upper() == TIME:
        return f"declare an event time: TYPE {schema.name} (…) TIME attribute"
    return "order by attributes that all types have, or by TIME, the event time of each"


def _kind(key: OrderKey, schema: EventType) -> Kind:
    at = key.column(schema)
    assert at is not None
    return schema.attributes[at].type.kind
