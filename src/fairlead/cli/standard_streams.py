"""The standard streams of the process: there, whatever the shell has closed, and an output that says that it is the one which
failed.

    > /dev/full    what is printed does not fit          >&-    the standard output is closed

Python has None for a stream that is closed, and the next file that is opened takes its number: relations would mix with what
is printed. So a closed stream becomes one that fails when it is used.

Gives: `prepare`, `silence`, `OutputFailed`. Never: prints.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any

CLOSED = {0: os.O_WRONLY, 1: os.O_RDONLY, 2: os.O_WRONLY}
"""How a closed stream is opened on the null device: so that reading and printing fail, and messages go nowhere."""


class OutputFailed(OSError):
    """The standard output cannot be written. A reader that went away is a BrokenPipeError as ever."""


class StandardOutput(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from None


def prepare() -> None:
    """Opens what is closed, and makes the standard output one that fails with OutputFailed."""
    for number, flags in CLOSED.items():
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free: this one
    sys.stdin = sys.stdin if sys.stdin is not None else open(0, closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr if sys.stderr is not None else open(2, "w", closefd=False)  # noqa: SIM115
    before: Any = sys.stdout
    raw = StandardOutput(1, "wb", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None),
        errors=getattr(before, "errors", None),
        line_buffering=getattr(before, "line_buffering", False),
        write_through=getattr(before, "write_through", False),
    )


def silence() -> None:
    """What is still held for the standard output is thrown away: the end of the process flushes it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
