"""A reader's filter on a stream: of some types, only the blocks of a route (route_marks.py).

Takes: the types of a stream, and by type the route. Gives: whether a block passes. Never: rejects a block because its publisher
did not know the route (u).
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.dataclass import dataclass
from fairlead.transport.log.block import Block


@dataclass(frozen=True)
class Only:
    """`types`: all types of the stream. `routes`: by type, the number of the route; types without one are read completely."""

    types: tuple[str, ...]
    routes: Mapping[str, int]

    def wants(self, block: Block) -> bool:
        route = self.routes.get(block.type)
        return block.type in self.types and (route is None or block.letters[route] != "n")
