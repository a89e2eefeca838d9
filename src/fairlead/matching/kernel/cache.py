"""Where compiled kernels are kept on disk.

A file is named by a digest of all that its content depends on: the key (source and signature), our version, numba's, LLVM's
and the processor. So it has one meaning for ever, processes that write it at the same time write code that does the same, and
machine code of another machine on a shared home is never met. Files appear whole or not at all, and begin with a digest of
what follows: half a file, or a damaged one, is as good as none.

Takes: a key. Gives: the bytes that were stored under it, or None. Never: fails; and never reads from a folder that somebody
else can write to, because machine code is run as it is found.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

VERSION = 3
"""Raise when the calling convention of kernels changes in a way that the source does not show."""
DIGEST_BYTES = 32


def load(key: str) -> bytes | None:
    path = _file_for(key)
    try:
        stored = path.read_bytes() if path is not None else b""
    except OSError:
        return None
    payload = stored[DIGEST_BYTES:]
    return payload if stored and hashlib.sha256(payload).digest() == stored[:DIGEST_BYTES] else None


def store(key: str, payload: bytes) -> None:
    path = _file_for(key)
    if path is None:
        return
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, path)
    except OSError:  # full, read-only or gone: the kernel is there, only not kept
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _file_for(key: str) -> Path | None:
    folder = _folder(os.environ.get("FAIRLEAD_CACHE") or _default())
    if folder is None:
        return None
    digest = hashlib.sha256(f"{VERSION}\n{_machine()}\n{_settings()}\n{key}".encode()).hexdigest()[:32]
    return folder / f"kernel_{digest}.bin"


def _default() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fairlead")


@lru_cache(maxsize=1)
def _machine() -> str:
    """What decides which machine code comes out, without importing numba: that alone takes 0.3 s."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    versions = f"{_numba_version()} {llvmlite.__version__} {llvm.llvm_version_info}"
    return f"{versions} {llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"


def _numba_version() -> str:
    found = find_spec("numba")
    try:
        return Path(found.origin).with_name("_version.py").read_text("utf-8")  # type: ignore[union-attr, arg-type]
    except (OSError, AttributeError, TypeError):
        from importlib.metadata import version  # 40 ms with its imports

        return version("numba")


def _settings() -> str:
    """NUMBA_CPU_NAME, NUMBA_OPT and others change what numba makes of a source."""
    return repr(sorted(each for each in os.environ.items() if each[0].startswith("NUMBA_")))


@lru_cache(maxsize=8)
def _folder(wanted: str) -> Path | None:
    folder = Path(wanted) / f"kernels-{sys.implementation.cache_tag}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        seen = folder.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (seen.st_uid != os.getuid() or seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return folder
