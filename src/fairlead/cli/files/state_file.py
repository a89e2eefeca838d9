"""The file of `--state`: locked by one run at a time, read at its beginning.

If two runs resumed from the same state, each would save its own, and the events of one would be lost. So a run takes a lock
beside the file, which the operating system releases however the run ends.

Takes: a path. Gives: `held`, the lock, and `resumed_from`, the state of an earlier run. Never: writes the state.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairlead.cli.files.rule_files import opened
from fairlead.errors import StateError
from fairlead.runtime.run_state import HEAD_BYTES, RunState, decode_run, is_run
from fairlead.transport.admission.problems import unwritable


@contextmanager
def held(path: str | None) -> Iterator[None]:
    """Locks the state for the block. Raises S143 at once if another run holds it. Symbolic links to one file are one state;
    hard links are not, since the file is replaced."""
    if path is None:
        yield
        return
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.lock")
    descriptor = _taken(lock, path)
    try:
        yield
    finally:
        with suppress(OSError):  # a later run takes the file over
            lock.unlink()  # before the release, so that the locked file and the named file are the same
        os.close(descriptor)


def _taken(lock: Path, path: str) -> int:
    """1. open, 2. lock, 3. check that the name still refers to the locked file: the last run may just have removed it."""
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
    """The state of an earlier run, if there was one."""
    if path is None or not os.path.lexists(path) or not os.path.lexists(os.path.realpath(path)):
        return None
    with opened(path, "the state", pipes=False) as file:
        head = file.read(HEAD_BYTES)
        return decode_run(head + file.read() if is_run(head) else head, path)
