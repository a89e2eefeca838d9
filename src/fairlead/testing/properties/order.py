"""The six order properties over a trace.

The time at which a process delivers an event for a conjunction is the time of its *first* delivery: under FIRST PREFIX a
sliding window repeats events, and order is not about the repetitions. Elsewhere there is only one.

Two events are of *one type* for a conjunction if it names a type of both: a supertype or a union makes one type of all its
members, since its subscriber has one queue for them.

Takes: a trace. Gives: the first violation or None. Each pair of streams is compared by one sort and one pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations, groupby, product
from typing import TypeVar

from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.guarantee import Property
from fairlead.testing.properties.safety import Violation
from fairlead.testing.properties.trace import Multicast, Trace, TraceDelivery, TraceStream

K = TypeVar("K", bound=Hashable)


def type_total_order(trace: Trace) -> Violation | None:
    """Two processes that both deliver two events which are of one type for both: if one delivers e before e', the other does
    not deliver e' before e ("not later": the two may be in one relation)."""
    for one, other in combinations(trace.streams, 2):
        for events in _common_by_type(one, other).values():
            found = _inversion({key: one.first_delivery[key] for key in events}, other.first_delivery)
            if found is not None:
                first, second = found
                words = _disagree(one, other, trace.called(_event(one, first)), trace.called(_event(one, second)))
                return Violation(Property.TYPE_TOTAL_ORDER, words, _evidence(one, other, first, second))
    return None


def conjunction_total_order(trace: Trace) -> Violation | None:
    """Two processes whose conjunctions extend the same Φ deliver the parts that belong to Φ in the same order."""
    for one, other in combinations(trace.streams, 2):
        if one.process == other.process:
            continue
        shared = one.conjunction.prefixes.keys() & other.conjunction.prefixes.keys()
        for identity in sorted(shared):
            length = one.conjunction.prefixes[identity]
            ours, theirs = _by_members(one, length), _by_members(other, length)
            found = _inversion({key: ours[key] for key in ours if key in theirs}, theirs)
            if found is not None:
                first, second = (trace.set_of(ours[key], length) for key in found)
                evidence = tuple(side[key] for side in (ours, theirs) for key in found)
                return Violation(Property.CONJUNCTION_TOTAL_ORDER, _disagree(one, other, first, second), evidence)
    return None


def disjunction_total_order(trace: Trace) -> Violation | None:
    """Two processes that both have Φ and Φ' deliver the relations that both deliver for them in the same order."""
    by_process: dict[str, list[TraceStream]] = {}
    for stream in trace.streams:
        by_process.setdefault(stream.process, []).append(stream)
    for one, other in combinations(by_process.values(), 2):
        ours, theirs = _by_conjunction(one), _by_conjunction(other)
        found = _inversion({key: ours[key] for key in ours if key in theirs}, theirs)
        if found is not None:
            first, second = (trace.set_of(ours[key]) for key in found)
            evidence = tuple(side[key] for side in (ours, theirs) for key in found)
            return Violation(Property.DISJUNCTION_TOTAL_ORDER, _disagree(one[0], other[0], first, second), evidence)
    return None


def type_fifo_order(trace: Trace) -> Violation | None:
    """Of two events of one type from one publisher, no process delivers the second (for one conjunction) before the first."""
    in_time = sorted(trace.multicasts, key=lambda each: each.time)
    for stream in trace.streams:
        sent: dict[tuple[str, str], list[Multicast]] = {}
        for each in in_time:
            if each.event.position in stream.first_delivery:
                for name in stream.conjunction.names_of.get(each.event.type, ()):
                    sent.setdefault((each.process, name), []).append(each)
        for (publisher, _), delivered in sent.items():
            found = _falling(stream, delivered)
            if found is not None:
                early, late = found
                first, second = trace.called(early.event), trace.called(late.event)
                words = f"{publisher} multicasts {first} before {second} but {stream.process} delivers {second} first"
                return Violation(Property.TYPE_FIFO_ORDER, words, _two(stream, late, early))
    return None


def _falling(stream: TraceStream, multicasts: Sequence[Multicast]) -> tuple[Multicast, Multicast] | None:
    """An earlier and a later multicast such that the later one is delivered first."""
    latest: Multicast | None = None
    for each in multicasts:
        if latest is None or _time(stream, each) >= _time(stream, latest):
            latest = each
        else:
            return latest, each
    return None


