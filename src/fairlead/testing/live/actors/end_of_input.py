"""The end of a child process: when its parent closes its input, or ends.

Takes: the standard input. Gives: an event; some time later the process ends, whatever it is doing. Never: ends it before.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

END_SECONDS = 60.0


def asked_to_stop() -> asyncio.Event:
    asked, loop, file = asyncio.Event(), asyncio.get_running_loop(), sys.stdin.fileno()

    def readable() -> None:
        if not os.read(file, 1024):
            loop.remove_reader(file)
            asked.set()
            loop.call_later(END_SECONDS, os._exit, 3)

    loop.add_reader(file, readable)
    loop.add_signal_handler(signal.SIGUSR1, _print_tasks)
    return asked


def _print_tasks() -> None:
    """On request: where each task waits, for a process that makes no progress."""
    for each in asyncio.all_tasks():
        each.print_stack(file=sys.stderr)
    sys.stderr.flush()
