"""Python's garbage collection in workers: what was loaded is not looked through after every task.

A worker that Spark uses again collects garbage after each task. With pyspark, pandas, pyarrow and Fairlead loaded it looks at
85,000 objects, which are never garbage: 50 ms, more than most tasks of a small job or of a micro-batch take otherwise, in each
of two hundred tasks where a session has as many partitions.

Takes: nothing. Gives: nothing. Never: is called by a driver, whose memory is its user's.
"""

from __future__ import annotations

import gc
import sys

MORE_MODULES = 50
"""Modules that were loaded since, for which it pays to do it again. As often as that, whatever is alive stays: a few times."""
_modules = 0


def spare_what_is_loaded() -> None:
    """To be called as a task begins, when little else is alive; it does something only where modules were loaded since."""
    global _modules
    if len(sys.modules) - _modules >= MORE_MODULES:
        _modules = len(sys.modules)
        gc.freeze()
