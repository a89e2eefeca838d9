"""Work that several threads take turns at.

A thread that waits for its turn can be stopped: it asks from time to time whether it still wants to wait.

Takes: a function that raises to stop waiting. Gives: turns. Never: lets two threads work at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

ASKING_SECONDS = 0.05
"""How long a thread that is stopped still waits."""


class Turns:
    def __init__(self) -> None:
        self._lock = Lock()

    @contextmanager
    def __call__(self, check: Callable[[], None] | None = None) -> Iterator[None]:
        """A turn; `check` is called while others have theirs."""
        while not self._lock.acquire(timeout=ASKING_SECONDS):
            if check is not None:
                check()
        try:
            yield
        finally:
            self._lock.release()
