"""The actions of a process, line by line, in a file that survives its death.

    publisher    {"sent": x, "type": …, "time": …, "at": …} x is about to be published, with this time
                 {"stored": x, "type": …, "at": …}          all before x is stored
    subscriber   {"number": n, "group": …, "id": …, "sign": …, "subscription": …, "branch": …, "positions": […], "at": …}
                 {"verdict": …, "subscription": …, "event": [type, source, x], "after": n, "at": …}
                                                            an event that took no part, reported after delivery n of the group
                 {"acked": n, "group": …, "at": …}
                 {"receipts": {…}}                          at the end
    both         {"begun": name}                            a new process, or a new connection
                 {"trouble": words}                         an error that was raised and handled

`at` is the clock of the machine, in nanoseconds; the same for all processes.

Takes: a path. Gives: lines. Never: loses a line that was written before a kill.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Writer:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, **line: Any) -> None:
        """One system call: all of the line, or nothing."""
        os.write(self._file, json.dumps({**line, "at": time.monotonic_ns()}).encode() + b"\n")


class RecordLines:
    """Lines as they are written."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0
        self.lines: list[Line] = []

    def refresh(self) -> list[Line]:
        """All lines so far."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                fresh = file.read()
            whole = fresh[: fresh.rfind(b"\n") + 1]
            self._read += len(whole)
            self.lines += [json.loads(each) for each in whole.splitlines()]
        return self.lines

    def last(self, key: str) -> int:
        """When a line with that key was written last; 0: never."""
        return next((int(each["at"]) for each in reversed(self.refresh()) if key in each), 0)
