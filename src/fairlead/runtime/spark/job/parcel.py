"""Data that every task of a job needs, unpickled once per worker process instead of once per task.

Spark pickles the functions of a job with everything they refer to, and a worker unpickles them for every task: for a plan with
its groups that takes milliseconds, in each of several tasks of each micro-batch. A parcel pickles as the bytes of its content
with their digest, and a worker that has opened the same parcel before reuses its content. A parcel is opened on first access: a
worker that only reports the state of a step need not load the matcher.

Takes: any value that pickles. Gives: the value, in any process. Never: changes it; the user of a parcel must not change it,
either.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
OPENED_MAX = 32
"""Contents that a worker keeps: the jobs of a session that run at one time."""


class Parcel(Generic[T]):
    def __init__(self, content: T | None, packed: bytes | None = None) -> None:
        self._content = content
        self._packed = pickle.dumps(content) if packed is None else packed

    @property
    def content(self) -> T:
        if self._content is None:
            self._content = pickle.loads(self._packed)
        return cast(T, self._content)

    def __reduce__(self) -> tuple[Callable[[bytes, bytes], Parcel[Any]], tuple[bytes, bytes]]:
        return _opened, (hashlib.sha256(self._packed).digest(), self._packed)


_OPENED: dict[bytes, Parcel[Any]] = {}


def _opened(digest: bytes, packed: bytes) -> Parcel[Any]:
    found = _OPENED.get(digest)
    if found is None:
        if len(_OPENED) >= OPENED_MAX:
            _OPENED.clear()
        found = _OPENED[digest] = Parcel(None, packed)
    return found
