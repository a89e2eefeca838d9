"""Kernels on disk: found again and not compiled anew, and never a reason to fail, nor to run what is not ours."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairlead
from fairlead.errors import InvariantError
from fairlead.matching.compiled.machine_code import compiler as compiling
from fairlead.matching.compiled.machine_code import native, surroundings
from fairlead.matching.compiled.machine_code import object_code as emit
from fairlead.matching.compiled.representation.statements import Program
from fairlead.runtime import user_cache as cache
from tests.matching.compiled.kernel_text import parsed
from tests.matching.compiled.test_kernel import compared
from tests.matching.compiled.test_kernel_compiled import stream
from tests.matching.generators.generated import TYPES

pytestmark = pytest.mark.xdist_group("compiled kernels")
RULES = f"{TYPES}\nSUBSCRIPTION S MATCH A a AND B b"

SOURCE = """def larger(a, b):
    return a if a > b else b

def kernel(numbers, table, flags, start, rests):
    total = start
    for i in range(len(numbers)):
        total += larger(numbers[i], 0)
        table[i, 1] = total
        flags[i] = total > 10
        rests[i] = np.fmod(rests[i], 3.0)
    return total, len(table), -start"""
"""Helpers, a table, a function of libm, more results than two: whatever the sources of patterns do not have today."""

NEW_PROCESS = f"""import sys
import numpy as np
from fairlead.matching.compiled.machine_code.compiler import Compiled
from tests.matching.compiled.kernel_text import parsed
rests = np.array([7.5, -4.0, 2.0])
found = Compiled(parsed({SOURCE!r}))(np.array([5, -3, 9]), np.zeros((3, 2)), np.zeros(3, dtype=bool), 1, rests)
assert found == (15, 3, -1), found
assert rests.tolist() == [1.5, -1.0, 2.0], rests
print("fairlead.matching.compiled.machine_code.object_code" in sys.modules)"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_JIT", "1")
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "cache"))
    compiling._compiled.cache_clear()
    return tmp_path / "cache"


def arguments() -> tuple[Any, ...]:
    return np.array([5, -3, 9]), np.zeros((3, 2)), np.zeros(3, dtype=bool), 1, np.array([7.5, -4.0, 2.0])


