"""The workers of a run, seen from the run: their start, what they are given, what they reply, and their end.

Takes: a command that starts a worker. Gives: the replies of all, batch by batch, in the order of the batches. Never: leaves a
process or a thread behind, or waits for a worker that has ended.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from fairlead.errors import FairleadError
from fairlead.matching.results.transferred import TransferredRelations
from fairlead.model.events.columns import Columns
from fairlead.runtime.spread.frames import read_frame, write_frame
from fairlead.runtime.spread.worker import Assignment


class _Ended:
    """Instead of a reply: the worker has ended."""


class WorkerProcess:
    """One worker. Threads write to it and read from it, so that neither side waits while the other could work."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )  # a session of its own: Ctrl-C is for the run, which ends its workers
        self._given: SimpleQueue[Any] = SimpleQueue()
        self._replies: SimpleQueue[Any] = SimpleQueue()
        self._threads = [Thread(target=each, daemon=True) for each in (self._send, self._receive)]
        for each in self._threads:
            each.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def give(self, value: Any) -> None:
        self._given.put(value)

    def reply(self) -> Any:
        """The next reply. Raises the error that the worker met, or A288 if it has ended."""
        found = self._replies.get()
        if isinstance(found, _Ended):
            code = self._process.wait()
            how = f"signal {-code} ended it" if code < 0 else f"exit code {code}"
            problem = f"a worker process of the run (process {self.pid}) has ended: {how}"
            fix = "run it again; if the machine has too little memory, use --jobs 1"
            raise FairleadError("A288", problem, fix)
        if isinstance(found, Exception):
            raise found
        return found

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._given.put(None)
        for each in self._threads:
            each.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _send(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # the other thread notices that the worker has ended
            while (value := self._given.get()) is not None:
                write_frame(self._process.stdin, value)

    def _receive(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._replies.put(read_frame(self._process.stdout))
        except EOFError:
            pass
        finally:
            self._replies.put(_Ended())


class Workers:
    """All workers of a run, with the same assignment."""

    def __init__(self, command: Sequence[str], count: int, assignment: Assignment) -> None:
        self.processes: list[WorkerProcess] = []
        try:
            for _ in range(count):
                self.processes.append(WorkerProcess(command))
                self.processes[-1].give(assignment)
        except BaseException:
            self.end()
            raise

    def __len__(self) -> int:
        return len(self.processes)

    def give(self, shares: Sequence[Sequence[Columns]]) -> None:
        """A batch: by worker its share, for each group."""
        for process, share in zip(self.processes, shares, strict=True):
            process.give(share)

    def replies(self) -> list[TransferredRelations]:
        """What all of them found in the next batch that has no reply yet."""
        return [each for process in self.processes for each in process.reply()]

    def end(self) -> None:
        for each in self.processes:
            each.end()
        self.processes = []
