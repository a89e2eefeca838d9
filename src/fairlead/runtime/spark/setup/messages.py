"""What Spark's processes print: its JVM and its Python workers write to the standard error that they were started with.

A stateful worker prints five lines whenever it starts, and a failed task its traceback twice. A command that answers in words
of its own has them in a file instead, which it names where it has no better answer.

Takes: nothing. Gives: a file that a session started inside of `apart` prints to. Never: takes what this process itself prints.
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
