"""Where compiled kernels are kept on disk.

numba keeps machine code beside a source file, with an index that holds for one version of the file (its time and size). So
a file here is named by a digest of the source, of our version, numba's and the processor: it has one content for ever,
processes that write it at the same time write the same bytes, and machine code of another machine on a shared home is never
met. Files appear whole or not at all, and their time is always the same.

Takes: a source. Gives: the path of its file, or None where there is no folder that is ours and can be written.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

VERSION = 2
"""Raise when the calling convention of kernels changes in a way that the source does not show."""
WRITTEN_AT = 1_000_000_000


def file_for(text: str) -> str | None:
    folder = _folder(os.environ.get("FAIRLEAD_CACHE") or _default())
    if folder is None:
        return None
    digest = hashlib.sha256(f"{VERSION}\n{_machine()}\n{text}".encode()).hexdigest()[:24]
    path = folder / f"kernel_{digest}.py"
    try:
        if not path.exists():
            _write(path, text)
    except OSError:
        return None
    return str(path)


def _default() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fairlead")


@lru_cache(maxsize=1)
def _machine() -> str:
    import llvmlite.binding as llvm
    import numba

    features = llvm.get_host_cpu_features().flatten()
    return f"{numba.__version__} {llvm.llvm_version_info} {llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"


@lru_cache(maxsize=8)
def _folder(wanted: str) -> Path | None:
    folder = Path(wanted) / f"kernels-{sys.implementation.cache_tag}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            return None  # machine code is run as it is found: only our own
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


def _write(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.utime(temporary, (WRITTEN_AT, WRITTEN_AT))
    os.replace(temporary, path)
