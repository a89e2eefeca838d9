"""The process in which cases run: it says when each begins and ends, so that whoever started it knows which one ended it.

    python -m tests.fuzz.child TARGET FIRST COUNT SECONDS

Every case has a limit of processor time (the system ends the process) and the process one of memory (a MemoryError, or the
end). Lines on the standard output: `begin SEED`, `end SEED`, `bad SEED {"problem": ...}`, and at the end `seen {...}`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stdout

CASE_SECONDS = float(os.environ.get("FAIRLEAD_FUZZ_SECONDS", "30"))
"""Of processor time. The slowest honest case, some kernels as machine code, takes three."""
MEMORY_BYTES = 8_000_000_000
"""Of addresses, beyond what the process has when it begins. An honest case fills less than 200 MB, but libraries reserve
addresses for each of their threads."""


def limited() -> None:
    try:
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: no limit of memory
        return
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_BYTES, resource.RLIM_INFINITY))


def main(target: str, first: int, count: int, seconds: float) -> None:
    os.environ.setdefault("FAIRLEAD_KERNELS", "checked")  # kernels that check bounds, on memory that is not zero
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    module = importlib.import_module(f"tests.fuzz.{target}")
    limited()
    gc.freeze()  # the modules stay: looking through them again and again took a tenth of the time
    gc.set_threshold(100_000, 50, 100)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    ends = time.monotonic() + seconds
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing):
        for seed in range(first, first + count):
            print("begin", seed, file=lines)
            signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
            try:
                module.case(seed)
            except BaseException as error:
                signal.setitimer(signal.ITIMER_PROF, 0)
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                where = traceback.extract_tb(error.__traceback__)[-1]
                told = {"problem": f"{type(error).__name__}: {error}"[:2_000], "place": f"{where.filename}:{where.lineno}"}
                print("bad", seed, json.dumps(told), file=lines)
            signal.setitimer(signal.ITIMER_PROF, 0)
            print("end", seed, file=lines)
            if time.monotonic() > ends:
                break
    print("seen", json.dumps(dict(getattr(module, "seen", {}))), file=lines)


if __name__ == "__main__":
    if "FAIRLEAD_CACHE" not in os.environ:
        with tempfile.TemporaryDirectory(prefix="fairlead-fuzz-") as folder:
            os.environ["FAIRLEAD_CACHE"] = folder
            main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
