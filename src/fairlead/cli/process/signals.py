"""Moments in which an interrupt must wait: while an output is opened or renamed.

Gives: `undisturbed`, which delivers signals when the block ends; `noted`, which passes them to the block; and `complete`, after
which a signal has no effect: the exit code must not say that a run was interrupted whose files are complete. Never: loses a
signal silently.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))
"""A closed terminal ends a command as termination does, and leaves no incomplete file either."""
HELD = (signal.SIGINT, *ENDING)
TOO_LATE = b"complete: all files are written; the signal came too late\n"
_complete: list[str] = []


def complete() -> None:
    """All file operations of the command are done, or cannot be stopped any more."""
    _complete.append("complete")


def is_complete() -> bool:
    return bool(_complete)


def comes_too_late() -> bool:
    """Called by the signal handlers of the process. The first signal after `complete` is too late, and the user is informed; a
    second one ends the remaining work, such as the summary."""
    if _complete != ["complete"]:
        return False
    _complete.append("said")
    os.write(2, TOO_LATE)
    return True


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and termination wait until the block has ended. Only the main thread can hold back signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> Any:
        came.append(number)

    before = {number: signal.signal(number, note) for number in HELD if signal.getsignal(number) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(signal.Signals(came[0]))


@contextmanager
def noted() -> Iterator[list[int]]:
    """Ctrl-C and termination only request the end: the list contains the signals, and the block ends when it is ready."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> Any:
        came.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {number: signal.signal(number, note) for number in HELD if signal.getsignal(number) is not signal.SIG_IGN}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
