"""The standard streams of the process: always open, even if the shell has closed them, and an output whose errors can be
recognized.

    > /dev/full    the output does not fit               >&-    the standard output is closed

In Python a closed stream is None, and the next file that is opened takes its number: relations would mix with printed text. So
a closed stream becomes one that fails when it is used.

Gives: `prepare`, `silence`, `OutputFailed`. Never: prints.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any

CLOSED = {0: os.O_WRONLY, 1: os.O_RDONLY, 2: os.O_WRONLY}
"""How a closed stream is opened on the null device: so that reading and printing fail, and messages are discarded."""


class OutputFailed(OSError):
    """The standard output cannot be written. A reader that went away is still a BrokenPipeError."""


class StandardOutput(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from None


def prepare() -> None:
    """Opens closed streams, and makes the standard output one that fails with OutputFailed."""
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
    """Discards the buffer of the standard output: the end of the process would flush it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
