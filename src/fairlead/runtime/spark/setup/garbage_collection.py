"""Garbage collection in Python workers: exempts loaded modules from the collection after every task.

A reused Spark worker collects garbage after each task. With pyspark, pandas, pyarrow and Fairlead loaded it scans 85,000
objects, which are never garbage: 50 ms, more than most tasks of a small job or of a micro-batch take otherwise, in each of two
hundred tasks if a session has as many partitions.

Takes: nothing. Gives: nothing. Never: is called by a driver, whose memory belongs to its user.
"""

from __future__ import annotations

import gc
import sys

MORE_MODULES = 50
"""Newly loaded modules from which repeating it pays off. Each time, all live objects become permanent: a few times in all."""
_modules = 0


def spare_what_is_loaded() -> None:
    """Call this as a task begins, when little else is alive; it does something only if modules were loaded since."""
    global _modules
    if len(sys.modules) - _modules >= MORE_MODULES:
        _modules = len(sys.modules)
        gc.freeze()
