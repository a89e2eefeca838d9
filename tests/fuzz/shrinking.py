"""A finding made smaller: parts are left out as long as it stays one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def fewer(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """All but a stretch: halves first, single ones last."""
    size = len(items) // 2
    while size:
        for at in range(0, len(items), size):
            yield (*items[:at], *items[at + size :])
        size //= 2


def shrunk(trial: T, smaller: Callable[[T], Iterable[T]], fails: Callable[[T], bool], tries: int = 600) -> T:
    """The smallest that greedy steps come to. After a step the next one is looked for where the last was found: what did not
    work before it will hardly work now, and is tried once more at the end."""
    start = since = 0
    while tries:
        candidates = list(smaller(trial))
        if since >= len(candidates):
            break
        start %= len(candidates)
        tries -= 1
        if fails(candidates[start]):
            trial, since = candidates[start], 0
        else:
            start, since = start + 1, since + 1
    return trial
