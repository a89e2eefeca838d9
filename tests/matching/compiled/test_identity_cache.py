"""What is computed of an object is found again by the object itself, and goes with it."""

from __future__ import annotations

import gc
from collections.abc import Callable

from fairlead.matching.compiled.planning.identity_cache import IdentityCache


class Thing:
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing)

    __hash__ = None  # type: ignore[assignment]


def test_it_is_computed_once_for_each_object_however_equal_they_are() -> None:
    calls: list[str] = []
    cache: IdentityCache[int] = IdentityCache()

    def compute(name: str) -> Callable[[], int]:
        return lambda: calls.append(name) or len(calls)  # type: ignore[func-returns-value]

    one, other = Thing(), Thing()
    asked = (one, "a"), (other, "b"), (one, "c"), (other, "d")
    assert [cache.of(each, compute(name)) for each, name in asked] == [1, 2, 1, 2]
    assert calls == ["a", "b"]


def test_it_is_forgotten_with_the_object() -> None:
    cache: IdentityCache[int] = IdentityCache()
    things = [Thing() for _ in range(3)]
    for at, each in enumerate(things):
        cache.of(each, lambda at=at: at)  # type: ignore[misc]
    assert len(cache) == 3
    del things[1:], each
    gc.collect()
    assert len(cache) == 1
