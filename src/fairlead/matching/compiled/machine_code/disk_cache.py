"""Where compiled kernels are kept on disk.

A file is named by digests of all that its content depends on: the source with VERSION, LLVM's version and the processor, and
the signature. So it has one meaning for ever, processes that write it at the same time write code that does the
same, and machine code of another machine on a shared home is never met. Files appear whole or not at all, and begin with a
digest of what follows: half a file, or a damaged one, is as good as none.

Takes: a source and a signature. Gives: the bytes that were stored for them, or None. Never: fails; and never reads from a
folder that somebody else can write to, because machine code is run as it is found.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

VERSION = 6
"""Raise when other code is made of a source, or is called in another way."""
DIGEST_BYTES = 32


def load(source: str, signature: str) -> bytes | None:
    path = _file_for(source, signature)
    try:
        stored = path.read_bytes() if path is not None else b""
    except OSError:
        return None
    payload = stored[DIGEST_BYTES:]
    return payload if stored and hashlib.sha256(payload).digest() == stored[:DIGEST_BYTES] else None


def store(source: str, signature: str, payload: bytes) -> None:
    path = _file_for(source, signature)
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


def missing(sources: Iterable[str]) -> list[str]:
    """The sources for which nothing is stored, whatever the signature: what has to be compiled. Files are not read."""
    folder = _kernels()
    try:
        names = [] if folder is None else os.listdir(folder)
    except OSError:
        names = []
    stored = {name.rsplit("_", 1)[0] for name in names}
    return [each for each in sources if _name_of(each) not in stored]


def _file_for(source: str, signature: str) -> Path | None:
    folder = _kernels()
    return None if folder is None else folder / f"{_name_of(source)}_{_digest(signature)[:16]}.bin"


def _kernels() -> Path | None:
    return own_folder(f"kernels-{sys.implementation.cache_tag}")


def _name_of(source: str) -> str:
    return "kernel_" + _digest(f"{VERSION}\n{_machine()}\n{source}")[:32]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def own_folder(name: str) -> Path | None:
    """The folder of that name in the user's cache; None where there can be none that this user alone can write to."""
    return _folder(os.environ.get("FAIRLEAD_CACHE") or _default(), name)


def _default() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fairlead")


@lru_cache(maxsize=1)
def _machine() -> str:
    """What decides which machine code comes out."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    versions = f"{llvmlite.__version__} {llvm.llvm_version_info}"
    return f"{versions} {llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"


@lru_cache(maxsize=8)
def _folder(cache: str, name: str) -> Path | None:
    folder = Path(cache) / name
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        seen = folder.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (seen.st_uid != os.getuid() or seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return folder
