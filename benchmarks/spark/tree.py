"""CPU seconds and memory of a process and everything below it: Python, its JVM, the JVM's Python workers.

Takes: /proc, five times a second. Gives: CPU seconds of all processes ever seen, and the largest sum of their resident
memory, split into JVM and Python. Standard library only: Flink's script imports it from an environment of its own.

Two inexactnesses, both small: a process that lives for less than a sample is not seen, and pages that forked Python workers
share are counted once for each. `ru_maxrss` and `wait4` would see neither the JVM (its parent does not wait for it) nor the
workers (their daemon ignores SIGCHLD).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
SAMPLE_S = 0.2
GRACE_S = 3.0


@dataclass(frozen=True)
class Seen:
    parent: int
    began: int
    cpu_s: float
    resident_mb: float


def processes() -> dict[int, Seen]:
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as file:
                after = file.read().rpartition(")")[2]
        except OSError:
            continue  # it has ended meanwhile
        field = after.split()
        cpu_s = (int(field[11]) + int(field[12])) / TICKS
        found[int(entry)] = Seen(int(field[1]), int(field[19]), cpu_s, int(field[21]) * PAGE_MB)
    return found


def below(root: int, alive: dict[int, Seen]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, each in alive.items():
        children.setdefault(each.parent, []).append(pid)
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def _is_java(pid: int) -> bool:
    """By the program: a process that a JVM has just forked bears the name of a thread."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "java"
    except OSError:
        return False


class Watch:
    """Samples the tree of this process while the block runs. `with_root` counts this process too."""

    def __init__(self, with_root: bool = True) -> None:
        self.with_root = with_root
        self.seen: dict[tuple[int, int], float] = {}
        self.peak_mb = self.peak_jvm_mb = self.peak_python_mb = 0.0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(SAMPLE_S):
            self.look()

    def look(self) -> None:
        with self._lock:
            alive = processes()
            jvm = python = 0.0
            for pid in below(os.getpid(), alive):
                each = alive.get(pid)
                if each is None or (pid == os.getpid() and not self.with_root):
                    continue
                self.seen[pid, each.began] = each.cpu_s
                if not _is_java(pid):
                    python += each.resident_mb
                elif not _is_java(each.parent):
                    jvm += each.resident_mb
                # else: a JVM about to start another program. It shares all its parent's pages and lasts a moment, but a
                # sample that met one counted a gigabyte twice.
            self.peak_mb = max(self.peak_mb, jvm + python)
            self.peak_jvm_mb, self.peak_python_mb = max(self.peak_jvm_mb, jvm), max(self.peak_python_mb, python)

    def cpu_s(self) -> float:
        self.look()
        return sum(self.seen.values())

    def memory(self) -> dict[str, float]:
        return {"peak_mb": self.peak_mb, "peak_jvm_mb": self.peak_jvm_mb, "peak_python_mb": self.peak_python_mb}

    def end_strays(self) -> int:
        """Ends what is left of the processes seen, by id and start time, after a grace: a limit that struck kills the
        process group, and Python workers have one of their own."""
        began = time.monotonic()
        while left := self._left():
            if time.monotonic() - began > GRACE_S:
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return len(left)
            time.sleep(SAMPLE_S)
        return 0

    def _left(self) -> list[int]:
        alive = processes()
        return [pid for pid, began in self.seen if pid != os.getpid() and pid in alive and alive[pid].began == began]
