"""The user's cache on disk, and the compiled kernels in it.

A kernel's file is named by digests of everything its content depends on. So a name has one meaning, processes that write the
same file at the same time write equivalent code, and machine code of another machine on a shared home is never loaded. Files
appear completely or not at all and start with a digest of the rest: a partial or damaged file counts as missing.

Takes: the requests of machine_code/surroundings.py. Gives: the stored bytes, or None; folders for other files. Never: fails, or
reads from a folder that another user can write to, because stored machine code is run.
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

from fairlead.matching.compiled.machine_code.surroundings import Build

DIGEST_BYTES = 32


class UserCache:
    """Kernels in the folder FAIRLEAD_CACHE, else in `~/.cache/fairlead`. FAIRLEAD_JIT=0: kernels as plain Python;
    FAIRLEAD_KERNELS=checked: with every index checked. The environment is read each time."""

    def build(self) -> Build:
        return Build(os.environ.get("FAIRLEAD_JIT", "1") != "0", os.environ.get("FAIRLEAD_KERNELS") == "checked")

    def load(self, kernel: str, signature: str) -> bytes | None:
        path = _file_for(kernel, signature)
        try:
            stored = path.read_bytes() if path is not None else b""
        except OSError:
            return None
        payload = stored[DIGEST_BYTES:]
        return payload if stored and hashlib.sha256(payload).digest() == stored[:DIGEST_BYTES] else None

    def store(self, kernel: str, signature: str, payload: bytes) -> None:
        path = _file_for(kernel, signature)
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

    def missing(self, kernels: Iterable[str]) -> list[str]:
        folder = _kernels()
        try:
            names = [] if folder is None else os.listdir(folder)
        except OSError:
            names = []
        stored = {name.rsplit("_", 1)[0] for name in names}
        return [each for each in kernels if _name_of(each) not in stored]


def own_folder(name: str) -> Path | None:
    """The folder of that name in the user's cache; None where there can be none that this user alone can write to."""
    return _folder(os.environ.get("FAIRLEAD_CACHE") or _default(), name)


def _file_for(kernel: str, signature: str) -> Path | None:
    folder = _kernels()
    return None if folder is None else folder / f"{_name_of(kernel)}_{hashlib.sha256(signature.encode()).hexdigest()[:16]}.bin"


def _kernels() -> Path | None:
    return own_folder(f"kernels-{sys.implementation.cache_tag}")


def _name_of(kernel: str) -> str:
    return f"kernel_{kernel[:32]}"


def _default() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fairlead")


@lru_cache(maxsize=8)
def _folder(cache: str, name: str) -> Path | None:
    folder = Path(cache) / name
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = folder.resolve(strict=True)  # a link could point elsewhere tomorrow
        seen = [each.stat() for each in (folder, *folder.parents)]
    except (OSError, RuntimeError):
        return None
    if hasattr(os, "getuid") and not (_is_ours(seen[0]) and all(map(_is_kept, seen[1:]))):
        return None
    return folder


def _is_ours(seen: os.stat_result) -> bool:
    return seen.st_uid == os.getuid() and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_kept(seen: os.stat_result) -> bool:
    """Whether nobody but this user and root can put another folder in place of one in it: not after a check either. The group
    of a user alone has the user's number by convention."""
    if seen.st_uid not in (0, os.getuid()):
        return False
    if seen.st_mode & stat.S_ISVTX:
        return True
    alone = seen.st_gid == seen.st_uid
    return not seen.st_mode & (stat.S_IWOTH if alone else stat.S_IWOTH | stat.S_IWGRP)
