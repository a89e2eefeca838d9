"""Compiled kernels on disk: found again, and never the reason that something fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead.matching.kernel import cache
from fairlead.matching.kernel import compile as compiling
from tests.match.generated import TYPES
from tests.match.test_kernel import compared
from tests.match.test_kernel_compiled import stream

pytestmark = pytest.mark.xdist_group("compiled kernels")
RULES = f"{TYPES}\nSUBSCRIPTION S MATCH A a AND B b"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_JIT", "1")
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "cache"))
    compiling._compiled.cache_clear()
    return tmp_path / "cache"


def ran(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the rules as a new process would, and gives numba's function."""
    made: list[Any] = []
    ready = compiling._Guarded._ready

    def watched(self: Any, arguments: tuple[Any, ...]) -> Any:
        made.append(ready(self, arguments))
        return made[-1]

    monkeypatch.setattr(compiling._Guarded, "_ready", watched)
    compiling._compiled.cache_clear()
    assert compared(RULES, stream(40), 16)["matches"] > 3
    return made[0] if made else None


def test_machine_code_is_found_again_unless_it_is_damaged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ran(monkeypatch).stats.cache_hits
    assert ran(monkeypatch).stats.cache_hits
    (code,) = folder.rglob("*.nbc")
    code.write_bytes(b"damaged")
    assert not ran(monkeypatch).stats.cache_hits


def test_without_a_folder_to_write_kernels_are_compiled_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "file"))
    assert cache.file_for("def kernel(): pass") is None
    assert ran(monkeypatch) is None


def test_a_file_is_written_once_and_always_with_the_same_time(folder: Path) -> None:
    first = cache.file_for("def kernel(): pass")
    assert first is not None
    assert Path(first).stat().st_mtime == cache.WRITTEN_AT
    assert cache.file_for("def kernel(): pass") == first
    assert cache.file_for("def kernel(): return 1") != first
    assert not list(folder.rglob("*.tmp"))
