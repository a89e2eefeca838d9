"""The process of the command line: its start, and how a signal ends it.

While modules are imported, and again when the command has ended, nothing is open and no file is incomplete: a signal ends the
process at once, without a traceback through an import. In between it is an exception, so that incomplete files are removed
(shell.py, signals.py).

Takes: the arguments of the process. Gives: its exit code. Never: imports more than this needs before signals are handled.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType

from fairlead.cli.process.signals import ENDING, HELD, comes_too_late

COLLECTED_AFTER = 100_000
"""Objects created before the garbage collector runs: importing creates hundreds of thousands that stay, matching next to none.
Saves 0.02 s of CPU of a `fairlead run` of five events (0.45 s), 0.06 s of a million (0.93 s)."""
SWITCH_SECONDS = 0.001
"""How long a thread waits until another gives way. Threads of a run read, match, convert and write; each needs Python's lock
for moments only, and by default would wait for five thousandths of a second: a tenth of a run over 5,000,000 events."""


def main() -> None:
    """The entry point of the process."""
    _end_at_once()
    try:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start threads for unused linear algebra: 40 ms
        from fairlead.cli.process import standard_streams, without_pandas

        standard_streams.prepare()
        without_pandas.hide()
        gc.set_threshold(COLLECTED_AFTER)
        sys.setswitchinterval(SWITCH_SECONDS)
        from fairlead.cli.command_table import cli

        signal.signal(signal.SIGINT, _interrupted)
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, _terminated)
        cli(prog_name="fairlead")
    finally:
        _end_at_once()
        gc.freeze()  # the end of the process would look through everything once more: 0.06 s of `run`, 0.01 s of `--help`


def _end_at_once() -> None:
    for number in HELD:
        if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _ended)


def _ended(number: int, frame: FrameType | None) -> None:
    if comes_too_late():
        return
    if number == signal.SIGINT:
        os.write(2, b"interrupted\n")
    os._exit(128 + number)


def _interrupted(number: int, frame: FrameType | None) -> None:
    if not comes_too_late():
        raise KeyboardInterrupt


def _terminated(number: int, frame: FrameType | None) -> None:
    """An exception instead of a sudden end, so that incomplete files are removed."""
    if comes_too_late():
        return
    sys.exit(128 + number)