def type_local_order(trace: Trace) -> Violation | None:
    """If a process delivers e and then multicasts e' of the same type, no process delivers e' (for one conjunction) before
    e."""
    for process in sorted({each.process for each in trace.multicasts}):
        sent = sorted((each for each in trace.multicasts if each.process == process), key=lambda each: each.time)
        received = sorted((each for each in trace.deliveries if each.process == process), key=lambda each: each.time)
        if not received:
            continue
        for stream in trace.streams:
            found = _outrun(trace, stream, sent, received)
            if found is not None:
                cause, effect = found
                first, second = trace.called(cause.event), trace.called(effect.event)
                then = f"{process} delivers {first} and then multicasts {second}"
                words = f"{then}, but {stream.process} delivers {second} first"
                return Violation(Property.TYPE_LOCAL_ORDER, words, _two(stream, effect, cause))
    return None


def _outrun(
    trace: Trace, stream: TraceStream, sent: Sequence[Multicast], received: Sequence[TraceDelivery]
) -> tuple[Multicast, Multicast] | None:
    """A cause that the sender had delivered, and its later multicast of the same type that `stream` delivers first. One pass:
    of all causes so far only the one of each type that the stream delivers last can be outrun first."""
    names_of = stream.conjunction.names_of
    latest: dict[str, Multicast] = {}
    at = 0
    for effect in sent:
        while at < len(received) and received[at].time < effect.time:
            for event in received[at].events:
                cause = trace.multicast_of.get(event.position)
                if cause is not None and event.position in stream.first_delivery:
                    for name in names_of.get(event.type, ()):
                        known = latest.get(name)
                        if known is None or _time(stream, cause) > _time(stream, known):
                            latest[name] = cause
            at += 1
        if effect.event.position in stream.first_delivery:
            for name in names_of.get(effect.event.type, ()):
                known = latest.get(name)
                if known is not None and _time(stream, effect) < _time(stream, known):
                    return known, effect
    return None


def type_causal_order(trace: Trace) -> Violation | None:
    """FIFO order and local order together."""
    found = type_fifo_order(trace) or type_local_order(trace)
    return found and Violation(Property.TYPE_CAUSAL_ORDER, found.words, found.deliveries)


def _inversion(one: Mapping[K, TraceDelivery], other: Mapping[K, TraceDelivery]) -> tuple[K, K] | None:
    """Two keys that `one` has in one order and `other` in the opposite one, both strictly. `one`'s keys are all in `other`."""
    latest: K | None = None
    ordered = sorted(one, key=lambda key: one[key].time)
    for _, group in groupby(ordered, key=lambda key: one[key].time):
        keys = list(group)
        for key in keys:
            if latest is not None and other[key].time < other[latest].time:
                return latest, key
        top = max(keys, key=lambda key: other[key].time)
        if latest is None or other[top].time > other[latest].time:
            latest = top
    return None


def _common_by_type(one: TraceStream, other: TraceStream) -> dict[tuple[str, str], list[Position]]:
    """The events that both deliver, by the types that the one and the other name for them."""
    found: dict[tuple[str, str], list[Position]] = {}
    ours, theirs = one.conjunction.names_of, other.conjunction.names_of
    for position, delivery in one.first_delivery.items():
        if position in other.first_delivery:
            event = next(each for each in delivery.events if each.position == position)
            for pair in product(ours.get(event.type, ()), theirs.get(event.type, ())):
                found.setdefault(pair, []).append(position)
    return found


def _by_members(stream: TraceStream, length: int) -> dict[Hashable, TraceDelivery]:
    return {each.part(length): each for each in reversed(stream.deliveries)}


def _by_conjunction(streams: Iterable[TraceStream]) -> dict[Hashable, TraceDelivery]:
    return {(each.conjunction, each.members, each.runs): each for stream in streams for each in reversed(stream.deliveries)}


def _event(stream: TraceStream, position: Position) -> Event:
    return next(each for each in stream.first_delivery[position].events if each.position == position)


def _time(stream: TraceStream, multicast: Multicast) -> int:
    return stream.first_delivery[multicast.event.position].time


def _two(stream: TraceStream, one: Multicast, other: Multicast) -> tuple[TraceDelivery, TraceDelivery]:
    return stream.first_delivery[one.event.position], stream.first_delivery[other.event.position]


def _disagree(one: TraceStream, other: TraceStream, first: str, second: str) -> str:
    return f"{one.process} delivers {first} before {second}, {other.process} delivers {second} before {first}"


def _evidence(one: TraceStream, other: TraceStream, first: Position, second: Position) -> tuple[TraceDelivery, ...]:
    return tuple(side.first_delivery[key] for side in (one, other) for key in (first, second))
