"""A background thread that runs calls in order, so that writing and matching overlap.

Takes: calls. Gives: their errors, at the next call or when it ends. Never: has more than one call waiting, or runs anything
after a call has failed.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
from threading import Thread

Call = Callable[[], None]


class WriteBehind:
    """The thread starts with the first call. `end` waits for all of them; afterwards the caller owns everything that they
    used."""

    def __init__(self) -> None:
        self._calls: Queue[Call | None] = Queue(maxsize=1)
        self._thread: Thread | None = None
        self._error: BaseException | None = None

    def do(self, call: Call) -> None:
        self._raise()
        if self._thread is None:
            self._thread = Thread(target=self._work, name="fairlead-behind", daemon=True)
            self._thread.start()
        self._calls.put(call)

    def end(self) -> None:
        """Raises the error of a call that failed, once."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
            self._thread = None
        self._raise()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _work(self) -> None:
        failed = False
        while (call := self._calls.get()) is not None:
            if not failed:
                try:
                    call()
                except BaseException as error:  # raised again in the caller
                    self._error, failed = error, True
