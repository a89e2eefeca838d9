"""Where an event arrives in a branch: under which key, in which queues, and which clauses note it.

Takes: a branch, then events. Gives: keys with routes. Never: evaluates a condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.matching.interpreted.instance import Key
from fairlead.model.events.event import Event
from fairlead.model.events.nested_values import inner
from fairlead.model.events.types import Catalogue, EventType
from fairlead.model.plans.key_parts import KeyPart, is_bucket, key_place, part_of
from fairlead.model.plans.plan import Branch


@dataclass(frozen=True)
class Route:
    """The route of an event of one concrete type in a branch: the attributes of its key, its queues, and who notes it."""

    key: tuple[int, ...]
    queues: tuple[int, ...]
    noting: tuple[int, ...]
    buckets: tuple[KeyPart, ...] = ()
    """What becomes of each attribute, where the key has buckets."""
    fields: tuple[tuple[int, ...], ...] = ()
    """Where the values are inside the attributes, where the key has paths."""

    def with_queues_of(self, other: Route) -> Route:
        queues, noting = sorted({*self.queues, *other.queues}), sorted({*self.noting, *other.noting})
        return replace(self, queues=tuple(queues), noting=tuple(noting))


class Routes:
    """Those of a branch."""

    def __init__(self, branch: Branch, catalogue: Catalogue) -> None:
        self.by_type = _routes(branch, catalogue)

    def arrivals(self, event: Event) -> Sequence[tuple[Key, Route]]:
        """The keys under which the event arrives, each with its route. If types name different key attributes and the event has
        the same value in them, it arrives once: it is in all its queues before anything is searched."""
        routes = self.by_type.get(event.type, ())
        found = []
        for route in routes:
            key = tuple([event.row[at] for at in route.key])
            if route.fields:
                key = tuple([inner(value, fields) for value, fields in zip(key, route.fields, strict=True)])
            if route.buckets:
                key = tuple([part.of(value) for part, value in zip(route.buckets, key, strict=True)])
            if not any(value is None or value != value for value in key):
                found.append((key, route))
        if len(found) < 2:
            return found
        together: dict[Key, Route] = {}
        for key, route in found:
            together[key] = together[key].with_queues_of(route) if key in together else route
        return list(together.items())


def _routes(branch: Branch, catalogue: Catalogue) -> dict[str, tuple[Route, ...]]:
    """By concrete type. There is one route unless overlapping types of the branch name different key attributes."""
    keys = dict(branch.keys)
    routes: dict[str, dict[tuple[str, ...], tuple[list[int], list[int]]]] = {}
    targets = [(name, at, 0) for at, name in enumerate(branch.queue_types)]
    targets += [(each.type, at, 1) for at, each in enumerate(branch.noting)]
    for name, at, side in targets:
        for concrete in catalogue.accepts(name):
            routes.setdefault(concrete, {}).setdefault(keys.get(name, ()), ([], []))[side].append(at)
    return {
        concrete: tuple(_route(catalogue[concrete], key, *found) for key, found in by_key.items())
        for concrete, by_key in routes.items()
    }


def _route(schema: EventType, key: tuple[str, ...], queues: list[int], noting: list[int]) -> Route:
    parts = tuple(map(part_of, key)) if any(map(is_bucket, key)) else ()
    places = [key_place(schema, name) for name in key]
    fields = tuple(tuple(inside) for _, *inside in places) if any(len(each) > 1 for each in places) else ()
    return Route(tuple(at for at, *_ in places), tuple(queues), tuple(noting), parts, fields)
