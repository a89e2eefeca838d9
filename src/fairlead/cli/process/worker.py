"""The process of a worker of `fairlead run` (runtime/spread/worker.py): over its standard streams, without pandas.

Takes: frames on the standard input. Gives: frames on what was the standard output. Never: prints among them.
"""

from __future__ import annotations

import os
import signal
import sys

COMMAND = (sys.executable, "-P", "-m", "fairlead.cli.process.worker")
"""`-P`: no module of the working directory takes the place of another."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run ends its workers
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from fairlead.cli.process import without_pandas
    from fairlead.cli.process.memory import keep_freed

    without_pandas.hide()
    keep_freed()
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from fairlead.runtime.spread.worker import work

    work(sys.stdin.buffer, target)


if __name__ == "__main__":
    main()
