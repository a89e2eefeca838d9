"""What is computed of an object once, for as long as somebody has the object.

Many engines of one process run the same plan, and a plan can have ten thousand subscriptions. Comparing or hashing these costs
about as much as computing something of them anew, so objects are found by their identity.

Takes: an object that never changes. Gives: what was computed of it, which must not refer to it. Never: keeps it alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class IdentityCache(Generic[Result]):
    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], Result]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, thing: Any, compute: Callable[[], Result]) -> Result:
        """Two threads may both compute it: then one of the results is used later."""
        key = id(thing)
        found = self._known.get(key)
        if found is None or found[0]() is not thing:
            found = self._known[key] = weakref.ref(thing, lambda _: self._known.pop(key, None)), compute()
        return found[1]
