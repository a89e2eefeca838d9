"""What happens in a run, line by line with the seconds since its beginning; and the command that starts one.

Takes: where progress is printed. Gives: lines. Never: loses a line when a run ends with an error: the error has them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from fairlead.errors import LogError

Say = Callable[[str], None]


class RunJournal:
    """`say` is called with every line."""

    def __init__(self, say: Say = lambda line: None) -> None:
        self._say, self._began = say, time.monotonic()
        self.told: list[str] = []

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def say(self, line: str) -> None:
        self.told.append(f"{self.seconds:7.1f}  {line}")
        self._say(self.told[-1])


class RunReport(Protocol):
    @property
    def problems(self) -> Sequence[str]: ...

    @property
    def outcome(self) -> str: ...


def run_command(folder: Path | None, run: Callable[[Path, Say], RunReport]) -> int:
    """Runs in a folder, or in a temporary one, and prints what happens; the exit code of a command: 1 if there are problems."""
    with tempfile.TemporaryDirectory(prefix="fairlead-run-") as temporary:
        folder = folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            report = run(folder, lambda line: print(line, flush=True))
        except LogError as error:
            print(error, file=sys.stderr)
            return 1
    print(report.outcome)
    return 1 if report.problems else 0
