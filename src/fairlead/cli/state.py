"""The file of `--state`: held by one run at a time, read at its beginning.

Two runs that go on from the same state would each leave theirs, and the events of one would be lost. So a run takes a lock
beside the file, which the operating system releases however the run ends.

Takes: a path. Gives: `held`, the lock, and `resumed_from`, what an earlier run left. Never: writes the state.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairlead.cli.rules import opened
from fairlead.errors import StateError
from fairlead.runtime.run_state import HEAD_BYTES, RunState, decode_run, is_run
from fairlead.transport.admission.problems import unwritable


@contextmanager
def held(path: str | None) -> Iterator[None]:
    """No other run has the state while the block lasts. Raises S143 at once where one has. Symbolic links to one file are one
    state; hard links are not, since the file is replaced."""
    if path is None:
        yield
        return
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.lock")
    descriptor = _taken(lock, path)
    try:
        yield
    finally:
        with suppress(OSError):  # whoever finds the name later takes it over
            lock.unlink()  # before it is released: what is locked and what has the name are the same file
        os.close(descriptor)


def _taken(lock: Path, path: str) -> int:
    """1. open, 2. lock, 3. check that the name still stands for what was locked: the last run may just have removed it."""
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)  # 1
        except OSError as error:
            raise unwritable("the state", error, path) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # 2
            if os.path.samestat(os.fstat(descriptor), os.stat(lock)):  # 3
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            fix = "wait until it has finished, or name another file"
            raise StateError("S143", "another run is using this state", fix, path) from None
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(descriptor)
            raise unwritable("the lock of the state", error, path) from None
        os.close(descriptor)


def resumed_from(path: str | None) -> RunState | None:
    """What an earlier run left there, if there was one."""
    if path is None or not os.path.lexists(path) or not os.path.lexists(os.path.realpath(path)):
        return None
    with opened(path, "the state", pipes=False) as file:
        head = file.read(HEAD_BYTES)
        return decode_run(head + file.read() if is_run(head) else head, path)
