"""Moments in which an interrupt must wait: an output that is just being opened or is taking its name.

Gives: `undisturbed`, which delivers what came when the block ends, `noted`, which tells the block, and `complete`, after which
a signal comes too late: the exit code must not say that a run was interrupted whose files stand there. Never: loses a signal
in silence.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

HELD = (signal.SIGINT, signal.SIGTERM)
TOO_LATE = b"complete: all files are written; the signal came too late\n"
_complete: list[str] = []


def complete() -> None:
    """All that the command does to files is done, or cannot be stopped any more."""
    _complete.append("complete")


def is_complete() -> bool:
    return bool(_complete)


def comes_too_late() -> bool:
    """Asked by the handlers of the process. The first signal after `complete` does, and this is said; a second one ends what
    is left to do: a summary that nobody reads."""
    if _complete != ["complete"]:
        return False
    _complete.append("said")
    os.write(2, TOO_LATE)
    return True


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and termination wait until the block has ended. Only the main thread has signals to hold back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> Any:
        came.append(number)

    before = {number: signal.signal(number, note) for number in HELD}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(signal.Signals(came[0]))


@contextmanager
def noted() -> Iterator[list[int]]:
    """Ctrl-C and termination only ask: the list has what came, and the block ends in its own time."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> Any:
        came.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {number: signal.signal(number, note) for number in HELD}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
