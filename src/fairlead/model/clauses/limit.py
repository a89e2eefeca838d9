"""LIMIT: at most so many relations are delivered.

It is a filter on deliveries, after matching and disposal: it belongs to a subscription, not to a branch.
"""

from __future__ import annotations

from enum import Enum

from fairlead.dataclass import dataclass


class LimitScope(Enum):
    """Of what the relations are counted, in the language's words."""

    SUBSCRIPTION = ""
    KEY = " PER KEY"


@dataclass(frozen=True)
class Limit:
    """`LIMIT count [PER KEY]`"""

    count: int
    scope: LimitScope = LimitScope.SUBSCRIPTION

    @property
    def per_key(self) -> bool:
        """It counts the relations of each key apart."""
        return self.scope is LimitScope.KEY

    def __str__(self) -> str:
        return f"LIMIT {self.count}{self.scope.value}"
