"""Processes that publish and subscribe, started, paused, killed and restarted under the same name.

Takes: a module with its arguments, a record. Gives: a process to kill. Never: leaves one running.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fairlead.testing.live.actors.records import RecordLines

STOP_SECONDS_MAX = 75.0
TASKS_SECONDS = 2.0
"""To print them, on a busy machine."""


class Worker:
    """`key`: the line of its record that shows progress."""

    def __init__(self, name: str, folder: Path, module: str, key: str, given: Sequence[str]) -> None:
        self.name, self.key = name, key
        path = folder / f"{name}.jsonl"
        self.record = RecordLines(path)
        self._errors = folder / f"{name}.err"
        self._command = [sys.executable, "-m", f"fairlead.testing.live.{module}", str(path), *given]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process unless it runs."""
        if self._process is not None:
            return
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)

    @property
    def started(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def ended(self) -> str | None:
        """Why it has ended by itself; None while it runs."""
        if self._process is None or self._process.poll() is None:
            return None
        return f"{self.name} has ended ({self._process.returncode}): {self._errors.read_text(errors='replace')[-8000:]}"

    def tasks(self) -> str:
        """Where its tasks wait."""
        before = self._errors.stat().st_size
        if self._process is not None:
            self._process.send_signal(signal.SIGUSR1)
            time.sleep(TASKS_SECONDS)
        return self._errors.read_text(errors="replace")[before:]

    def ask_to_stop(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def wait(self) -> str | None:
        """After a request to stop: the error, if there was one."""
        assert self._process is not None
        try:
            code = self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"{self.name} does not come to its end"
        said = self.ended
        self._process = None
        return said if code else None

    def pause(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self.ask_to_stop()
            self._process = None
