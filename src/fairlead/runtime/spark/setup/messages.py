"""Redirects the output of Spark's processes: its JVM and its Python workers write to the standard error with which they were
started.

A stateful worker prints five lines whenever it starts, and a failed task its traceback twice. A command with its own messages
redirects them to a file, and names that file if it has no better answer.

Takes: nothing. Gives: a file to which a session started inside `apart` prints. Never: redirects the output of this process
itself.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

STANDARD_ERROR = 2


@contextlib.contextmanager
def apart() -> Iterator[Path]:
    """Processes that are started inside print to the file; this one does not."""
    handle, name = tempfile.mkstemp(prefix="fairlead-spark-", suffix=".log")
    sys.stderr.flush()
    before = os.dup(STANDARD_ERROR)
    os.dup2(handle, STANDARD_ERROR)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        os.dup2(before, STANDARD_ERROR)
        os.close(before)
