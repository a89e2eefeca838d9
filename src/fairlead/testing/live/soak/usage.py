"""What processes and folders use: memory in the machine's own account, and bytes on disk; and whether processors are short.

Takes: processes, folders. Gives: megabytes; whether a series has grown. Never: changes anything.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median

GROWTH_MAX, SLACK = 1.1, 15.0
"""The last third of a series may be this much above the middle third, in proportion and in megabytes: restarted processes are
small at first."""
SHORTAGE_MAX = 10.0


def memory(pid: int | None) -> float | None:
    """Megabytes; None if there is no such process."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(each.split()[1]) / 1024 for each in lines if each.startswith("VmRSS:")), None)


def shortage() -> float:
    """How many processes there are for each processor of the machine, from 1 to `SHORTAGE_MAX`: everything takes as many times
    as long."""
    return min(SHORTAGE_MAX, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def disk(folder: Path) -> float:
    """Megabytes of the files in a folder; those that are removed meanwhile do not count."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(path, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total / 2**20


def growth(series: Sequence[float]) -> str | None:
    """Why a series has grown; None if it is flat. The first third is not compared: caches fill, and nothing is trimmed yet."""
    third = len(series) // 3
    if not third:
        return "there are too few samples"
    middle, last = median(series[third : 2 * third]), median(series[2 * third :])
    return f"{middle:,.0f} MB, later {last:,.0f} MB" if last > GROWTH_MAX * middle + SLACK else None