def files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Runs the source as a new process would, and gives how often it was compiled for that."""
    made: list[Program] = []
    code = emit.object_code

    def watched(source: Program, signature: native.Signature, checked: bool) -> bytes:
        made.append(source)
        return code(source, signature, checked)

    monkeypatch.setattr(emit, "object_code", watched)

    def run() -> int:
        made.clear()
        given = arguments()
        assert compiling.Compiled(parsed(SOURCE))(*given) == (15, 3, -1)
        assert given[1][:, 1].tolist() == [6, 6, 15]
        assert given[2].tolist() == [False, False, True]
        assert given[4].tolist() == [1.5, -1.0, 2.0]
        return len(made)

    return run


def in_new_processes(count: int, **environment: str) -> list[str]:
    command = [sys.executable, "-c", NEW_PROCESS]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        for _ in range(count)
    ]
    ended = [each.communicate(timeout=120) for each in started]
    assert not any(each.returncode for each in started), ended
    return [printed.strip() for printed, _ in ended]


def test_a_new_process_runs_a_kernel_of_the_cache_without_the_compiler(folder: Path) -> None:
    assert in_new_processes(1) == ["True"]
    assert in_new_processes(1) == ["False"]


def test_a_second_run_of_the_command_finds_the_kernels_of_the_first(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.fl").write_text("TYPE A (v INT) TYPE B (v INT) SUBSCRIPTION S MATCH A a AND B b WHERE a.v == b.v")
    events = [{"type": "AB"[i % 2], "v": i // 2} for i in range(6000)]  # more than are matched one by one
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    command = [sys.executable, "-X", "importtime", "-c", "from fairlead.cli.main import main; main()"]
    command += ["run", "rules.fl", "--events", "events.jsonl", "--out", "found.jsonl"]
    compiler = []
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        compiler.append("fairlead.matching.compiled.machine_code.object_code" in done.stderr)
    assert compiler == [True, False]
    assert files(folder)


def test_a_core_without_a_store_compiles_in_memory(folder: Path, compiled: Callable[[], int]) -> None:
    surroundings.give(surroundings.MemoryOnly)
    try:
        assert (compiled(), compiled()) == (1, 1)
        assert compiling.unmade([parsed(SOURCE)]) == (1, 0)
    finally:
        surroundings.give(fairlead._user_cache)
    assert files(folder) == []
    assert (compiled(), compiled()) == (1, 0)


def test_processes_that_compile_at_the_same_time_leave_one_whole_file(folder: Path) -> None:
    assert "True" in in_new_processes(3)
    assert len(files(folder)) == 1
    assert in_new_processes(2) == ["False"] * 2


def test_a_rule_is_compiled_once_for_all_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compared(RULES, stream(40), 16)["matches"] > 3
    assert len(files(folder)) == 1
    compiling._compiled.cache_clear()
    monkeypatch.delattr(emit, "object_code")
    assert compared(RULES, stream(40), 16)["matches"] > 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: b"damaged",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole + b"\0",
        lambda whole: whole[:500] + bytes([whole[500] ^ 1]) + whole[501:],
    ],
)
def test_a_damaged_file_is_made_again(damage: Callable[[bytes], bytes], folder: Path, compiled: Callable[[], int]) -> None:
    assert compiled() == 1
    assert compiled() == 0
    (file,) = files(folder)
    file.write_bytes(damage(file.read_bytes()))
    assert compiled() == 1
    assert compiled() == 0
    assert files(folder) == [file]


def test_without_a_folder_kernels_are_compiled_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: Callable[[], int]
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "file"))
    assert (compiled(), compiled()) == (1, 1)


def test_what_cannot_be_written_is_compiled_in_memory(monkeypatch: pytest.MonkeyPatch, compiled: Callable[[], int]) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert (compiled(), compiled()) == (1, 1)


def test_half_written_files_are_taken_away(folder: Path, monkeypatch: pytest.MonkeyPatch, compiled: Callable[[], int]) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert compiled() == 1
    assert files(folder) == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owner here")
def test_a_folder_that_others_can_write_to_is_not_used(monkeypatch: pytest.MonkeyPatch, compiled: Callable[[], int]) -> None:
    assert (compiled(), compiled()) == (1, 0)
    cache._folder.cache_clear()
    with monkeypatch.context() as changed:
        changed.setattr(os, "getuid", lambda: 12345)
        assert compiled() == 1
    cache._folder.cache_clear()
    (kernels,) = Path(os.environ["FAIRLEAD_CACHE"]).iterdir()
    kernels.chmod(0o777)
    assert compiled() == 1
    cache._folder.cache_clear()
    kernels.chmod(0o700)
    assert compiled() == 0


def test_other_sources_and_signatures_have_files_of_their_own(folder: Path) -> None:
    source = "def kernel(a):\n    return len(a), {}"
    for number, given in ((1, np.zeros(3)), (2, np.zeros(3)), (1, np.zeros(3, dtype=np.int32)), (1, np.zeros((3, 2)))):
        assert compiling.Compiled(parsed(source.format(number)))(given) == (3, number)
    assert len(files(folder)) == 4
    assert compiling.Compiled(parsed(source.format(1)))(np.zeros((3, 4))) == (3, 1)  # another length of a row
    assert compiling.Compiled(parsed(source.format(1)))(np.zeros((3, 2))) == (3, 1)
    assert len(files(folder)) == 5


def test_what_is_still_to_be_compiled_is_known_without_compiling(folder: Path) -> None:
    sources = [f"def kernel(a):\n    return len(a), {number}" for number in range(5)]
    assert compiling.unmade(map(parsed, [*sources, *sources])) == (5, 0)
    for each in sources[:3]:
        compiling.kernel_of(parsed(each))(np.zeros(3))
    assert compiling.unmade(map(parsed, sources)) == (2, 0)
    compiling._compiled.cache_clear()  # as in a new process
    assert compiling.unmade(map(parsed, sources)) == (2, 3)
    compiling.kernel_of(parsed(sources[0]))(np.zeros(3))
    assert compiling.unmade(map(parsed, sources)) == (2, 2)


def test_every_type_of_array_is_read_as_it_is() -> None:
    source = "def kernel(a, b):\n    return int(a[1]), int(b[0, 1]), len(a), b.shape[1]"
    kernel = compiling.Compiled(parsed(source))
    for dtype in native.DTYPES:
        given = np.array([0, 1], dtype=dtype)
        assert kernel(given, np.array([[5, 7, 9]])) == (1, 7, 2, 3), dtype
    assert kernel(np.array([0, -1], dtype=np.int8), np.array([[-1, -2]]))[:2] == (-1, -2)


def test_whole_numbers_of_numpy_are_taken_and_fractions_are_not() -> None:
    kernel = compiling.Compiled(parsed("def kernel(a, n):\n    return n, len(a)"))
    assert kernel(np.zeros(0), np.int64(-7)) == (-7, 0)
    assert kernel(np.zeros(0), np.int64(-7)) == (-7, 0)
    assert kernel(np.zeros(0), -(2**63)) == (-(2**63), 0)
    with pytest.raises(TypeError):
        kernel(np.zeros(0), 1.5)
    with pytest.raises(OverflowError):
        kernel(np.zeros(0), 2**63)


def test_arrays_that_the_code_cannot_read_are_refused_at_every_call() -> None:
    kernel = compiling.Compiled(parsed("def kernel(a):\n    return len(a), 0"))
    whole = np.zeros(8)
    assert kernel(whole) == (8, 0)
    odd = np.zeros(65, dtype=np.uint8)[1:].view(np.float64)
    swapped = whole.astype(">f8")
    for wrong in (whole[::2], odd, swapped, whole.astype(np.float32), np.zeros((2, 2, 2)), np.zeros(2, dtype="M8[us]")):
        with pytest.raises(InvariantError):
            kernel(wrong)
    with pytest.raises(TypeError):
        kernel("text")
    assert kernel(whole) == (8, 0)


def test_an_array_that_is_not_writable_can_be_read_and_not_written() -> None:
    fixed = np.arange(4)
    fixed.flags.writeable = False
    reads = "def kernel(a):\n    return a[3], 0"
    writes = "def kernel(a):\n    five(a)\n    return a[3], 0\n\ndef five(a):\n    a[3] = 5"
    reading, writing = compiling.Compiled(parsed(reads)), compiling.Compiled(parsed(writes))
    assert (reading(fixed), reading(fixed), reading(np.arange(4))) == ((3, 0), (3, 0), (3, 0))
    assert writing(np.arange(4)) == (5, 0)
    with pytest.raises(InvariantError, match="can be written to"):
        writing(fixed)
    with pytest.raises(InvariantError, match="can be written to"):
        compiling.Compiled(parsed(writes))(fixed)
    assert fixed.tolist() == [0, 1, 2, 3]


def test_a_source_that_cannot_be_compiled_is_an_error(folder: Path) -> None:
    with pytest.raises(InvariantError, match=r"line 2: .*List"):
        compiling.Compiled(parsed("def kernel(a):\n    return [1], 0"))(np.zeros(1))
    assert files(folder) == []


def test_threads_that_call_a_kernel_at_the_same_time_do_not_meet(folder: Path) -> None:
    kernel = compiling.Compiled(parsed(SOURCE))

    def call(start: int) -> list[tuple[int, ...]]:
        made = []
        for _ in range(100):
            numbers, table, flags, _, rests = arguments()
            made.append(kernel(numbers, table, flags, start, rests))
        return made

    with ThreadPoolExecutor(4) as pool:
        for start, made in enumerate(pool.map(call, range(4))):
            assert made == [(14 + start, 3, -start)] * 100
    assert len(files(folder)) == 1


def test_code_that_asks_for_a_symbol_that_is_not_there_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = emit.object_code(parsed(SOURCE), native.signature_of(arguments()))
    assert native.is_loadable(payload)
    code = native._unpacked(payload)[2]
    if code.startswith(b"\x7fELF"):
        assert list(native._undefined(native.llvm.ObjectFileRef.from_data(code))) == ["fmod"]
    monkeypatch.setattr(native, "_undefined", lambda _: ["NRT_Allocate_of_nobody"])
    assert not native.is_loadable(payload)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owner here")
@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o1777, True), (0o755, True), (0o702, False)])
@pytest.mark.parametrize("level", [0, 1])
def test_nor_is_a_folder_that_others_can_replace(
    mode: int, used: bool, level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: Callable[[], int]
) -> None:
    """Whoever can write to a folder above can put a folder of theirs in its place, also after it was checked."""
    above = tmp_path / "above"
    cached = above.joinpath(*["between"] * level, "cache")
    cached.mkdir(parents=True)
    monkeypatch.setenv("FAIRLEAD_CACHE", str(cached))
    above.chmod(mode)
    cache._folder.cache_clear()
    assert (compiled(), compiled()) == (1, 0 if used else 1)


def test_kernels_that_nobody_uses_are_forgotten_and_one_in_use_is_never_made_twice() -> None:
    """A process that compiled thousands of different rules kept them all."""

    def program(number: int) -> Program:
        return parsed(f"def kernel(start):\n    return start + {number}, start")

    used = compiling.kernel_of(program(0), jit=True)
    unused = [weakref.ref(compiling.kernel_of(program(number), jit=True)) for number in range(1, 2 * compiling.KERNELS_KEPT)]
    gc.collect()
    assert sum(each() is not None for each in unused) <= compiling.KERNELS_KEPT
    assert compiling.kernel_of(program(0), jit=True) is used
