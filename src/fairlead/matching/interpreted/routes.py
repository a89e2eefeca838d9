"""Where an event arrives in a branch: under which key, in which queues, and which clauses note it.

Takes: a branch, then events. Gives: keys with routes. Never: evaluates a condition.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.dataclass import dataclass
from fairlead.matching.interpreted.instance import Key
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.plan import Branch


@dataclass(frozen=True)
class Route:
    """The route of an event of one concrete type in a branch: the attributes of its key, its queues, and who notes it."""

    key: tuple[int, ...]
    queues: tuple[int, ...]
    noting: tuple[int, ...]

    def with_queues_of(self, other: Route) -> Route:
        queues, noting = sorted({*self.queues, *other.queues}), sorted({*self.noting, *other.noting})
        return Route(self.key, tuple(queues), tuple(noting))


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
    routes: dict[str, dict[tuple[int, ...], tuple[list[int], list[int]]]] = {}
    targets = [(name, at, 0) for at, name in enumerate(branch.queue_types)]
    targets += [(each.type, at, 1) for at, each in enumerate(branch.noting)]
    for name, at, side in targets:
        for concrete in catalogue.accepts(name):
            key = tuple(catalogue[concrete].index[attribute] for attribute in keys.get(name, ()))
            routes.setdefault(concrete, {}).setdefault(key, ([], []))[side].append(at)
    return {
        concrete: tuple(Route(key, tuple(queues), tuple(noting)) for key, (queues, noting) in found.items())
        for concrete, found in routes.items()
    }
